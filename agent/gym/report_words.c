/* The sentences of a report: the verdict, and why a trace is broken. */
#include "agent/gym/report_parts.h"

#define SETS_SHOWN 3
#define NAMES_SHOWN 5

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- services ---- */

static const char *const type_names[] = {[SERVER_ENVIRONMENT] = "environment",
                                         [SERVER_AGENT] = "agent",
                                         [SERVER_MODEL] = "model",
                                         [SERVER_RESOURCES] = "resources",
                                         [SERVER_ORCHESTRATOR] = "orchestrator"};

/* Puts one of n words into a list: "a", "a and b", "a, b and c". */
static int put_word(struct buf *out, const char *word, size_t i, size_t n)
{
    const char *before = i == 0 ? "" : i + 1 == n ? " and " : ", ";
    return buf_printf(out, "%s%s", before, word);
}

static int put_types(unsigned types, struct buf *out)
{
    const size_t n = (size_t)__builtin_popcount(types);
    int e = buf_append_str(out, "the ");
    size_t at = 0;
    for (size_t t = 0; e == 0 && t < ARRAY_SIZE(type_names); t++)
        if (types >> t & 1)
            e = put_word(out, type_names[t], at++, n);
    return e < 0 ? e : buf_printf(out, " server%s", plural(n));
}

static int put_names(const struct report *r, const struct service_set *s, struct buf *out)
{
    const uint32_t shown = s->n > NAMES_SHOWN + 1 ? NAMES_SHOWN : s->n;
    const size_t words = shown < s->n ? shown + 1 : shown;
    char rest[40];
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < shown; i++)
        e = put_word(out, r->services[s->services[i]].name, i, words);
    if (e < 0 || shown == s->n)
        return e;
    snprintf(rest, sizeof(rest), "%u others", s->n - shown);
    return put_word(out, rest, shown, words);
}

int report_set_text(const struct report *r, const struct service_set *s, struct buf *out)
{
    unsigned types = 0;
    for (uint32_t i = 0; i < s->n; i++)
        types |= 1u << r->services[s->services[i]].type;
    /* Two servers of one type are two names. */
    const bool told_apart = (uint32_t)__builtin_popcount(types) == s->n;
    return told_apart && !(types & 1u << SERVER_OTHER) ? put_types(types, out)
                                                       : put_names(r, s, out);
}

/* ---- one trace ---- */

const char *report_fault_name(enum fault f)
{
    switch (f) {
    case FAULT_ORPHANS: return "orphans";
    case FAULT_ROOTS: return "roots";
    case FAULT_ANEW: return "begins_anew";
    case FAULT_APART: return "apart";
    }
    return "";
}

static int put_span(const struct report *r, uint32_t name, struct buf *out)
{
    const struct span_name *n = &r->names[name];
    return buf_printf(out, "\"%s\" of %s", n->name, r->services[n->service].name);
}

static int put_fault(const struct report *r, const struct trace *t, enum fault f, struct buf *out)
{
    int e = 0;
    switch (f) {
    case FAULT_ORPHANS:
        e = buf_printf(out, "the parent of %u span%s was never seen: ", t->orphans,
                       plural(t->orphans));
        return e < 0 ? e : put_span(r, t->orphan, out);
    case FAULT_ROOTS:
        return t->roots ? buf_printf(out, "it has %u roots", t->roots)
                        : buf_append_str(out, "it has no root: its spans are each other's parents");
    case FAULT_ANEW:
        e = buf_append_str(out, "begins anew with ");
        if (e == 0)
            e = put_span(r, t->root, out);
        return e < 0 ? e : buf_append_str(out, ", which was called by a traced service");
    case FAULT_APART: return buf_append_str(out, "stays in its service, like all other traces");
    }
    return e;
}

int report_fault_text(const struct report *r, const struct trace *t, struct buf *out)
{
    bool first = true;
    int e = 0;
    for (unsigned k = 0; e == 0 && k < FAULT_KINDS; k++) {
        if (!(t->faults >> k & 1))
            continue;
        if (!first)
            e = buf_append_str(out, "; ");
        if (e == 0)
            e = put_fault(r, t, (enum fault)(1u << k), out);
        first = false;
    }
    return e;
}

