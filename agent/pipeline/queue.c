/*
 * The exporter helper: a bounded queue of requests and the workers that send them.
 *
 * A request keeps its room in the queue until it is decided, so "full" counts what is under way as well. Without a
 * sending_queue nothing is refused here: each request gets a worker and its sender waits for the backend's answer.
 */
#include "agent/pipeline/queue.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_parts.h"

#define IDLE_NS (10 * NS_PER_S)          /* a worker without work ends after this */
#define MAX_UNQUEUED_WORKERS 256         /* without a queue; more requests wait for one of them */
#define STACK_BYTES ((size_t)512 * 1024) /* TLS and compression need some 100 KiB */
#define MIN_BYTES ((size_t)64 * 1024 * 1024)
#define PATIENCE_NS (8 * NS_PER_S)       /* of a stop with a backend out of reach: this or a third of the time */

struct worker {
    struct worker *next;
    struct queue *queue;
    pthread_t thread;
    bool ended; /* to be joined */
};

static void list_init(struct request_list *l)
{
    *l = (struct request_list){.end = &l->first};
}

static void list_push(struct request_list *l, struct request *r)
{
    r->next = NULL;
    *l->end = r;
    l->end = &r->next;
    l->n++;
}

static struct request *list_pop(struct request_list *l)
{
    struct request *r = l->first;
    if (!r)
        return NULL;
    l->first = r->next;
    if (!l->first)
        l->end = &l->first;
    l->n--;
    return r;
}

static struct request *request_new(const struct queue *q, struct batch *b, struct ack *ack)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    const struct queue_settings *s = q->settings->queue;
    *r = (struct request){.batch = b, .ack = ack, .records = b->records, .bytes = b->bytes};
    r->size = !s || s->sizer == SIZER_REQUESTS ? 1
              : s->sizer == SIZER_ITEMS        ? (int64_t)b->records
                                               : (int64_t)b->bytes;
    return r;
}

static void request_free(struct request *r)
{
    batch_unref(r->batch);
    free(r);
}

/* ---- room ---- */

/* A request that is larger than the whole queue is let in when it is alone: refusing it would be for ever. */
static bool fits(const struct queue *q, const struct request *r)
{
    if (!q->settings->queue || (q->size == 0 && q->bytes == 0))
        return true;
    return q->size + r->size <= q->capacity && q->bytes + r->bytes <= q->max_bytes;
}

static void charge(struct queue *q, const struct request *r)
{
    q->size += r->size;
    q->bytes += r->bytes;
    if (q->size_now)
        metric_add(q->size_now, r->size);
}

static void discharge(struct queue *q, const struct request *r)
{
    q->size -= r->size;
    q->bytes -= r->bytes;
    if (q->size_now)
        metric_add(q->size_now, -r->size);
}

/* ---- workers ---- */

static void *worker_main(void *arg);

/* Joins workers that ended by themselves. Lock held; they need it no more. */
static void reap_workers(struct queue *q)
{
    for (struct worker **at = &q->workers; *at;) {
        struct worker *w = *at;
        if (!w->ended) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        pthread_join(w->thread, NULL);
        free(w);
    }
}

