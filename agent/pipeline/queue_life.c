/* The life of a queue: limits, metrics, and the stop. */
#include <errno.h>
#include <limits.h>

#include "agent/base/cgroup.h"
#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_parts.h"

#define MAX_UNQUEUED_WORKERS 256 /* without a queue; more requests wait for one of them */
#define MIN_BYTES ((size_t)64 * 1024 * 1024)
#define SAVE_NS (200 * NS_PER_MS) /* of a stop: to write what is left… */
#define SAVE_NS_PER_BYTE 20       /* …and this for each byte in memory */
#define PATIENCE_NS                                                                                \
    (8 * NS_PER_S) /* of a stop with a backend out of reach: this or a third of the time */

/* However many requests the settings allow: half of the memory is enough for one queue, the rest is
 * refused and not lost to the out-of-memory killer. */
static size_t byte_limit(void)
{
    uint64_t half = machine_memory() / 2;
    half = half > MIN_BYTES ? half : MIN_BYTES;
    return half < SIZE_MAX ? (size_t)half : SIZE_MAX;
}

static struct metric *exporter_metric(struct host *h, const char *what, const char *help,
                                      enum signal s, const char *labels)
{
    char name[80];
    snprintf(name, sizeof(name), "%s_%s", what, signal_records_name(s));
    return metric_counter(h, name, help, labels);
}

void exporter_metrics_get(struct host *h, const char *exporter_id, enum signal s,
                          struct exporter_metrics *ret)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "exporter", exporter_id);
    ret->sent = exporter_metric(h, "otelcol_exporter_sent", "Records that the destination took.", s,
                                labels);
    ret->send_failed = exporter_metric(
        h, "otelcol_exporter_send_failed",
        "Records that were given up: refused by the destination or out of time.", s, labels);
    ret->rejected = exporter_metric(
        h, "motel_exporter_rejected",
        "Records among those given up that the destination refused for good.", s, labels);
    ret->returned = exporter_metric(
        h, "motel_exporter_returned",
        "Records among those given up whose sender was told to bring them again.", s, labels);
    ret->enqueue_failed = exporter_metric(h, "otelcol_exporter_enqueue_failed",
                                          "Records that the queue had no room for.", s, labels);
    ret->partly_refused = exporter_metric(
        h, "motel_exporter_partly_refused",
        "Records that the destination left out of requests that it took.", s, labels);
}

static void gauges_get(struct queue *q, struct host *h)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "data_type", signal_name(q->signal));
    metric_label(labels, "exporter", q->component->id);
    q->in_flight_now =
        metric_gauge(h, "otelcol_exporter_in_flight_requests",
                     "Requests that are being sent or pause before another attempt.", labels);
    q->retries = metric_counter(h, "motel_exporter_retried_requests",
                                "Attempts to send a request again after one that failed.", labels);
    if (!q->settings->queue)
        return;
    q->size_peak =
        metric_gauge(h, "motel_exporter_queue_peak",
                     "The most that was in the queue, counted as its sizer says.", labels);
    q->size_now = metric_gauge(h, "otelcol_exporter_queue_size",
                               "What is in the queue, counted as its sizer says.", labels);
    q->capacity_now =
        metric_gauge(h, "otelcol_exporter_queue_capacity", "What the queue can hold.", labels);
    metric_set(q->capacity_now, q->capacity);
}

static int find_storage(struct queue *q, struct err *reterr)
{
    const char *id = q->settings->queue ? q->settings->queue->storage.id : NULL;
    q->storage = id ? host_extension(q->component->host, id, CAP_STORAGE) : NULL;
    if (!id || q->storage)
        return 0;
    return err_at(reterr, "sending_queue::storage",
                  "no storage client extension found: \"%s\" has to be a storage extension, and "
                  "to be named in service::extensions",
                  id);
}

static void init(struct queue *q)
{
    q->deadline_ns = UINT64_MAX;
    list_init(&q->ready);
    list_init(&q->waiting);
    list_init(&q->pending);
    list_init(&q->gone);
    list_init(&q->kept);
    pthread_mutex_init(&q->lock, NULL);
    cond_init_monotonic(&q->work);
    cond_init_monotonic(&q->changed);
    cond_init_monotonic(&q->quiet);
    cond_init_monotonic(&q->write);
}

