/* Batches on their way into the pipelines, with another try where one is refused for now. */
#include <errno.h>
#include <sys/eventfd.h>

#include "receivers/console/console.h"

#define FIRST_PAUSE_MS 50
#define MAX_PAUSE_MS 5000
#define SPARE 4

/* ---- waking ---- */

struct wake *wake_new(void)
{
    struct wake *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    atomic_init(&w->refs, 1);
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return w->fd < 0 ? wake_unref(w) : w;
}

struct wake *wake_ref(struct wake *w)
{
    atomic_fetch_add(&w->refs, 1);
    return w;
}

struct wake *wake_unref(struct wake *w)
{
    if (w && atomic_fetch_sub(&w->refs, 1) == 1) {
        if (w->fd >= 0)
            close(w->fd);
        free(w);
    }
    return NULL;
}

void wake_up(struct wake *w)
{
    static const uint64_t one = 1;
    if (write(w->fd, &one, sizeof(one)) < 0)
        return; /* it is awake already */
}

/* ---- deliveries ---- */

enum { WAITING, IN_FLIGHT, ANSWERED, ABANDONED };

struct delivery {
    struct ack ack;
    struct delivery *next;
    struct batch *b;
    struct wake *wake; /* while in flight */
    atomic_int state;
    enum verdict verdict;   /* ANSWERED */
    struct outcome outcome; /* ANSWERED */
    uint64_t due_ns;        /* WAITING */
    unsigned pause_ms;
    bool lost; /* for a branch that refused for good, which nobody counted */
};

static struct delivery *delivery_free(struct delivery *d)
{
    batch_unref(d->b);
    free(d);
    return NULL;
}

static void on_answer(struct ack *a, enum verdict v, const struct outcome *out)
{
    struct delivery *d = container_of(a, struct delivery, ack);
    struct wake *w = d->wake;
    d->verdict = v;
    d->outcome = out ? *out : (struct outcome){0};
    if (atomic_exchange(&d->state, ANSWERED) == ABANDONED)
        delivery_free(d);
    else
        wake_up(w);
    wake_unref(w);
}

static void keep_spare(struct sending *o, struct delivery *d)
{
    if (o->nspare == SPARE) {
        free(d);
        return;
    }
    d->next = o->spare;
    o->spare = d;
    o->nspare++;
}

static struct delivery *take_spare(struct sending *o)
{
    struct delivery *d = o->spare;
    if (!d)
        return NULL;
    o->spare = d->next;
    o->nspare--;
    return d;
}

int sending_init(struct sending *o)
{
    *o = (struct sending){.last = &o->first};
    for (unsigned i = 0; i < SPARE; i++) {
        struct delivery *d = calloc(1, sizeof(*d));
        if (!d)
            return -ENOMEM;
        keep_spare(o, d);
    }
    return 0;
}

static void drop_first(struct sending *o)
{
    struct delivery *d = o->first;
    o->first = d->next;
    if (!o->first)
        o->last = &o->first;
    batch_unref(d->b);
    keep_spare(o, d);
}

static void count(struct console *c, const struct delivery *d, uint32_t refused)
{
    const struct receiver_metrics *m = &c->metrics[d->b->signal];
    refused = refused < d->b->records ? refused : d->b->records;
    if (refused < d->b->records)
        metric_add(m->accepted, d->b->records - refused);
    if (refused)
        metric_add(m->refused, refused);
}

/* The first one was answered. */
static void settle(struct sending *o, struct console *c, enum verdict v, const struct outcome *out)
{
    struct delivery *d = o->first;
    d->lost = d->lost || out->also_lost;
    if (v == VERDICT_RETRY) {
        d->pause_ms = d->pause_ms ? 2 * d->pause_ms : FIRST_PAUSE_MS;
        if (d->pause_ms > MAX_PAUSE_MS)
            d->pause_ms = MAX_PAUSE_MS;
        unsigned pause = out->retry_after_ms ? out->retry_after_ms : d->pause_ms;
        d->due_ns = clock_now_ns() + pause * NS_PER_MS;
        atomic_store(&d->state, WAITING);
        return;
    }
    const bool lost = v == VERDICT_REJECT || d->lost;
    if (lost)
        log_error(&c->c.logger, "The pipeline refused records for good; they are dropped",
                  LOG_STR("signal", signal_name(d->b->signal)),
                  LOG_INT("dropped_items", d->b->records),
                  LOG_STR("error", v == VERDICT_REJECT ? out->message
                                                       : "refused by one of several exporters"));
    count(c, d, lost ? UINT32_MAX : out->rejected);
    drop_first(o);
}

static void offer(struct sending *o, struct console *c)
{
    struct delivery *d = o->first;
    d->wake = wake_ref(c->wake);
    atomic_store(&d->state, IN_FLIGHT);
    enum verdict v = component_emit(&c->c, batch_ref(d->b), &d->ack);
    if (v == VERDICT_PENDING)
        return;
    wake_unref(d->wake);
    settle(o, c, v, &d->ack.now);
}

int sending_put(struct sending *o, struct console *c, struct batch *b)
{
    struct delivery *d;
    if (!c->c.next[b->signal]) { /* no pipeline takes this signal */
        batch_unref(b);
        return 0;
    }
    d = malloc(sizeof(*d));
    if (!d && !(d = take_spare(o))) {
        metric_add(c->metrics[b->signal].failed, b->records);
        batch_unref(b);
        return -ENOMEM;
    }
    *d = (struct delivery){.ack = {.done = on_answer, .owed = ACK_ALL}, .b = b};
    bool first = sending_empty(o);
    *o->last = d;
    o->last = &d->next;
    if (first)
        offer(o, c);
    return 0;
}

bool sending_run(struct sending *o, struct console *c, uint64_t *ret_at_ns)
{
    while (o->first) {
        struct delivery *d = o->first;
        int state = atomic_load(&d->state);
        if (state == IN_FLIGHT)
            return false;
        if (state == ANSWERED) {
            struct outcome out = d->outcome;
            settle(o, c, d->verdict, &out);
        } else if (d->due_ns <= clock_now_ns()) {
            offer(o, c);
        } else {
            *ret_at_ns = d->due_ns < *ret_at_ns ? d->due_ns : *ret_at_ns;
            return false;
        }
    }
    return true;
}

void sending_reset(struct sending *o)
{
    struct delivery *d = o->first, *again;
    if (!d)
        return;
    if (atomic_load(&d->state) == IN_FLIGHT && (again = calloc(1, sizeof(*again)))) {
        *again = (struct delivery){.ack = {.done = on_answer}, .next = d->next};
        again->b = batch_ref(d->b);
        o->first = again;
        if (!again->next)
            o->last = &again->next;
        if (atomic_exchange(&d->state, ABANDONED) == ANSWERED)
            delivery_free(d);
        d = again;
    }
    d->ack.owed = ACK_ALL;
    d->lost = false; /* all are asked again */
    d->due_ns = 0;
    d->pause_ms = 0;
}

uint64_t sending_done(struct sending *o)
{
    uint64_t records = 0;
    while (o->first) {
        struct delivery *d = o->first;
        records += d->b->records;
        o->first = d->next;
        if (atomic_exchange(&d->state, ABANDONED) != IN_FLIGHT)
            delivery_free(d);
    }
    o->last = &o->first;
    while (o->spare)
        free(take_spare(o));
    return records;
}
