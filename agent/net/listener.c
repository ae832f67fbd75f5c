/* Listeners: opening, accepting, taking over by a new service, stopping. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/clock.h"
#include "agent/net/conn.h"
#include "agent/net/endpoint.h"
#include "agent/net/tls_server.h"

#define ACCEPTS_PER_EVENT 16
#define PAUSE_NS (100 * NS_PER_MS)
#define PATIENCE_NS (3 * NS_PER_S) /* longer than a connection has to be idle before it may go */
#define REFUSALS_PER_PAUSE 64
#define WARN_NS (60 * NS_PER_S)
#define CUT_WAIT_NS (2 * NS_PER_S)

struct listener *listener_ref(struct listener *l)
{
    atomic_fetch_add(&l->refs, 1);
    return l;
}

void listener_unref(struct listener *l)
{
    if (atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    tls_server_unref(l->settings.tls);
    free(l->acceptors);
    free(l->endpoint);
    free(l->transport);
    free(l);
}

void listener_conn_left(struct listener *l)
{
    pthread_mutex_lock(&l->lock);
    if (--l->nconns == 0)
        pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    listener_unref(l);
}

void listener_inner(struct listener *l, int n)
{
    pthread_mutex_lock(&l->lock);
    l->ninner += (unsigned)n;
    l->nconns += n > 0;
    pthread_mutex_unlock(&l->lock);
}

void service_unref(struct service_ref *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    tls_server_unref(s->settings.tls);
    free(s);
}

/* Takes over settings and a reference to their certificates; gives back what is to be let go. */
static struct tls_server *take_settings(struct server_settings *to,
                                        const struct server_settings *from)
{
    struct tls_server *old = to->tls;
    *to = *from;
    tls_server_ref(to->tls);
    return old;
}

/* ---- accepting ---- */

static void acceptor_pause(struct acceptor *a)
{
    if (!a->watching)
        return;
    loop_unwatch(a->loop, a->listener->fd);
    a->watching = false;
    a->next_paused = a->loop->paused;
    a->loop->paused = a;
    a->loop->resume_at_ns = clock_now_ns() + PAUSE_NS;
}

void acceptors_resume(struct loop *l)
{
    struct acceptor *list = l->paused;
    l->paused = NULL;
    while (list) {
        struct acceptor *a = list;
        list = a->next_paused;
        a->watching = loop_watch(l, a->listener->fd, EPOLLIN | EPOLLEXCLUSIVE, &a->watch) == 0;
    }
}

static bool admit(struct acceptor *a)
{
    struct listener *l = a->listener;
    pthread_mutex_lock(&l->lock);
    const unsigned n = l->nconns - l->ninner;
    pthread_mutex_unlock(&l->lock);
    return engine_conn_admit(n) || (conn_evict(a->loop, l) && engine_conn_admit(n - 1));
}

/* Says no to one that waits; false when none does. The spare descriptor makes it possible where
 * there is no other. */
static bool refuse_one(struct acceptor *a, enum server_event why)
{
    static const char no[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                             "Retry-After: 1\r\nConnection: close\r\n\r\n";
    struct loop *l = a->loop;
    char request[4096];
    if (l->spare_fd >= 0)
        close(TAKE_FD(l->spare_fd));
    pthread_mutex_lock(&a->listener->lock);
    const bool plain = !a->listener->settings.tls;
    pthread_mutex_unlock(&a->listener->lock);
    int fd = accept4(a->listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        server_count(why); /* unread bytes would turn the close into a reset */
        if ((recv(fd, request, sizeof(request), 0) >= 0 || errno == EAGAIN) && plain)
            send(fd, no, sizeof(no) - 1, MSG_NOSIGNAL);
        close(fd);
    }
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

/* No room: waits a moment, in which idle ones grow old enough to go. When that has not helped for a
 * while, those that wait are told. */
static void wait_for_room(struct acceptor *a, enum server_event why)
{
    const uint64_t now = clock_now_ns();
    if (now - a->full_at_ns > 2 * PAUSE_NS + NS_PER_S) /* nobody has waited in between */
        a->full_since_ns = now;
    a->full_at_ns = now;
    if (now - a->full_since_ns >= PATIENCE_NS) {
        if (now - a->warned_ns >= WARN_NS || !a->warned_ns) {
            a->warned_ns = now;
            log_warn(NULL, "Too many connections; new ones are refused",
                     LOG_STR("endpoint", a->listener->address),
                     LOG_STR("reason", server_event_name(why)));
        }
        for (int i = 0; i < REFUSALS_PER_PAUSE && refuse_one(a, why); i++) {
        }
    }
    acceptor_pause(a);
}

/* One connection; false when there is no more for now. */
static bool accept_one(struct acceptor *a)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    struct listener *l = a->listener;
    if (!admit(a)) {
        wait_for_room(a, REFUSED_LIMIT);
        return false;
    }
    int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        a->full_at_ns = 0;
        pthread_mutex_lock(&l->lock);
        l->nconns++;
        pthread_mutex_unlock(&l->lock);
        conn_accept(listener_ref(l), fd, &peer, len, a->loop);
        return true;
    }
    const int r = errno;
    engine_conn_leave();
    if (r == EMFILE || r == ENFILE || r == ENOBUFS || r == ENOMEM)
        wait_for_room(a, REFUSED_DESCRIPTORS);
    return r == ECONNABORTED || r == EINTR;
}

static void on_accept(struct watch *w, _unused_ uint32_t events)
{
    struct acceptor *a = container_of(w, struct acceptor, watch);
    for (int i = 0; i < ACCEPTS_PER_EVENT && a->watching; i++) /* it may have ended in this batch */
        if (!accept_one(a))
            return;
}

static struct acceptor *acceptor_of(struct listener *l, struct loop *loop)
{
    for (unsigned i = 0; i < engine_loops(); i++)
        if (l->acceptors[i].loop == loop)
            return &l->acceptors[i];
    return NULL;
}

static void start_accepting(struct listener *l)
{
    for (unsigned i = 0; i < engine_loops(); i++) {
        struct acceptor *a = &l->acceptors[i];
        a->watching = true; /* before its thread may look */
        if (loop_watch(a->loop, l->fd, EPOLLIN | EPOLLEXCLUSIVE, &a->watch) < 0)
            log_error(NULL, "Cannot watch a listening socket", LOG_STR("endpoint", l->address));
    }
}

static void stop_accepting(struct loop *loop, struct listener *l)
{
    struct acceptor *a = acceptor_of(l, loop), **p = &loop->paused;
    if (!a)
        return;
    if (a->watching)
        loop_unwatch(loop, l->fd);
    a->watching = false;
    while (*p && *p != a)
        p = &(*p)->next_paused;
    if (*p)
        *p = a->next_paused;
}

/* ---- life ---- */

static void remember_address(struct listener *l)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    if (strcmp(l->transport, "unix") == 0)
        snprintf(l->address, sizeof(l->address), "%s", l->endpoint);
    else if (getsockname(l->fd, (struct sockaddr *)&a, &len) == 0)
        endpoint_format((struct sockaddr *)&a, len, l->address, sizeof(l->address));
}

