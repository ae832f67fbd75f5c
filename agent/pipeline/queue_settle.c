/* What became of what was sent: answers, counters, log lines, and room for those who wait. */
#include <string.h>

#include "agent/pipeline/host_parts.h"
#include "agent/pipeline/queue_parts.h"

/* ---- answers ---- */

void queue_answer(struct request *r, enum verdict v, const struct outcome *out)
{
    if (r->ack)
        ack_done(r->ack, v, out);
    queue_request_free(r);
}

void queue_answer_admitted(struct request_list *l)
{
    for (struct request *r; (r = list_pop(l));)
        queue_answer(r, VERDICT_OK, NULL);
}

void queue_answer_refused(struct queue *q, struct request_list *l)
{
    static const struct outcome stopped = {.message = "the exporter is shutting down"};
    for (struct request *r; (r = list_pop(l));) {
        metric_add(q->metrics.enqueue_failed, r->records);
        queue_answer(r, VERDICT_RETRY, &stopped);
    }
}

/* ---- one parcel ---- */

/* The lists of what is to be done without the lock. */
struct settled {
    struct request_list done, admitted, refused;
    bool waits; /* somebody waits for the answer */
};

/* RETRY before REJECT before OK. */
static bool is_worse(enum verdict a, enum verdict than)
{
    return a != than && (a == VERDICT_RETRY || than == VERDICT_OK);
}

/* The worst part speaks for the request. Its words are kept for who waits while other parts are
 * under way. */
static void note_verdict(struct request *r, enum verdict v, const struct outcome *out)
{
    if (!is_worse(v, r->verdict))
        return;
    r->verdict = v;
    free(r->outcome);
    r->outcome = r->ack && r->parts ? malloc(sizeof(*r->outcome)) : NULL;
    if (r->outcome)
        *r->outcome = *out;
}

/* All parts are decided, or as good as. Lock held. */
static void settle_request(struct queue *q, struct request *r, struct settled *s)
{
    if (r->undelivered && queue_keeps(q, r)) {
        list_push(&q->kept, r);
        return;
    }
    if (r->undelivered && !r->ack)
        q->lost_requests++;
    queue_discharge(q, r);
    if (r->on_disk)
        queue_count_on_disk(q, r, -1);
    list_push(&s->done, r);
}

static void settle_lost(struct queue *q, const struct request *r, uint32_t records)
{
    if (queue_keeps(q, r))
        return;
    metric_add(q->metrics.send_failed, records);
    if (r->ack)
        metric_add(q->metrics.returned, records);
    else
        q->lost_records += records;
}

/* Lock held. */
static void settle(struct queue *q, const struct parcel *p, enum delivery d, enum verdict v,
                   const struct outcome *out, struct settled *s)
{
    for (size_t i = 0; i < p->nshares; i++) {
        struct request *r = p->shares[i].request;
        r->parts--;
        s->waits = s->waits || r->ack;
        if (d == DELIVERY_LOST) {
            r->undelivered = true;
            settle_lost(q, r, p->shares[i].records);
        }
        note_verdict(r, v, out);
        if (r->parts == 0)
            settle_request(q, r, s);
    }
}

static void report(struct queue *q, uint32_t records, bool waits, enum verdict v,
                   const struct outcome *out)
{
    if (v == VERDICT_OK) {
        metric_add(q->metrics.sent, records);
        return;
    }
    metric_add(q->metrics.send_failed, records);
    if (v == VERDICT_REJECT)
        metric_add(q->metrics.rejected, records);
    else if (waits)
        metric_add(q->metrics.returned, records);
    if (waits)
        log_error(&q->logger, "Exporting failed. Rejecting data.", LOG_STR("error", out->message),
                  LOG_INT("rejected_items", records));
    else
        log_error(&q->logger, "Exporting failed. Dropping data.", LOG_STR("error", out->message),
                  LOG_INT("dropped_items", records));
}

