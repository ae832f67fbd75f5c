/* Which pipelines end in queues on disk only. There nothing may be acknowledged before it is on
 * disk: processors that hold requests back hand them through, and the queues batch. */
#include "agent/pipeline/graph_parts.h"
#include "agent/pipeline/queue.h"

static bool is_durable(struct graph *g, struct pipeline *p);

/* A connector hides what is behind it, unless all that it does is to pass requests on. */
static bool is_durable_end(struct graph *g, const struct node *n, enum signal s)
{
    const struct component_type *t = n->settings->type;
    if (t->kind != KIND_CONNECTOR)
        return n->queues[s] && queue_durable(n->queues[s]);
    for (size_t i = 0; t->same_signal && i < g->npipelines; i++)
        if (pipeline_receives(&g->pipelines[i], n) && g->pipelines[i].settings->signal == s &&
            !is_durable(g, &g->pipelines[i]))
            return false;
    return t->same_signal;
}

/* There are no cycles: the walk has seen to it. */
static bool is_durable(struct graph *g, struct pipeline *p)
{
    if (p->durable == DURABLE_UNKNOWN) {
        p->durable = DURABLE_YES;
        for (size_t i = 0; i < p->settings->nexporters; i++)
            if (!is_durable_end(g, p->exporters[i], p->settings->signal))
                p->durable = DURABLE_NO;
    }
    return p->durable == DURABLE_YES;
}

/* To all queues below `p`. */
static void set_limits(struct graph *g, struct pipeline *p, const struct node *processor,
                       const struct batch_limits *limits)
{
    const enum signal s = p->settings->signal;
    const struct queue_batch batch = {.flush_timeout_ns = limits->timeout_ns,
                                      .min_size = limits->min_records,
                                      .max_size = limits->max_records,
                                      .sizer = SIZER_ITEMS};
    if (p->seen == processor)
        return;
    p->seen = processor;
    for (size_t i = 0; i < p->settings->nexporters; i++) {
        const struct node *n = p->exporters[i];
        if (n->queues[s])
            queue_set_batch(n->queues[s], &batch);
        for (size_t k = 0; n->settings->type->kind == KIND_CONNECTOR && k < g->npipelines; k++)
            if (pipeline_receives(&g->pipelines[k], n) && g->pipelines[k].settings->signal == s)
                set_limits(g, &g->pipelines[k], processor, limits);
    }
}

/* One queue in memory is enough for that; whoever gave the others a storage may not expect it. */
static void warn_of_memory(const struct pipeline *p, const struct node *processor)
{
    const enum signal s = p->settings->signal;
    for (size_t i = 0; i < p->settings->nexporters; i++) {
        const struct node *n = p->exporters[i];
        if (!n->queues[s] || !queue_durable(n->queues[s]))
            continue;
        log_warn(&processor->component->logger,
                 "Data is acknowledged before it is on disk, because not all exporters of the "
                 "pipeline have a sending_queue with storage",
                 LOG_STR("exporter_with_storage", n->component->id));
        return;
    }
}

void graph_hand_through(struct graph *g)
{
    for (size_t i = 0; i < g->npipelines; i++) {
        struct pipeline *p = &g->pipelines[i];
        for (size_t k = 0; k < p->settings->nprocessors; k++) {
            struct node *n = p->processors[k];
            struct batch_limits limits;
            if (!n->settings->type->hand_through)
                continue;
            if (!is_durable(g, p)) {
                warn_of_memory(p, n);
                continue;
            }
            n->settings->type->hand_through(n->component, &limits);
            set_limits(g, p, n, &limits);
        }
    }
}
