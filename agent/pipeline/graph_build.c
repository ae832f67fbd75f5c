/* From settings to instances and edges: who exists, in which order, what is below whom. */
#include <errno.h>
#include <string.h>

#include "agent/pipeline/graph_parts.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue.h"

/* ---- memory ---- */

/* The most nodes there can be: each mention is one. */
static size_t count_mentions(const struct service_settings *s)
{
    size_t n = s->nextensions;
    for (size_t i = 0; i < s->npipelines; i++) {
        const struct pipeline_settings *p = &s->pipelines[i];
        n += p->nreceivers + p->nprocessors + p->nexporters;
    }
    return n;
}

static struct graph *graph_new(struct host *h, const struct service_settings *s)
{
    struct graph *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    size_t n = count_mentions(s) + 1;
    g->host = h;
    g->npipelines = s->npipelines;
    g->nodes = calloc(n, sizeof(*g->nodes));
    g->lists = calloc(4 * n, sizeof(struct node *));
    g->edges = calloc(n, sizeof(struct node *));
    g->leaves = calloc(n, sizeof(*g->leaves));
    g->fanouts = calloc(n * SIGNAL_COUNT, sizeof(struct fanout *));
    g->pipelines = calloc(s->npipelines + 1, sizeof(*g->pipelines));
    if (!g->nodes || !g->lists || !g->edges || !g->leaves || !g->fanouts || !g->pipelines)
        return graph_free(g);
    g->extensions.items = g->lists;
    g->exporters.items = g->lists + n;
    g->inner.items = g->lists + 2 * n;
    g->receivers.items = g->lists + 3 * n;
    return g;
}

/* ---- nodes ---- */

static struct node *node_new(struct graph *g, const struct component_settings *s,
                             struct pipeline *p)
{
    struct node *n = &g->nodes[g->nnodes++];
    *n = (struct node){.settings = s, .pipeline = p};
    return n;
}

/* The one instance of an id, put into the list of its kind when it is new; connectors are listed
 * when they are walked. */
static struct node *node_get(struct graph *g, const struct component_settings *s)
{
    for (size_t i = 0; i < g->nnodes; i++)
        if (g->nodes[i].settings == s)
            return &g->nodes[i];
    struct node *n = node_new(g, s, NULL);
    if (s->type->kind == KIND_RECEIVER)
        node_list_add(&g->receivers, n);
    else if (s->type->kind == KIND_EXPORTER)
        node_list_add(&g->exporters, n);
    else if (s->type->kind == KIND_EXTENSION)
        node_list_add(&g->extensions, n);
    return n;
}

static void add_pipeline(struct graph *g, struct pipeline *p, const struct pipeline_settings *s)
{
    *p = (struct pipeline){.settings = s};
    p->receivers = g->edges + g->nedges;
    p->processors = p->receivers + s->nreceivers;
    p->exporters = p->processors + s->nprocessors;
    p->leaves = g->leaves + g->nedges;
    g->nedges += s->nreceivers + s->nprocessors + s->nexporters;
    for (size_t i = 0; i < s->nreceivers; i++)
        p->receivers[i] = node_get(g, s->receivers[i]);
    for (size_t i = 0; i < s->nprocessors; i++)
        p->processors[i] = node_new(g, s->processors[i], p);
    for (size_t i = 0; i < s->nexporters; i++)
        p->exporters[i] = node_get(g, s->exporters[i]);
}

static void collect(struct graph *g, const struct service_settings *s)
{
    for (size_t i = 0; i < s->nextensions; i++)
        node_get(g, s->extensions[i]);
    for (size_t i = 0; i < s->npipelines; i++)
        add_pipeline(g, &g->pipelines[i], &s->pipelines[i]);
}

/* ---- instances ---- */

static void create_error(const struct node *n, const struct err *e, struct cfg_errors *errs)
{
    const struct component_settings *s = n->settings;
    const enum component_kind kind = s->type->kind;
    char path[400], where[200] = "";
    bool exact;
    struct cfg_pos pos = s->pos;
    const struct cfg_value *v = *e->path ? cfg_find(s->value, e->path, &exact) : NULL;
    if (v && v->pos.line)
        pos = v->pos;
    if (n->pipeline)
        snprintf(where, sizeof(where), ", in pipeline \"%s\"", n->pipeline->settings->name);
    snprintf(path, sizeof(path), "%s::%s%s%s", component_kind_section(kind), s->id,
             *e->path ? "::" : "", e->path);
    cfg_error(errs, pos, path, "failed to create \"%s\" %s%s: %s", s->id, component_kind_name(kind),
              where, e->text);
}

