/*
 * The writer of a queue on disk: a thread that writes all that waits, with the deletions that are
 * due, as one transaction, and answers those who wait for that. It is started by the first request.
 */
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_disk.h"

#define PUTS_MAX 256
#define DELETIONS_MAX 1024
#define PUT_BYTES ((size_t)16 * 1024 * 1024)
/* What is on disk and in memory as well, so that a quick backend never waits for the disk. */
#define CACHE_BYTES ((size_t)16 * 1024 * 1024)
#define TELL_NS (60 * NS_PER_S)     /* a disk that stays full is told again after this… */
#define TELL_SOON_NS (5 * NS_PER_S) /* …and one that is full again */
#define AGAIN_NS (1 * NS_PER_S)     /* deletions that failed */

/* ---- for the queue, with the lock ---- */

static int start_writer(struct queue *q)
{
    if (q->has_writer)
        return 0;
    int r = queue_thread(&q->writer, queue_writer_main, q);
    q->has_writer = r == 0;
    return r;
}

int queue_to_disk(struct queue *q, struct request *r)
{
    int code = start_writer(q);
    if (code < 0)
        return code;
    r->id = queue_next_id(q);
    r->for_disk = true;
    queue_charge(q, r);
    q->n_on_disk++;
    q->n_disk_waiting++;
    q->pending_bytes += r->bytes;
    list_push(&q->pending, r);
    pthread_cond_signal(&q->write);
    return 0;
}

/* Without a writer the stop writes it. */
void queue_delete(struct queue *q, struct request *r)
{
    list_push(&q->gone, r);
    start_writer(q);
    pthread_cond_signal(&q->write);
}

/* ---- one transaction ---- */

struct transaction {
    struct request_list puts, gone; /* to be written */
    struct request_list written, failed;
    struct request_list admitted; /* who waited for room */
    bool gone_failed;
    int code; /* of the puts that failed */
    struct err err;
    struct {
        struct ack *ack;
        enum verdict verdict;
    } acks[PUTS_MAX]; /* to be answered */
    size_t nacks;
};

static void transaction_init(struct transaction *t)
{
    list_init(&t->puts);
    list_init(&t->gone);
    list_init(&t->written);
    list_init(&t->failed);
    list_init(&t->admitted);
    t->gone_failed = false;
    t->code = 0;
    t->err = (struct err){0};
    t->nacks = 0;
}

/* Lock held. */
static void collect(struct queue *q, struct transaction *t)
{
    size_t bytes = 0;
    while (q->pending.n && t->puts.n < PUTS_MAX && bytes < PUT_BYTES) {
        struct request *r = list_pop(&q->pending);
        bytes += r->bytes;
        list_push(&t->puts, r);
    }
    q->n_writing = t->puts.n;
    while (q->gone.n && t->gone.n < DELETIONS_MAX)
        list_push(&t->gone, list_pop(&q->gone));
}

static int write_some(struct queue *q, const struct request *put, size_t nputs,
                      const struct request_list *gone, struct err *reterr)
{
    struct store_put puts[PUTS_MAX];
    uint64_t ids[DELETIONS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < nputs; i++, put = put->next)
        puts[i] = (struct store_put){.id = put->id, .batch = put->batch};
    for (const struct request *r = gone ? gone->first : NULL; r; r = r->next)
        ids[n++] = r->id;
    *reterr = (struct err){0};
    return store_write(q->store, puts, nputs, ids, n, reterr);
}

/* One by one: what fits is written. */
static void write_each(struct queue *q, struct transaction *t)
{
    struct err e;
    for (struct request *r; (r = list_pop(&t->puts));) {
        const int code = write_some(q, r, 1, NULL, &e);
        if (code == 0) {
            list_push(&t->written, r);
            continue;
        }
        t->code = code;
        t->err = e;
        list_push(&t->failed, r);
    }
}

