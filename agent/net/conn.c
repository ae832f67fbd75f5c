/* Connections before and after HTTP: the peek phase, canned answers, the lingering close. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/clock.h"
#include "agent/net/conn.h"
#include "agent/net/head.h"
#include "agent/net/tls_session.h"

#define EVICTIONS 16
#define EVICT_AGE_NS (2 * NS_PER_S)
#define EVICT_USED_NS (2 * NS_PER_S) /* of those that sent a request before */
#define LINGER_IDLE_NS (2 * NS_PER_S)
#define LINGER_TOTAL_NS (10 * NS_PER_S)

uint64_t timeout_ns(int64_t configured)
{
    return (uint64_t)(configured > 0 ? configured : server_limits_get().client_timeout_ns);
}

void conn_charge(struct conn *c, size_t bytes)
{
    if (c->tls)
        bytes += TLS_SESSION_BYTES;
    mem_charge(bytes);
    mem_release(c->charged);
    c->charged = bytes;
}

static void no_event(_unused_ struct watch *w, _unused_ uint32_t events) {}

void conn_forget(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->oldest = c->prev;
    c->watch.event = no_event;
    c->tls = tls_session_free(c->tls);
    c->limits.tls = tls_server_unref(c->limits.tls);
    conn_charge(c, 0);
    atomic_fetch_sub(&l->nconns, 1);
    if (c->secure)
        listener_inner(c->listener, -1);
    else
        engine_conn_leave();
    listener_conn_left(c->listener);
    c->listener = NULL;
    c->next = l->dead;
    l->dead = c;
}

void conn_close(struct conn *c)
{
    loop_unwatch(c->loop, c->fd);
    if (c->tls)
        tls_session_bye(c->tls);
    close(c->fd);
    conn_forget(c);
}

void conn_abortive(const struct conn *c)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void set_socket_options(const struct conn *c)
{
    int one = 1, idle = 60, interval = 15;
    if (c->secure || (c->peer.any.sa_family != AF_INET && c->peer.any.sa_family != AF_INET6))
        return;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &one,
               sizeof(one)); /* notices a peer that vanished */
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
}

static void conn_begin(struct conn *c)
{
    struct loop *l = c->loop;
    c->next = l->conns;
    if (c->next)
        c->next->prev = c;
    else
        l->oldest = c;
    l->conns = c;
    conn_charge(c, sizeof(*c));
    set_socket_options(c);
    if (c->limits.tls)
        tls_accept_start(c);
    else
        sniff_start(c);
}

static void conn_arrive(struct task *t)
{
    conn_begin(container_of(t, struct conn, task));
}

void conn_accept(struct listener *l, int fd, const struct sockaddr_storage *peer, socklen_t len,
                 struct loop *here)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        engine_conn_leave();
        listener_conn_left(l);
        return;
    }
    c->listener = l;
    c->fd = fd;
    c->accepted_ns = c->idle_ns = clock_now_ns();
    c->deadline_ns = UINT64_MAX;
    c->peer_len = len < sizeof(c->peer) ? len : (socklen_t)sizeof(c->peer);
    memcpy(&c->peer, peer, c->peer_len);
    pthread_mutex_lock(&l->lock);
    c->limits = l->settings;
    tls_server_ref(c->limits.tls);
    pthread_mutex_unlock(&l->lock);
    c->loop = engine_least_loaded();
    atomic_fetch_add(&c->loop->nconns, 1);
    c->task.run = conn_arrive;
    if (c->loop == here)
        conn_begin(c);
    else
        loop_post(c->loop, &c->task);
}

int conn_inner(const struct conn *outer, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        return -ENOMEM;
    }
    c->listener = listener_ref(outer->listener);
    listener_inner(c->listener, 1);
    c->fd = fd;
    c->secure = true;
    c->accepted_ns = c->idle_ns = outer->accepted_ns;
    c->deadline_ns = UINT64_MAX;
    c->peer = outer->peer;
    c->peer_len = outer->peer_len;
    c->limits = outer->limits;
    c->limits.tls = NULL;
    c->draining = outer->draining;
    c->loop = outer->loop;
    atomic_fetch_add(&c->loop->nconns, 1);
    conn_begin(c);
    return 0;
}

/* ---- reading and writing ---- */

ssize_t conn_recv(struct conn *c, uint8_t *data, size_t size)
{
    if (!c->tls)
        return recv(c->fd, data, size, 0);
    uint8_t *cipher = loop_cipher(c->loop);
    if (cipher)
        return tls_session_recv(c->tls, data, size, cipher);
    errno = ENOMEM;
    return -1;
}

ssize_t conn_send(struct conn *c, const uint8_t *data, size_t len)
{
    return c->tls ? tls_session_send(c->tls, data, len) : send(c->fd, data, len, MSG_NOSIGNAL);
}

bool conn_ended(const struct conn *c)
{
    return c->tls && tls_session_ended(c->tls);
}

/* ---- lingering close ---- */

static void linger_event(struct watch *w, _unused_ uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    uint8_t *scratch = loop_scratch(c->loop);
    ssize_t n = scratch ? recv(c->fd, scratch, SCRATCH_BYTES, 0) : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        conn_close(c);
        return;
    }
    uint64_t at = clock_now_ns() + LINGER_IDLE_NS, last = c->accepted_ns + LINGER_TOTAL_NS;
    conn_deadline(c, at < last ? at : last);
}

