/* Workers for bodies that would hold an I/O thread for too long. They start with the first one. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "receivers/otlp/otlp.h"

#define WORKERS 2
#define MAX_WAITING_BYTES ((size_t)128 << 20)

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct pool_item *first, **last;
    size_t bytes;
    unsigned nworkers, idle;
    pthread_t workers[WORKERS];
    bool stopped;
};

static struct pool_item *take(struct pool *p)
{
    struct pool_item *i = p->first;
    if (!i)
        return NULL;
    p->first = i->next;
    if (!p->first)
        p->last = &p->first;
    p->bytes -= i->bytes;
    return i;
}

static void *work(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct pool_item *i = take(p);
        if (i) {
            pthread_mutex_unlock(&p->lock);
            i->run(i);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        if (p->stopped)
            break;
        p->idle++;
        pthread_cond_wait(&p->more, &p->lock);
        p->idle--;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct pool *pool_new(void)
{
    struct pool *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    return p;
}

/* Under the lock. Signals are for the main thread. */
static void start_worker(struct pool *p)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&p->workers[p->nworkers], NULL, work, p) == 0)
        p->nworkers++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bool pool_add(struct pool *p, struct pool_item *i)
{
    pthread_mutex_lock(&p->lock);
    bool ok = !p->stopped && p->bytes + i->bytes <= MAX_WAITING_BYTES;
    if (ok && !p->idle && p->nworkers < WORKERS)
        start_worker(p);
    ok = ok && p->nworkers > 0;
    if (ok) {
        i->next = NULL;
        *p->last = i;
        p->last = &i->next;
        p->bytes += i->bytes;
        pthread_cond_signal(&p->more);
    }
    pthread_mutex_unlock(&p->lock);
    return ok;
}

void pool_stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->nworkers; i++)
        pthread_join(p->workers[i], NULL);
    p->nworkers = 0;
}

struct pool *pool_free(struct pool *p)
{
    if (!p)
        return NULL;
    pool_stop(p);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->more);
    free(p);
    return NULL;
}
