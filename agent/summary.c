/* The counters of a run as tables, by component and signal. */
#include "agent/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"

#define WRITE_TIME_NS (5 * NS_PER_S) /* a disk that hangs must not hold up the end */

/* ---- the page of metrics ---- */

/* The value of a line "name{labels} 12", 0 for a comment or another name. */
static int64_t line_value(const char *line, size_t len, const char *prefix)
{
    if (len < strlen(prefix) || strncmp(line, prefix, strlen(prefix)) != 0)
        return 0;
    const char *blank = memrchr(line, ' ', len);
    char digits[32];
    if (!blank || (size_t)(line + len - blank) > sizeof(digits))
        return 0;
    memcpy(digits, blank + 1, (size_t)(line + len - blank - 1));
    digits[line + len - blank - 1] = 0;
    return (int64_t)strtod(digits, NULL);
}

int64_t summary_total(struct bytes page, const char *prefix)
{
    int64_t total = 0;
    for (size_t at = 0; at < page.len;) {
        const char *line = (const char *)page.data + at;
        const char *end = memchr(line, '\n', page.len - at);
        const size_t len = end ? (size_t)(end - line) : page.len - at;
        total += line_value(line, len, prefix);
        at += len + 1;
    }
    return total;
}

/* ---- tables ---- */

/* Which metric goes where. */
struct source {
    const char *name;
    enum summary_part part;
    unsigned column;
    const char *
        signal; /* the label that tells; NULL: the name ends in "_spans" and so on, or "" of none */
};
static const struct source sources[] = {
    {"otelcol_receiver_accepted", SUMMARY_RECEIVERS, RECEIVER_ACCEPTED, NULL},
    {"otelcol_receiver_refused", SUMMARY_RECEIVERS, RECEIVER_REFUSED, NULL},
    {"otelcol_receiver_failed", SUMMARY_RECEIVERS, RECEIVER_FAILED, NULL},
    {"motel_processor_batch_dropped_items", SUMMARY_PROCESSORS, PROCESSOR_DROPPED, "otel_signal"},
    {"otelcol_exporter_sent", SUMMARY_EXPORTERS, EXPORTER_SENT, NULL},
    {"otelcol_exporter_send_failed", SUMMARY_EXPORTERS, EXPORTER_GIVEN_UP, NULL},
    {"otelcol_exporter_enqueue_failed", SUMMARY_EXPORTERS, EXPORTER_REFUSED, NULL},
    {"motel_exporter_partly_refused", SUMMARY_EXPORTERS, EXPORTER_LEFT_OUT, NULL},
    {"motel_exporter_rejected", SUMMARY_EXPORTERS, EXPORTER_REJECTED, NULL},
    {"motel_exporter_returned", SUMMARY_EXPORTERS, EXPORTER_RETURNED, NULL},
    {"motel_exporter_retried_requests", SUMMARY_EXPORTERS, EXPORTER_RETRIES, "data_type"},
    {"motel_exporter_queue_peak", SUMMARY_EXPORTERS, EXPORTER_QUEUE_PEAK, "data_type"},
    {"otelcol_exporter_queue_capacity", SUMMARY_EXPORTERS, EXPORTER_QUEUE_SIZE, "data_type"},
    {"motel_exporter_disk_records", SUMMARY_EXPORTERS, EXPORTER_KEPT, "data_type"},
    {"motel_exporter_damaged", SUMMARY_EXPORTERS, EXPORTER_DAMAGED, NULL},
    {"motel_scrapes_succeeded", SUMMARY_TARGETS, TARGET_SUCCEEDED, ""},
    {"motel_scrapes_failed", SUMMARY_TARGETS, TARGET_FAILED, ""},
};

struct key {
    char id[METRIC_LABELS_MAX], job[METRIC_LABELS_MAX], instance[METRIC_LABELS_MAX];
    enum signal signal;
};

struct collector {
    struct summary *summary;
    int error;
};

/* The signal whose records are called `name`, or that is called so itself; SIGNAL_COUNT = none. */
static enum signal find_signal(const char *(*name_of)(enum signal s), const char *name)
{
    enum signal s = 0;
    while (s < SIGNAL_COUNT && strcmp(name_of(s), name) != 0)
        s++;
    return s;
}

/* The row of the table for a metric, and whose; false when it is not for one. */
static bool matches(const struct source *src, const char *name, const char *labels, struct key *k)
{
    static const char *const owners[SUMMARY_PARTS] = {"receiver", "processor", "exporter",
                                                      "receiver"};
    const size_t len = strlen(src->name);
    if (strncmp(name, src->name, len) != 0 || name[len] != (src->signal ? '\0' : '_'))
        return false;
    char text[32] = "";
    k->signal = SIGNAL_COUNT;
    if (!src->signal)
        k->signal = find_signal(signal_records_name, name + len + 1);
    else if (metric_label_value(labels, src->signal, text, sizeof(text)))
        k->signal = find_signal(signal_name, text);
    metric_label_value(labels, "job", k->job, sizeof(k->job));
    metric_label_value(labels, "instance", k->instance, sizeof(k->instance));
    return metric_label_value(labels, owners[src->part], k->id, sizeof(k->id)) &&
           (k->signal != SIGNAL_COUNT || (src->signal && !*src->signal));
}

static void row_done(struct summary_row *r)
{
    free(r->id);
    free(r->job);
    free(r->instance);
}

