/* The report for people. */
#include "agent/base/encode.h"
#include "agent/gym/report_parts.h"

#define BROKEN_SHOWN 10
#define NAMES_SHOWN 10
#define SERVICES_SHOWN 30
#define NAME_COLUMNS 60 /* longer names are cut */

/* "1.23 s", "45.1 ms", "3 min 12 s"; at most 24 bytes. */
static const char *duration_text(uint64_t ns, char ret[24])
{
    const double s = (double)ns / 1e9;
    if (s >= 100)
        snprintf(ret, 24, "%llu min %02llu s", (unsigned long long)(s / 60),
                 (unsigned long long)s % 60);
    else if (s >= 1)
        snprintf(ret, 24, "%.2f s", s);
    else if (s >= 1e-3)
        snprintf(ret, 24, "%.1f ms", s * 1e3);
    else
        snprintf(ret, 24, "%.0f us", s * 1e6);
    return ret;
}

/* ---- traces ---- */

static int put_trace(const struct report *r, const struct trace *t, struct buf *out)
{
    char id[33] = "";
    encode_hex(bytes_of(t->id, sizeof(t->id)), id);
    int e = buf_printf(out, "  %s  %u span%s of ", id, t->spans, t->spans == 1 ? "" : "s");
    if (e == 0)
        e = report_set_text(r, &r->sets[t->set], out);
    if (e == 0 && t->truncated)
        e = buf_printf(out, ", %u cut off", t->truncated);
    if (e == 0 && t->cut)
        e = buf_append_str(out, ": too large to be judged");
    if (e == 0 && t->faults) {
        e = buf_append_str(out, ": ");
        if (e == 0)
            e = report_fault_text(r, t, out);
    }
    return e < 0 ? e : buf_putc(out, '\n');
}

static int put_traces(const struct report *r, bool all, struct buf *out)
{
    uint32_t shown = 0;
    int e = 0;
    if (!all && !r->broken)
        return 0;
    e = buf_append_str(out, all ? "\nTraces:\n" : "\nBroken traces:\n");
    for (size_t i = 0; e == 0 && i < r->ntraces; i++) {
        if (!all && !r->traces[i].faults)
            continue;
        if (!all && shown == BROKEN_SHOWN)
            return buf_printf(out, "  and %u more; --all shows every trace\n", r->broken - shown);
        shown++;
        e = put_trace(r, &r->traces[i], out);
    }
    return e;
}

/* What to look at, for each kind of fault that is there. */
static int put_advice(const struct report *r, struct buf *out)
{
    static const char *const advice[FAULT_KINDS] = {
        "A parent that was never seen: its service does not export, its file is not among those "
        "given here, or it was\n"
        "killed before it could export.\n",
        "Not exactly one root: trace ids are made by something else than an SDK, or spans name "
        "wrong parents.\n",
        "A trace that begins anew: the request came without a \"traceparent\" header, or the "
        "service does not read it.\n"
        "Both sides must be instrumented (NeMo Gym: span groups server and http_client).\n",
        "No trace leaves its service: the services are instrumented one by one, but the context "
        "is not passed on between\n"
        "them. Both sides of a request must be instrumented (NeMo Gym: span groups server and "
        "http_client).\n"};
    int e = 0;
    for (unsigned k = 0; e == 0 && k < FAULT_KINDS; k++)
        if (r->faults[k])
            e = buf_printf(out, "\n%s", advice[k]);
    return e;
}

/* ---- tables ---- */

static int column_width(const char *title, int widest)
{
    const int own = (int)strlen(title);
    return widest > NAME_COLUMNS ? NAME_COLUMNS : widest > own ? widest : own;
}

