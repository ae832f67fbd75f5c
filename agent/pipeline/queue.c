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
/* What waits for the disk; a disk that hangs must not fill the memory. */
#define PENDING_BYTES ((size_t)64 * 1024 * 1024)
#define ON_DISK_MAX 500000 /* requests; each takes some 100 bytes of memory */
/* From so much on, in memory and on its way, those who send are asked to pause, for so long each
 * time that it is there; but only while the backend takes data: what waits for one that is down is
 * no reason. */
#define CROWDED_BYTES ((size_t)8 << 20)
#define PAUSE_MS 20
#define PAUSE_MAX_MS 250
#define MOVING_NS (250 * NS_PER_MS)

struct worker {
    struct worker *next;
    struct queue *queue;
    pthread_t thread;
    bool ended; /* to be joined */
};

struct request *queue_request_new(struct batch *b, struct ack *ack)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    *r = (struct request){.batch = b, .ack = ack};
    if (b) {
        r->records = b->records;
        r->bytes = b->bytes;
    }
    mem_charge(sizeof(*r));
    return r;
}

struct request *queue_request_free(struct request *r)
{
    if (!r)
        return NULL;
    mem_release(sizeof(*r));
    batch_unref(r->batch);
    free(r->outcome);
    free(r);
    return NULL;
}

int64_t queue_request_size(const struct queue *q, uint32_t records, size_t bytes)
{
    const struct queue_settings *s = q->settings->queue;
    return !s || s->sizer == SIZER_REQUESTS ? 1
           : s->sizer == SIZER_ITEMS        ? (int64_t)records
                                            : (int64_t)bytes;
}

/* ---- room ---- */

static bool disk_has_room(const struct queue *q, const struct request *r)
{
    return q->n_on_disk < ON_DISK_MAX &&
           (q->pending_bytes == 0 || q->pending_bytes + r->bytes <= PENDING_BYTES);
}

/* A request that is larger than the whole queue is let in when it is alone: refusing it would be
 * for ever. */
bool queue_fits(const struct queue *q, const struct request *r)
{
    if (!q->settings->queue || (q->size == 0 && q->bytes == 0))
        return true;
    if (q->storage && !disk_has_room(q, r))
        return false;
    return q->size + r->size <= q->capacity && q->bytes + r->bytes <= q->max_bytes;
}

void queue_charge(struct queue *q, struct request *r)
{
    q->size += r->size;
    r->charged = r->batch != NULL;
    if (r->charged)
        q->bytes += r->bytes;
    if (!q->size_now)
        return;
    metric_add(q->size_now, r->size);
    if (q->size > metric_value(q->size_peak))
        metric_set(q->size_peak, q->size);
}

void queue_discharge(struct queue *q, struct request *r)
{
    q->size -= r->size;
    if (r->charged)
        q->bytes -= r->bytes;
    r->charged = false;
    if (q->size_now)
        metric_add(q->size_now, -r->size);
}

void queue_drop_payload(struct queue *q, struct request *r)
{
    if (r->charged)
        q->bytes -= r->bytes;
    r->charged = false;
    r->batch = batch_unref(r->batch);
}

/* ---- what is ready ---- */

static int64_t batch_size(const struct queue *q, const struct request *r)
{
    return q->batch.sizer == SIZER_BYTES ? (int64_t)r->bytes : (int64_t)r->records;
}

void queue_ready_push(struct queue *q, struct request *r)
{
    if (q->batching)
        r->since_ns = clock_now_ns();
    q->ready_size += batch_size(q, r);
    q->n_disk_waiting += r->for_disk;
    list_push(&q->ready, r);
}

void queue_ready_unpop(struct queue *q, struct request *r)
{
    q->ready_size += batch_size(q, r);
    q->n_disk_waiting += r->for_disk;
    list_unpop(&q->ready, r);
}