static struct summary_row *add_row(struct summary_table *t, const struct key *k)
{
    struct summary_row *rows = realloc(t->rows, (t->n + 1) * sizeof(*rows));
    if (!rows)
        return NULL;
    t->rows = rows;
    struct summary_row *r = &rows[t->n];
    *r = (struct summary_row){.id = strdup(k->id),
                              .signal = k->signal,
                              .job = strdup(k->job),
                              .instance = strdup(k->instance)};
    if (r->id && r->job && r->instance) {
        t->n++;
        return r;
    }
    row_done(r);
    return NULL;
}

static struct summary_row *row_of(struct summary_table *t, const struct key *k)
{
    for (size_t i = 0; i < t->n; i++) {
        struct summary_row *r = &t->rows[i];
        if (r->signal == k->signal && strcmp(r->id, k->id) == 0 && strcmp(r->job, k->job) == 0 &&
            strcmp(r->instance, k->instance) == 0)
            return r;
    }
    return add_row(t, k);
}

static void see(void *ctx, const char *name, const char *labels, int64_t value)
{
    struct collector *c = ctx;
    struct key k;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct source *src = &sources[i];
        if (!matches(src, name, labels, &k))
            continue;
        struct summary_row *r = row_of(&c->summary->parts[src->part], &k);
        if (r)
            r->n[src->column] += value;
        else
            c->error = -ENOMEM;
        return;
    }
}

/* By component, then signal; targets by job and instance. */
static int compare_rows(const void *a, const void *b)
{
    const struct summary_row *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    if (order == 0)
        order = strcmp(x->job, y->job);
    if (order == 0)
        order = strcmp(x->instance, y->instance);
    return order ? order : (int)x->signal - (int)y->signal;
}

/* VmHWM in bytes; 0 when the system does not tell. */
static size_t rss_peak(void)
{
    char line[256];
    unsigned long long kib = 0;
    _cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    return (size_t)kib * 1024;
}

int summary_collect(struct host *h, struct summary *ret)
{
    struct collector c = {.summary = ret};
    *ret = (struct summary){.end_ns = clock_wall_ns(), .rss_peak = rss_peak()};
    ret->start_ns = ret->end_ns - metrics_age_ns(h);
    ret->telemetry_peak = mem_peak();
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        ret->times[s] = host_times(h, s);
    metrics_each(h, see, &c);
    for (unsigned i = 0; i < SUMMARY_PARTS; i++)
        if (ret->parts[i].n)
            qsort(ret->parts[i].rows, ret->parts[i].n, sizeof(struct summary_row), compare_rows);
    return c.error;
}

void summary_done(struct summary *s)
{
    for (unsigned i = 0; i < SUMMARY_PARTS; i++) {
        for (size_t k = 0; k < s->parts[i].n; k++)
            row_done(&s->parts[i].rows[k]);
        free(s->parts[i].rows);
    }
    *s = (struct summary){0};
}

int64_t summary_sum(const struct summary *s, enum summary_part part, unsigned column,
                    enum signal signal)
{
    const struct summary_table *t = &s->parts[part];
    int64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        if (signal == SIGNAL_COUNT || t->rows[i].signal == signal)
            sum += t->rows[i].n[column];
    return sum;
}

int64_t summary_lost(const struct summary *s)
{
    return summary_sum(s, SUMMARY_EXPORTERS, EXPORTER_GIVEN_UP, SIGNAL_COUNT) -
           summary_sum(s, SUMMARY_EXPORTERS, EXPORTER_RETURNED, SIGNAL_COUNT) +
           summary_sum(s, SUMMARY_EXPORTERS, EXPORTER_LEFT_OUT, SIGNAL_COUNT) +
           summary_sum(s, SUMMARY_PROCESSORS, PROCESSOR_DROPPED, SIGNAL_COUNT);
}

/* ---- the end of a run ---- */

static void log_lines(struct buf *text)
{
    char *rest = (char *)(uintptr_t)buf_str(text);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line)
            log_at(*line == '!' ? LOG_WARN : LOG_INFO, NULL, line + 1);
}

/* True when it is there. */
static bool write_file(const struct summary *s, const struct summary_place *place,
                       const struct motel_settings *settings)
{
    _cleanup_buf_ struct buf *json = buf_new(0);
    struct err e = {0};
    int r = json ? summary_json(s, json) : -ENOMEM;
    if (r < 0)
        err_set(&e, r, "out of memory");
    else
        r = summary_write(place, buf_bytes(json), settings->file_mode,
                          clock_now_ns() + WRITE_TIME_NS, &e);
    if (r < 0)
        log_error(NULL, "The summary of the run cannot be written", LOG_STR("error", e.text));
    return r == 0;
}

void summary_tell(struct host *h, const struct service_settings *service,
                  const struct motel_settings *settings)
{
    struct summary s;
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct summary_place place;
    int r = summary_collect(h, &s);
    if (summary_place_find(service, settings->summary, &place) < 0 || !text)
        r = -ENOMEM;
    if (r == 0) {
        const bool written = place.path && write_file(&s, &place, settings);
        r = summary_text(&s, written ? place.path : NULL, text);
    }
    if (r == 0)
        log_lines(text);
    else
        log_error(NULL, "There is no memory for a summary of the run");
    summary_place_done(&place);
    summary_done(&s);
}
