#include "agent/pipeline/throttle.h"

#include <pthread.h>

#include "agent/base/clock.h"

struct waiter {
    struct waiter *next;
    struct ack *ack;
    uint64_t until_ns;
};

struct throttle {
    struct timer *timer;
    pthread_mutex_t lock;
    struct waiter *head, *tail; /* in the order they came; the time of one is seldom before that of
                                   the one before, and then it waits as long */
};

static void answer(struct waiter *list)
{
    static const struct outcome nothing;
    while (list) {
        struct waiter *w = list;
        list = w->next;
        ack_done(w->ack, VERDICT_OK, &nothing);
        free(w);
    }
}

/* Takes those out that have waited until `now`. */
static struct waiter *take(struct throttle *t, uint64_t now)
{
    pthread_mutex_lock(&t->lock);
    struct waiter *list = t->head, **end = &list;
    while (*end && (*end)->until_ns <= now)
        end = &(*end)->next;
    t->head = *end;
    *end = NULL;
    if (t->head)
        timer_arm(t->timer, t->head->until_ns);
    else
        t->tail = NULL;
    pthread_mutex_unlock(&t->lock);
    return list;
}

static void on_timer(void *ctx)
{
    answer(take(ctx, clock_now_ns()));
}

struct throttle *throttle_new(struct host *h)
{
    struct throttle *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    t->timer = timer_new(h, on_timer, t);
    return t->timer ? t : throttle_free(t);
}

bool throttle_wait(struct throttle *t, struct ack *ack)
{
    return throttle_wait_until(t, ack, clock_now_ns() + THROTTLE_MAX_NS);
}

bool throttle_wait_until(struct throttle *t, struct ack *ack, uint64_t until_ns)
{
    struct waiter *w = malloc(sizeof(*w));
    if (!w)
        return false;
    *w = (struct waiter){.ack = ack, .until_ns = until_ns};
    pthread_mutex_lock(&t->lock);
    *(t->tail ? &t->tail->next : &t->head) = w;
    t->tail = w;
    if (t->head == w)
        timer_arm(t->timer, w->until_ns);
    pthread_mutex_unlock(&t->lock);
    return true;
}

void throttle_release(struct throttle *t)
{
    answer(take(t, UINT64_MAX));
}

struct throttle *throttle_free(struct throttle *t)
{
    if (!t)
        return NULL;
    throttle_release(t);
    timer_free(t->timer);
    throttle_release(t);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}
