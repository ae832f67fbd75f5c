#include "agent/net/grpc_client_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

#define STACK_BYTES (512u * 1024)
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS (3 * NS_PER_S)

void calls_push(struct call_list *l, struct grpc_call *k)
{
    k->prev = l->tail;
    k->next = NULL;
    if (l->tail)
        l->tail->next = k;
    else
        l->head = k;
    l->tail = k;
}

void calls_remove(struct call_list *l, struct grpc_call *k)
{
    if (k->prev)
        k->prev->next = k->next;
    else
        l->head = k->next;
    if (k->next)
        k->next->prev = k->prev;
    else
        l->tail = k->prev;
    k->prev = k->next = NULL;
}

/* ---- life cycle */

static void set_authority(struct grpc_client *c)
{
    const struct grpc_client_settings *s = &c->settings;
    const struct grpc_endpoint *e = &c->endpoint;
    const char *override = c->secure && s->tls ? s->tls->server_name_override : NULL;
    if (s->authority && *s->authority)
        snprintf(c->authority, sizeof(c->authority), "%s", s->authority);
    else if (override && *override)
        snprintf(c->authority, sizeof(c->authority), "%s", override);
    else if (e->path[0])
        snprintf(c->authority, sizeof(c->authority), "localhost");
    else
        snprintf(c->authority, sizeof(c->authority), strchr(e->host, ':') ? "[%s]:%s" : "%s:%s",
                 e->host, e->port);
}

int grpc_client_new(const struct grpc_client_settings *s, struct grpc_client **ret,
                    struct err *reterr)
{
    static const struct tls_client_settings no_tls;
    _cleanup_(grpc_client_freep) struct grpc_client *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    c->settings = *s;
    if (!c->settings.tls)
        c->settings.tls = &no_tls;
    c->wake_fd = c->conn.fd = -1;
    pthread_mutex_init(&c->lock, NULL);
    int r = grpc_endpoint_parse(s->endpoint, &c->endpoint, reterr);
    if (r < 0)
        return r;
    c->secure = !c->endpoint.plain && (c->endpoint.secure || !c->settings.tls->insecure ||
                                       tls_client_has_ca(c->settings.tls));
    set_authority(c);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake_fd < 0)
        return err_set(reterr, -errno, "eventfd: %s", strerror(errno));
    *ret = TAKE_PTR(c);
    return 0;
}

