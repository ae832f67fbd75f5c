/*
 * Requests under way. A few are sent at the same time; what is delivered is known for each, and how
 * far that makes each file safe: a place is safe when everything before it was delivered or was
 * refused for good.
 */
#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"
#include "agent/gym/replay_parts.h"

#define UNDER_WAY_MAX 16
#define BYTES_MAX ((size_t)16 << 20)
#define REFUSALS_MAX 20            /* in a row: the target refuses everything */
#define AGAIN_NS (500 * NS_PER_MS) /* after a refusal that may pass */
#define LOOK_NS (200 * NS_PER_MS)  /* how often a wait looks at the stop flag */
#define STUCK_NS (5 * NS_PER_S)    /* without an answer: the user is told */
#define STOPPED_NS NS_PER_S        /* for answers when there is no hope any more */

struct checkpoint {
    struct checkpoint *next;
    size_t file;
    struct replay_place place;
    bool marked; /* its place is known: no more requests come to it */
    unsigned under_way;
    uint64_t refused_last; /* the newest of its requests that was refused; 0 = none */
};

struct request {
    struct ack ack;
    struct window *window;
    struct checkpoint *checkpoint;
    uint64_t sequence;
    uint32_t records;
    size_t bytes;
    enum signal signal;
    bool answered; /* local targets, whose sender waits for it: */
    enum verdict verdict;
};

void replay_place_done(struct replay_place *p)
{
    free(p->held);
    *p = (struct replay_place){0};
}

int window_init(struct window *w, struct component *source, const char *place, bool local,
                size_t nfiles)
{
    *w = (struct window){.source = source, .place = place, .local = local, .nfiles = nfiles};
    pthread_mutex_init(&w->lock, NULL);
    cond_init_monotonic(&w->changed);
    w->safe = calloc(nfiles + 1, sizeof(*w->safe));
    w->first = w->open = calloc(1, sizeof(*w->open));
    return w->safe && w->open ? 0 : -ENOMEM;
}

