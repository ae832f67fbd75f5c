/*
 * The exporter helper: a bounded queue of requests and the workers that send them.
 *
 * A request keeps its room in the queue until it is decided, so "full" counts what is under way as
 * well. Without a sending_queue nothing is refused here: each request gets a worker and its sender
 * waits for the backend's answer.
 */
#include "agent/pipeline/queue.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_parts.h"

#define IDLE_NS (10 * NS_PER_S)          /* a worker without work ends after this */
#define STACK_BYTES ((size_t)512 * 1024) /* TLS and compression need some 100 KiB */

struct worker {
    struct worker *next;
    struct queue *queue;
    pthread_t thread;
    bool ended; /* to be joined */
};

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

/* A request that is larger than the whole queue is let in when it is alone: refusing it would be
 * for ever. */
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
    if (!q->size_now)
        return;
    metric_add(q->size_now, r->size);
    if (q->size > metric_value(q->size_peak))
        metric_set(q->size_peak, q->size);
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

/* Sees to it that somebody will take one more ready request. Lock held. 0, or -errno when there is
 * no worker at all. */
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

/* The verdict for a new request; RETRY fills the reason and leaves the request to the caller. Lock
 * held. */
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
        struct request *note =
            q->settings->queue->wait_for_result ? NULL : calloc(1, sizeof(*note));
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
    if (v == VERDICT_REJECT)
        metric_add(q->metrics.rejected, r->records);
    else if (r->ack)
        metric_add(q->metrics.returned, r->records);
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
    if (r->ack) {
        metric_add(q->metrics.returned, r->records);
    } else {
        pthread_mutex_lock(&q->lock);
        q->lost_records += r->records;
        q->lost_requests++;
        pthread_mutex_unlock(&q->lock);
    }
    answer(r, VERDICT_RETRY, out);
}

/* One request, from the queue to its end or back into the queue. Called with the lock, which it
 * leaves in between. */
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

void queue_join_workers(struct queue *q)
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
void queue_drop_rest(struct queue *q)
{
    static const struct outcome stopped = {.message = "interrupted due to shutdown"};
    for (struct request *r; (r = list_pop(&q->ready));) {
        discharge(q, r);
        request_lost(q, r, &stopped);
    }
    answer_refused(q, &q->waiting);
}