static struct listener *listener_new(const struct server_settings *s)
{
    pthread_condattr_t attr;
    struct listener *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->fd = -1;
    atomic_init(&l->refs, 1);
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    l->endpoint = strdup(s->endpoint);
    l->transport = strdup(s->transport && s->transport[0] ? s->transport : "tcp");
    if (!l->endpoint || !l->transport) {
        listener_unref(l);
        return NULL;
    }
    listener_configure(l, s);
    return l;
}

int listener_open(const struct server_settings *s, struct listener **ret, struct err *reterr)
{
    struct listener *l = listener_new(s);
    if (!l)
        return err_set(reterr, -ENOMEM, "out of memory");
    l->fd = endpoint_listen(l->transport, l->endpoint, reterr);
    if (l->fd < 0) {
        int r = l->fd;
        listener_unref(l);
        return r;
    }
    remember_address(l);
    *ret = l;
    return 0;
}

const char *listener_address(const struct listener *l)
{
    return l->address;
}

void listener_configure(struct listener *l, const struct server_settings *s)
{
    pthread_mutex_lock(&l->lock);
    struct tls_server *old = take_settings(&l->settings, s);
    l->settings.endpoint = l->endpoint;
    l->settings.transport = l->transport;
    pthread_mutex_unlock(&l->lock);
    tls_server_unref(old);
}

