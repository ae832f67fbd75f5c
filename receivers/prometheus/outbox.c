#include "receivers/prometheus/outbox.h"

#include "agent/base/clock.h"

#define PAUSE_NS                                                                                   \
    (200 * NS_PER_MS) /* before a refused scrape is offered again; a longer one that downstream    \
                         asks for counts */
#define PAUSE_CLOSING_NS (50 * NS_PER_MS)

struct letter {
    struct ack ack;
    struct prom_outbox *box;
    struct batch *batch;
    struct letter *next;
    bool lost; /* for a branch that refused for good, which nobody counted */
};

void prom_outbox_init(struct prom_outbox *o, struct component *owner, void (*wake)(void *ctx),
                      void *ctx)
{
    *o = (struct prom_outbox){.owner = owner, .wake = wake, .ctx = ctx};
    o->tail = &o->head;
    pthread_mutex_init(&o->lock, NULL);
    receiver_metrics_get(owner->host, owner->id, "http", SIGNAL_METRICS, &o->metrics);
}

static void lost(struct prom_outbox *o, struct letter *l)
{
    metric_add(o->metrics.refused, l->batch->records);
    batch_unref(l->batch);
    free(l);
}

/* With the lock: the first one that waits. */
static struct letter *take_first(struct prom_outbox *o)
{
    struct letter *l = o->head;
    if (!l)
        return NULL;
    o->head = l->next;
    if (!o->head)
        o->tail = &o->head;
    o->held_bytes -= l->batch->bytes;
    return l;
}

void prom_outbox_done(struct prom_outbox *o)
{
    if (!o->owner)
        return;
    uint64_t points = 0;
    for (struct letter *l; (l = take_first(o));) {
        points += l->batch->records;
        lost(o, l);
    }
    if (points)
        log_error(&o->owner->logger,
                  "The pipeline refused the last scrapes until the end. Dropping them.",
                  LOG_INT("dropped_items", points));
    pthread_mutex_destroy(&o->lock);
    o->owner = NULL;
}

/* With the lock: the oldest ones that are too many; they are the caller's. */
static struct letter *make_room(struct prom_outbox *o)
{
    struct letter *dropped = NULL;
    while (o->held_bytes > OUTBOX_MAX_BYTES && o->head && o->head->next) {
        struct letter *l = take_first(o);
        l->next = dropped;
        dropped = l;
    }
    return dropped;
}

static void drop_all(struct prom_outbox *o, struct letter *dropped)
{
    uint64_t points = 0;
    for (struct letter *l; (l = dropped);) {
        dropped = l->next;
        points += l->batch->records;
        lost(o, l);
    }
    if (points)
        log_warn(&o->owner->logger, "Too many refused scrapes wait. Dropping the oldest.",
                 LOG_INT("dropped_items", points));
}

/* With the lock. `first`: it was the first one before, and is again. */
static void hold(struct prom_outbox *o, struct letter *l, bool first)
{
    o->held_bytes += l->batch->bytes;
    l->next = first ? o->head : NULL;
    if (first) {
        if (!o->head)
            o->tail = &l->next;
        o->head = l;
    } else {
        *o->tail = l;
        o->tail = &l->next;
    }
}

static void log_once(struct prom_outbox *o, enum verdict v, const struct outcome *out)
{
    if (!atomic_exchange(&o->refused, true))
        log_warn(&o->owner->logger,
                 v == VERDICT_REJECT
                     ? "The pipeline rejects scrapes."
                     : "The pipeline refuses scrapes for now. They are kept and offered again.",
                 LOG_STR("error", out->message));
}

static void delivered(struct prom_outbox *o, struct letter *l, uint32_t rejected)
{
    const uint32_t bad = !l->lost && rejected < l->batch->records ? rejected : l->batch->records;
    if (l->lost)
        log_warn(&o->owner->logger, "One of several exporters refused a scrape for good.",
                 LOG_INT("dropped_items", bad));
    metric_add(o->metrics.accepted, l->batch->records - bad);
    metric_add(o->metrics.refused, bad);
    batch_unref(l->batch);
    free(l);
}