/* Without the lock. */
static void commit(struct queue *q, struct transaction *t)
{
    int r = write_some(q, t->puts.first, t->puts.n, &t->gone, &t->err);
    if (r == 0) {
        list_move(&t->written, &t->puts);
        return;
    }
    t->code = r;
    t->gone_failed = t->gone.n > 0;
    if (!t->puts.n)
        return;
    if (t->gone.n) {
        struct err e;
        t->gone_failed = write_some(q, NULL, 0, &t->gone, &e) < 0;
    }
    if (t->puts.n > 1 || t->gone.n)
        write_each(q, t);
    else
        list_move(&t->failed, &t->puts);
}

/* ---- what comes of it ---- */

/* Without the lock: the fields are the writer's. */
static void note_health(struct queue *q, const struct transaction *t)
{
    const uint64_t now_ns = clock_now_ns();
    const bool fails = t->failed.n || t->gone_failed;
    const uint64_t quiet_ns = q->disk_failing ? TELL_NS : TELL_SOON_NS;
    if (fails && (!q->disk_told_ns || now_ns - q->disk_told_ns >= quiet_ns)) {
        log_error(&q->logger, "The queue on disk cannot be written",
                  LOG_STR("error", *t->err.text ? t->err.text : strerror(-t->code)),
                  LOG_STR("file", store_path(q->store)));
        q->disk_told_ns = now_ns;
        q->disk_failing = true;
    }
    if (q->disk_failing && !fails && t->written.n) {
        log_info(&q->logger, "The queue on disk takes data again",
                 LOG_STR("file", store_path(q->store)));
        q->disk_failing = false;
    }
    metric_set(q->disk_file_bytes, (int64_t)store_file_bytes(q->store));
}

static void not_pending(struct queue *q, struct request *r)
{
    q->n_on_disk--; /* queue_count_on_disk() counts what is really there */
    q->n_disk_waiting--;
    q->pending_bytes -= r->bytes;
}

static void answer_later(struct transaction *t, struct request *r, enum verdict v)
{
    t->acks[t->nacks].ack = r->ack;
    t->acks[t->nacks++].verdict = v;
    r->ack = NULL;
}

/* The queue was closed meanwhile: it stays for the next start, unless somebody waits for the
 * backend's answer. */
static void settle_closed(struct queue *q, struct request *r, struct transaction *t)
{
    if (!r->ack || !q->settings->queue->wait_for_result) {
        if (r->ack)
            answer_later(t, r, VERDICT_OK);
        list_push(&q->kept, r);
        return;
    }
    metric_add(q->metrics.send_failed, r->records);
    metric_add(q->metrics.returned, r->records);
    answer_later(t, r, VERDICT_RETRY);
    queue_discharge(q, r);
    queue_count_on_disk(q, r, -1);
    list_push(&q->gone, r);
}

static void settle_written(struct queue *q, struct request *r, struct transaction *t)
{
    not_pending(q, r);
    queue_count_on_disk(q, r, 1);
    r->on_disk = true;
    if (q->state == QUEUE_CLOSED) {
        settle_closed(q, r, t);
        return;
    }
    if (r->ack && !q->settings->queue->wait_for_result)
        answer_later(t, r, VERDICT_OK);
    if (q->bytes > CACHE_BYTES)
        queue_drop_payload(q, r);
    queue_call_worker(q); /* without one the writer will look for it */
    queue_ready_push(q, r);
}

/* What was to be spilled may have room in memory by now. */
static bool to_memory(struct queue *q, struct request *r, struct transaction *t)
{
    if (q->storage || q->state == QUEUE_CLOSED)
        return false;
    r->size = queue_request_size(q, r->records, r->bytes);
    if (!queue_fits(q, r) || queue_call_worker(q) < 0)
        return false;
    queue_charge(q, r);
    r->for_disk = false;
    queue_ready_push(q, r);
    if (r->ack && !q->settings->queue->wait_for_result)
        answer_later(t, r, VERDICT_OK);
    return true;
}

static void settle_failed(struct queue *q, struct transaction *t)
{
    struct request_list refused;
    list_init(&refused);
    for (struct request *r; (r = list_pop(&t->failed));) {
        not_pending(q, r);
        queue_discharge(q, r);
        if (to_memory(q, r, t))
            continue;
        metric_add(r->undelivered ? q->metrics.send_failed : q->metrics.enqueue_failed, r->records);
        if (r->undelivered) {
            q->lost_records += r->records;
            q->lost_requests++;
        }
        list_push(&refused, r);
    }
    list_move(&t->failed, &refused);
}