/* ---- the verdict ---- */

static int put_joined(const struct report *r, struct buf *out)
{
    uint32_t sets[SETS_SHOWN];
    const size_t n = report_largest_sets(r, sets, SETS_SHOWN);
    uint32_t rest = r->joined;
    int e = 0;
    for (size_t i = 0; e == 0 && i < n; i++) {
        const struct service_set *s = &r->sets[sets[i]];
        rest -= s->traces;
        e = buf_printf(out, "%s%u span%s ", i ? "; " : "", s->traces, s->traces == 1 ? "s" : "");
        if (e == 0)
            e = report_set_text(r, s, out);
    }
    return e < 0 || rest == 0 ? e : buf_printf(out, "; %u span other services", rest);
}

static int put_broken(const struct report *r, struct buf *out)
{
    static const char *const one[] = {
        "has a span whose parent was never seen", "has not exactly one root",
        "begins anew in a service that a traced one had called", "stays in its service"};
    static const char *const many[] = {"have spans whose parent was never seen",
                                       "have not exactly one root",
                                       "begin anew in a service that a traced one had called",
                                       "stay in the service where they began"};
    int e = buf_printf(out, "%u %s broken:", r->broken, r->broken == 1 ? "is" : "are");
    bool first = true;
    for (unsigned k = 0; e == 0 && k < FAULT_KINDS; k++) {
        if (!r->faults[k])
            continue;
        if (r->faults[k] == r->broken)
            return buf_printf(out, " %s %s", r->broken == 1 ? "it" : "they",
                              (r->broken == 1 ? one : many)[k]);
        e = buf_printf(out, "%s %u %s", first ? "" : ",", r->faults[k],
                       (r->faults[k] == 1 ? one : many)[k]);
        first = false;
    }
    return e;
}

static int put_single(const struct report *r, const char *before, struct buf *out)
{
    if (!r->single)
        return 0;
    return buf_printf(out, "%s%u stay%s in one service", before, r->single,
                      r->single == 1 ? "s" : "");
}

static int put_groups(const struct report *r, struct buf *out)
{
    int e = r->joined ? put_joined(r, out) : 0;
    if (e == 0)
        e = put_single(r, r->joined ? "; " : "", out);
    if (e < 0 || !r->broken)
        return e;
    if (r->joined || r->single)
        e = buf_append_str(out, "; ");
    return e < 0 ? e : put_broken(r, out);
}

static int put_nothing(const struct report *r, struct buf *out)
{
    const uint64_t others = r->records[SIGNAL_METRICS] + r->records[SIGNAL_LOGS];
    return buf_printf(out, "No spans%s: nothing shows whether propagation works.",
                      others ? ", only metrics or logs" : "");
}

static int put_alone(const struct report *r, struct buf *out)
{
    return buf_printf(
        out,
        "%u trace%s of one service, with up to %u spans each. Propagation works within "
        "it; what other services sent is not here.",
        r->judged, plural(r->judged), r->largest);
}

int report_sentence(const struct report *r, struct buf *out)
{
    if (r->ntraces == 0)
        return put_nothing(r, out);
    if (r->propagation == PROPAGATION_WORKS && !r->joined)
        return put_alone(r, out);
    int e = buf_printf(out, "%u trace%s: ", r->judged, plural(r->judged));
    if (e == 0)
        e = put_groups(r, out);
    if (e < 0)
        return e;
    switch (r->propagation) {
    case PROPAGATION_WORKS: return buf_append_str(out, "; none is broken. Propagation works.");
    case PROPAGATION_BROKEN: return buf_append_str(out, ". Propagation is broken.");
    case PROPAGATION_NOT_SHOWN: break;
    }
    return buf_append_str(out, ", none goes from one service to another. Nothing shows whether "
                               "propagation works.");
}
