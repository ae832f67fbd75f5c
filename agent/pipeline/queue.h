/*
 * The exporter helper: one queue, worker set and metrics per signal of an exporter; retry with back-off; time-outs.
 * Settings are the reference's `sending_queue`, `retry_on_failure` and `timeout`.
 */
#ifndef MOTEL_PIPELINE_QUEUE_H
#define MOTEL_PIPELINE_QUEUE_H

#include "agent/pipeline/component.h"

enum queue_sizer { SIZER_REQUESTS, SIZER_ITEMS, SIZER_BYTES };
struct queue_partition {
    struct cfg_list metadata_keys; /* empty */
};
struct queue_batch { /* sending_queue.batch: requests are put together, or cut, on their way out of the queue */
    int64_t flush_timeout_ns;   /* what has waited this long goes even if it is less than min_size */
    int64_t min_size, max_size; /* items or bytes; max 0 = no limit */
    int sizer;                  /* SIZER_ITEMS or SIZER_BYTES */
    enum cfg_presence sizer_given; /* this and what follows: of the configuration */
    struct queue_partition partition;
};
struct queue_settings { /* sending_queue; a NULL block = every request is sent at once and its answer is the client's */
    int64_t num_consumers, queue_size;
    int sizer;
    enum cfg_presence sizer_given;
    bool block_on_overflow, wait_for_result;
    struct cfg_id storage;     /* the extension that keeps the queue on disk; id NULL = in memory */
    struct queue_batch *batch; /* NULL = requests go out as they came in */
};
struct retry_settings { /* retry_on_failure */
    bool enabled;
    int64_t initial_interval_ns, max_interval_ns, max_elapsed_time_ns; /* max_elapsed 0 = for ever */
    double multiplier, randomization_factor;
};
struct exporter_settings { /* embedded in an exporter's config */
    int64_t timeout_ns; /* of one attempt; 0 = none */
    struct queue_settings *queue; /* BIND_BLOCK */
    struct retry_settings retry;
};
extern const struct cfg_field queue_fields[], retry_fields[];
/* The three keys for a component's own table: {EXPORTER_FIELDS(struct x_config, exporter, "30s")}, i.e. `timeout`,
 * `sending_queue`, `retry_on_failure`. `queue_default`: "{}" = on by default, NULL = off. */
#define EXPORTER_FIELDS(type, member, timeout_default, queue_default)                                                              \
    {.key = "timeout", .kind = BIND_DURATION, .offset = offsetof(type, member.timeout_ns), .def = timeout_default,                 \
     .help = "Time allowed for one attempt; 0 means no limit."},                                                                   \
    {.key = "sending_queue", .kind = BIND_BLOCK, .offset = offsetof(type, member.queue), .def = queue_default,                     \
     .fields = queue_fields, .size = sizeof(struct queue_settings), .help = "Queue between the pipeline and the backend."},        \
    {.key = "retry_on_failure", .kind = BIND_STRUCT, .offset = offsetof(type, member.retry), .fields = retry_fields,               \
     .size = sizeof(struct retry_settings), .help = "Back-off after an answer that allows another try."}
/* Cross-field rules of the three: 0 or -EINVAL. Call it from the component's check(). */
int exporter_settings_check(const struct exporter_settings *s, struct err *reterr);

struct queue;
/* For `signal` of exporter `c`, whose type has send(). No threads, no disk yet. A `storage` that is no extension of the graph being built is a
 * mistake. */
struct queue *queue_new(struct component *c, const struct exporter_settings *s, enum signal signal, struct err *reterr);
/* Opens the queue on disk, or the place to spill to, and takes up what is there; without one there is nothing to do. The extensions and the
 * exporter itself run. */
int queue_start(struct queue *q, struct err *reterr);
/* Takes `b`. OK = queued. RETRY = full or stopped. PENDING where room or the sender's answer is waited for. Never blocks. */
enum verdict queue_offer(struct queue *q, struct batch *b, struct ack *ack);
/* Whether an answer OK of queue_offer() means that the request is on disk. Known from the settings, also before the start. */
bool queue_durable(const struct queue *q);
/* Batches what goes out, as `sending_queue.batch` does. Before the start. Of several calls the strictest limits count (least time-out, most
 * min_size, least max_size); the exporter's own `batch` goes before all of them. The limits are copied. */
void queue_set_batch(struct queue *q, const struct queue_batch *limits);
/* The process is stopping: still takes and sends, but from now on waits between attempts are short and end at the deadline. A
 * later call can only bring the deadline nearer. */
void queue_drain(struct queue *q, uint64_t deadline_ns);
/* Drains until `deadline_ns`, or so much earlier as it takes to write what is left to the disk, where there is one; interrupts attempts (the
 * component's stop()) when that has passed, joins the workers. What is left stays on disk, or is counted, logged and dropped. Offers are
 * refused from then on. Legal twice. */
void queue_stop(struct queue *q, uint64_t deadline_ns);
struct queue *queue_free(struct queue *q); /* NULL ok; returns NULL; stopped before */

/* otelcol_exporter_{sent,send_failed,enqueue_failed}_{spans,…}, motel_exporter_partly_refused_{spans,…} (left out of what was taken, by a
 * partial success) and motel_exporter_rejected_{spans,…} (those of send_failed that the destination refused for good) and
 * motel_exporter_returned_{spans,…} (those of send_failed that somebody waited for, who was told and may bring them again; the rest of them
 * ran out of time): kept by the queue; an exporter with a consume() of its own counts them. */
struct exporter_metrics {
    struct metric *sent, *send_failed, *enqueue_failed, *partly_refused, *rejected, *returned;
};
void exporter_metrics_get(struct host *h, const char *exporter_id, enum signal s, struct exporter_metrics *ret);

#endif