/* With the lock: a refused letter waits again. */
static void put_back(struct prom_outbox *o, struct letter *l, const struct outcome *out)
{
    const uint64_t asked = out->retry_after_ms * NS_PER_MS, pause = o->closing ? PAUSE_CLOSING_NS
                                                                    : asked > PAUSE_NS ? asked
                                                                                       : PAUSE_NS;
    o->due_ns = clock_now_ns() + pause;
    hold(o, l, true);
}

/* The last touch of the outbox: its owner may go away once nothing is under way. */
static void let_go(struct prom_outbox *o, bool wake)
{
    pthread_mutex_lock(&o->lock);
    o->under_way--;
    if (wake || o->closing)
        o->wake(o->ctx);
    pthread_mutex_unlock(&o->lock);
}

static void refused(struct prom_outbox *o, struct letter *l, enum verdict v,
                    const struct outcome *out)
{
    struct letter *dropped = NULL;
    pthread_mutex_lock(&o->lock);
    log_once(o, v, out);
    if (v == VERDICT_RETRY) {
        put_back(o, l, out);
        dropped = make_room(o);
    }
    pthread_mutex_unlock(&o->lock);
    if (v == VERDICT_REJECT)
        lost(o, l);
    drop_all(o, dropped);
}

static void answered(struct letter *l, enum verdict v, const struct outcome *out)
{
    struct prom_outbox *o = l->box;
    l->lost = l->lost || out->also_lost;
    if (v == VERDICT_OK) {
        delivered(o, l, out->rejected);
        atomic_store(&o->refused, false);
    } else {
        refused(o, l, v, out);
    }
    let_go(o, v != VERDICT_OK);
}

static void letter_done(struct ack *ack, enum verdict v, const struct outcome *out)
{
    static const struct outcome none;
    answered(container_of(ack, struct letter, ack), v, out ? out : &none);
}

static void offer(struct letter *l)
{
    l->ack.now = (struct outcome){0};
    const enum verdict v = component_emit(l->box->owner, batch_ref(l->batch), &l->ack);
    if (v == VERDICT_PENDING)
        return; /* `l` may be gone already */
    const struct outcome now = l->ack.now;
    answered(l, v, &now);
}

void prom_outbox_send(struct prom_outbox *o, struct batch *b)
{
    struct letter *l = calloc(1, sizeof(*l));
    if (!l) {
        metric_add(o->metrics.refused, b->records);
        batch_unref(b);
        return;
    }
    *l = (struct letter){.ack = {.done = letter_done, .owed = ACK_ALL}, .box = o, .batch = b};
    pthread_mutex_lock(&o->lock);
    const bool waits =
        o->head || o->under_way >= OUTBOX_MAX_UNDER_WAY; /* not before those that wait */
    if (waits)
        hold(o, l, false);
    else
        o->under_way++;
    struct letter *dropped = make_room(o);
    pthread_mutex_unlock(&o->lock);
    drop_all(o, dropped);
    if (!waits)
        offer(l);
}

uint64_t prom_outbox_offer(struct prom_outbox *o, uint64_t now_ns)
{
    pthread_mutex_lock(&o->lock);
    while (o->head && o->due_ns <= now_ns && o->under_way < OUTBOX_MAX_UNDER_WAY) {
        struct letter *l = take_first(o);
        o->under_way++;
        pthread_mutex_unlock(&o->lock);
        offer(l);
        pthread_mutex_lock(&o->lock);
    }
    const uint64_t next = !o->head                               ? UINT64_MAX
                          : o->under_way >= OUTBOX_MAX_UNDER_WAY ? now_ns + PAUSE_NS
                                                                 : o->due_ns;
    pthread_mutex_unlock(&o->lock);
    return next;
}

void prom_outbox_closing(struct prom_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    o->closing = true;
    o->due_ns = 0;
    pthread_mutex_unlock(&o->lock);
}

bool prom_outbox_empty(struct prom_outbox *o)
{
    pthread_mutex_lock(&o->lock);
    const bool empty = !o->head && o->under_way == 0;
    pthread_mutex_unlock(&o->lock);
    return empty;
}