/* Lock held. */
static void settle(struct queue *q, struct transaction *t)
{
    for (struct request *r; (r = list_pop(&t->written));)
        settle_written(q, r, t);
    settle_failed(q, t);
    q->n_writing = 0;
    if (t->gone_failed)
        list_move(&q->gone, &t->gone);
    if (q->state != QUEUE_CLOSED)
        queue_admit_waiting(q, &t->admitted);
    if (!queue_busy(q))
        pthread_cond_broadcast(&q->quiet);
}

/* Without the lock. */
static void answer(const struct transaction *t, struct request_list *failed,
                   struct request_list *gone, struct request_list *admitted)
{
    static const struct outcome stopped = {.message = "interrupted due to shutdown"};
    struct outcome full = {0};
    snprintf(full.message, sizeof(full.message), "sending queue is full: %s",
             t->code == -ENOSPC ? "no space on disk" : "the disk cannot be written");
    for (size_t i = 0; i < t->nacks; i++)
        ack_done(t->acks[i].ack, t->acks[i].verdict,
                 t->acks[i].verdict == VERDICT_OK ? NULL : &stopped);
    for (struct request *r; (r = list_pop(failed));)
        queue_answer(r, VERDICT_RETRY, &full);
    for (struct request *r; (r = list_pop(gone));)
        queue_request_free(r);
    queue_answer_admitted(admitted);
}

/* ---- the thread ---- */

/* A request on disk may be there without a thread to send it, when none could be started. */
static bool wants_worker(const struct queue *q)
{
    return q->ready.n && !q->nworkers && q->state != QUEUE_CLOSED && !q->given_up;
}

/* True when there is something to do. */
static bool wait_for_work(struct queue *q)
{
    while (!q->stop_writer && !q->pending.n && !q->gone.n) {
        const bool call = wants_worker(q) && queue_call_worker(q) < 0;
        cond_wait_until(&q->write, &q->lock, call ? clock_now_ns() + AGAIN_NS : UINT64_MAX);
    }
    return q->pending.n || q->gone.n;
}

/* Deletions that cannot be written are tried again now and then; at the stop they are left: the
 * requests will come a second time. */
static bool pause_after(struct queue *q, const struct transaction *t)
{
    if (!t->gone_failed || q->pending.n)
        return true;
    if (!q->stop_writer)
        cond_wait_until(&q->write, &q->lock, clock_now_ns() + AGAIN_NS);
    return !q->stop_writer || q->pending.n;
}

void *queue_writer_main(void *queue)
{
    struct queue *q = queue;
    struct transaction t;
    bool more = true;
    pthread_mutex_lock(&q->lock);
    while (more && wait_for_work(q)) {
        transaction_init(&t);
        collect(q, &t);
        pthread_mutex_unlock(&q->lock);
        commit(q, &t);
        note_health(q, &t);
        pthread_mutex_lock(&q->lock);
        settle(q, &t);
        pthread_mutex_unlock(&q->lock);
        answer(&t, &t.failed, &t.gone, &t.admitted);
        pthread_mutex_lock(&q->lock);
        more = pause_after(q, &t);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- the stop ---- */

void queue_save(struct queue *q)
{
    struct request_list kept;
    if (!q->disk)
        return;
    list_init(&kept);
    pthread_mutex_lock(&q->lock);
    list_move(&kept, &q->kept);
    for (struct request *r; (r = list_pop(&kept));) {
        if (r->on_disk) {
            list_push(&q->kept, r);
            continue;
        }
        r->for_disk = true;
        q->n_on_disk++;
        q->n_disk_waiting++;
        q->pending_bytes += r->bytes;
        list_push(&q->pending, r);
    }
    q->stop_writer = true;
    pthread_cond_signal(&q->write);
    const bool has_writer = q->has_writer;
    q->has_writer = false;
    pthread_mutex_unlock(&q->lock);
    if (has_writer)
        pthread_join(q->writer, NULL);
    else
        queue_writer_main(q);
    for (struct request *r; (r = list_pop(&q->gone));) /* not to be deleted: they come again */
        queue_request_free(r);
}
