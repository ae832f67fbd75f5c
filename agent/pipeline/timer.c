/* One thread for all timers: a heap by time, a condition variable, and the callback that runs now.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/pipeline/host_parts.h"

struct timer {
    struct timers *all;
    void (*fire)(void *ctx);
    void *ctx;
    uint64_t at_ns;
    size_t slot; /* place in the heap + 1; 0 = not armed */
};

struct timers {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the earliest time, or stopping */
    pthread_cond_t fired;   /* a callback has returned */
    struct timer **heap;
    size_t n, cap, ntimers;
    struct timer *running;
    pthread_t thread;
    bool started, stopping;
};

struct timers *timers_new(void)
{
    struct timers *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    cond_init_monotonic(&t->changed);
    cond_init_monotonic(&t->fired);
    return t;
}

struct timers *timers_free(struct timers *t)
{
    if (!t)
        return NULL;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->fired);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t->heap);
    free(t);
    return NULL;
}

static void heap_put(struct timers *all, size_t i, struct timer *t)
{
    all->heap[i] = t;
    t->slot = i + 1;
}

static void heap_up(struct timers *all, size_t i)
{
    struct timer *t = all->heap[i];
    for (; i > 0 && all->heap[(i - 1) / 2]->at_ns > t->at_ns; i = (i - 1) / 2)
        heap_put(all, i, all->heap[(i - 1) / 2]);
    heap_put(all, i, t);
}

static void heap_down(struct timers *all, size_t i)
{
    struct timer *t = all->heap[i];
    for (size_t k; (k = 2 * i + 1) < all->n; i = k) {
        if (k + 1 < all->n && all->heap[k + 1]->at_ns < all->heap[k]->at_ns)
            k++;
        if (all->heap[k]->at_ns >= t->at_ns)
            break;
        heap_put(all, i, all->heap[k]);
    }
    heap_put(all, i, t);
}

static void heap_remove(struct timers *all, struct timer *t)
{
    size_t i = t->slot - 1;
    struct timer *last = all->heap[--all->n];
    t->slot = 0;
    if (last == t)
        return;
    heap_put(all, i, last);
    heap_up(all, i);
    heap_down(all, last->slot - 1);
}

/* Callbacks run without the lock; `running` lets timer_free() wait for the one of its timer. */
static void fire_first(struct timers *all)
{
    struct timer *t = all->heap[0];
    heap_remove(all, t);
    all->running = t;
    pthread_mutex_unlock(&all->lock);
    t->fire(t->ctx);
    pthread_mutex_lock(&all->lock);
    all->running = NULL;
    pthread_cond_broadcast(&all->fired);
}

static void *timers_main(void *arg)
{
    struct timers *all = arg;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        uint64_t at_ns = all->n ? all->heap[0]->at_ns : UINT64_MAX;
        if (at_ns <= clock_now_ns())
            fire_first(all);
        else
            cond_wait_until(&all->changed, &all->lock, at_ns);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* With all signals blocked: they are for the main thread. If it fails, the next arming tries again.
 */
static void start_thread(struct timers *all)
{
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int r = pthread_create(&all->thread, NULL, timers_main, all);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    all->started = r == 0;
    if (r == 0)
        pthread_setname_np(all->thread, "timers");
}

/* The heap has room for every timer there is, so that arming one cannot fail. */
static int reserve(struct timers *all)
{
    if (all->ntimers < all->cap)
        return 0;
    size_t cap = all->cap ? 2 * all->cap : 16;
    struct timer **heap = realloc(all->heap, cap * sizeof(struct timer *));
    if (!heap)
        return -ENOMEM;
    all->heap = heap;
    all->cap = cap;
    return 0;
}

struct timer *timer_new(struct host *h, void (*fire)(void *ctx), void *ctx)
{
    struct timers *all = host_timers(h);
    struct timer *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct timer){.all = all, .fire = fire, .ctx = ctx};
    pthread_mutex_lock(&all->lock);
    int r = reserve(all);
    if (r == 0)
        all->ntimers++;
    pthread_mutex_unlock(&all->lock);
    if (r == 0)
        return t;
    free(t);
    return NULL;
}

void timer_arm(struct timer *t, uint64_t at_ns)
{
    struct timers *all = t->all;
    pthread_mutex_lock(&all->lock);
    if (!all->started)
        start_thread(all);
    if (t->slot)
        heap_remove(all, t);
    t->at_ns = at_ns;
    all->heap[all->n] = t;
    heap_up(all, all->n++);
    if (all->heap[0] == t)
        pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

void timer_disarm(struct timer *t)
{
    pthread_mutex_lock(&t->all->lock);
    if (t->slot)
        heap_remove(t->all, t);
    pthread_mutex_unlock(&t->all->lock);
}

struct timer *timer_free(struct timer *t)
{
    if (!t)
        return NULL;
    struct timers *all = t->all;
    pthread_mutex_lock(&all->lock);
    if (t->slot)
        heap_remove(all, t);
    while (all->running == t)
        pthread_cond_wait(&all->fired, &all->lock);
    if (t->slot) /* its callback armed it again */
        heap_remove(all, t);
    all->ntimers--;
    pthread_mutex_unlock(&all->lock);
    free(t);
    return NULL;
}
