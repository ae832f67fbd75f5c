/*
 * At a reload two instances of the receiver live side by side for a while, the new one and the old
 * one. Only one reads: the new one waits until the old one has stopped, and goes on with its
 * sources as they are, half lines and all.
 */
#include <errno.h>

#include "agent/base/cond.h"
#include "receivers/console/console.h"

struct handover {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy;
    struct source *sources;
};

static void close_handover(void *thing)
{
    struct handover *h = thing;
    while (h->sources) {
        struct source *s = h->sources;
        h->sources = s->next;
        source_close(s, 0);
        source_free(s);
    }
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static int make_handover(void *ctx, void **ret_thing, struct err *reterr)
{
    (void)ctx;
    struct handover *h = calloc(1, sizeof(*h));
    if (!h || cond_init_monotonic(&h->changed) < 0) {
        free(h);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    pthread_mutex_init(&h->lock, NULL);
    *ret_thing = h;
    return 0;
}

int handover_open(struct console *c, struct err *reterr)
{
    _cleanup_free_ char *key = NULL;
    if (asprintf(&key, "console:%s", c->c.id) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    c->handover = host_share(c->c.host, key, make_handover, NULL, close_handover, reterr);
    return c->handover ? 0 : -ENOMEM;
}

bool handover_enter(struct console *c, bool wait, struct source **ret)
{
    struct handover *h = c->handover->thing;
    pthread_mutex_lock(&h->lock);
    while (h->busy && wait && !atomic_load(&c->stopping))
        cond_wait_until(&h->changed, &h->lock, UINT64_MAX);
    bool ours = !h->busy;
    if (ours) {
        h->busy = true;
        *ret = h->sources;
        h->sources = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    return ours;
}

void handover_leave(struct console *c, struct source *sources)
{
    struct handover *h = c->handover->thing;
    pthread_mutex_lock(&h->lock);
    h->sources = sources;
    h->busy = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

void handover_wake(struct console *c)
{
    struct handover *h = c->handover->thing;
    pthread_mutex_lock(&h->lock);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}