/* Answers who waits, without the lock; what is on disk goes to the writer afterwards. */
static void finish(struct queue *q, struct settled *s, const struct outcome *out)
{
    struct request_list on_disk;
    list_init(&on_disk);
    queue_answer_admitted(&s->admitted);
    queue_answer_refused(q, &s->refused);
    for (struct request *r; (r = list_pop(&s->done));) {
        if (r->ack)
            ack_done(r->ack, r->verdict, r->outcome ? r->outcome : out);
        r->ack = NULL;
        if (r->on_disk)
            list_push(&on_disk, r);
        else
            queue_request_free(r);
    }
    pthread_mutex_lock(&q->lock);
    for (struct request *r; (r = list_pop(&on_disk));)
        queue_delete(q, r);
}

static void settled_init(struct settled *s)
{
    *s = (struct settled){0};
    list_init(&s->done);
    list_init(&s->admitted);
    list_init(&s->refused);
}

void queue_work_on(struct queue *q, struct parcel *p)
{
    enum verdict v = VERDICT_RETRY;
    struct outcome out = {0};
    struct settled s;
    settled_init(&s);
    q->in_flight++;
    metric_add(q->in_flight_now, 1);
    pthread_mutex_unlock(&q->lock);
    enum delivery d = queue_deliver(q, p, &v, &out);
    pthread_mutex_lock(&q->lock);
    metric_add(q->in_flight_now, -1);
    q->in_flight--;
    if (d == DELIVERY_LATER) {
        parcels_push(&q->later, p);
        return;
    }
    settle(q, p, d, v, &out, &s);
    if (d == DELIVERY_LOST || q->state == QUEUE_CLOSED) /* what is taken now would be lost */
        list_move(&s.refused, &q->waiting);
    else
        queue_admit_waiting(q, &s.admitted);
    if (!queue_busy(q))
        pthread_cond_broadcast(&q->quiet);
    pthread_mutex_unlock(&q->lock);
    if (d != DELIVERY_LOST)
        report(q, p->records, s.waits, v, &out);
    parcel_free(p);
    finish(q, &s, &out);
}

/* ---- others ---- */

void queue_damaged(struct queue *q, struct request *r, const char *why)
{
    static const struct outcome damaged = {.message = "the request was damaged on disk"};
    struct settled s;
    settled_init(&s);
    metric_add(q->metrics.send_failed, r->records);
    metric_add(r->ack ? q->metrics.returned : q->damaged, r->records);
    r->verdict = VERDICT_RETRY;
    settle_request(q, r, &s);
    queue_admit_waiting(q, &s.admitted);
    pthread_mutex_unlock(&q->lock);
    log_error(&q->logger, "A request in the queue on disk is damaged. Dropping data.",
              LOG_STR("error", why), LOG_INT("dropped_items", r->records));
    finish(q, &s, &damaged);
}

static void give_up_parcels(struct queue *q, struct parcel_list *l, const struct outcome *out,
                            struct settled *s)
{
    for (struct parcel *p; (p = parcels_pop(l));) {
        settle(q, p, DELIVERY_LOST, VERDICT_RETRY, out, s);
        parcel_free(p);
    }
}

/* What never got a worker. Nobody else is left to touch the lists but the writer. */
void queue_drop_rest(struct queue *q)
{
    static const struct outcome stopped = {.message = "interrupted due to shutdown"};
    struct settled s;
    settled_init(&s);
    pthread_mutex_lock(&q->lock);
    give_up_parcels(q, &q->cut, &stopped, &s);
    give_up_parcels(q, &q->rest, &stopped, &s);
    give_up_parcels(q, &q->later, &stopped, &s);
    for (struct request *r; (r = queue_ready_pop(q));) {
        r->undelivered = true;
        r->verdict = VERDICT_RETRY;
        settle_lost(q, r, r->records);
        settle_request(q, r, &s);
    }
    list_move(&s.refused, &q->waiting);
    pthread_mutex_unlock(&q->lock);
    finish(q, &s, &stopped);
    pthread_mutex_unlock(&q->lock);
}
