/*
 * HTTP/1.1 over TLS: libmicrohttpd speaks to one end of a pair of sockets, and this moves bytes
 * between the other end and the TLS session, on the same thread. Each direction holds at most what
 * one read gave and reads no more before that is gone, so each side slows the other down. The inner
 * connection is an ordinary one and has the deadlines of HTTP; here is only that of the client that
 * does not take its answer.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/clock.h"
#include "agent/net/conn.h"
#include "agent/net/tls_session.h"

#define ANSWER_STEP_BYTES (64u << 10)
#define PAIR_FDS 2
#define UNKNOWN_EVENTS ((uint32_t)EPOLLPRI)

struct side { /* a socket and what it is watched for */
    struct watch *watch;
    int fd;
    uint32_t events; /* 0 = not watched, so that its end does not wake us again and again */
};
struct tunnel { /* freed with the connection, as an event for it may still be on its way */
    struct watch watch;
    struct conn *c; /* NULL once it has ended */
    struct side outer, inner;
    struct buf *in,
        *out; /* towards the inner connection, towards the client; NULL = nothing waits */
    size_t in_at, out_at;
    bool in_done, out_done; /* nothing more comes from there */
};

/* ---- watching ---- */

static int side_watch(struct loop *l, struct side *s, uint32_t events)
{
    int r = 0;
    if (events == s->events)
        return 0;
    if (!events)
        loop_unwatch(l, s->fd);
    else
        r = (s->events ? loop_rewatch : loop_watch)(l, s->fd, events, s->watch);
    s->events = events;
    return r;
}

static void drop_waiting(struct tunnel *t)
{
    t->in = buf_unref(t->in);
    t->out = buf_unref(t->out);
}

/* The pair and its place among the connections are given back. */
static void leave(struct tunnel *t)
{
    side_watch(t->c->loop, &t->inner, 0);
    close(t->inner.fd);
    engine_fds_admit(-PAIR_FDS);
    drop_waiting(t);
    t->c->proto = NULL;
    t->c = NULL;
}

static void tunnel_close(struct conn *c)
{
    leave(c->proto);
    conn_close(c);
}

/* The answers are out; the client hears that no more will come. */
static void finish(struct tunnel *t)
{
    struct conn *c = t->c;
    leave(t);
    if (c->draining) {
        conn_close(c);
        return;
    }
    conn_linger(c);
}

/* Watches for what there is room or data for; ends what has ended. */
static void settle(struct tunnel *t)
{
    struct conn *c = t->c;
    if (t->out_done && !t->out) {
        finish(t);
        return;
    }
    uint32_t outer = (!t->in && !t->in_done ? (uint32_t)EPOLLIN : 0) |
                     (t->out ? (uint32_t)EPOLLOUT : 0),
             inner = (!t->out && !t->out_done ? (uint32_t)EPOLLIN : 0) |
                     (t->in ? (uint32_t)EPOLLOUT : 0);
    if (side_watch(c->loop, &t->outer, outer) < 0 || side_watch(c->loop, &t->inner, inner) < 0)
        tunnel_close(c);
}

/* The rest of a read that was not taken. */
static struct buf *keep(const uint8_t *data, size_t len)
{
    struct buf *b = buf_new(0);
    return b && buf_append(b, data, len) == 0 ? b : buf_unref(b);
}

/* ---- from the client ---- */

static void in_ended(struct tunnel *t)
{
    t->in_done = true;
    shutdown(t->inner.fd, SHUT_WR);
}