static int acceptors_new(struct listener *l, struct err *reterr)
{
    int r = engine_acquire(reterr);
    if (r < 0)
        return r;
    l->acceptors = calloc(engine_loops(), sizeof(*l->acceptors));
    if (!l->acceptors) {
        engine_release();
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    for (unsigned i = 0; i < engine_loops(); i++)
        l->acceptors[i] =
            (struct acceptor){.watch = {on_accept}, .listener = l, .loop = engine_loop(i)};
    return 0;
}

int listener_serve(struct listener *l, const struct http_service *service, struct err *reterr)
{
    struct service_ref *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(reterr, -ENOMEM, "out of memory");
    s->svc = *service;
    atomic_init(&s->refs, 1);
    int r = l->acceptors ? 0 : acceptors_new(l, reterr);
    if (r < 0) {
        free(s);
        return r;
    }
    pthread_mutex_lock(&l->lock);
    if (l->stopping) {
        pthread_mutex_unlock(&l->lock);
        free(s);
        return err_set(reterr, -ESHUTDOWN, "%s is being closed", l->address);
    }
    bool start = !l->serving;
    take_settings(&s->settings, &l->settings);
    if (l->service) {
        l->service->next = l->retired;
        l->retired = l->service;
    }
    l->service = s;
    l->serving = true;
    pthread_mutex_unlock(&l->lock);
    if (start)
        start_accepting(l);
    return 0;
}

bool listener_serving(const struct listener *l, void **ret_ctx)
{
    struct listener *m = (struct listener *)l;
    pthread_mutex_lock(&m->lock);
    bool serving = l->service != NULL;
    *ret_ctx = serving ? l->service->svc.ctx : NULL;
    pthread_mutex_unlock(&m->lock);
    return serving;
}

/* ---- stopping ---- */

static void for_conns(struct loop *loop, const struct listener *l, bool cut)
{
    struct conn *next;
    for (struct conn *c = loop->conns; c; c = next) {
        next = c->next;
        if (c->listener != l)
            continue;
        c->draining = true;
        (cut ? c->ops->cut : c->ops->drain)(c);
    }
}

static void drain_on(struct loop *loop, void *arg)
{
    stop_accepting(loop, arg);
    for_conns(loop, arg, false);
}

static void cut_on(struct loop *loop, void *arg)
{
    for_conns(loop, arg, true);
}

static void nothing(_unused_ struct loop *loop, _unused_ void *arg) {}

/* Waits until *count is 0 or the deadline; under the lock. */
static bool wait_zero(struct listener *l, const unsigned *count, uint64_t deadline_ns)
{
    struct timespec ts = {(time_t)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};
    while (*count)
        if (pthread_cond_timedwait(&l->changed, &l->lock, &ts) == ETIMEDOUT)
            break;
    return *count == 0;
}

/* The one that was replaced last is in place again: a reload has failed. */
static void reinstate(struct listener *l)
{
    l->service = l->retired;
    l->retired = l->retired->next;
    tls_server_unref(take_settings(&l->settings, &l->service->settings));
}

/* Takes the service with this ctx out; *ret_last says that none is left. */
static struct service_ref *take_service(struct listener *l, const void *ctx, bool *ret_last)
{
    struct service_ref *s = l->service, **p = &l->retired;
    *ret_last = false;
    if (s && s->svc.ctx == ctx) {
        l->service = NULL;
        *ret_last = !l->retired;
        l->stopping = *ret_last;
        if (l->retired)
            reinstate(l);
        return s;
    }
    while (*p && (*p)->svc.ctx != ctx)
        p = &(*p)->next;
    s = *p;
    if (s)
        *p = s->next;
    return s;
}

static void stop_serving(struct listener *l, uint64_t deadline_ns)
{
    engine_barrier(drain_on, l);
    close(TAKE_FD(l->fd));
    if (strcmp(l->transport, "unix") == 0)
        unlink(l->endpoint);
    pthread_mutex_lock(&l->lock);
    bool done = wait_zero(l, &l->nconns, deadline_ns);
    pthread_mutex_unlock(&l->lock);
    if (done)
        return;
    engine_barrier(cut_on, l);
    pthread_mutex_lock(&l->lock);
    wait_zero(l, &l->nconns, clock_now_ns() + CUT_WAIT_NS);
    pthread_mutex_unlock(&l->lock);
}

void listener_leave(struct listener *l, const void *ctx, uint64_t deadline_ns)
{
    bool last;
    pthread_mutex_lock(&l->lock);
    struct service_ref *s = take_service(l, ctx, &last);
    pthread_mutex_unlock(&l->lock);
    if (!s)
        return;
    if (last) {
        stop_serving(l, deadline_ns);
    } else {
        pthread_mutex_lock(&l->lock);
        wait_zero(l, &s->inflight, deadline_ns);
        pthread_mutex_unlock(&l->lock);
    }
    atomic_store(&s->dead, true);
    engine_barrier(nothing, NULL); /* a callback that runs now ends before this returns */
    service_unref(s);
}

void listener_stop(struct listener *l, uint64_t deadline_ns)
{
    void *ctx;
    if (listener_serving(l, &ctx))
        listener_leave(l, ctx, deadline_ns);
}

struct listener *listener_free(struct listener *l)
{
    if (!l)
        return NULL;
    listener_stop(l, 0);
    if (l->fd >= 0) {
        close(TAKE_FD(l->fd));
        if (strcmp(l->transport, "unix") == 0)
            unlink(l->endpoint);
    }
    if (l->acceptors)
        engine_release();
    listener_unref(l);
    return NULL;
}
