/* Judging: which traces are broken, and what that says of the whole. */
#include "agent/gym/report_parts.h"

#define RANKS_MAX 64 /* of report_slowest() and report_largest_sets() */

/* ---- one trace ---- */

/* Health checks and scrapes come from programs that have no trace to pass on. */
static bool is_poll(const struct report *r, const struct trace *t)
{
    const char *name = r->names[t->root].name;
    return t->roots && (strncmp(name, "GET ", 4) == 0 || strncmp(name, "HEAD ", 5) == 0);
}

/*
 * Whether the trace begins in a service although it was called from a traced one. Where calls have
 * URLs they are counted: more calls went to that place than spans there have a parent. Else spans
 * of that name have a parent in another service in other traces.
 */
static bool begins_anew(const struct report *r, const struct trace *t)
{
    const struct url *u = &r->urls[t->root_url];
    if (t->roots != 1 || (t->root_kind != SPAN_KIND_SERVER && t->root_kind != SPAN_KIND_CONSUMER))
        return false;
    if (t->root_url && u->clients)
        return u->clients > u->joined;
    return r->names[t->root].joined > 0;
}

static unsigned faults_of(const struct report *r, const struct trace *t, bool apart)
{
    unsigned faults = 0;
    if (t->orphans)
        faults |= FAULT_ORPHANS;
    else if (t->roots != 1)
        faults |= FAULT_ROOTS;
    if (begins_anew(r, t))
        faults |= FAULT_ANEW;
    if (apart && !faults && !is_poll(r, t))
        faults |= FAULT_APART;
    return faults;
}

/* ---- all of them ---- */

static void clear(struct report *r)
{
    r->judged = r->joined = r->single = r->broken = r->cut = r->largest = 0;
    memset(r->faults, 0, sizeof(r->faults));
    for (size_t i = 0; i < r->nservices; i++) {
        r->services[i].traces = 0;
        r->services[i].starts_traces = false;
    }
    for (size_t i = 0; i < r->nsets; i++)
        r->sets[i].traces = 0;
    for (size_t i = 0; i < r->nnames; i++)
        r->names[i].joined = 0;
    for (size_t i = 0; i < r->ntraces; i++)
        r->traces[i].orphans = r->traces[i].orphan = 0;
}

static void look_for_parents(struct report *r)
{
    for (size_t i = 0; i < r->nspans; i++) {
        const struct span *s = &r->spans[i];
        struct trace *t = &r->traces[s->trace];
        if (!s->parent)
            continue;
        const uint32_t parent = report_find_span(r, s->trace, s->parent);
        if (parent == INDEX_NONE && t->orphans++ == 0)
            t->orphan = s->name;
        if (parent != INDEX_NONE &&
            r->names[r->spans[parent].name].service != r->names[s->name].service)
            r->names[s->name].joined++;
    }
}

/* Whether several services have traces of their own, polls aside, and no trace has spans of two. */
static bool all_apart(struct report *r)
{
    size_t own = 0;
    for (size_t i = 0; i < r->ntraces; i++) {
        const struct trace *t = &r->traces[i];
        const struct service_set *set = &r->sets[t->set];
        if (set->n > 1 || t->set == FULL_SET)
            return false;
        if (set->n && !is_poll(r, t)) {
            struct service *s = &r->services[set->services[0]];
            own += !s->starts_traces;
            s->starts_traces = true;
        }
    }
    return own > 1;
}

static void count_trace(struct report *r, struct trace *t)
{
    struct service_set *set = &r->sets[t->set];
    for (uint32_t i = 0; i < set->n; i++)
        r->services[set->services[i]].traces++;
    if (t->spans > r->largest)
        r->largest = t->spans;
    if (t->cut) {
        r->cut++;
        return;
    }
    r->judged++;
    if (t->faults) {
        r->broken++;
        r->faults[__builtin_ctz(t->faults)]++;
        return;
    }
    set->traces++;
    if (set->n > 1 || t->set == FULL_SET)
        r->joined++;
    else
        r->single++;
}

static size_t services_with_spans(const struct report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nservices; i++)
        n += r->services[i].spans > 0;
    return n;
}

static enum propagation conclude(const struct report *r)
{
    if (r->broken)
        return PROPAGATION_BROKEN;
    if (r->joined)
        return PROPAGATION_WORKS;
    return services_with_spans(r) == 1 && r->largest > 1 ? PROPAGATION_WORKS
                                                         : PROPAGATION_NOT_SHOWN;
}

enum propagation report_judge(struct report *r)
{
    clear(r);
    look_for_parents(r);
    const bool apart = all_apart(r);
    for (size_t i = 0; i < r->ntraces; i++) {
        struct trace *t = &r->traces[i];
        t->faults = (uint8_t)(t->cut ? 0 : faults_of(r, t, apart));
        count_trace(r, t);
    }
    return r->propagation = conclude(r);
}

/* ---- what comes first ---- */

struct ranking {
    uint32_t *items; /* the best first */
    uint64_t weights[RANKS_MAX];
    size_t n, max;
};

static struct ranking ranking(uint32_t *ret, size_t max)
{
    return (struct ranking){.items = ret, .max = max < RANKS_MAX ? max : RANKS_MAX};
}

static void rank(struct ranking *k, size_t item, uint64_t weight)
{
    size_t at = k->n;
    if (weight == 0 || (at == k->max && k->weights[at - 1] >= weight))
        return;
    if (at == k->max)
        at--;
    else
        k->n++;
    for (; at > 0 && k->weights[at - 1] < weight; at--) {
        k->weights[at] = k->weights[at - 1];
        k->items[at] = k->items[at - 1];
    }
    k->weights[at] = weight;
    k->items[at] = (uint32_t)item;
}

size_t report_slowest(const struct report *r, uint32_t *ret, size_t max)
{
    struct ranking k = ranking(ret, max);
    for (size_t i = 0; i < r->nnames; i++)
        rank(&k, i, r->names[i].total_ns);
    return k.n;
}

size_t report_largest_sets(const struct report *r, uint32_t *ret, size_t max)
{
    struct ranking k = ranking(ret, max);
    for (size_t i = 0; i < r->nsets; i++)
        rank(&k, i, r->sets[i].n > 1 || i == FULL_SET ? r->sets[i].traces : 0);
    return k.n;
}