void window_done(struct window *w)
{
    for (struct checkpoint *c = w->first, *next; c; c = next) {
        next = c->next;
        replay_place_done(&c->place);
        free(c);
    }
    for (size_t i = 0; w->safe && i < w->nfiles; i++)
        replay_place_done(&w->safe[i]);
    free(w->safe);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

/* ---- what is safe ---- */

/* Refusals are for good once something after them was taken: then it is the data, not the target.
 */
static bool is_safe(const struct window *w, const struct checkpoint *c)
{
    return c->marked && c->under_way == 0 && c->refused_last <= w->last_good;
}

/* Lock held. */
static void advance(struct window *w)
{
    while (w->first != w->open && is_safe(w, w->first)) {
        struct checkpoint *c = w->first;
        w->first = c->next;
        replay_place_done(&w->safe[c->file]);
        w->safe[c->file] = c->place;
        free(c);
    }
}

int window_mark(struct window *w, size_t file, struct replay_place *place)
{
    struct checkpoint *next = calloc(1, sizeof(*next));
    if (!next)
        return -ENOMEM;
    pthread_mutex_lock(&w->lock);
    struct checkpoint *c = w->open;
    c->file = file;
    c->place = *place;
    c->marked = true;
    c->next = w->open = next;
    *place = (struct replay_place){0};
    advance(w);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* ---- answers ---- */

static const char *reason_of(enum verdict v, const struct outcome *out)
{
    if (out && out->message[0])
        return out->message;
    return v == VERDICT_RETRY ? "no answer" : "refused without a reason";
}

/* Lock held. */
static void count(struct window *w, const struct request *r, enum verdict v,
                  const struct outcome *out)
{
    if (v == VERDICT_OK) {
        w->delivered[r->signal] += r->records;
        w->refused_in_a_row = 0;
        if (r->sequence > w->last_good)
            w->last_good = r->sequence;
        w->waiting[0] = 0;
        return;
    }
    snprintf(w->reason, sizeof(w->reason), "%s", reason_of(v, out));
    if (v == VERDICT_RETRY) { /* the exporter has tried for long: the target is out of reach */
        w->failed[r->signal] += r->records;
        r->checkpoint->refused_last = UINT64_MAX;
        w->stopped = true;
        return;
    }
    w->refused[r->signal] += r->records;
    if (r->checkpoint->refused_last < r->sequence)
        r->checkpoint->refused_last = r->sequence;
    if (++w->refused_in_a_row >= REFUSALS_MAX)
        w->stopped = true;
}

static void finish(struct request *r, enum verdict v, const struct outcome *out)
{
    struct window *w = r->window;
    pthread_mutex_lock(&w->lock);
    count(w, r, v, out);
    r->checkpoint->under_way--;
    w->under_way--;
    w->moved_ns = clock_now_ns();
    w->bytes -= r->bytes;
    advance(w);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    free(r);
}

static void on_answer(struct ack *a, enum verdict v, const struct outcome *out)
{
    struct request *r = container_of(a, struct request, ack);
    struct window *w = r->window;
    if (!w->local) {
        finish(r, v, out);
        return;
    }
    pthread_mutex_lock(&w->lock);
    r->answered = true;
    r->verdict = v;
    a->now = out ? *out : (struct outcome){0};
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* ---- sending ---- */

/* Otherwise a target that does not answer looks like a program that hangs. Lock held. */
static void tell_if_stuck(struct window *w)
{
    if (w->told || !w->under_way || clock_now_ns() - w->moved_ns < STUCK_NS)
        return;
    w->told = true;
    fprintf(stderr,
            w->local ? "%s takes nothing%s%s. Ctrl-C ends the attempt.\n"
                     : "No answer from %s%s%s; trying for two minutes. Ctrl-C ends the "
                       "attempt.\n",
            w->place, w->waiting[0] ? ": " : "", w->waiting);
}

/* Lock held. */
static void wait_a_little(struct window *w)
{
    cond_wait_until(&w->changed, &w->lock, clock_now_ns() + LOOK_NS);
    tell_if_stuck(w);
}

static int wait_for_room(struct window *w, size_t bytes, const volatile sig_atomic_t *stop)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stopped && !*stop && w->under_way &&
           (w->under_way >= UNDER_WAY_MAX || w->bytes + bytes > BYTES_MAX))
        wait_a_little(w);
    const bool go = !w->stopped && !*stop;
    pthread_mutex_unlock(&w->lock);
    return go ? 0 : -ECANCELED;
}

/* The answer of a local target that did not come at once. */
static enum verdict wait_for_answer(struct window *w, struct request *r)
{
    pthread_mutex_lock(&w->lock);
    while (!r->answered)
        wait_a_little(w);
    r->answered = false;
    pthread_mutex_unlock(&w->lock);
    return r->verdict;
}

/* Offers until the target takes it, or something forbids to go on. */
static enum verdict offer(struct window *w, struct request *r, struct batch *b,
                          const volatile sig_atomic_t *stop)
{
    r->ack.owed = ACK_ALL;
    for (;;) {
        enum verdict v = component_emit(w->source, batch_ref(b), &r->ack);
        if (v == VERDICT_PENDING && w->local)
            v = wait_for_answer(w, r);
        if (v != VERDICT_RETRY || *stop)
            return v;
        const uint64_t until_ns = clock_now_ns() + AGAIN_NS;
        pthread_mutex_lock(&w->lock);
        snprintf(w->waiting, sizeof(w->waiting), "%s", reason_of(v, &r->ack.now));
        while (!*stop && clock_now_ns() < until_ns)
            wait_a_little(w);
        pthread_mutex_unlock(&w->lock);
    }
}

static void enter(struct window *w, struct request *r)
{
    pthread_mutex_lock(&w->lock);
    r->checkpoint = w->open;
    r->sequence = ++w->sequence;
    w->open->under_way++;
    if (w->under_way++ == 0)
        w->moved_ns = clock_now_ns();
    w->bytes += r->bytes;
    pthread_mutex_unlock(&w->lock);
}

int window_send(struct window *w, struct batch *b, const volatile sig_atomic_t *stop)
{
    _cleanup_batch_ _unused_ struct batch *owned = b;
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct request){.ack = {.done = on_answer},
                          .window = w,
                          .records = b->records,
                          .bytes = b->bytes,
                          .signal = b->signal};
    int e = wait_for_room(w, b->bytes, stop);
    if (e < 0) {
        free(r);
        return e;
    }
    enter(w, r);
    enum verdict v = offer(w, r, b, stop);
    if (v != VERDICT_PENDING) {
        const struct outcome now = r->ack.now;
        finish(r, v, &now);
    }
    return 0;
}

bool window_settle(struct window *w, uint64_t until_ns, const volatile sig_atomic_t *stop)
{
    bool hopeless = false;
    pthread_mutex_lock(&w->lock);
    while (w->under_way && !*stop && clock_now_ns() < until_ns) {
        wait_a_little(w);
        if (w->stopped && !hopeless && clock_now_ns() + STOPPED_NS < until_ns)
            until_ns = clock_now_ns() + STOPPED_NS;
        hopeless = w->stopped;
    }
    const bool settled = w->under_way == 0;
    pthread_mutex_unlock(&w->lock);
    return settled;
}
