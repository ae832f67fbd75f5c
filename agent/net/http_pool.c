#include "agent/net/http_pool.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

struct pooled {
    struct http_client *client;
    struct pooled *next;
};

struct http_pool {
    struct http_client_settings settings;
    unsigned max_idle;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct pooled *idle, *busy; /* the last one used comes first */
    unsigned nidle, nbusy;
    bool interrupted;
};

struct http_pool *http_pool_new(const struct http_client_settings *s, unsigned max_idle,
                                struct err *reterr)
{
    struct http_pool *p = calloc(1, sizeof(*p));
    if (!p || cond_init_monotonic(&p->freed) < 0) {
        free(p);
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->settings = *s;
    p->max_idle = max_idle;
    return p;
}

static void pooled_free(struct pooled *e)
{
    http_client_free(e->client);
    free(e);
}

struct http_pool *http_pool_free(struct http_pool *p)
{
    if (!p)
        return NULL;
    for (struct pooled *e; (e = p->idle);) {
        p->idle = e->next;
        pooled_free(e);
    }
    pthread_cond_destroy(&p->freed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void http_pool_interrupt(struct http_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->interrupted = true;
    for (struct pooled *e = p->busy; e; e = e->next)
        http_client_interrupt(e->client);
    pthread_cond_broadcast(&p->freed);
    pthread_mutex_unlock(&p->lock);
}

/* Under the lock: until another request may start. */
static int await_turn(struct http_pool *p, uint64_t deadline_ns, struct err *reterr)
{
    while (!p->interrupted && p->settings.max_conns_per_host > 0 &&
           p->nbusy >= p->settings.max_conns_per_host)
        if (cond_wait_until(&p->freed, &p->lock, deadline_ns ? deadline_ns : UINT64_MAX) ==
            ETIMEDOUT)
            return err_set(reterr, -ETIMEDOUT,
                           "context deadline exceeded while waiting for a free connection");
    return p->interrupted ? err_set(reterr, -ECANCELED, "interrupted due to shutdown") : 0;
}

/* Under the lock: a free client, or a new one. */
static struct pooled *pooled_take(struct http_pool *p, struct err *reterr)
{
    struct pooled *e = p->idle;
    if (e) {
        p->idle = e->next;
        p->nidle--;
    } else if (!(e = calloc(1, sizeof(*e)))) {
        err_set(reterr, -ENOMEM, "out of memory");
        return NULL;
    } else if (!(e->client = http_client_new(&p->settings, reterr))) {
        free(e);
        return NULL;
    }
    e->next = p->busy;
    p->busy = e;
    p->nbusy++;
    return e;
}

/* Under the lock. Returns the client when it is not to be kept. */
static struct pooled *pooled_give(struct http_pool *p, struct pooled *e)
{
    struct pooled **at = &p->busy;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    p->nbusy--;
    pthread_cond_signal(&p->freed);
    if (p->interrupted || p->nidle >= p->max_idle)
        return e;
    e->next = p->idle;
    p->idle = e;
    p->nidle++;
    return NULL;
}

int http_pool_send(struct http_pool *p, const struct http_client_request *q,
                   struct http_client_response *ret, struct err *reterr)
{
    memset(ret, 0, sizeof(*ret));
    pthread_mutex_lock(&p->lock);
    int r = await_turn(p, q->deadline_ns, reterr);
    struct pooled *e = r == 0 ? pooled_take(p, reterr) : NULL;
    pthread_mutex_unlock(&p->lock);
    if (!e)
        return r < 0 ? r : -EIO;
    r = http_client_send(e->client, q, ret, reterr);
    pthread_mutex_lock(&p->lock);
    e = pooled_give(p, e);
    pthread_mutex_unlock(&p->lock);
    if (e)
        pooled_free(e);
    return r;
}
