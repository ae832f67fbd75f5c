/*
 * What a worker takes from the queue: one request, or, with batching, as many as make a batch, cut
 * where they are more than the limit. The requests that a parcel is made of are known to it, for
 * their answers and for what is to be deleted from the disk.
 */
#include <errno.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/pending.h"
#include "agent/pipeline/queue_parts.h"
#include "proto/rewrite.h"

#define PAUSE_NS (100 * NS_PER_MS) /* after a lack of memory, or a disk that does not give */

struct parcel *parcel_new(size_t nshares)
{
    struct parcel *p = calloc(1, sizeof(*p) + nshares * sizeof(p->shares[0]));
    if (p)
        p->nshares = nshares;
    return p;
}

struct parcel *parcel_free(struct parcel *p)
{
    if (!p)
        return NULL;
    batch_unref(p->batch);
    free(p);
    return NULL;
}

static void parcels_drop(struct parcel_list *l)
{
    for (struct parcel *p; (p = parcels_pop(l));)
        parcel_free(p);
}

static int64_t measure(const struct queue *q, const struct parcel *p)
{
    return q->batch.sizer == SIZER_BYTES ? (int64_t)p->batch->bytes : (int64_t)p->records;
}

/* ---- what is due ---- */

static bool is_enough(const struct queue *q)
{
    return !q->batching || q->state != QUEUE_RUNNING || q->pressed ||
           q->ready_size >= q->batch.min_size;
}

uint64_t queue_due_ns(const struct queue *q)
{
    if (q->given_up)
        return UINT64_MAX;
    if (q->cut.n)
        return 0;
    if (!q->ready.n && !q->rest.n)
        return q->later.n ? 0 : UINT64_MAX;
    if (is_enough(q))
        return 0;
    const uint64_t since_ns = q->rest.n ? q->rest.first->since_ns : q->ready.first->since_ns;
    return since_ns + (uint64_t)q->batch.flush_timeout_ns;
}

/* ---- without the lock: from requests to parcels ---- */

struct making {
    struct request_list taken, unread; /* to be sent; could not be read just now */
    struct parcel_list rest;           /* what was too small before; comes first */
    struct parcel_list made;
    bool enough; /* taken for its size: a small remainder may wait for more */
};

/* A request that cannot be read for good is settled at once; another one is left for later. */
static void load(struct queue *q, struct making *m)
{
    struct request_list loaded;
    list_init(&loaded);
    for (struct request *r; (r = list_pop(&m->taken));) {
        struct err e = {0};
        int code = r->batch ? 0 : queue_read(q, r, &e);
        if (code == 0) {
            list_push(&loaded, r);
        } else if (code == -EBADMSG || code == -ENOENT) {
            pthread_mutex_lock(&q->lock);
            queue_damaged(q, r, e.text);
            pthread_mutex_unlock(&q->lock);
        } else {
            list_push(&m->unread, r);
        }
    }
    list_move(&m->taken, &loaded);
}

static struct batch *join(struct queue *q, const struct making *m)
{
    const struct request *first = m->taken.first;
    struct pending all = {0};
    struct batch *b = NULL;
    int r = 0;
    if (m->taken.n == 1 && !m->rest.n)
        return batch_ref(first->batch);
    for (const struct parcel *p = m->rest.first; p && r == 0; p = p->next)
        r = pending_add(&all, p->batch);
    for (const struct request *x = first; x && r == 0; x = x->next)
        r = pending_add(&all, x->batch);
    if (r == 0)
        b = pending_take(&all, q->signal);
    pending_done(&all);
    return b;
}

/* One parcel of all that was taken; NULL when out of memory. */
static struct parcel *make_whole(struct queue *q, const struct making *m)
{
    size_t n = m->taken.n, i = 0;
    for (const struct parcel *p = m->rest.first; p; p = p->next)
        n += p->nshares;
    struct parcel *whole = parcel_new(n);
    if (!whole || !(whole->batch = join(q, m)))
        return parcel_free(whole);
    for (const struct parcel *p = m->rest.first; p; p = p->next)
        for (size_t k = 0; k < p->nshares; k++)
            whole->shares[i++] = p->shares[k];
    for (struct request *r = m->taken.first; r; r = r->next)
        whole->shares[i++] = (struct share){r, r->records};
    whole->records = whole->batch->records;
    return whole;
}

/* How far the whole is given out: `used` records of share `at`. */
struct place {
    size_t at;
    uint32_t used;
};

/* Shares from `from` on that hold `records` records; all that are left for the last piece. */
static size_t count_shares(const struct parcel *whole, const struct place *from, uint32_t records,
                           bool last)
{
    uint64_t sum = 0;
    size_t i = from->at;
    for (uint32_t skip = from->used; i < whole->nshares && (last || sum < records); i++, skip = 0)
        sum += whole->shares[i].records - skip;
    return i - from->at;
}

/* The part of the whole for a piece of `records` records. */
static struct parcel *make_piece(const struct parcel *whole, uint32_t records, bool last,
                                 struct place *from)
{
    struct parcel *p = parcel_new(count_shares(whole, from, records, last));
    if (!p)
        return NULL;
    p->records = records;
    for (size_t i = 0; i < p->nshares; i++) {
        const struct share *s = &whole->shares[from->at];
        const uint32_t left = s->records - from->used;
        const uint32_t take = last || left < records ? left : records;
        p->shares[i] = (struct share){s->request, take};
        records -= take < records ? take : records;
        from->used += take;
        if (from->used == s->records)
            *from = (struct place){.at = from->at + 1};
    }
    return p;
}