static int create(struct graph *g, struct node *n, struct cfg_errors *errs)
{
    const struct component_settings *s = n->settings;
    struct component_args args = {.id = s->id, .config = s->bound, .host = g->host};
    struct err e = {0};
    if (n->pipeline) {
        args.signal = n->pipeline->settings->signal;
        args.pipeline = n->pipeline->settings->name;
    }
    int r = s->type->create(&args, &n->component, &e);
    if (r < 0)
        create_error(n, &e, errs);
    return r;
}

/* Goes on after a mistake, so that all are reported. */
static int create_list(struct graph *g, struct node_list *l, struct cfg_errors *errs)
{
    int result = 0;
    for (size_t i = 0; i < l->n; i++) {
        int r = create(g, l->items[i], errs);
        if (r < 0)
            result = -EINVAL;
    }
    return result;
}

/* While components are made, this graph answers their host_extension(). */
static int create_all(struct graph *g, struct cfg_errors *errs)
{
    struct graph *before = host_graph(g->host);
    host_set_graph(g->host, g);
    int r = create_list(g, &g->extensions, errs);
    if (r == 0) {
        int a = create_list(g, &g->exporters, errs), b = create_list(g, &g->inner, errs),
            c = create_list(g, &g->receivers, errs);
        r = a < 0 ? a : b < 0 ? b : c;
    }
    host_set_graph(g->host, before);
    return r;
}

static int signal_error(const struct node *n, enum signal signal, struct cfg_errors *errs)
{
    struct err e = {0};
    err_set(&e, -EINVAL, "telemetry type is not supported: %s", signal_name(signal));
    create_error(n, &e, errs);
    return -EINVAL;
}

/* The exporter's own rule about a signal. */
static int check_exporter(const struct node *n, enum signal signal, struct cfg_errors *errs)
{
    struct err e = {0};
    const struct component_type *t = n->settings->type;
    if (!t->check_signal || t->check_signal(n->settings->bound, signal, &e) == 0)
        return 0;
    create_error(n, &e, errs);
    return -EINVAL;
}

static int check_signals(const struct pipeline *p, struct cfg_errors *errs)
{
    const struct pipeline_settings *s = p->settings;
    const unsigned bit = SIGNAL_BIT(s->signal);
    int r = 0;
    for (size_t i = 0; i < s->nreceivers; i++)
        if (!(s->receivers[i]->type->emits & bit))
            r = signal_error(p->receivers[i], s->signal, errs);
    for (size_t i = 0; i < s->nprocessors; i++)
        if (!(s->processors[i]->type->accepts & bit))
            r = signal_error(p->processors[i], s->signal, errs);
    for (size_t i = 0; i < s->nexporters; i++)
        if (!(s->exporters[i]->type->accepts & bit))
            r = signal_error(p->exporters[i], s->signal, errs);
        else if (check_exporter(p->exporters[i], s->signal, errs) < 0)
            r = -EINVAL;
    return r;
}

static int check_all_signals(const struct graph *g, struct cfg_errors *errs)
{
    int r = 0;
    for (size_t i = 0; i < g->npipelines; i++)
        if (check_signals(&g->pipelines[i], errs) < 0)
            r = -EINVAL;
    return r;
}

/* ---- queues and edges ---- */

static int add_queue(struct node *n, enum signal s, struct cfg_errors *errs)
{
    struct err e = {0};
    const struct component_type *t = n->settings->type;
    if (!t->send || n->queues[s])
        return 0;
    n->queues[s] = queue_new(n->component, t->settings(n->settings->bound), s, &e);
    if (n->queues[s])
        return 0;
    create_error(n, &e, errs);
    return -EINVAL;
}

static int add_queues_of(struct pipeline *p, struct cfg_errors *errs)
{
    int r = 0;
    for (size_t k = 0; k < p->settings->nexporters && r == 0; k++)
        r = add_queue(p->exporters[k], p->settings->signal, errs);
    return r;
}

/* This graph's extensions have their storage. */
static int add_queues(struct graph *g, struct cfg_errors *errs)
{
    struct graph *before = host_graph(g->host);
    int r = 0;
    host_set_graph(g->host, g);
    for (size_t i = 0; i < g->npipelines && r == 0; i++)
        r = add_queues_of(&g->pipelines[i], errs);
    host_set_graph(g->host, before);
    return r;
}

