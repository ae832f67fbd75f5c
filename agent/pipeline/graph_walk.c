/* One walk over the pipelines, from receivers to exporters: finds cycles, the order of the inner
 * nodes, the leaves below each edge. */
#include <errno.h>

#include "agent/pipeline/graph_parts.h"

#define LEAF_BITS 64

bool pipeline_receives(const struct pipeline *p, const struct node *n)
{
    for (size_t i = 0; i < p->settings->nreceivers; i++)
        if (p->receivers[i] == n)
            return true;
    return false;
}

/* The way from the first pipeline to the one that is walked: edges over connectors. */
struct step {
    const struct step *before;
    const struct pipeline *from;
    const struct node *connector;
    const struct pipeline *to;
};

static void put_step(struct buf *text, const struct step *s)
{
    buf_printf(text, "connector \"%s\" (%s to %s)", s->connector->settings->id,
               signal_name(s->from->settings->signal), signal_name(s->to->settings->signal));
}

/* Prints the steps of the cycle that `last` closes; returns its first one. */
static const struct step *put_cycle(struct buf *text, const struct step *s,
                                    const struct pipeline *start)
{
    const struct step *first = s->from == start ? s : put_cycle(text, s->before, start);
    put_step(text, s);
    buf_append_str(text, " -> ");
    return first;
}

static int cycle_error(const struct step *last, struct cfg_errors *errs)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    char path[200];
    if (text)
        put_step(text, put_cycle(text, last, last->to));
    const char *way = text ? buf_str(text) : NULL;
    snprintf(path, sizeof(path), "service::pipelines::%s", last->from->settings->name);
    cfg_error(errs, last->connector->settings->pos, path, "cycle detected: %s",
              way ? way : "out of memory to show it");
    return -EINVAL;
}

static int walk(struct graph *g, struct pipeline *p, const struct step *way,
                struct cfg_errors *errs);

static int walk_connector(struct graph *g, struct pipeline *p, struct node *c,
                          const struct step *way, struct cfg_errors *errs)
{
    for (size_t i = 0; i < g->npipelines; i++) {
        struct pipeline *to = &g->pipelines[i];
        if (!pipeline_receives(to, c))
            continue;
        struct step step = {.before = way, .from = p, .connector = c, .to = to};
        int r = walk(g, to, &step, errs);
        if (r < 0)
            return r;
        c->leaves |= to->all_leaves;
    }
    if (!c->listed)
        node_list_add(&g->inner, c);
    c->listed = true;
    return 0;
}

/* Depth first, so that what is below a pipeline is numbered and listed before it. */
static int walk(struct graph *g, struct pipeline *p, const struct step *way,
                struct cfg_errors *errs)
{
    if (p->walking)
        return cycle_error(way, errs);
    if (p->walked)
        return 0;
    p->walking = true;
    for (size_t i = 0; i < p->settings->nexporters; i++) {
        struct node *e = p->exporters[i];
        const bool connector = e->settings->type->kind == KIND_CONNECTOR;
        int r = connector ? walk_connector(g, p, e, way, errs) : 0;
        if (r < 0)
            return r;
        p->leaves[i] = connector ? e->leaves : 1ull << (g->nleaves++ % LEAF_BITS);
        p->all_leaves |= p->leaves[i];
    }
    for (size_t i = p->settings->nprocessors; i-- > 0;)
        node_list_add(&g->inner, p->processors[i]);
    p->walking = false;
    p->walked = true;
    return 0;
}

/* With more edges than bits some share one. A repeated offer then asks all that share it: data may
 * come twice, never be lost. */
int graph_walk(struct graph *g, struct cfg_errors *errs)
{
    for (size_t i = 0; i < g->npipelines; i++) {
        int r = walk(g, &g->pipelines[i], NULL, errs);
        if (r < 0)
            return r;
    }
    if (g->nleaves > LEAF_BITS)
        log_warn(NULL,
                 "Pipelines have more than 64 exporters in all: when one refuses data for a "
                 "while, another may get it twice.",
                 LOG_INT("exporters", g->nleaves));
    return 0;
}