static void close_expired(struct conn *c, _unused_ uint64_t now_ns)
{
    conn_close(c);
}

static const struct conn_ops linger_ops = {
    .expired = close_expired, .drain = conn_close, .cut = conn_close};

void conn_linger(struct conn *c)
{
    if (c->tls) {
        tls_session_bye(c->tls);
        c->tls = tls_session_free(c->tls);
        conn_charge(c, sizeof(*c));
    }
    shutdown(c->fd, SHUT_WR);
    c->ops = &linger_ops;
    c->watch.event = linger_event;
    c->accepted_ns = c->idle_ns = clock_now_ns();
    conn_deadline(c, c->accepted_ns + LINGER_IDLE_NS);
    if (loop_rewatch(c->loop, c->fd, EPOLLIN | EPOLLRDHUP, &c->watch) < 0 &&
        loop_watch(c->loop, c->fd, EPOLLIN | EPOLLRDHUP, &c->watch) < 0)
        conn_close(c);
}

/* ---- the peek phase ---- */

/* What was only peeked at is read first: unread bytes would turn the close into a reset. */
static void sniff_close(struct conn *c)
{
    uint8_t *scratch = loop_scratch(c->loop);
    if (scratch && recv(c->fd, scratch, SCRATCH_BYTES, 0) < 0 && errno != EAGAIN)
        conn_abortive(c);
    conn_close(c);
}

static void sniff_expired(struct conn *c, _unused_ uint64_t now_ns)
{
    server_count(CLOSED_HEADER_TIMEOUT);
    sniff_close(c);
}

/* As the reference answers what it cannot read. */
static void refuse(struct conn *c, const char *status, enum server_event why)
{
    char text[256];
    server_count(why);
    int n = snprintf(
        text, sizeof(text),
        "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s",
        status, status);
    if (send(c->fd, text, (size_t)n, MSG_NOSIGNAL) == n)
        conn_linger(c);
    else
        conn_close(c);
}

/* What this port does not speak; said once. */
static void refuse_protocol(struct conn *c, const char *text)
{
    struct listener *l = c->listener;
    pthread_mutex_lock(&l->lock);
    bool first = !l->tls_warned;
    l->tls_warned = true;
    pthread_mutex_unlock(&l->lock);
    if (first)
        log_warn(NULL, text, LOG_STR("endpoint", l->address));
    sniff_close(c);
}

static void sniff_event(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    uint8_t *scratch = loop_scratch(c->loop);
    const size_t max = (size_t)server_limits_get().max_header_bytes;
    ssize_t n = scratch ? recv(c->fd, scratch, max, MSG_PEEK) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(c);
        return;
    }
    switch (http_head_sniff(bytes_of(scratch, (size_t)n), max)) {
    case HEAD_MORE:
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) /* nothing more will come */
            conn_close(c);
        break;
    case HEAD_HTTP1: h1_start(c, scratch[0]); break;
    case HEAD_HTTP2:
        if (c->secure) /* RFC 9113 3.3 */
            refuse_protocol(c, "A client speaks HTTP/2 over TLS without ALPN; its connections are "
                               "closed");
        else
            h2_start(c);
        break;
    case HEAD_TLS:
        refuse_protocol(c, c->secure
                               ? "A client speaks TLS within TLS; its connections are closed"
                               : "A client speaks TLS to a port without TLS; its connections are "
                                 "closed");
        break;
    case HEAD_BAD: refuse(c, "400 Bad Request", CLOSED_MALFORMED); break;
    case HEAD_TOO_LARGE:
        refuse(c, "431 Request Header Fields Too Large", CLOSED_HEADER_SIZE);
        break;
    }
}

static const struct conn_ops sniff_ops = {
    .expired = sniff_expired, .drain = sniff_close, .cut = sniff_close};

void sniff_start(struct conn *c)
{
    c->ops = &sniff_ops;
    c->watch.event = sniff_event;
    conn_deadline(c, c->accepted_ns + timeout_ns(c->limits.read_header_timeout_ns));
    /* Edge-triggered: bytes that were only peeked at would wake a level-triggered wait for ever. */
    if (c->listener->stopping ||
        loop_watch(c->loop, c->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, &c->watch) < 0)
        conn_close(c);
}

/* Ends up to EVICTIONS of those that have been idle for `age_ns`, from the oldest on. */
static unsigned evict(struct loop *loop, const struct listener *l, bool had_request,
                      uint64_t age_ns)
{
    const uint64_t now = clock_now_ns();
    unsigned n = 0;
    struct conn *prev;
    for (struct conn *c = loop->oldest; c && n < EVICTIONS; c = prev) {
        prev = c->prev;
        if (c->listener != l || c->had_request != had_request || !c->idle_ns || c->draining ||
            now - c->idle_ns < age_ns)
            continue;
        c->draining = true;
        server_count(CLOSED_EVICTED);
        c->ops->cut(c);
        n++;
    }
    return n;
}

bool conn_evict(struct loop *loop, const struct listener *l)
{
    return evict(loop, l, false, EVICT_AGE_NS) || evict(loop, l, true, EVICT_USED_NS);
}