struct request *queue_ready_pop(struct queue *q)
{
    struct request *r = list_pop(&q->ready);
    if (!r)
        return NULL;
    q->ready_size -= batch_size(q, r);
    q->n_disk_waiting -= r->for_disk;
    return r;
}

bool queue_busy(const struct queue *q)
{
    if (q->in_flight || q->pending.n || q->n_writing)
        return true;
    return !q->given_up && (q->ready.n || q->waiting.n || q->cut.n || q->rest.n || q->later.n);
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

int queue_thread(pthread_t *ret, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t every, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int r = pthread_create(ret, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (r == 0)
        pthread_setname_np(*ret, "exporter");
    return -r;
}

static int start_worker(struct queue *q)
{
    reap_workers(q);
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->queue = q;
    int r = queue_thread(&w->thread, worker_main, w);
    if (r < 0) {
        free(w);
        return r;
    }
    w->next = q->workers;
    q->workers = w;
    q->nworkers++;
    return 0;
}

/* Where batches are waited for one idle worker is enough: it watches the time. */
int queue_call_worker(struct queue *q)
{
    const size_t waiting = q->batching ? 0 : q->ready.n + q->cut.n + q->later.n;
    if (waiting < q->nidle) {
        pthread_cond_signal(&q->work);
        return 0;
    }
    int r = q->nworkers < q->max_workers ? start_worker(q) : 0;
    if (q->nidle)
        pthread_cond_signal(&q->work);
    return q->nworkers > 0 ? 0 : r;
}

/* Lock held. */
static int admit(struct queue *q, struct request *r)
{
    int code = queue_call_worker(q);
    if (code < 0)
        return code;
    if (q->disk)
        r->id = queue_next_id(q);
    queue_charge(q, r);
    queue_ready_push(q, r);
    return 0;
}

/* ---- offers ---- */

/* Spilling goes on until nothing on disk waits, so that the order is kept. */
static bool spills(const struct queue *q, const struct request *r)
{
    return q->disk && !q->storage && (q->n_disk_waiting || !queue_fits(q, r));
}

static enum verdict take_for_disk(struct queue *q, struct request *r, const char **ret_reason)
{
    const bool spilled = !q->storage;
    const int64_t size = r->size;
    if (spilled && !disk_has_room(q, r)) {
        *ret_reason = "sending queue is full";
        return VERDICT_RETRY;
    }
    if (spilled)
        r->size = 0;
    if (queue_to_disk(q, r) == 0)
        return VERDICT_PENDING;
    r->size = size;
    *ret_reason = "cannot start a thread to write with";
    return VERDICT_RETRY;
}

static enum verdict take_to_memory(struct queue *q, struct request *r, const char **ret_reason)
{
    const struct queue_settings *s = q->settings->queue;
    const bool answer_now = s && !s->wait_for_result;
    struct ack *ack = r->ack;
    if (answer_now)
        r->ack = NULL;
    if (admit(q, r) == 0)
        return answer_now ? VERDICT_OK : VERDICT_PENDING;
    r->ack = ack;
    *ret_reason = "cannot start a thread to send with";
    return VERDICT_RETRY;
}

/* No room: whoever waits for a larger batch shall not wait any longer. */
static enum verdict take_no_room(struct queue *q, struct request *r, const char **ret_reason)
{
    if (q->batching && !q->pressed && (q->ready.n || q->rest.n)) {
        q->pressed = true;
        queue_call_worker(q);
    }
    if (q->settings->queue->block_on_overflow) {
        list_push(&q->waiting, r);
        return VERDICT_PENDING;
    }
    *ret_reason = "sending queue is full";
    return VERDICT_RETRY;
}

/* The verdict for a new request; RETRY fills the reason and leaves the request to the caller. Lock
 * held. */
static enum verdict take(struct queue *q, struct request *r, const char **ret_reason)
{
    r->size = queue_request_size(q, r->records, r->bytes);
    if (q->state == QUEUE_CLOSED) {
        *ret_reason = "the exporter is shut down";
        return VERDICT_RETRY;
    }
    if (spills(q, r))
        return take_for_disk(q, r, ret_reason);
    if (q->waiting.n || !queue_fits(q, r))
        return take_no_room(q, r, ret_reason);
    return q->disk && q->storage ? take_for_disk(q, r, ret_reason)
                                 : take_to_memory(q, r, ret_reason);
}

static enum verdict refuse(struct queue *q, uint32_t records, struct ack *ack, const char *reason)
{
    metric_add(q->metrics.enqueue_failed, records);
    log_error(&q->logger, "Exporting failed. Rejecting data.", LOG_STR("error", reason),
              LOG_INT("rejected_items", records));
    return ack_answer(ack, VERDICT_RETRY, 0, "%s", reason);
}

/* Lock held. */
static uint32_t pause_ms(const struct queue *q)
{
    const size_t times = q->bytes / CROWDED_BYTES;
    if (!times || q->state != QUEUE_RUNNING || clock_now_ns() - q->moved_ns > MOVING_NS)
        return 0;
    return times < PAUSE_MAX_MS / PAUSE_MS ? (uint32_t)times * PAUSE_MS : PAUSE_MAX_MS;
}

enum verdict queue_offer(struct queue *q, struct batch *b, struct ack *ack)
{
    struct request *r = queue_request_new(b, ack);
    if (!r) {
        uint32_t records = b->records;
        batch_unref(b);
        return refuse(q, records, ack, "out of memory");
    }
    const char *reason = NULL;
    pthread_mutex_lock(&q->lock);
    enum verdict v = take(q, r, &reason);
    if (v == VERDICT_OK)
        ack->now = (struct outcome){.pause_ms = pause_ms(q)};
    pthread_mutex_unlock(&q->lock);
    if (v != VERDICT_RETRY)
        return v;
    uint32_t records = r->records;
    queue_request_free(r);
    return refuse(q, records, ack, reason);
}

/* ---- those who wait for room ---- */

/* Into memory, with a note for the ack that is to be answered; without memory for one it is
 * answered when the request is decided. False = not now. */
static bool admit_one(struct queue *q, struct request *r, struct request_list *ret)
{
    if (q->disk && q->storage)
        return queue_to_disk(q, r) == 0;
    struct request *note =
        q->settings->queue->wait_for_result ? NULL : queue_request_new(NULL, r->ack);
    struct ack *ack = r->ack;
    if (note)
        r->ack = NULL;
    if (admit(q, r) == 0) {
        if (note)
            list_push(ret, note);
        return true;
    }
    r->ack = ack;
    queue_request_free(note);
    return false;
}

void queue_admit_waiting(struct queue *q, struct request_list *ret)
{
    while (q->waiting.first && queue_fits(q, q->waiting.first)) {
        struct request *r = list_pop(&q->waiting);
        if (admit_one(q, r, ret))
            continue;
        list_unpop(&q->waiting, r);
        return;
    }
}

/* ---- worker threads ---- */

/* The next parcel; NULL = the worker may end. Lock held. */
static struct parcel *next_parcel(struct queue *q)
{
    const uint64_t idle_ns = clock_now_ns() + IDLE_NS;
    while (q->state != QUEUE_CLOSED) {
        const uint64_t due_ns = queue_due_ns(q), now_ns = clock_now_ns();
        if (due_ns <= now_ns) {
            struct parcel *p = queue_take_parcel(q);
            if (p)
                return p;
            continue;
        }
        if (due_ns == UINT64_MAX && now_ns >= idle_ns)
            return NULL;
        q->nidle++;
        cond_wait_until(&q->work, &q->lock, due_ns < UINT64_MAX ? due_ns : idle_ns);
        q->nidle--;
    }
    return NULL;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct queue *q = w->queue;
    pthread_mutex_lock(&q->lock);
    for (struct parcel *p; (p = next_parcel(q));)
        queue_work_on(q, p);
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
