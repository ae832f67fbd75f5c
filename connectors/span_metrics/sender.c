#include "connectors/span_metrics/sender.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

#define PAUSE_FIRST_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_S)
#define PAUSE_CLOSING_NS (50 * NS_PER_MS)

struct parcel {
    struct ack ack;
    struct sender *sender;
    struct batch *batch;
    struct parcel *next;
    bool again; /* it was refused before: those behind it wait until it is answered */
    bool lost;  /* for a branch that refused for good, which nobody counted */
};

/* ---- the end of a parcel ---- */

static void parcel_free(struct parcel *p)
{
    struct sender *s = p->sender;
    batch_unref(p->batch);
    free(p);
    pthread_mutex_lock(&s->lock);
    s->under_way--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* `counted`: by who refused it. */
static void drop(struct parcel *p, const char *why, const char *error, bool counted)
{
    log_warn(&p->sender->owner->logger, why, LOG_STR("error", error),
             LOG_INT("dropped_items", p->batch->records));
    metric_add(p->sender->dropped, counted ? 0 : p->batch->records);
    parcel_free(p);
}

/* ---- what is held (with the lock) ---- */

static struct parcel *take_first(struct sender *s)
{
    struct parcel *p = s->held;
    if (!p)
        return NULL;
    s->held = p->next;
    if (!s->held)
        s->held_end = &s->held;
    s->held_bytes -= p->batch->bytes;
    p->next = NULL;
    return p;
}

/* The first one, to be offered again. NULL while another one is: they keep their order. */
static struct parcel *take_again(struct sender *s)
{
    struct parcel *p = s->again ? NULL : take_first(s);
    if (p)
        s->again = p->again = true;
    return p;
}

/* It was answered. */
static void again_done(struct sender *s, struct parcel *p)
{
    if (p->again)
        s->again = p->again = false;
}

static void put_first(struct sender *s, struct parcel *p)
{
    p->next = s->held;
    if (!s->held)
        s->held_end = &p->next;
    s->held = p;
    s->held_bytes += p->batch->bytes;
}

static void put_last(struct sender *s, struct parcel *p)
{
    p->next = NULL;
    *s->held_end = p;
    s->held_end = &p->next;
    s->held_bytes += p->batch->bytes;
}

/* Those that are too much, the oldest ones. */
static struct parcel *take_excess(struct sender *s)
{
    struct parcel *list = NULL, **at = &list;
    while (s->held_bytes > SENDER_MAX_BYTES && s->held->next) {
        *at = take_first(s);
        at = &(*at)->next;
    }
    return list;
}

static void schedule(struct sender *s, uint32_t retry_after_ms)
{
    const uint64_t wish_ns = retry_after_ms * NS_PER_MS, now = clock_now_ns();
    s->pause_ns = s->pause_ns ? 2 * s->pause_ns : PAUSE_FIRST_NS;
    s->pause_ns = s->pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : s->pause_ns;
    if (s->closing)
        s->due_ns = now + PAUSE_CLOSING_NS;
    else
        s->due_ns = now + (wish_ns > s->pause_ns ? wish_ns : s->pause_ns);
    if (!s->closing)
        timer_arm(s->timer, s->due_ns);
    pthread_cond_broadcast(&s->changed);
}

/* ---- answers ---- */

static bool hold(struct parcel *p, const struct outcome *out)
{
    struct sender *s = p->sender;
    pthread_mutex_lock(&s->lock);
    const bool keep = !s->closed, tell = keep && !s->told;
    again_done(s, p);
    if (keep) {
        s->told = true;
        put_first(s, p);
        schedule(s, out->retry_after_ms);
    }
    pthread_mutex_unlock(&s->lock);
    if (tell)
        log_warn(&s->owner->logger, "The pipeline refuses metrics for now. They are kept.",
                 LOG_STR("error", out->message));
    return keep;
}

/* Downstream takes data again: the next one that waits, to be offered now. */
static struct parcel *go_on(struct sender *s, struct parcel *taken)
{
    pthread_mutex_lock(&s->lock);
    again_done(s, taken);
    s->pause_ns = 0;
    s->due_ns = 0;
    s->told = false;
    struct parcel *next = s->closed ? NULL : take_again(s);
    pthread_mutex_unlock(&s->lock);
    return next;
}

/* Ends or keeps `p`; returns the one to offer next, or NULL. */
static struct parcel *answered(struct parcel *p, enum verdict v, const struct outcome *out)
{
    struct parcel *next = NULL;
    p->lost = p->lost || out->also_lost;
    if (v == VERDICT_RETRY) {
        if (!hold(p, out))
            drop(p, "Downstream refused data until the end. Dropping data.", out->message, false);
        return NULL;
    }
    next = go_on(p->sender, p);
    if (v == VERDICT_REJECT)
        drop(p, "Sender failed", out->message, out->counted && !p->lost);
    else if (p->lost)
        drop(p, "Sender failed", "refused by one of several exporters", false);
    else
        parcel_free(p);
    return next;
}

/* `p` and those that wait behind it, until one is not answered at once or is refused. */
static void offer(struct parcel *p)
{
    while (p) {
        p->ack.now = (struct outcome){0};
        enum verdict v = component_emit(p->sender->owner, batch_ref(p->batch), &p->ack);
        if (v == VERDICT_PENDING)
            return; /* `p` may be gone already */
        const struct outcome now = p->ack.now;
        p = answered(p, v, &now);
    }
}

static void parcel_done(struct ack *ack, enum verdict v, const struct outcome *out)
{
    static const struct outcome none;
    offer(answered(container_of(ack, struct parcel, ack), v, out ? out : &none));
}

/* ---- sending ---- */

static void on_timer(void *ctx)
{
    struct sender *s = ctx;
    pthread_mutex_lock(&s->lock);
    struct parcel *p = s->closed ? NULL : take_again(s);
    pthread_mutex_unlock(&s->lock);
    if (p)
        offer(p);
}

void sender_send(struct sender *s, struct batch *b)
{
    struct parcel *p = calloc(1, sizeof(*p)), *excess = NULL;
    if (!p) {
        log_error(&s->owner->logger, "Out of memory. Dropping data.",
                  LOG_INT("dropped_items", b->records));
        metric_add(s->dropped, b->records);
        batch_unref(b);
        return;
    }
    *p = (struct parcel){.ack = {.done = parcel_done, .owed = ACK_ALL}, .sender = s, .batch = b};
    pthread_mutex_lock(&s->lock);
    s->under_way++;
    const bool wait = s->held || s->again;
    if (wait) {
        put_last(s, p);
        excess = take_excess(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (!wait)
        offer(p);
    while (excess) {
        struct parcel *next = excess->next;
        drop(excess, "Too much data is refused. Dropping the oldest.", "", false);
        excess = next;
    }
}

/* With the lock, which it lets go of meanwhile. */
static void offer_again(struct sender *s)
{
    struct parcel *p = take_again(s);
    pthread_mutex_unlock(&s->lock);
    offer(p);
    pthread_mutex_lock(&s->lock);
}

void sender_drain(struct sender *s, uint64_t until_ns)
{
    timer_disarm(s->timer);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    s->due_ns = 0;
    for (uint64_t now; s->under_way && (now = clock_now_ns()) < until_ns;)
        if (s->held && !s->again && s->due_ns <= now)
            offer_again(s);
        else
            cond_wait_until(&s->changed, &s->lock,
                            s->held && !s->again && s->due_ns < until_ns ? s->due_ns : until_ns);
    s->closed = true;
    struct parcel *p = s->held;
    s->held = NULL;
    s->held_end = &s->held;
    s->held_bytes = 0;
    pthread_mutex_unlock(&s->lock);
    while (p) {
        struct parcel *next = p->next;
        drop(p, "Downstream refused data until the end. Dropping data.", "", false);
        p = next;
    }
}

/* ---- life cycle ---- */

int sender_init(struct sender *s, struct component *owner)
{
    char labels[METRIC_LABELS_MAX] = "";
    *s = (struct sender){.owner = owner};
    s->held_end = &s->held;
    metric_label(labels, "connector", owner->id);
    s->dropped =
        metric_counter(owner->host, "motel_connector_dropped_metric_points",
                       "Data points that downstream rejected or refused until the end.", labels);
    pthread_mutex_init(&s->lock, NULL);
    cond_init_monotonic(&s->changed);
    s->timer = timer_new(owner->host, on_timer, s);
    return s->timer ? 0 : -ENOMEM;
}

void sender_done(struct sender *s)
{
    if (!s->owner)
        return;
    timer_free(s->timer);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
