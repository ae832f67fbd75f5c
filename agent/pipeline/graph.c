/* The life of a graph: start from the exporters up, stop from the receivers down, against one
 * deadline. */
#include "agent/pipeline/graph.h"

#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/graph_parts.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue.h"

#define UNWIND_NS NS_PER_S /* a start that failed is undone within this */
#define RESERVE_NS                                                                                 \
    (200 * NS_PER_MS) /* of a stop: for what comes after the queues, at most a tenth */

/* ---- start ---- */

static int start_node(struct node *n, struct err *reterr)
{
    struct component *c = n->component;
    n->started = true;
    return c->type->start ? c->type->start(c, reterr) : 0;
}

static int start_extensions(struct graph *g, struct err *reterr)
{
    if (g->extensions.n)
        log_info(NULL, "Starting extensions...");
    for (size_t i = 0; i < g->extensions.n; i++) {
        struct node *n = g->extensions.items[i];
        log_info(&n->component->logger, "Extension is starting...");
        int r = start_node(n, reterr);
        if (r < 0) {
            err_prefix(reterr, "failed to start extensions: failed to start \"%s\" extension: ",
                       n->settings->id);
            return r;
        }
        log_info(&n->component->logger, "Extension started.");
    }
    return 0;
}

static int start_queues(struct node *n, struct err *reterr)
{
    int r = 0;
    for (enum signal s = 0; s < SIGNAL_COUNT && r == 0; s++)
        r = n->queues[s] ? queue_start(n->queues[s], reterr) : 0;
    return r;
}

static int start_list(struct node_list *l, struct err *reterr)
{
    for (size_t i = 0; i < l->n; i++) {
        struct node *n = l->items[i];
        int r = start_node(n, reterr);
        if (r == 0)
            r = start_queues(n, reterr);
        if (r < 0) {
            err_prefix(reterr,
                       "cannot start pipelines: failed to start \"%s\" %s: ", n->settings->id,
                       component_kind_name(n->settings->type->kind));
            return r;
        }
    }
    return 0;
}

static void tell_extensions(struct graph *g, bool ready)
{
    for (size_t i = 0; i < g->extensions.n; i++) {
        struct component *c = g->extensions.items[i]->component;
        if (c->type->ready)
            c->type->ready(c, ready);
    }
    g->ready = ready;
}

static int start_all(struct graph *g, struct err *reterr)
{
    int r = start_extensions(g, reterr);
    if (r == 0)
        r = start_list(&g->exporters, reterr);
    if (r == 0)
        r = start_list(&g->inner, reterr);
    return r < 0 ? r : start_list(&g->receivers, reterr);
}

int graph_start(struct graph *g, struct err *reterr)
{
    struct graph *before = host_graph(g->host);
    host_set_graph(g->host, g);
    int r = start_all(g, reterr);
    if (r < 0) {
        graph_stop(g, clock_now_ns() + UNWIND_NS);
        host_set_graph(g->host, before);
        return r;
    }
    tell_extensions(g, true);
    return 0;
}

/* ---- stop ---- */

static void stop_node(struct node *n, uint64_t deadline_ns)
{
    struct component *c = n->component;
    if (n->started && c->type->stop)
        c->type->stop(c, deadline_ns);
    n->started = false;
}

static bool has_queue(const struct node *n)
{
    return n->settings->type->send != NULL;
}

static void drain_queues(struct graph *g, uint64_t deadline_ns)
{
    for (size_t i = 0; i < g->exporters.n; i++)
        for (enum signal s = 0; s < SIGNAL_COUNT; s++)
            if (g->exporters.items[i]->queues[s])
                queue_drain(g->exporters.items[i]->queues[s], deadline_ns);
}

static void stop_queued(struct node *n, uint64_t deadline_ns)
{
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        if (n->queues[s])
            queue_stop(n->queues[s], deadline_ns);
    stop_node(n, deadline_ns);
}

