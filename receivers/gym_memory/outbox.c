/* Samples on their way, and the one that waits. */
#include "receivers/gym_memory/outbox.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

#define PAUSE_NS                                                                                   \
    (200 * NS_PER_MS) /* before a refused sample is offered again; a longer one that downstream    \
                         asks for counts */
#define PAUSE_CLOSING_NS (50 * NS_PER_MS)
#define UNDER_WAY_MAX 64 /* more answers outstanding: a new sample is refused */

struct letter {
    struct ack ack;
    struct outbox *box;
    struct batch *batch;
    uint64_t number;
    bool lost; /* for a branch that refused for good, which nobody counted */
};

int outbox_init(struct outbox *o, struct component *owner)
{
    *o = (struct outbox){.owner = owner};
    receiver_metrics_get(owner->host, owner->id, "", SIGNAL_METRICS, &o->metrics);
    int r = cond_init_monotonic(&o->changed);
    if (r == 0)
        pthread_mutex_init(&o->lock, NULL);
    return r;
}

void outbox_done(struct outbox *o)
{
    if (!o->owner)
        return;
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
}

/* ---- the end of a letter ---- */

static void letter_free(struct letter *l)
{
    struct outbox *o = l->box;
    batch_unref(l->batch);
    free(l);
    pthread_mutex_lock(&o->lock);
    o->under_way--;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void delivered(struct letter *l, uint32_t rejected)
{
    struct outbox *o = l->box;
    const uint32_t lost = !l->lost && rejected < l->batch->records ? rejected : l->batch->records;
    if (l->lost)
        log_warn(&o->owner->logger, "One of several exporters refused a sample for good.",
                 LOG_INT("dropped_items", lost));
    metric_add(o->metrics.accepted, l->batch->records - lost);
    metric_add(o->metrics.refused, lost);
    pthread_mutex_lock(&o->lock);
    o->refused = false;
    pthread_mutex_unlock(&o->lock);
    letter_free(l);
}

static void lost(struct letter *l)
{
    metric_add(l->box->metrics.refused, l->batch->records);
    letter_free(l);
}

/* ---- answers ---- */

static void log_once(struct outbox *o, enum verdict v, const struct outcome *out)
{
    const bool again = o->refused;
    o->refused = true;
    if (!again)
        log_warn(&o->owner->logger,
                 v == VERDICT_REJECT
                     ? "The pipeline rejects samples."
                     : "The pipeline refuses samples for now. Only the newest is kept.",
                 LOG_STR("error", out->message));
}

/* Keeps a refused one while it is the newest. */
static bool hold(struct letter *l, const struct outcome *out)
{
    struct outbox *o = l->box;
    if (o->closed || l->number != o->sent)
        return false;
    uint64_t pause = o->closing ? PAUSE_CLOSING_NS : PAUSE_NS;
    if (!o->closing && out->retry_after_ms * NS_PER_MS > pause)
        pause = out->retry_after_ms * NS_PER_MS;
    o->held = l;
    o->due_ns = clock_now_ns() + pause;
    pthread_cond_broadcast(&o->changed);
    return true;
}

static void answered(struct letter *l, enum verdict v, const struct outcome *out)
{
    struct outbox *o = l->box;
    l->lost = l->lost || out->also_lost;
    if (v == VERDICT_OK) {
        delivered(l, out->rejected);
        return;
    }
    pthread_mutex_lock(&o->lock);
    log_once(o, v, out);
    const bool kept = v == VERDICT_RETRY && hold(l, out);
    pthread_mutex_unlock(&o->lock);
    if (!kept)
        lost(l);
}

static void letter_done(struct ack *ack, enum verdict v, const struct outcome *out)
{
    static const struct outcome none;
    answered(container_of(ack, struct letter, ack), v, out ? out : &none);
}

static void offer(struct letter *l)
{
    l->ack.now = (struct outcome){0};
    enum verdict v = component_emit(l->box->owner, batch_ref(l->batch), &l->ack);
    if (v == VERDICT_PENDING)
        return; /* `l` may be gone already */
    const struct outcome now = l->ack.now;
    answered(l, v, &now);
}

/* ---- sending ---- */

/* With the lock: the refused sample, which is not waiting any more. */
static struct letter *take_held(struct outbox *o)
{
    struct letter *l = o->held;
    o->held = NULL;
    return l;
}

static struct letter *letter_new(struct outbox *o, struct batch *b)
{
    struct letter *l = o->under_way < UNDER_WAY_MAX ? calloc(1, sizeof(*l)) : NULL;
    if (!l)
        return NULL;
    *l = (struct letter){
        .ack = {.done = letter_done, .owed = ACK_ALL}, .box = o, .batch = b, .number = o->sent};
    o->under_way++;
    return l;
}

void outbox_send(struct outbox *o, struct batch *b)
{
    pthread_mutex_lock(&o->lock);
    o->sent++;
    struct letter *old = take_held(o), *l = letter_new(o, b);
    pthread_mutex_unlock(&o->lock);
    if (old)
        lost(old);
    if (l) {
        offer(l);
        return;
    }
    metric_add(o->metrics.refused, b->records);
    batch_unref(b);
}

/* With the lock, which it lets go of meanwhile. */
static void offer_again(struct outbox *o)
{
    struct letter *l = take_held(o);
    pthread_mutex_unlock(&o->lock);
    offer(l);
    pthread_mutex_lock(&o->lock);
}

/* Until `until_ns` or a change. With the lock. */
static void wait_or_offer(struct outbox *o, uint64_t until_ns)
{
    if (o->held && o->due_ns <= clock_now_ns())
        offer_again(o);
    else
        cond_wait_until(&o->changed, &o->lock,
                        o->held && o->due_ns < until_ns ? o->due_ns : until_ns);
}

bool outbox_wait(struct outbox *o, uint64_t until_ns)
{
    pthread_mutex_lock(&o->lock);
    while (!o->closing && clock_now_ns() < until_ns)
        wait_or_offer(o, until_ns);
    const bool open = !o->closing;
    pthread_mutex_unlock(&o->lock);
    return open;
}

void outbox_close(struct outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->closing = true;
    o->due_ns = 0;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void outbox_drain(struct outbox *o, uint64_t until_ns)
{
    pthread_mutex_lock(&o->lock);
    while (o->under_way && clock_now_ns() < until_ns)
        wait_or_offer(o, until_ns);
    o->closed = true;
    struct letter *l = take_held(o);
    pthread_mutex_unlock(&o->lock);
    if (!l)
        return;
    log_error(&o->owner->logger, "The pipeline refused the last sample until the end. Dropping it.",
              LOG_INT("dropped_items", l->batch->records));
    lost(l);
}