static int put_services(const struct report *r, struct buf *out)
{
    int widest = 0, e;
    size_t shown = 0;
    for (size_t i = 0; i < r->nservices; i++)
        if ((int)strlen(r->services[i].name) > widest)
            widest = (int)strlen(r->services[i].name);
    widest = column_width("Service", widest);
    e = buf_printf(out, "\n%-*s  %9s %9s %9s %9s %9s\n", widest, "Service", "traces", "spans",
                   "errors", "points", "logs");
    for (size_t i = 0; e == 0 && i < r->nservices; i++) {
        const struct service *s = &r->services[i];
        if (!s->spans && !s->points && !s->logs)
            continue;
        if (shown++ == SERVICES_SHOWN)
            return buf_append_str(out, "... more with --json\n");
        e = buf_printf(out, "%-*.*s  %9u %9llu %9llu %9llu %9llu\n", widest, widest, s->name,
                       s->traces, (unsigned long long)s->spans, (unsigned long long)s->errors,
                       (unsigned long long)s->points, (unsigned long long)s->logs);
    }
    return e;
}

static int put_name(const struct report *r, const struct span_name *n, int width, struct buf *out)
{
    char total[24], mean[24], most[24];
    return buf_printf(out, "%-*.*s  %9llu %9llu %12s %12s %12s  %s\n", width, width, n->name,
                      (unsigned long long)n->count, (unsigned long long)n->errors,
                      duration_text(n->total_ns, total),
                      duration_text(n->total_ns / n->count, mean), duration_text(n->max_ns, most),
                      r->services[n->service].name);
}

static int put_slowest(const struct report *r, struct buf *out)
{
    uint32_t names[NAMES_SHOWN];
    const size_t n = report_slowest(r, names, NAMES_SHOWN);
    int widest = 0, e;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if ((int)strlen(r->names[names[i]].name) > widest)
            widest = (int)strlen(r->names[names[i]].name);
    widest = column_width("Spans with most time", widest);
    e = buf_printf(out, "\n%-*s  %9s %9s %12s %12s %12s  %s\n", widest, "Spans with most time",
                   "count", "errors", "total", "mean", "longest", "service");
    for (size_t i = 0; e == 0 && i < n; i++)
        e = put_name(r, &r->names[names[i]], widest, out);
    return e;
}

/* ---- all ---- */

static int put_totals(const struct report *r, unsigned files, struct buf *out)
{
    int e = buf_printf(out, "\n%llu spans, %llu data points, %llu log records",
                       (unsigned long long)r->records[SIGNAL_TRACES],
                       (unsigned long long)r->records[SIGNAL_METRICS],
                       (unsigned long long)r->records[SIGNAL_LOGS]);
    if (e == 0 && files)
        e = buf_printf(out, " in %u file%s", files, files == 1 ? "" : "s");
    if (e == 0)
        e = buf_append_str(out, ".");
    if (e == 0 && r->duplicates)
        e = buf_printf(out, " %llu spans came twice and count once.",
                       (unsigned long long)r->duplicates);
    if (e == 0 && r->truncated)
        e = buf_printf(out, " %llu span%s cut off when the program ended (nemo.span.truncated).",
                       (unsigned long long)r->truncated, r->truncated == 1 ? " was" : "s were");
    if (e == 0 && r->beyond)
        e = buf_printf(out,
                       " %llu spans are beyond what is kept and were not judged: raise "
                       "--max-traces (%llu).",
                       (unsigned long long)r->beyond, (unsigned long long)r->max_traces);
    return e < 0 ? e : buf_putc(out, '\n');
}

int report_text(const struct report *r, const struct report_options *o, struct buf *out)
{
    int e = report_sentence(r, out);
    if (e == 0)
        e = buf_putc(out, '\n');
    if (e == 0)
        e = put_traces(r, o->all, out);
    if (e == 0)
        e = put_advice(r, out);
    if (e == 0 && !report_is_empty(r))
        e = put_services(r, out);
    if (e == 0)
        e = put_slowest(r, out);
    return e < 0 || report_is_empty(r) ? e : put_totals(r, o->files, out);
}