struct queue *queue_new(struct component *c, const struct exporter_settings *s, enum signal signal,
                        struct err *reterr)
{
    struct queue *q = calloc(1, sizeof(*q));
    if (!q) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    q->component = c;
    q->settings = s;
    q->signal = signal;
    q->logger = c->logger;
    q->logger.signal = signal_name(signal);
    q->capacity = s->queue ? s->queue->queue_size : INT64_MAX;
    q->max_bytes = byte_limit();
    q->max_workers = !s->queue                            ? MAX_UNQUEUED_WORKERS
                     : s->queue->num_consumers < UINT_MAX ? (unsigned)s->queue->num_consumers
                                                          : UINT_MAX;
    init(q);
    if (s->queue && s->queue->batch) {
        q->batch = *s->queue->batch;
        q->batch.sizer = queue_batch_sizer(s->queue);
        q->batching = true;
    }
    if (find_storage(q, reterr) < 0)
        return queue_free(q);
    exporter_metrics_get(c->host, c->id, signal, &q->metrics);
    gauges_get(q, c->host);
    return q;
}

bool queue_durable(const struct queue *q)
{
    return q->settings->queue && q->settings->queue->storage.id;
}

/* 0 = no limit. */
static int64_t stricter(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

void queue_set_batch(struct queue *q, const struct queue_batch *limits)
{
    if (q->settings->queue && q->settings->queue->batch)
        return;
    const struct queue_batch before = q->batch;
    q->batch = *limits;
    if (q->batching) {
        if (before.flush_timeout_ns < q->batch.flush_timeout_ns)
            q->batch.flush_timeout_ns = before.flush_timeout_ns;
        if (before.min_size > q->batch.min_size)
            q->batch.min_size = before.min_size;
        q->batch.max_size = stricter(before.max_size, q->batch.max_size);
        if (q->batch.max_size && q->batch.min_size > q->batch.max_size)
            q->batch.min_size = q->batch.max_size;
    }
    q->batching = true;
}

static void set_state(struct queue *q, enum queue_state state)
{
    q->state = state;
    pthread_cond_broadcast(&q->changed);
    pthread_cond_broadcast(&q->work);
    pthread_cond_broadcast(&q->quiet);
}

static uint64_t patience(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t third_ns = deadline_ns > now_ns ? (deadline_ns - now_ns) / 3 : 0;
    return third_ns > PATIENCE_NS ? third_ns : PATIENCE_NS;
}

/* The time before `deadline_ns` that writing what is in memory may take. */
static uint64_t save_time(const struct queue *q, uint64_t deadline_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const uint64_t save_ns = SAVE_NS + mem_used() * SAVE_NS_PER_BYTE;
    if (!q->disk)
        return 0;
    return save_ns < left_ns / 3 ? save_ns : left_ns / 3;
}

void queue_drain(struct queue *q, uint64_t deadline_ns)
{
    deadline_ns -= save_time(q, deadline_ns);
    pthread_mutex_lock(&q->lock);
    if (deadline_ns < q->deadline_ns)
        q->deadline_ns = deadline_ns;
    if (q->state == QUEUE_RUNNING)
        q->patience_ns = patience(deadline_ns);
    if (q->state != QUEUE_CLOSED)
        set_state(q, QUEUE_DRAINING);
    pthread_mutex_unlock(&q->lock);
}

/* Waits until all is sent or the time is over, then shuts the door. Returns whether somebody is
 * still sending. */
static bool close_at_deadline(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (queue_busy(q) && clock_now_ns() < q->deadline_ns)
        cond_wait_until(&q->quiet, &q->lock, q->deadline_ns);
    set_state(q, QUEUE_CLOSED);
    bool sending = q->in_flight > 0;
    pthread_mutex_unlock(&q->lock);
    return sending;
}

static void log_lost(struct queue *q)
{
    char text[sizeof(q->last_error) + 40];
    if (!q->lost_requests)
        return;
    snprintf(text, sizeof(text), "interrupted due to shutdown: %s",
             *q->last_error ? q->last_error : "there was no time to send it");
    log_error(&q->logger, "Exporting failed. Dropping data.", LOG_STR("error", text),
              LOG_INT("dropped_items", q->lost_records),
              LOG_INT("dropped_requests", q->lost_requests));
    q->lost_records = q->lost_requests = 0;
}

void queue_stop(struct queue *q, uint64_t deadline_ns)
{
    queue_drain(q, deadline_ns);
    struct component *c = q->component;
    if (close_at_deadline(q) && c->type->stop)
        c->type->stop(c, q->deadline_ns);
    queue_join_workers(q);
    queue_drop_rest(q);
    queue_save(q);
    queue_detach(q);
    log_lost(q);
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    queue_stop(q, 0);
    pthread_cond_destroy(&q->write);
    pthread_cond_destroy(&q->quiet);
    pthread_cond_destroy(&q->changed);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}
