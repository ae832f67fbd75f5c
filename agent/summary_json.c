/* The summary of a run as JSON; docs/summary.md describes it. */
#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/json_text.h"
#include "agent/base/secrets.h"
#include "agent/summary.h"

#define SCHEMA 1 /* goes up when a key changes its meaning or vanishes */

struct json {
    struct buf *out;
    int error;
    bool more; /* something stands before in this object or list */
};

static _printf_(2, 3) void put(struct json *j, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (j->error == 0)
        j->error = buf_vprintf(j->out, fmt, ap);
    va_end(ap);
}

/* An object or list that is named, or that is an element (NULL); on a line of its own when it is
 * `deep` or an element. */
static void open_part(struct json *j, const char *key, char bracket, const char *indent)
{
    put(j, "%s%s", j->more ? "," : "", indent);
    if (key)
        put(j, "\"%s\": ", key);
    put(j, "%c", bracket);
    j->more = false;
}

static void close_part(struct json *j, char bracket, const char *indent)
{
    put(j, "%s%c", indent, bracket);
    j->more = true;
}

static void put_key(struct json *j, const char *key)
{
    put(j, "%s\"%s\": ", j->more ? ", " : "", key);
    j->more = true;
}

static void put_text(struct json *j, const char *key, const char *text)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    put_key(j, key);
    if (j->error == 0)
        j->error = clean ? secrets_redact(bytes_str(text), clean) : -ENOMEM;
    if (j->error == 0)
        j->error = json_text(j->out, buf_bytes(clean));
}

static void put_int(struct json *j, const char *key, int64_t n)
{
    put_key(j, key);
    put(j, "%lld", (long long)n);
}

static void put_time(struct json *j, const char *key, uint64_t wall_ns)
{
    char text[25];
    clock_format_ms(wall_ns, text);
    put_text(j, key, text);
}

/* ---- parts ---- */

static void put_run(struct json *j, const struct summary *s)
{
    open_part(j, "run", '{', "\n ");
    put_text(j, "version", MOTEL_VERSION);
    put_time(j, "start", s->start_ns);
    put_time(j, "end", s->end_ns);
    put_key(j, "seconds");
    put(j, "%.3f", (double)(s->end_ns - s->start_ns) / (double)NS_PER_S);
    put_int(j, "lost", summary_lost(s));
    close_part(j, '}', "");
}

static void put_signal(struct json *j, const struct summary *s, enum signal signal)
{
    const struct time_range *t = &s->times[signal];
    open_part(j, signal_name(signal), '{', "\n  ");
    put_text(j, "unit", signal_records_name(signal));
    put_int(j, "accepted", summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_ACCEPTED, signal));
    put_int(j, "refused", summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_REFUSED, signal));
    put_int(j, "failed", summary_sum(s, SUMMARY_RECEIVERS, RECEIVER_FAILED, signal));
    if (t->last_ns) {
        put_time(j, "first_time", t->first_ns);
        put_time(j, "last_time", t->last_ns);
    }
    close_part(j, '}', "");
}

static void put_signals(struct json *j, const struct summary *s)
{
    open_part(j, "signals", '{', "\n ");
    for (enum signal i = 0; i < SIGNAL_COUNT; i++)
        put_signal(j, s, i);
    close_part(j, '}', "\n ");
}

static void put_receiver(struct json *j, const struct summary_row *r)
{
    put_text(j, "receiver", r->id);
    put_text(j, "signal", signal_name(r->signal));
    put_int(j, "accepted", r->n[RECEIVER_ACCEPTED]);
    put_int(j, "refused", r->n[RECEIVER_REFUSED]);
    put_int(j, "failed", r->n[RECEIVER_FAILED]);
}

static void put_processor(struct json *j, const struct summary_row *r)
{
    put_text(j, "processor", r->id);
    put_text(j, "signal", signal_name(r->signal));
    put_int(j, "dropped", r->n[PROCESSOR_DROPPED]);
}

static void put_exporter(struct json *j, const struct summary_row *r)
{
    put_text(j, "exporter", r->id);
    put_text(j, "signal", signal_name(r->signal));
    put_int(j, "in", summary_in(r));
    put_int(j, "sent", summary_delivered(r));
    put_int(j, "rejected", summary_rejected(r));
    put_int(j, "dropped", summary_dropped(r));
    put_int(j, "damaged", r->n[EXPORTER_DAMAGED]);
    put_int(j, "kept", r->n[EXPORTER_KEPT]);
    put_int(j, "refused", r->n[EXPORTER_REFUSED]);
    put_int(j, "returned", r->n[EXPORTER_RETURNED]);
    put_int(j, "retries", r->n[EXPORTER_RETRIES]);
    if (!r->n[EXPORTER_QUEUE_SIZE])
        return;
    put_int(j, "queue_peak", r->n[EXPORTER_QUEUE_PEAK]);
    put_int(j, "queue_size", r->n[EXPORTER_QUEUE_SIZE]);
}

static void put_target(struct json *j, const struct summary_row *r)
{
    const int64_t all = r->n[TARGET_SUCCEEDED] + r->n[TARGET_FAILED];
    put_text(j, "receiver", r->id);
    put_text(j, "job", r->job);
    put_text(j, "instance", r->instance);
    put_int(j, "succeeded", r->n[TARGET_SUCCEEDED]);
    put_int(j, "failed", r->n[TARGET_FAILED]);
    if (!all)
        return;
    put_key(j, "percent");
    put(j, "%.4g", (double)(r->n[TARGET_SUCCEEDED] * 1000 / all) / 10);
}

static void put_table(struct json *j, const struct summary *s, enum summary_part part,
                      const char *key, void (*put_row)(struct json *, const struct summary_row *))
{
    const struct summary_table *t = &s->parts[part];
    open_part(j, key, '[', "\n ");
    for (size_t i = 0; i < t->n; i++) {
        open_part(j, NULL, '{', "\n  ");
        put_row(j, &t->rows[i]);
        close_part(j, '}', "");
    }
    close_part(j, ']', t->n ? "\n " : "");
}

static void put_memory(struct json *j, const struct summary *s)
{
    open_part(j, "memory", '{', "\n ");
    if (s->rss_peak)
        put_int(j, "rss_peak_bytes", (int64_t)s->rss_peak);
    put_int(j, "telemetry_peak_bytes", (int64_t)s->telemetry_peak);
    close_part(j, '}', "");
}

int summary_json(const struct summary *s, struct buf *out)
{
    struct json j = {.out = out};
    put(&j, "{\"motel_summary\": %d", SCHEMA);
    j.more = true;
    put_run(&j, s);
    put_signals(&j, s);
    put_table(&j, s, SUMMARY_RECEIVERS, "receivers", put_receiver);
    put_table(&j, s, SUMMARY_PROCESSORS, "processors", put_processor);
    put_table(&j, s, SUMMARY_EXPORTERS, "exporters", put_exporter);
    put_table(&j, s, SUMMARY_TARGETS, "scrapes", put_target);
    put_memory(&j, s);
    put(&j, "\n}\n");
    return j.error;
}