/* Those without a queue first: a backend that does not answer must not take their time. */
static void stop_exporters(struct graph *g, uint64_t deadline_ns)
{
    for (size_t i = 0; i < g->exporters.n; i++)
        if (!has_queue(g->exporters.items[i]))
            stop_node(g->exporters.items[i], deadline_ns);
    for (size_t i = 0; i < g->exporters.n; i++)
        if (has_queue(g->exporters.items[i]))
            stop_queued(g->exporters.items[i], deadline_ns);
}

static void stop_extensions(struct graph *g, uint64_t deadline_ns)
{
    if (g->extensions.n)
        log_info(NULL, "Stopping extensions...");
    for (size_t i = g->extensions.n; i-- > 0;)
        stop_node(g->extensions.items[i], deadline_ns);
}

/* Receivers have a quarter of the time and what flushes three quarters, so that something is left
 * for those below; who is quick leaves the rest to the next. Queues send all the while, without
 * long pauses from the first moment. */
void graph_stop(struct graph *g, uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t time_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    uint64_t reserve_ns = time_ns / 10 < RESERVE_NS ? time_ns / 10 : RESERVE_NS;
    uint64_t send_until_ns = now_ns + time_ns - reserve_ns;
    if (g->ready)
        tell_extensions(g, false);
    drain_queues(g, send_until_ns);
    for (size_t i = 0; i < g->receivers.n; i++)
        stop_node(g->receivers.items[i], now_ns + time_ns / 4);
    for (size_t i = g->inner.n; i-- > 0;)
        stop_node(g->inner.items[i], now_ns + time_ns / 4 * 3);
    stop_exporters(g, send_until_ns);
    stop_extensions(g, deadline_ns);
}

void graph_hurry(struct graph *g)
{
    drain_queues(g, clock_now_ns());
}

/* ---- end ---- */

static void free_node(struct node *n)
{
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        n->queues[s] = queue_free(n->queues[s]);
    if (n->component)
        n->component->type->destroy(n->component);
}

static void free_list(struct node_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free_node(l->items[i]);
}

struct graph *graph_free(struct graph *g)
{
    if (!g)
        return NULL;
    free_list(&g->receivers);
    free_list(&g->inner);
    free_list(&g->exporters);
    free_list(&g->extensions);
    for (size_t i = 0; i < g->nfanouts; i++)
        fanout_free(g->fanouts[i]);
    if (host_graph(g->host) == g)
        host_set_graph(g->host, NULL);
    free(g->fanouts);
    free(g->pipelines);
    free(g->leaves);
    free(g->edges);
    free(g->lists);
    free(g->nodes);
    free(g);
    return NULL;
}

const void *graph_extension(struct graph *g, const char *id, enum capability kind)
{
    for (size_t i = 0; i < g->extensions.n; i++) {
        struct node *n = g->extensions.items[i];
        struct component *c = n->component;
        if (!c || strcmp(n->settings->id, id) != 0)
            continue;
        return c->type->capability ? c->type->capability(c, kind) : NULL;
    }
    return NULL;
}

/* ---- looking ---- */

static bool is_among(struct node *const *list, size_t n, const struct node *node)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == node)
            return true;
    return false;
}

static unsigned signals_of(const struct graph *g, const struct node *n)
{
    unsigned signals = 0;
    for (size_t i = 0; i < g->npipelines; i++) {
        const struct pipeline *p = &g->pipelines[i];
        if (n->pipeline == p || is_among(p->receivers, p->settings->nreceivers, n) ||
            is_among(p->exporters, p->settings->nexporters, n))
            signals |= SIGNAL_BIT(p->settings->signal);
    }
    return signals;
}

void graph_each(struct graph *g,
                void (*see)(void *ctx, const struct component_settings *s, struct component *c,
                            unsigned signals),
                void *ctx)
{
    const struct node_list *const lists[] = {&g->extensions, &g->exporters, &g->inner,
                                             &g->receivers};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        for (size_t k = 0; k < lists[i]->n; k++) {
            const struct node *n = lists[i]->items[k];
            see(ctx, n->settings, n->component, signals_of(g, n));
        }
}
