/* What the program offers to its components: timers, self metrics, registries that outlive a reload. */
#ifndef MOTEL_PIPELINE_HOST_H
#define MOTEL_PIPELINE_HOST_H

#include <sys/types.h>

#include "agent/pipeline/component.h"

/* One timer thread serves all; it starts with the first arming and sleeps while nothing is armed. Callbacks are short and do not block. */
struct timer;
struct timer *timer_new(struct host *h, void (*fire)(void *ctx), void *ctx);
void timer_arm(struct timer *t, uint64_t at_ns); /* clock_now_ns() time; replaces an earlier arming; callable from fire() */
void timer_disarm(struct timer *t);              /* no wait; a callback may still be running */
struct timer *timer_free(struct timer *t);       /* disarms and waits for a running callback; NULL ok; not from fire() */

/* Self metrics: counters, gauges and histograms under the reference's names, served as Prometheus text. Handles are stable; the same name and
 * labels give the same handle (also across a reload). */
struct metric;
#define METRIC_LABELS_MAX 600
/* Appends name="value" to `labels` ("" at first), escaped; names in alphabetical order. What does not fit is left out. */
void metric_label(char labels[METRIC_LABELS_MAX], const char *name, const char *value);
/* `labels` as metric_label() makes them, "" = none. */
struct metric *metric_counter(struct host *h, const char *name, const char *help, const char *labels);
struct metric *metric_gauge(struct host *h, const char *name, const char *help, const char *labels);
/* `bounds`: n upper limits of buckets, ascending, static storage. */
struct metric *metric_histogram(struct host *h, const char *name, const char *help, const char *labels, const int64_t *bounds, size_t n);
void metric_record(struct metric *m, int64_t v); /* one value of a histogram; lock free */
void metric_add(struct metric *m, int64_t n);  /* lock free */
void metric_set(struct metric *m, int64_t v);
int64_t metric_value(const struct metric *m);
/* A gauge that is read when the page is made, from any thread; the newest of several with the same name and labels is shown.
 * metric_unobserve() removes all of `ctx` and waits for a reader; call it before what is read goes away, holding no lock that read takes. */
void metric_observe(struct host *h, const char *name, const char *help, const char *labels, int64_t (*read)(void *ctx), void *ctx);
/* The same for a counter. */
void metric_observe_counter(struct host *h, const char *name, const char *help, const char *labels, int64_t (*read)(void *ctx), void *ctx);
void metric_unobserve(struct host *h, void *ctx);
/* Calls see() for every counter and gauge that is not read from elsewhere, in the order of the page. It must not make or read metrics. */
void metrics_each(struct host *h, void (*see)(void *ctx, const char *name, const char *labels, int64_t value), void *ctx);
/* The value of label `name` in `labels` as metric_label() makes them, cut at the size of `ret`; false and "" when it is not there. */
bool metric_label_value(const char *labels, const char *name, char *ret, size_t size);
/* Nanoseconds since the host was made. */
uint64_t metrics_age_ns(struct host *h);
/* The whole page (text/plain; version=0.0.4). */
int metrics_render(struct host *h, struct buf *out);
/* Accepted / refused / failed counters of a receiver for one signal and transport ("grpc", "http"). */
struct receiver_metrics {
    struct metric *accepted, *refused, *failed;
};
void receiver_metrics_get(struct host *h, const char *receiver_id, const char *transport, enum signal s, struct receiver_metrics *ret);
/* Scrapes of one target that did or did not give data (motel_scrapes_{succeeded,failed}): the summary of the run lists targets by them.
 * `job` and `instance` as in the data ("node", "localhost:9100"). Get them when the target is known, so that one that never answers shows. */
struct scrape_metrics {
    struct metric *succeeded, *failed;
};
void scrape_metrics_get(struct host *h, const char *receiver_id, const char *job, const char *instance, struct scrape_metrics *ret);

/* The time stamps of the telemetry that receivers brought in since the start (component_emit() notes them). Lock free. NULL ok. */
void host_note_times(struct host *h, enum signal s, const struct time_range *seen);
struct time_range host_times(const struct host *h, enum signal s);

/* An extension by id that offers `kind`; NULL when there is none. Look it up in create() or start() and keep it: after a reload another
 * graph answers. */
const void *host_extension(struct host *h, const char *id, enum capability kind);

/* Settings of the `motel:` section that components read. */
struct motel_settings {
    bool redact;
    int64_t shutdown_timeout_ns;
    int64_t stop_delay_ns; /* receivers go on for this long after SIGTERM */
    int64_t file_mode; /* of files that exporters create; -1 = their own default */
    /* limits of what clients may send (agent/net/limits.h, proto/check.h); 0 = the default */
    int64_t max_connections, max_header_bytes, client_timeout_ns, request_timeout_ns, stream_reset_burst, stream_reset_rate;
    int64_t max_nesting, max_attributes, max_decompression_ratio;
    const char *spill_directory; /* where full queues go on; "" = nowhere */
    const char *memory_limit_text; /* as written; "" = by the control group */
    int64_t memory_limit_bytes;    /* 0 = none, -1 = by the control group */
    const char *summary; /* where the summary of the run goes; "" = beside the first file exporter's file; "none" */
};
const struct motel_settings *host_settings(const struct host *h);

/* True while the process is stopping: receivers refuse new data with RETRY. */
bool host_stopping(const struct host *h);

/*
 * Registry of things that are shared between the old and the new graph of a reload, by key ("listen:tcp:127.0.0.1:4317",
 * "file:/abs/path"): the first user makes it, the last one closes it. Thread safe.
 */
struct shared {
    char *key;
    unsigned refs;
    void *thing;
    void (*close)(void *thing);
    struct shared *next;
};
/* The entry of `key` with one more reference, made by `open` when there is none. NULL with reterr when open fails. */
struct shared *host_share(struct host *h, const char *key, int (*open)(void *ctx, void **ret_thing, struct err *reterr), void *ctx,
                          void (*close)(void *thing), struct err *reterr);
struct shared *host_unshare(struct host *h, struct shared *s); /* NULL ok; returns NULL */

#endif