/* Takes `pieces`. */
static int share_out(const struct parcel *whole, struct batch **pieces, size_t n,
                     struct parcel_list *ret)
{
    struct place from = {0};
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        const bool last = i + 1 == n;
        struct parcel *p = r == 0 ? make_piece(whole, pieces[i]->records, last, &from) : NULL;
        if (!p) {
            batch_unref(pieces[i]);
            r = -ENOMEM;
            continue;
        }
        p->batch = pieces[i];
        parcels_push(ret, p);
    }
    return r;
}

/* Takes `whole`; fills m->made. */
static int cut(struct queue *q, struct parcel *whole, struct making *m)
{
    const bool by_bytes = q->batch.sizer == SIZER_BYTES;
    struct batch **pieces = NULL;
    size_t n = 0;
    if (!q->batching || !q->batch.max_size || measure(q, whole) <= q->batch.max_size) {
        parcels_push(&m->made, whole);
        return 0;
    }
    const uint32_t records =
        q->batch.max_size < UINT32_MAX ? (uint32_t)q->batch.max_size : UINT32_MAX;
    int r = otlp_split_all(whole->batch, by_bytes ? 0 : records,
                           by_bytes ? (size_t)q->batch.max_size : 0, &pieces, &n);
    if (r == 0 && n == 0) { /* no records: nothing to cut */
        parcels_push(&m->made, TAKE_PTR(whole));
    } else if (r == 0) {
        r = share_out(whole, pieces, n, &m->made);
    }
    free(pieces);
    parcel_free(whole);
    return r;
}

static int make(struct queue *q, struct making *m)
{
    load(q, m);
    if (!m->taken.n && !m->rest.n)
        return 0;
    struct parcel *whole = make_whole(q, m);
    int r = whole ? cut(q, whole, m) : -ENOMEM;
    if (r < 0)
        parcels_drop(&m->made);
    return r;
}

/* ---- with the lock: taking and giving ---- */

static void count_parts(const struct parcel_list *l, int sign)
{
    for (const struct parcel *p = l->first; p; p = p->next)
        for (size_t i = 0; i < p->nshares; i++)
            p->shares[i].request->parts += (unsigned)sign;
}

static void take(struct queue *q, struct making *m)
{
    int64_t size = 0;
    *m = (struct making){.enough = q->batching && q->ready_size >= q->batch.min_size &&
                                   q->state == QUEUE_RUNNING};
    list_init(&m->taken);
    list_init(&m->unread);
    q->pressed = false;
    for (struct parcel *p; (p = parcels_pop(&q->rest));) {
        size += measure(q, p);
        q->ready_size -= measure(q, p);
        parcels_push(&m->rest, p);
    }
    while (q->ready.n &&
           (q->batching ? size < q->batch.min_size || !(m->taken.n || m->rest.n) : !m->taken.n)) {
        const int64_t before = q->ready_size;
        list_push(&m->taken, queue_ready_pop(q));
        size += before - q->ready_size;
    }
}

/* Back to where it was. */
static void give_back(struct queue *q, struct making *m)
{
    struct request_list reversed;
    list_init(&reversed);
    for (struct request *r; (r = list_pop(&m->taken));)
        list_unpop(&reversed, r);
    for (struct request *r; (r = list_pop(&reversed));)
        queue_ready_unpop(q, r);
    for (struct parcel *p; (p = parcels_pop(&m->rest));) {
        q->ready_size += measure(q, p);
        parcels_push(&q->rest, p);
    }
}

/* The parcels hold the data now. What may have to be written at the stop stays with its request. */
static void let_go(struct queue *q, struct making *m)
{
    count_parts(&m->made, 1);
    count_parts(&m->rest, -1);
    parcels_drop(&m->rest);
    for (struct request *r; (r = list_pop(&m->taken));)
        if (!q->disk || r->on_disk)
            r->batch = batch_unref(r->batch);
}

/* What is read now counts as in memory. */
static void charge_read(struct queue *q, const struct making *m)
{
    for (struct request *r = m->taken.first; r; r = r->next) {
        q->bytes += r->charged ? 0 : r->bytes;
        r->charged = true;
    }
}

/* The first parcel is the caller's; others are for other workers, but for a remainder that is too
 * small. */
static struct parcel *give_out(struct queue *q, struct making *m)
{
    struct parcel *first = parcels_pop(&m->made);
    for (struct parcel *p; (p = parcels_pop(&m->made));) {
        const bool small = m->enough && !m->made.n && measure(q, p) < q->batch.min_size;
        if (small) {
            p->since_ns = clock_now_ns();
            q->ready_size += measure(q, p);
        }
        queue_call_worker(q);
        parcels_push(small ? &q->rest : &q->cut, p);
    }
    if (q->batching && queue_due_ns(q) < UINT64_MAX)
        queue_call_worker(q);
    return first;
}

struct parcel *queue_take_parcel(struct queue *q)
{
    struct making m;
    if (q->cut.n)
        return parcels_pop(&q->cut);
    if (!q->ready.n && !q->rest.n)
        return parcels_pop(&q->later);
    take(q, &m);
    q->in_flight++; /* not quiet */
    pthread_mutex_unlock(&q->lock);
    int r = make(q, &m);
    pthread_mutex_lock(&q->lock);
    q->in_flight--;
    charge_read(q, &m);
    const bool pause = r < 0 || (m.unread.n && !m.made.n);
    for (struct request *x; (x = list_pop(&m.unread));)
        queue_ready_push(q, x);
    if (r < 0)
        give_back(q, &m);
    else
        let_go(q, &m);
    if (pause && q->state != QUEUE_CLOSED)
        cond_wait_until(&q->changed, &q->lock, clock_now_ns() + PAUSE_NS);
    if (!queue_busy(q))
        pthread_cond_broadcast(&q->quiet);
    return m.made.n ? give_out(q, &m) : NULL;
}