static void release(struct grpc_client *c)
{
    grpc_conn_close(c);
    cleanup_close(&c->wake_fd);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void wake(struct grpc_client *c)
{
    uint64_t one = 1;
    ssize_t n _unused_ =
        write(c->wake_fd, &one, sizeof(one)); /* full means that a wake-up is due already */
}

void grpc_client_woken(struct grpc_client *c)
{
    uint64_t n;
    ssize_t r _unused_ = read(c->wake_fd, &n, sizeof(n));
}

bool grpc_client_stopping(struct grpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool stopping = c->stopping;
    pthread_mutex_unlock(&c->lock);
    return stopping;
}

void grpc_client_stop(struct grpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    for (struct grpc_call *k = c->pending.head; k;
         k = c->pending.head) { /* the thread may be busy resolving a name */
        calls_remove(&c->pending, k);
        k->cancel = CALL_STOPPED;
        k->state = CALL_DONE;
        pthread_cond_signal(&k->done);
    }
    pthread_mutex_unlock(&c->lock);
    wake(c);
}

struct grpc_client *grpc_client_free(struct grpc_client *c)
{
    if (!c)
        return NULL;
    grpc_client_stop(c);
    pthread_mutex_lock(&c->lock);
    bool join = c->started && !c->resolving;
    c->orphaned =
        c->started &&
        c->resolving; /* getaddrinfo cannot be interrupted: the thread cleans up by itself */
    bool orphaned = c->orphaned;
    pthread_t thread = c->thread;
    pthread_mutex_unlock(&c->lock);
    if (orphaned) {
        pthread_detach(thread);
        return NULL;
    }
    if (join)
        pthread_join(thread, NULL);
    release(c);
    return NULL;
}

/* ---- the thread */

void grpc_call_finish(struct grpc_client *c, struct grpc_call *k, int code, const char *fmt, ...)
{
    char why[sizeof(k->ret->message)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    k->ret->code = code;
    if (why[0])
        memcpy(k->ret->message, why, sizeof(why));
    pthread_mutex_lock(&c->lock);
    k->state = CALL_DONE;
    pthread_cond_signal(&k->done);
    pthread_mutex_unlock(&c->lock);
}

void grpc_call_give_back(struct grpc_client *c, struct grpc_call *k, const char *why)
{
    pthread_mutex_lock(&c->lock);
    bool ends = k->again || k->cancel || c->stopping, late = k->cancel == CALL_DEADLINE;
    if (!ends) {
        k->again = true;
        k->state = CALL_PENDING;
        calls_push(&c->pending, k);
    }
    pthread_mutex_unlock(&c->lock);
    if (ends)
        grpc_call_finish(c, k, late ? GRPC_DEADLINE_EXCEEDED : GRPC_UNAVAILABLE, "%s", why);
}

static struct grpc_call *take_pending(struct grpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct grpc_call *k = c->pending.head;
    if (k) {
        calls_remove(&c->pending, k);
        k->state = CALL_ACTIVE;
    }
    pthread_mutex_unlock(&c->lock);
    return k;
}

static void fail_pending(struct grpc_client *c)
{
    for (struct grpc_call *k; (k = take_pending(c));)
        grpc_call_finish(c, k, GRPC_UNAVAILABLE, "%s", c->last_error);
}

/* Sleeps until there is a call and a connection may be tried; false = stop. */
static bool wait_for_work(struct grpc_client *c)
{
    for (;;) {
        pthread_mutex_lock(&c->lock);
        bool stopping = c->stopping, work = c->pending.head != NULL;
        pthread_mutex_unlock(&c->lock);
        uint64_t now = clock_now_ns();
        if (stopping)
            return false;
        if (work && now >= c->retry_at_ns)
            return true;
        if (work && !c->settings.wait_for_ready) {
            fail_pending(c);
            continue;
        }
        struct pollfd p = {c->wake_fd, POLLIN, 0};
        poll(&p, 1, work ? (int)((c->retry_at_ns - now) / NS_PER_MS) + 1 : -1);
        grpc_client_woken(c);
    }
}

static void back_off(struct grpc_client *c)
{
    c->backoff_ns = c->backoff_ns ? c->backoff_ns + c->backoff_ns / 2 : BACKOFF_FIRST_NS;
    if (c->backoff_ns > BACKOFF_MAX_NS)
        c->backoff_ns = BACKOFF_MAX_NS;
    c->retry_at_ns = clock_now_ns() + c->backoff_ns;
    if (!c->settings.wait_for_ready)
        fail_pending(c);
}

static void *run(void *arg)
{
    struct grpc_client *c = arg;
    while (wait_for_work(c)) {
        bool good = grpc_conn_open(c) == 0;
        if (good) {
            grpc_conn_serve(c);
            good = c->conn.ready;
        }
        grpc_conn_close(c);
        if (good)
            c->backoff_ns = c->retry_at_ns = 0;
        else
            back_off(c);
    }
    grpc_conn_close(c);
    pthread_mutex_lock(&c->lock);
    bool orphaned = c->orphaned;
    pthread_mutex_unlock(&c->lock);
    if (orphaned)
        release(c);
    return NULL;
}

/* ---- calls */

/* Under the lock. */
static int start_thread(struct grpc_client *c)
{
    if (c->started)
        return 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int r = pthread_create(&c->thread, &attr, run, c);
    pthread_attr_destroy(&attr);
    c->started = r == 0;
    return -r;
}

static int set_body(struct grpc_call *k, bool compressed, const struct bytes *parts, unsigned n)
{
    if (!(k->body = calloc(n + 1, sizeof(*k->body))))
        return -ENOMEM;
    size_t total = 0;
    k->compressed = compressed;
    k->body[k->nbody++] = (struct iovec){k->prefix, GRPC_PREFIX_BYTES};
    for (unsigned i = 0; i < n; i++) {
        if (parts[i].len)
            k->body[k->nbody++] = (struct iovec){(void *)parts[i].data, parts[i].len};
        total += parts[i].len;
    }
    if (total > UINT32_MAX)
        return -EMSGSIZE;
    grpc_frame_prefix(compressed, (uint32_t)total, k->prefix);
    return 0;
}

/* Under the lock: until the call is done. A pending call is taken back at once, an active one by
 * the thread. */
static void await(struct grpc_client *c, struct grpc_call *k)
{
    while (k->state != CALL_DONE) {
        int r = cond_wait_until(&k->done, &c->lock, k->cancel ? UINT64_MAX : k->deadline_ns);
        if (r != ETIMEDOUT || k->state == CALL_DONE)
            continue;
        k->cancel = CALL_DEADLINE;
        if (k->state == CALL_PENDING) {
            calls_remove(&c->pending, k);
            k->state = CALL_DONE;
            k->ret->code = GRPC_DEADLINE_EXCEEDED;
            snprintf(k->ret->message, sizeof(k->ret->message),
                     "context deadline exceeded while waiting for connections to become ready");
        } else {
            wake(c);
        }
    }
    if (k->cancel == CALL_STOPPED) {
        k->ret->code = GRPC_CANCELLED;
        snprintf(k->ret->message, sizeof(k->ret->message),
                 "grpc: the client connection is closing");
    }
}

static void call(struct grpc_client *c, struct grpc_call *k)
{
    pthread_mutex_lock(&c->lock);
    if (c->stopping) {
        k->cancel = CALL_STOPPED;
        k->state = CALL_DONE;
    } else if (start_thread(c) < 0) {
        k->state = CALL_DONE;
        k->ret->code = GRPC_UNAVAILABLE;
        snprintf(k->ret->message, sizeof(k->ret->message), "cannot start the connection thread");
    } else {
        calls_push(&c->pending, k);
        wake(c);
    }
    await(c, k);
    pthread_mutex_unlock(&c->lock);
}

static void call_ready(struct grpc_client *c, const char *path, const struct bytes *parts,
                       unsigned nparts, const struct grpc_call_options *o,
                       struct grpc_response *ret)
{
    struct grpc_call k = {.path = path, .options = o, .ret = ret, .code = -1};
    k.deadline_ns = o->deadline_ns ? o->deadline_ns : UINT64_MAX;
    memset(ret, 0, sizeof(*ret));
    int r = set_body(&k, o->compressed, parts, nparts);
    if (r == 0)
        r = cond_init_monotonic(&k.done);
    if (r < 0) {
        ret->code = r == -EMSGSIZE ? GRPC_RESOURCE_EXHAUSTED : GRPC_UNAVAILABLE;
        snprintf(ret->message, sizeof(ret->message), "grpc: %s",
                 r == -EMSGSIZE ? "the message is larger than 4 GiB" : "out of memory");
    } else {
        call(c, &k);
        pthread_cond_destroy(&k.done);
    }
    free(k.body);
    buf_unref(k.data);
}

void grpc_client_call_with(struct grpc_client *c, const char *path, const struct bytes *parts,
                           unsigned nparts, const struct grpc_call_options *o,
                           struct grpc_response *ret)
{
    const struct grpc_client_settings *s = &c->settings;
    if (o->compressed || s->compression == CODEC_IDENTITY) {
        call_ready(c, path, parts, nparts, o, ret);
        return;
    }
    _cleanup_buf_ struct buf *packed = buf_new(0);
    if (packed &&
        codec_compress(s->compression, s->compression_level, parts, nparts, packed) == 0) {
        const struct bytes whole = buf_bytes(packed);
        struct grpc_call_options as = *o;
        as.compressed = true;
        call_ready(c, path, &whole, 1, &as, ret);
        return;
    }
    memset(ret, 0, sizeof(*ret));
    ret->code = GRPC_UNAVAILABLE;
    snprintf(ret->message, sizeof(ret->message), "grpc: out of memory while compressing");
}

void grpc_client_call_compressed(struct grpc_client *c, const char *path, struct bytes message,
                                 uint64_t deadline_ns, struct grpc_response *ret)
{
    grpc_client_call_with(
        c, path, &message, 1,
        &(struct grpc_call_options){.compressed = true, .deadline_ns = deadline_ns}, ret);
}

void grpc_client_call(struct grpc_client *c, const char *path, const struct bytes *parts,
                      unsigned nparts, uint64_t deadline_ns, struct grpc_response *ret)
{
    grpc_client_call_with(c, path, parts, nparts,
                          &(struct grpc_call_options){.deadline_ns = deadline_ns}, ret);
}

bool grpc_client_is_secure(const struct grpc_client *c)
{
    return c->secure;
}

void grpc_client_target(const struct grpc_client *c, const char **ret_host, const char **ret_port,
                        const char **ret_unix_path)
{
    *ret_host = c->endpoint.host;
    *ret_port = c->endpoint.port;
    *ret_unix_path = c->endpoint.path;
}