static int start_thread(struct worker *w)
{
    pthread_attr_t attr;
    sigset_t every, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int r = pthread_create(&w->thread, &attr, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (r == 0)
        pthread_setname_np(w->thread, "exporter");
    return -r;
}

static int start_worker(struct queue *q)
{
    reap_workers(q);
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->queue = q;
    int r = start_thread(w);
    if (r < 0) {
        free(w);
        return r;
    }
    w->next = q->workers;
    q->workers = w;
    q->nworkers++;
    return 0;
}

/* Sees to it that somebody will take one more ready request. Lock held. 0, or -errno when there is no worker at all. */
static int call_worker(struct queue *q)
{
    if (q->ready.n < q->nidle) {
        pthread_cond_signal(&q->work);
        return 0;
    }
    int r = q->nworkers < q->max_workers ? start_worker(q) : 0;
    return q->nworkers > 0 ? 0 : r;
}

/* Lock held. */
static int admit(struct queue *q, struct request *r)
{
    int code = call_worker(q);
    if (code < 0)
        return code;
    charge(q, r);
    list_push(&q->ready, r);
    return 0;
}

/* ---- offers ---- */

/* The verdict for a new request; RETRY fills the reason and leaves the request to the caller. Lock held. */
static enum verdict take(struct queue *q, struct request *r, const char **ret_reason)
{
    const struct queue_settings *s = q->settings->queue;
    if (q->state == QUEUE_CLOSED) {
        *ret_reason = "the exporter is shut down";
        return VERDICT_RETRY;
    }
    if (q->waiting.n || !fits(q, r)) {
        if (s->block_on_overflow) {
            list_push(&q->waiting, r);
            return VERDICT_PENDING;
        }
        *ret_reason = "sending queue is full";
        return VERDICT_RETRY;
    }
    const bool answer_now = s && !s->wait_for_result;
    struct ack *ack = r->ack;
    if (answer_now)
        r->ack = NULL;
    if (admit(q, r) < 0) {
        r->ack = ack;
        *ret_reason = "cannot start a thread to send with";
        return VERDICT_RETRY;
    }
    return answer_now ? VERDICT_OK : VERDICT_PENDING;
}

static enum verdict refuse(struct queue *q, uint32_t records, struct ack *ack, const char *reason)
{
    metric_add(q->metrics.enqueue_failed, records);
    log_error(&q->logger, "Exporting failed. Rejecting data.", LOG_STR("error", reason),
              LOG_INT("rejected_items", records));
    return ack_answer(ack, VERDICT_RETRY, 0, "%s", reason);
}

enum verdict queue_offer(struct queue *q, struct batch *b, struct ack *ack)
{
    struct request *r = request_new(q, b, ack);
    if (!r) {
        uint32_t records = b->records;
        batch_unref(b);
        return refuse(q, records, ack, "out of memory");
    }
    const char *reason = NULL;
    pthread_mutex_lock(&q->lock);
    enum verdict v = take(q, r, &reason);
    pthread_mutex_unlock(&q->lock);
    if (v == VERDICT_OK)
        ack->now = (struct outcome){0};
    if (v != VERDICT_RETRY)
        return v;
    uint32_t records = r->records;
    request_free(r);
    return refuse(q, records, ack, reason);
}

/* ---- after an attempt ---- */

/* Moves requests that wait for room into it; the acks to be answered OK go to `ret`. Lock held. */
static void admit_waiting(struct queue *q, struct request_list *ret)
{
    while (q->waiting.first && fits(q, q->waiting.first)) {
        struct request *r = list_pop(&q->waiting);
        struct request *note = q->settings->queue->wait_for_result ? NULL : calloc(1, sizeof(*note));
        if (note) {
            note->ack = r->ack;
            r->ack = NULL;
            list_push(ret, note);
        }
        admit(q, r);
    }
}

static void answer(struct request *r, enum verdict v, const struct outcome *out)
{
    if (r->ack)
        ack_done(r->ack, v, out);
    request_free(r);
}

static void answer_admitted(struct request_list *l)
{
    for (struct request *r; (r = list_pop(l));)
        answer(r, VERDICT_OK, NULL);
}

/* Requests that never got room. */
static void answer_refused(struct queue *q, struct request_list *l)
{
    static const struct outcome stopped = {.message = "the exporter is shutting down"};
    for (struct request *r; (r = list_pop(l));) {
        metric_add(q->metrics.enqueue_failed, r->records);
        answer(r, VERDICT_RETRY, &stopped);
    }
}

static void list_move(struct request_list *to, struct request_list *from)
{
    for (struct request *r; (r = list_pop(from));)
        list_push(to, r);
}

static void report(struct queue *q, const struct request *r, enum verdict v,
                   const struct outcome *out)
{
    if (v == VERDICT_OK) {
        metric_add(q->metrics.sent, r->records);
        return;
    }
    metric_add(q->metrics.send_failed, r->records);
    if (r->ack)
        log_error(&q->logger, "Exporting failed. Rejecting data.", LOG_STR("error", out->message),
                  LOG_INT("rejected_items", r->records));
    else
        log_error(&q->logger, "Exporting failed. Dropping data.", LOG_STR("error", out->message),
                  LOG_INT("dropped_items", r->records));
}

static void request_lost(struct queue *q, struct request *r, const struct outcome *out)
{
    metric_add(q->metrics.send_failed, r->records);
    if (!r->ack) {
        pthread_mutex_lock(&q->lock);
        q->lost_records += r->records;
        q->lost_requests++;
        pthread_mutex_unlock(&q->lock);
    }
    answer(r, VERDICT_RETRY, out);
}

/* One request, from the queue to its end or back into the queue. Called with the lock, which it leaves in between. */
static void work_on(struct queue *q, struct request *r)
{
    enum verdict v = VERDICT_RETRY;
    struct outcome out;
    struct request_list admitted, refused;
    list_init(&admitted);
    list_init(&refused);
    q->in_flight++;
    metric_add(q->in_flight_now, 1);
    pthread_mutex_unlock(&q->lock);
    enum delivery d = queue_deliver(q, r, &v, &out);
    pthread_mutex_lock(&q->lock);
    metric_add(q->in_flight_now, -1);
    q->in_flight--;
    if (d == DELIVERY_LATER) {
        list_push(&q->ready, r);
        return;
    }
    discharge(q, r);
    if (d == DELIVERY_LOST || q->state == QUEUE_CLOSED) /* what is taken now would be lost */
        list_move(&refused, &q->waiting);
    else
        admit_waiting(q, &admitted);
    if (!q->in_flight && !q->ready.n)
        pthread_cond_broadcast(&q->quiet);
    pthread_mutex_unlock(&q->lock);
    answer_admitted(&admitted);
    answer_refused(q, &refused);
    if (d == DELIVERY_LOST) {
        request_lost(q, r, &out);
    } else {
        report(q, r, v, &out);
        answer(r, v, &out);
    }
    pthread_mutex_lock(&q->lock);
}

/* The next ready request; NULL = the worker may end. Lock held. */
static struct request *next_request(struct queue *q)
{
    uint64_t until_ns = clock_now_ns() + IDLE_NS;
    while (!q->ready.n && q->state != QUEUE_CLOSED) {
        q->nidle++;
        int r = cond_wait_until(&q->work, &q->lock, until_ns);
        q->nidle--;
        if (r == ETIMEDOUT && !q->ready.n)
            return NULL;
    }
    return q->state == QUEUE_CLOSED ? NULL : list_pop(&q->ready);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct queue *q = w->queue;
    pthread_mutex_lock(&q->lock);
    for (struct request *r; (r = next_request(q));)
        work_on(q, r);
    w->ended = true;
    q->nworkers--;
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- life ---- */

/* Memory the process may use: the cgroup's limit or the machine's. */
static size_t memory_limit(void)
{
    unsigned long long total =
        (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE);
    unsigned long long limit = 0;
    _cleanup_fclose_ FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
    if (f && fscanf(f, "%llu", &limit) == 1 && limit < total)
        total = limit;
    return total < SIZE_MAX ? (size_t)total : SIZE_MAX;
}

/* However many requests the settings allow: half of the memory is enough for one queue, the rest is refused and not lost to
 * the out-of-memory killer. */
static size_t byte_limit(void)
{
    size_t half = memory_limit() / 2;
    return half > MIN_BYTES ? half : MIN_BYTES;
}

static struct metric *exporter_metric(struct host *h, const char *what, const char *help,
                                      enum signal s, const char *labels)
{
    char name[80];
    snprintf(name, sizeof(name), "otelcol_exporter_%s_%s", what, signal_records_name(s));
    return metric_counter(h, name, help, labels);
}

void exporter_metrics_get(struct host *h, const char *exporter_id, enum signal s,
                          struct exporter_metrics *ret)
{
    char labels[300];
    snprintf(labels, sizeof(labels), "exporter=\"%s\"", exporter_id);
    ret->sent = exporter_metric(h, "sent", "Records that the destination took.", s, labels);
    ret->send_failed = exporter_metric(
        h, "send_failed", "Records that were given up: refused by the destination or out of time.",
        s, labels);
    ret->enqueue_failed = exporter_metric(
        h, "enqueue_failed", "Records that the queue had no room for.", s, labels);
}

static void gauges_get(struct queue *q, struct host *h)
{
    char labels[400];
    snprintf(labels, sizeof(labels), "data_type=\"%s\",exporter=\"%s\"", signal_name(q->signal),
             q->component->id);
    q->in_flight_now =
        metric_gauge(h, "otelcol_exporter_in_flight_requests",
                     "Requests that are being sent or pause before another attempt.", labels);
    if (!q->settings->queue)
        return;
    q->size_now = metric_gauge(h, "otelcol_exporter_queue_size",
                               "What is in the queue, counted as its sizer says.", labels);
    q->capacity_now =
        metric_gauge(h, "otelcol_exporter_queue_capacity", "What the queue can hold.", labels);
    metric_set(q->capacity_now, q->capacity);
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
    q->deadline_ns = UINT64_MAX;
    list_init(&q->ready);
    list_init(&q->waiting);
    pthread_mutex_init(&q->lock, NULL);
    cond_init_monotonic(&q->work);
    cond_init_monotonic(&q->changed);
    cond_init_monotonic(&q->quiet);
    exporter_metrics_get(c->host, c->id, signal, &q->metrics);
    gauges_get(q, c->host);
    return q;
}

static void set_state(struct queue *q, enum queue_state state)
{
    q->state = state;
    pthread_cond_broadcast(&q->changed);
    pthread_cond_broadcast(&q->work);
    pthread_cond_broadcast(&q->quiet);
}

/* Lock held. */
static void begin_drain(struct queue *q)
{
    uint64_t third_ns;
    q->success_ns = clock_now_ns();
    third_ns = q->deadline_ns > q->success_ns ? (q->deadline_ns - q->success_ns) / 3 : 0;
    q->patience_ns = third_ns > PATIENCE_NS ? third_ns : PATIENCE_NS;
}

void queue_drain(struct queue *q, uint64_t deadline_ns)
{
    pthread_mutex_lock(&q->lock);
    if (deadline_ns < q->deadline_ns)
        q->deadline_ns = deadline_ns;
    if (q->state == QUEUE_RUNNING)
        begin_drain(q);
    if (q->state != QUEUE_CLOSED)
        set_state(q, QUEUE_DRAINING);
    pthread_mutex_unlock(&q->lock);
}

static bool busy(const struct queue *q)
{
    return q->in_flight || q->ready.n || q->waiting.n;
}

/* Waits until all is sent or the time is over, then shuts the door. Returns whether somebody is still sending. */
static bool close_at_deadline(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (busy(q) && clock_now_ns() < q->deadline_ns)
        cond_wait_until(&q->quiet, &q->lock, q->deadline_ns);
    set_state(q, QUEUE_CLOSED);
    bool sending = q->in_flight > 0;
    pthread_mutex_unlock(&q->lock);
    return sending;
}

static void join_workers(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct worker *w = q->workers;
    q->workers = NULL;
    pthread_mutex_unlock(&q->lock);
    for (struct worker *next; w; w = next) {
        next = w->next;
        pthread_join(w->thread, NULL);
        free(w);
    }
}

/* What never got a worker. Nobody else is left to touch the lists. */
static void drop_rest(struct queue *q)
{
    static const struct outcome stopped = {.message = "interrupted due to shutdown"};
    for (struct request *r; (r = list_pop(&q->ready));) {
        discharge(q, r);
        request_lost(q, r, &stopped);
    }
    answer_refused(q, &q->waiting);
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
    join_workers(q);
    drop_rest(q);
    log_lost(q);
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    queue_stop(q, 0);
    pthread_cond_destroy(&q->quiet);
    pthread_cond_destroy(&q->changed);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}