/* Gives bytes to the inner connection; false when it takes none any more. */
static bool give_inner(struct tunnel *t, const uint8_t *data, size_t len, size_t *ret_taken)
{
    ssize_t n = send(t->inner.fd, data, len, MSG_NOSIGNAL);
    *ret_taken = n > 0 ? (size_t)n : 0;
    if (n > 0)
        t->c->loop->mhd_dirty = t->c->loop->mhd != NULL;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* The inner connection is gone; what it answered is still read. */
static void inner_gone(struct tunnel *t)
{
    t->in_done = true;
    t->in = buf_unref(t->in);
}

static bool read_client(struct tunnel *t)
{
    struct conn *c = t->c;
    uint8_t *data = loop_scratch(c->loop);
    size_t taken = 0;
    if (!data)
        return false;
    ssize_t n = conn_recv(c, data, SCRATCH_BYTES);
    if (n > 0 && !give_inner(t, data, (size_t)n, &taken)) {
        inner_gone(t);
        return true;
    }
    if (n > 0 && taken < (size_t)n) {
        t->in = keep(data + taken, (size_t)n - taken);
        t->in_at = 0;
        return t->in != NULL;
    }
    if (tls_session_ended(c->tls))
        in_ended(t);
    return true;
}

static void give_waiting(struct tunnel *t)
{
    size_t taken;
    if (!give_inner(t, t->in->data + t->in_at, t->in->len - t->in_at, &taken)) {
        inner_gone(t);
        return;
    }
    t->in_at += taken;
    if (t->in_at < t->in->len)
        return;
    t->in = buf_unref(t->in);
    if (tls_session_ended(t->c->tls))
        in_ended(t);
}

/* ---- to the client ---- */

static void out_waits(struct tunnel *t)
{
    conn_deadline(t->c, clock_now_ns() + timeout_ns(t->c->limits.write_timeout_ns));
}

static bool send_client(struct tunnel *t, const uint8_t *data, size_t len, size_t *ret_taken)
{
    ssize_t n = tls_session_send(t->c->tls, data, len);
    *ret_taken = n > 0 ? (size_t)n : 0;
    return n >= 0 || errno == EAGAIN;
}

static bool read_inner(struct tunnel *t)
{
    uint8_t *data = loop_scratch(t->c->loop);
    ssize_t n = data ? recv(t->inner.fd, data, ANSWER_STEP_BYTES, 0) : 0;
    size_t taken;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        t->out_done = true;
        return true;
    }
    if (!send_client(t, data, (size_t)n, &taken))
        return false;
    if (taken < (size_t)n) {
        t->out = keep(data + taken, (size_t)n - taken);
        t->out_at = 0;
        out_waits(t);
        return t->out != NULL;
    }
    return true;
}

static bool send_waiting(struct tunnel *t)
{
    size_t taken;
    if (!send_client(t, t->out->data + t->out_at, t->out->len - t->out_at, &taken))
        return false;
    t->out_at += taken;
    if (taken)
        out_waits(t);
    if (t->out_at == t->out->len) {
        t->out = buf_unref(t->out);
        t->c->deadline_ns = UINT64_MAX;
    }
    return true;
}

/* ---- events ---- */

static void on_outer(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    struct tunnel *t = c->proto;
    bool ok = true;
    if (t->out && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        ok = send_waiting(t);
    if (ok && !t->in && !t->in_done && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        ok = read_client(t);
    if (ok)
        settle(t);
    else
        tunnel_close(c);
}

static void on_inner(struct watch *w, uint32_t events)
{
    struct tunnel *t = container_of(w, struct tunnel, watch);
    struct conn *c = t->c;
    bool ok = true;
    if (!c) /* ended by an event of the same moment */
        return;
    if (t->in && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        give_waiting(t);
    if (!t->out && !t->out_done && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        ok = read_inner(t);
    if (ok)
        settle(t);
    else
        tunnel_close(c);
}

static void tunnel_expired(struct conn *c, _unused_ uint64_t now_ns)
{
    server_count(CLOSED_WRITE_TIMEOUT);
    conn_abortive(c);
    tunnel_close(c);
}

/* The inner connection ends when it has answered, and this one after it. */
static void tunnel_drain(_unused_ struct conn *c) {}

static const struct conn_ops tunnel_ops = {
    .expired = tunnel_expired, .drain = tunnel_drain, .cut = tunnel_close};

/* ---- start ---- */

/* The pair; the inner connection begins on its other end. */
static int open_pair(struct conn *c, struct tunnel *t)
{
    int pair[2];
    if (!engine_fds_admit(PAIR_FDS))
        return -EMFILE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        engine_fds_admit(-PAIR_FDS);
        return -errno;
    }
    t->inner.fd = pair[0];
    int r = conn_inner(c, pair[1]);
    if (r < 0) {
        close(pair[0]);
        engine_fds_admit(-PAIR_FDS);
    }
    return r;
}

void tls_tunnel_start(struct conn *c)
{
    struct tunnel *t = calloc(1, sizeof(*t));
    if (!t || open_pair(c, t) < 0) {
        free(t);
        conn_close(c);
        return;
    }
    t->c = c;
    t->watch.event = on_inner;
    t->outer = (struct side){&c->watch, c->fd, UNKNOWN_EVENTS};
    t->inner = (struct side){&t->watch, t->inner.fd, 0};
    c->watch.event = on_outer;
    c->proto = c->attached = t;
    c->ops = &tunnel_ops;
    c->deadline_ns = UINT64_MAX;
    c->idle_ns = 0;               /* whether it is idle is known inside */
    on_outer(&c->watch, EPOLLIN); /* the request may have come with the end of the handshake */
}
