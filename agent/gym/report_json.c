/* The report for programs: one JSON object (docs/report.md). */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/json_text.h"
#include "agent/gym/report_parts.h"

#define NAMES_SHOWN 50
#define SETS_SHOWN 50

/* Everything is appended to `out`; the first failure stays in `error`. */
struct json_out {
    struct buf *out;
    int error;
    bool first; /* no comma is due */
};

static void raw(struct json_out *j, const char *text)
{
    if (j->error == 0)
        j->error = buf_append_str(j->out, text);
}

static void open_any(struct json_out *j, char bracket)
{
    if (j->error == 0)
        j->error = buf_putc(j->out, bracket);
    j->first = true;
}

static void close_any(struct json_out *j, char bracket)
{
    if (j->error == 0)
        j->error = buf_putc(j->out, bracket);
    j->first = false;
}

static void comma(struct json_out *j)
{
    if (!j->first)
        raw(j, ", ");
    j->first = false;
}

static void put_text(struct json_out *j, struct bytes text)
{
    if (j->error == 0)
        j->error = json_text(j->out, text);
}

static void key(struct json_out *j, const char *name)
{
    comma(j);
    put_text(j, bytes_str(name));
    raw(j, ": ");
}

static void number(struct json_out *j, const char *name, uint64_t v)
{
    char digits[24];
    digits[encode_uint(v, digits)] = 0;
    key(j, name);
    raw(j, digits);
}

static void seconds(struct json_out *j, const char *name, uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof(text), "%llu.%09llu", (unsigned long long)(ns / 1000000000),
             (unsigned long long)(ns % 1000000000));
    key(j, name);
    raw(j, text);
}

static void string(struct json_out *j, const char *name, const char *v)
{
    key(j, name);
    put_text(j, bytes_str(v));
}

/* ---- the parts ---- */

static void put_set(struct json_out *j, const struct report *r, const struct service_set *s)
{
    key(j, "services");
    open_any(j, '[');
    for (uint32_t i = 0; i < s->n; i++) {
        comma(j);
        put_text(j, bytes_str(r->services[s->services[i]].name));
    }
    close_any(j, ']');
}

static void put_faults(struct json_out *j, const struct report *r, const struct trace *t)
{
    key(j, "faults");
    open_any(j, '[');
    for (unsigned k = 0; k < FAULT_KINDS; k++)
        if (t->faults >> k & 1) {
            comma(j);
            put_text(j, bytes_str(report_fault_name((enum fault)(1u << k))));
        }
    close_any(j, ']');
    _cleanup_buf_ struct buf *why = buf_new(0);
    if (!why || report_fault_text(r, t, why) < 0 || !buf_str(why))
        j->error = -ENOMEM;
    else if (t->faults)
        string(j, "why", buf_str(why));
}

static void put_trace(struct json_out *j, const struct report *r, const struct trace *t)
{
    char id[33] = "";
    encode_hex(bytes_of(t->id, sizeof(t->id)), id);
    comma(j);
    open_any(j, '{');
    string(j, "trace_id", id);
    number(j, "spans", t->spans);
    number(j, "roots", t->roots);
    number(j, "orphans", t->orphans);
    number(j, "truncated", t->truncated);
    number(j, "errors", t->errors);
    if (t->roots)
        string(j, "root", r->names[t->root].name);
    put_set(j, r, &r->sets[t->set]);
    put_faults(j, r, t);
    close_any(j, '}');
}

static void put_traces(struct json_out *j, const struct report *r, bool all)
{
    key(j, all ? "all_traces" : "broken_traces");
    open_any(j, '[');
    for (size_t i = 0; i < r->ntraces && j->error == 0; i++)
        if (all || r->traces[i].faults)
            put_trace(j, r, &r->traces[i]);
    close_any(j, ']');
}

static void put_counts(struct json_out *j, const struct report *r)
{
    key(j, "traces");
    open_any(j, '{');
    number(j, "judged", r->judged);
    number(j, "joined", r->joined);
    number(j, "single_service", r->single);
    number(j, "broken", r->broken);
    number(j, "not_judged", r->cut);
    close_any(j, '}');
    number(j, "spans", r->records[SIGNAL_TRACES]);
    number(j, "data_points", r->records[SIGNAL_METRICS]);
    number(j, "log_records", r->records[SIGNAL_LOGS]);
    number(j, "duplicate_spans", r->duplicates);
    number(j, "truncated_spans", r->truncated);
    number(j, "spans_not_kept", r->beyond);
}

static void put_groups(struct json_out *j, const struct report *r)
{
    uint32_t sets[SETS_SHOWN];
    const size_t n = report_largest_sets(r, sets, SETS_SHOWN);
    key(j, "groups");
    open_any(j, '[');
    for (size_t i = 0; i < n; i++) {
        comma(j);
        open_any(j, '{');
        number(j, "traces", r->sets[sets[i]].traces);
        put_set(j, r, &r->sets[sets[i]]);
        close_any(j, '}');
    }
    close_any(j, ']');
}

static void put_services(struct json_out *j, const struct report *r)
{
    key(j, "services");
    open_any(j, '[');
    for (size_t i = 0; i < r->nservices; i++) {
        const struct service *s = &r->services[i];
        if (!s->spans && !s->points && !s->logs)
            continue;
        comma(j);
        open_any(j, '{');
        string(j, "name", s->name);
        number(j, "traces", s->traces);
        number(j, "spans", s->spans);
        number(j, "errors", s->errors);
        number(j, "data_points", s->points);
        number(j, "log_records", s->logs);
        close_any(j, '}');
    }
    close_any(j, ']');
}

static void put_slowest(struct json_out *j, const struct report *r)
{
    uint32_t names[NAMES_SHOWN];
    const size_t n = report_slowest(r, names, NAMES_SHOWN);
    key(j, "slowest_spans");
    open_any(j, '[');
    for (size_t i = 0; i < n; i++) {
        const struct span_name *s = &r->names[names[i]];
        comma(j);
        open_any(j, '{');
        string(j, "name", s->name);
        string(j, "service", r->services[s->service].name);
        number(j, "count", s->count);
        number(j, "errors", s->errors);
        seconds(j, "total_s", s->total_ns);
        seconds(j, "longest_s", s->max_ns);
        close_any(j, '}');
    }
    close_any(j, ']');
}

int report_json(const struct report *r, const struct report_options *o, struct buf *out)
{
    static const char *const words[] = {"works", "broken", "not shown"};
    struct json_out j = {.out = out};
    _cleanup_buf_ struct buf *sentence = buf_new(0);
    if (!sentence || report_sentence(r, sentence) < 0 || !buf_str(sentence))
        return -ENOMEM;
    open_any(&j, '{');
    string(&j, "propagation", words[r->propagation]);
    string(&j, "verdict", buf_str(sentence));
    put_counts(&j, r);
    put_groups(&j, r);
    put_traces(&j, r, false);
    if (o->all)
        put_traces(&j, r, true);
    put_services(&j, r);
    put_slowest(&j, r);
    close_any(&j, '}');
    raw(&j, "\n");
    return j.error;
}
