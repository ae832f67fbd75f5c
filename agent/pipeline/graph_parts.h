/* What a graph is made of: graph_build.c makes it, graph_walk.c orders it, graph_durable.c looks
 * for queues on disk, graph.c runs it. */
#ifndef MOTEL_PIPELINE_GRAPH_PARTS_H
#define MOTEL_PIPELINE_GRAPH_PARTS_H

#include "agent/pipeline/graph.h"

/* One instance. Receivers, exporters, connectors and extensions are one per id; processors one per pipeline. */
struct node {
    const struct component_settings *settings;
    struct pipeline *pipeline;          /* processors; else NULL */
    struct component *component;        /* NULL until created */
    struct queue *queues[SIGNAL_COUNT]; /* queued exporters: of the signals they are used for */
    uint64_t leaves;                    /* connectors: what is below, once all pipelines below are walked */
    bool listed;                        /* connectors: in graph.inner */
    bool started;                       /* start() was called: stop() is due */
};

struct pipeline {
    const struct pipeline_settings *settings;
    struct node **receivers, **processors, **exporters;
    uint64_t *leaves;     /* below each exporter edge */
    uint64_t all_leaves;
    bool walking, walked;
    enum { DURABLE_UNKNOWN, DURABLE_NO, DURABLE_YES } durable; /* all exporters below have queues on disk */
    const struct node *seen; /* the last processor whose limits came by */
};

struct node_list {
    struct node **items; /* with room for all nodes */
    size_t n;
};
static inline void node_list_add(struct node_list *l, struct node *n)
{
    l->items[l->n++] = n;
}

struct graph {
    struct host *host;
    struct node *nodes;    /* all; `lists`, `edges` and `leaves` are the memory of the arrays above and below */
    struct node **lists, **edges;
    uint64_t *leaves;
    size_t nnodes, nedges, nleaves;
    struct pipeline *pipelines;
    size_t npipelines;
    struct node_list extensions, exporters, inner, receivers; /* in start order; inner = connectors and processors */
    struct fanout **fanouts;
    size_t nfanouts;
    bool ready;
};

bool pipeline_receives(const struct pipeline *p, const struct node *n); /* `n` is one of its receivers */
/* Fills g->inner, the pipelines' `leaves` and the connectors'. -EINVAL with the cycle in `errs`. */
int graph_walk(struct graph *g, struct cfg_errors *errs);

/* Processors in front of queues on disk only: they hand requests through, and the queues batch in their place. After the queues were made. */
void graph_hand_through(struct graph *g);

#endif
