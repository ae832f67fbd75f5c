/* The host: timers, metrics, the current graph, settings, and the registry of shared things. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/pipeline/graph.h"
#include "agent/pipeline/host_parts.h"

/* Settings are replaced at a reload while components read them: old ones live as long as the host.
 */
struct settings_version {
    struct motel_settings settings;
    struct settings_version *older;
};

struct host {
    struct timers *timers;
    struct metrics *metrics;
    _Atomic(struct graph *) graph;
    _Atomic(struct settings_version *) settings;
    atomic_bool stopping;
    pthread_mutex_t shared_lock;
    struct shared *shared;
    uint8_t apart[64]; /* what follows is written by all I/O threads */
    struct seen {
        _Atomic uint64_t first_ns, last_ns;
    } seen[SIGNAL_COUNT];
};

struct host *host_new(const struct motel_settings *s)
{
    struct host *h = calloc(1, sizeof(*h));
    struct settings_version *v = calloc(1, sizeof(*v));
    if (!h || !v) {
        free(h);
        free(v);
        return NULL;
    }
    if (s)
        v->settings = *s;
    atomic_init(&h->settings, v);
    pthread_mutex_init(&h->shared_lock, NULL);
    h->timers = timers_new();
    h->metrics = metrics_new();
    return h->timers && h->metrics ? h : host_free(h);
}

struct host *host_free(struct host *h)
{
    if (!h)
        return NULL;
    timers_free(h->timers);
    metrics_free(h->metrics);
    for (struct settings_version *v = h->settings, *older; v; v = older) {
        older = v->older;
        free(v);
    }
    pthread_mutex_destroy(&h->shared_lock);
    free(h);
    return NULL;
}

struct timers *host_timers(struct host *h)
{
    return h->timers;
}

struct metrics *host_metrics(struct host *h)
{
    return h->metrics;
}

struct graph *host_graph(const struct host *h)
{
    return atomic_load(&h->graph);
}

void host_set_graph(struct host *h, struct graph *g)
{
    atomic_store(&h->graph, g);
}

const void *host_extension(struct host *h, const char *id, enum capability kind)
{
    struct graph *g = host_graph(h);
    return g ? graph_extension(g, id, kind) : NULL;
}

void host_set_stopping(struct host *h, bool stopping)
{
    atomic_store(&h->stopping, stopping);
}

bool host_stopping(const struct host *h)
{
    return atomic_load_explicit(&h->stopping, memory_order_relaxed);
}

const struct motel_settings *host_settings(const struct host *h)
{
    return &atomic_load(&h->settings)->settings;
}

void host_set_settings(struct host *h, const struct motel_settings *s)
{
    struct settings_version *v = calloc(1, sizeof(*v));
    if (!v)
        return;
    *v = (struct settings_version){.settings = *s, .older = atomic_load(&h->settings)};
    atomic_store(&h->settings, v);
}

void host_note_times(struct host *h, enum signal s, const struct time_range *times)
{
    if (!h || !times->last_ns)
        return;
    struct seen *seen = &h->seen[s];
    uint64_t first = atomic_load_explicit(&seen->first_ns, memory_order_relaxed);
    while ((!first || times->first_ns < first) &&
           !atomic_compare_exchange_weak(&seen->first_ns, &first, times->first_ns))
        ;
    uint64_t last = atomic_load_explicit(&seen->last_ns, memory_order_relaxed);
    while (times->last_ns > last &&
           !atomic_compare_exchange_weak(&seen->last_ns, &last, times->last_ns))
        ;
}

struct time_range host_times(const struct host *h, enum signal s)
{
    return (struct time_range){.first_ns = atomic_load(&h->seen[s].first_ns),
                               .last_ns = atomic_load(&h->seen[s].last_ns)};
}

/* "service.name" → service_name. */
static int put_label_name(struct buf *b, const char *name)
{
    int r = 0;
    for (const char *s = name; *s && r == 0; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
        bool digit = *s >= '0' && *s <= '9';
        r = buf_putc(b, letter || (digit && s > name) ? *s : '_');
    }
    return r;
}

static int put_label_value(struct buf *b, const char *value)
{
    int r = 0;
    for (const char *s = value; *s && r == 0; s++) {
        if (*s == '\n')
            r = buf_append_str(b, "\\n");
        else if (*s == '"' || *s == '\\')
            r = buf_printf(b, "\\%c", *s);
        else
            r = buf_putc(b, *s);
    }
    return r;
}

int host_set_resource(struct host *h, const char *const *pairs)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b)
        return -ENOMEM;
    int r = 0;
    for (; *pairs && r == 0; pairs += 2) {
        r = b->len ? buf_putc(b, ',') : 0;
        if (r == 0)
            r = put_label_name(b, pairs[0]);
        if (r == 0)
            r = buf_append_str(b, "=\"");
        if (r == 0)
            r = put_label_value(b, pairs[1]);
        if (r == 0)
            r = buf_putc(b, '"');
    }
    const char *text = r == 0 ? buf_str(b) : NULL;
    return text ? metrics_set_target(h->metrics, text) : -ENOMEM;
}

static struct shared *shared_new(const char *key, int (*open)(void *, void **, struct err *),
                                 void *ctx, void (*close)(void *), struct err *reterr)
{
    struct shared *s = calloc(1, sizeof(*s));
    char *copy = strdup(key);
    int r = s && copy ? open(ctx, &s->thing, reterr) : err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        free(s);
        free(copy);
        return NULL;
    }
    s->key = copy;
    s->close = close;
    return s;
}

/* The lock is held while a thing is opened or closed: who comes for the same key waits for the
 * outcome. */
struct shared *host_share(struct host *h, const char *key,
                          int (*open)(void *ctx, void **ret_thing, struct err *reterr), void *ctx,
                          void (*close)(void *thing), struct err *reterr)
{
    pthread_mutex_lock(&h->shared_lock);
    struct shared *s = h->shared;
    while (s && strcmp(s->key, key) != 0)
        s = s->next;
    if (!s && (s = shared_new(key, open, ctx, close, reterr))) {
        s->next = h->shared;
        h->shared = s;
    }
    if (s)
        s->refs++;
    pthread_mutex_unlock(&h->shared_lock);
    return s;
}

struct shared *host_unshare(struct host *h, struct shared *s)
{
    if (!s)
        return NULL;
    pthread_mutex_lock(&h->shared_lock);
    if (--s->refs == 0) {
        struct shared **at = &h->shared;
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        s->close(s->thing);
        free(s->key);
        free(s);
    }
    pthread_mutex_unlock(&h->shared_lock);
    return NULL;
}