static struct fanout *add_fanout(struct graph *g, size_t nbranches)
{
    struct fanout *f = fanout_new((unsigned)nbranches);
    if (f)
        g->fanouts[g->nfanouts++] = f;
    return f;
}

static struct metric *items_metric(const struct graph *g, const struct node *n, const char *way,
                                   const char *help)
{
    char name[64], labels[METRIC_LABELS_MAX] = "";
    snprintf(name, sizeof(name), "otelcol_processor_%s_items", way);
    metric_label(labels, "otel_signal", signal_name(n->pipeline->settings->signal));
    metric_label(labels, "processor", n->settings->id);
    return metric_counter(g->host, name, help, labels);
}

/* Branches to where data goes that reached place `at` of a pipeline: its processor, or the
 * exporters behind the last. */
static size_t count_branches(const struct pipeline *p, size_t at)
{
    return at < p->settings->nprocessors ? 1 : p->settings->nexporters;
}

static unsigned add_branches(const struct graph *g, struct fanout *f, unsigned i,
                             const struct pipeline *p, size_t at)
{
    if (at < p->settings->nprocessors) {
        const struct node *n = p->processors[at];
        fanout_set(f, i, n->component, NULL, p->all_leaves);
        fanout_count_branch(f, i, items_metric(g, n, "incoming", "Records given to a processor."));
        return i + 1;
    }
    for (size_t k = 0; k < p->settings->nexporters; k++) {
        const struct node *n = p->exporters[k];
        fanout_set(f, i++, n->component, n->queues[p->settings->signal], p->leaves[k]);
    }
    return i;
}

static int wire_processors(struct graph *g, struct pipeline *p)
{
    for (size_t i = 0; i < p->settings->nprocessors; i++) {
        const struct node *n = p->processors[i];
        struct fanout *f = add_fanout(g, count_branches(p, i + 1));
        if (!f)
            return -ENOMEM;
        add_branches(g, f, 0, p, i + 1);
        fanout_count(f, items_metric(g, n, "outgoing", "Records that a processor passed on."));
        n->component->next[p->settings->signal] = f;
    }
    return 0;
}

/* A receiver, or a connector's receiving end: to all its pipelines of one signal. */
static int wire_source(struct graph *g, struct node *n, enum signal s)
{
    size_t branches = 0;
    for (size_t i = 0; i < g->npipelines; i++)
        if (g->pipelines[i].settings->signal == s && pipeline_receives(&g->pipelines[i], n))
            branches += count_branches(&g->pipelines[i], 0);
    if (!branches)
        return 0;
    struct fanout *f = add_fanout(g, branches);
    if (!f)
        return -ENOMEM;
    unsigned at = 0;
    for (size_t i = 0; i < g->npipelines; i++)
        if (g->pipelines[i].settings->signal == s && pipeline_receives(&g->pipelines[i], n))
            at = add_branches(g, f, at, &g->pipelines[i], 0);
    n->component->next[s] = f;
    return 0;
}

static int wire(struct graph *g)
{
    int r = 0;
    for (size_t i = 0; i < g->npipelines && r == 0; i++)
        r = wire_processors(g, &g->pipelines[i]);
    for (size_t i = 0; i < g->nnodes && r == 0; i++) {
        struct node *n = &g->nodes[i];
        const enum component_kind kind = n->settings->type->kind;
        if (kind != KIND_RECEIVER && kind != KIND_CONNECTOR)
            continue;
        for (enum signal s = 0; s < SIGNAL_COUNT && r == 0; s++)
            r = wire_source(g, n, s);
    }
    return r;
}

static int build(struct graph *g, const struct service_settings *s, struct cfg_errors *errs)
{
    collect(g, s);
    int r = check_all_signals(g, errs);
    if (r == 0)
        r = graph_walk(g, errs);
    if (r == 0)
        r = create_all(g, errs);
    if (r == 0)
        r = add_queues(g, errs);
    if (r < 0)
        return r;
    r = wire(g);
    if (r == 0)
        graph_hand_through(g);
    if (r < 0)
        cfg_error(errs, (struct cfg_pos){0}, "service", "out of memory");
    return r;
}

int graph_build(struct host *h, const struct service_settings *s, struct cfg_errors *errs,
                struct graph **ret)
{
    struct graph *g = graph_new(h, s);
    if (!g) {
        cfg_error(errs, (struct cfg_pos){0}, "service", "out of memory");
        return -EINVAL;
    }
    if (build(g, s, errs) < 0) {
        graph_free(g);
        return -EINVAL;
    }
    *ret = g;
    return 0;
}
