/* One connection of a gRPC client: name, socket, TLS, bytes in and out, and the loop that carries
 * calls. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/un.h>

#include "agent/base/clock.h"
#include "agent/net/grpc_client_impl.h"

#define CONNECT_NS (20 * NS_PER_S)
#define NEXT_ADDRESS_NS (2 * NS_PER_S) /* for one address while others are left */
#define UNACKED_MS 20000               /* a peer that does not even acknowledge is gone */
#define READ_BYTES 16384
#define SILENT_NS (5 * NS_PER_S) /* to answer a ping after a call that got no answer */

static int failed(struct grpc_client *c, int code, const char *what)
{
    snprintf(c->last_error, sizeof(c->last_error), "connection error: desc = \"transport: %.340s\"",
             what);
    return code;
}

/* Waits for `events` on the socket: 0; -ETIMEDOUT; -ECANCELED when the client stops. */
static int wait_socket(struct grpc_client *c, int fd, short events, uint64_t until_ns)
{
    for (;;) {
        uint64_t now = clock_now_ns();
        if (grpc_client_stopping(c))
            return -ECANCELED;
        if (now >= until_ns)
            return -ETIMEDOUT;
        struct pollfd p[] = {{fd, events, 0}, {c->wake_fd, POLLIN, 0}};
        if (poll(p, 2, (int)((until_ns - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents)
            grpc_client_woken(c);
        if (p[0].revents)
            return 0;
    }
}

/* ---- socket */

static int connect_to(struct grpc_client *c, const struct sockaddr *a, socklen_t len,
                      uint64_t until_ns)
{
    _cleanup_close_ int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = connect(fd, a, len) < 0 ? -errno : 0;
    if (r == -EINPROGRESS) {
        r = wait_socket(c, fd, POLLOUT, until_ns);
        int reason = 0;
        socklen_t size = sizeof(reason);
        if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) == 0)
            r = -reason;
    }
    if (r < 0)
        return r;
    int one = 1, ms = UNACKED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
               sizeof(one)); /* of no use, and refused, on a unix socket */
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    c->conn.fd = TAKE_FD(fd);
    return 0;
}

static int connect_unix(struct grpc_client *c)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, c->endpoint.path, sizeof(c->endpoint.path));
    int r = connect_to(c, (const struct sockaddr *)&a, sizeof(a), clock_now_ns() + CONNECT_NS);
    char text[300];
    snprintf(text, sizeof(text), "Error while dialing: dial unix %s: connect: %s", c->endpoint.path,
             strerror(-r));
    return r < 0 ? failed(c, r, text) : 0;
}

/* getaddrinfo cannot be interrupted; c->resolving lets the client be freed meanwhile. */
static int resolve(struct grpc_client *c, struct addrinfo **ret)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    pthread_mutex_lock(&c->lock);
    c->resolving = true;
    pthread_mutex_unlock(&c->lock);
    int r = getaddrinfo(c->endpoint.host, c->endpoint.port, &hints, ret);
    pthread_mutex_lock(&c->lock);
    c->resolving = false;
    bool stopping = c->stopping; /* then the settings may be gone as well */
    pthread_mutex_unlock(&c->lock);
    if (stopping)
        return failed(c, -ECANCELED, "the client is closing");
    if (r == 0)
        return 0;
    char text[400];
    snprintf(text, sizeof(text), "Error while dialing: dial tcp: lookup %s: %s", c->endpoint.host,
             gai_strerror(r));
    return failed(c, -EHOSTUNREACH, text);
}

static void free_addresses(struct addrinfo **a)
{
    if (*a)
        freeaddrinfo(*a);
}

static int connect_tcp(struct grpc_client *c)
{
    _cleanup_(free_addresses) struct addrinfo *all = NULL;
    int r = resolve(c, &all);
    if (r < 0)
        return r;
    uint64_t end_ns = clock_now_ns() + CONNECT_NS;
    r = -EHOSTUNREACH;
    for (struct addrinfo *a = all; a; a = a->ai_next) {
        uint64_t until_ns = a->ai_next ? clock_now_ns() + NEXT_ADDRESS_NS : end_ns;
        r = connect_to(c, a->ai_addr, a->ai_addrlen, until_ns < end_ns ? until_ns : end_ns);
        if (r == 0 || r == -ECANCELED)
            break;
    }
    char text[400];
    snprintf(text, sizeof(text), "Error while dialing: dial tcp %s:%s: connect: %s",
             c->endpoint.host, c->endpoint.port, strerror(-r));
    return r < 0 ? failed(c, r, text) : 0;
}

/* ---- TLS */

static int handshake(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    uint64_t until_ns = clock_now_ns() + CONNECT_NS;
    for (;;) {
        int r = gnutls_handshake(n->tls);
        if (r >= 0)
            return 0;
        if (gnutls_error_is_fatal(r)) {
            char why[200], text[300];
            tls_handshake_reason(n->tls, r, why, sizeof(why));
            snprintf(text, sizeof(text), "authentication handshake failed: %s", why);
            return failed(c, -EPROTO, text);
        }
        int w =
            wait_socket(c, n->fd, gnutls_record_get_direction(n->tls) ? POLLOUT : POLLIN, until_ns);
        if (w < 0)
            return failed(c, w,
                          w == -ETIMEDOUT ? "authentication handshake timed out" : "interrupted");
    }
}

static int start_tls(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    struct err e = {""};
    gnutls_datum_t chosen = {NULL, 0};
    int r = tls_client_new(c->settings.tls, &n->creds, &e);
    if (r == 0)
        r = tls_client_session(n->creds, n->fd, c->endpoint.host, "h2", &n->tls, &e);
    if (r < 0)
        return failed(c, r, e.text);
    r = handshake(c);
    if (r < 0)
        return r;
    if (gnutls_alpn_get_selected_protocol(n->tls, &chosen) < 0 ||
        !bytes_eq_str(bytes_of(chosen.data, chosen.size), "h2"))
        return failed(c, -EPROTO,
                      "authentication handshake failed: credentials: cannot check peer: missing "
                      "selected ALPN property");
    n->out.record = malloc(RECORD_BYTES);
    return n->out.record ? 0 : failed(c, -ENOMEM, "out of memory");
}

int grpc_conn_open(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    memset(n, 0, sizeof(*n));
    n->fd = -1;
    int r = c->endpoint.path[0] ? connect_unix(c) : connect_tcp(c);
    if (r == 0 && c->secure)
        r = start_tls(c);
    n->out.control = r == 0 ? malloc(CONTROL_BYTES) : NULL;
    if (r == 0 && !n->out.control)
        r = failed(c, -ENOMEM, "out of memory");
    if (r == 0 && grpc_h2_open(c) < 0)
        r = failed(c, -ENOMEM, "out of memory");
    n->last_read_ns = clock_now_ns();
    return r;
}

void grpc_conn_close(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    nghttp2_session_del(n->h2);
    if (n->tls)
        gnutls_deinit(n->tls);
    tls_client_free(n->creds);
    cleanup_close(&n->fd);
    free(n->out.control);
    free(n->out.record);
    buf_unref(n->out.kept);
    memset(n, 0, sizeof(*n));
    n->fd = -1;
}

/* ---- bytes out */

void grpc_out_keep(struct grpc_conn *n)
{
    struct grpc_out *o = &n->out;
    if (o->n == 0)
        return;
    struct buf *copy = buf_new(0);
    if (!copy || buf_reserve(copy, o->bytes) < 0) {
        buf_unref(copy);
        o->n = 0;
        o->bytes = 0;
        shutdown(n->fd, SHUT_RDWR); /* a frame is cut off: the connection is of no use any more */
        return;
    }
    for (unsigned i = o->first; i < o->first + o->n; i++)
        buf_append(copy, o->piece[i].iov_base, o->piece[i].iov_len);
    buf_unref(o->kept);
    o->kept = copy;
    o->control_len = 0;
    o->first = 0;
    o->n = 1;
    o->piece[0] = (struct iovec){copy->data, copy->len};
}

/* `sent` bytes are gone. */
static void out_advance(struct grpc_out *o, size_t sent)
{
    o->bytes -= sent;
    while (sent) {
        struct iovec *v = &o->piece[o->first];
        size_t n = sent < v->iov_len ? sent : v->iov_len;
        v->iov_base = (char *)v->iov_base + n;
        v->iov_len -= n;
        sent -= n;
        if (v->iov_len == 0) {
            o->first++;
            o->n--;
        }
    }
    if (o->n == 0) {
        o->first = 0;
        o->control_len = 0;
        o->kept = buf_unref(o->kept);
    }
}

static void fill_record(struct grpc_out *o)
{
    size_t len = 0;
    for (unsigned i = o->first; i < o->first + o->n && len < RECORD_BYTES; i++) {
        size_t take =
            o->piece[i].iov_len < RECORD_BYTES - len ? o->piece[i].iov_len : RECORD_BYTES - len;
        memcpy(o->record + len, o->piece[i].iov_base, take);
        len += take;
    }
    out_advance(o, len);
    o->record_len = len;
    o->record_off = 0;
}

static int flush_tls(struct grpc_conn *n)
{
    struct grpc_out *o = &n->out;
    while (o->record_off < o->record_len || o->n) {
        if (o->record_off == o->record_len)
            fill_record(o);
        ssize_t r =
            gnutls_record_send(n->tls, o->record + o->record_off, o->record_len - o->record_off);
        if (r == GNUTLS_E_AGAIN)
            return 1;
        if (r < 0 && gnutls_error_is_fatal((int)r)) {
            snprintf(n->why, sizeof(n->why), "%s", gnutls_strerror((int)r));
            return -EIO;
        }
        o->record_off += r > 0 ? (size_t)r : 0;
    }
    return 0;
}

/* 0 = all is out, 1 = the socket is full, -errno. */
static int out_flush(struct grpc_conn *n)
{
    struct grpc_out *o = &n->out;
    if (n->tls)
        return flush_tls(n);
    while (o->n) {
        struct msghdr m = {.msg_iov = &o->piece[o->first], .msg_iovlen = o->n};
        ssize_t r = sendmsg(n->fd, &m, MSG_NOSIGNAL);
        if (r < 0 && (errno == EAGAIN || errno == EINTR))
            return 1;
        if (r < 0) {
            snprintf(n->why, sizeof(n->why), "write: %s", strerror(errno));
            return -EIO;
        }
        out_advance(o, (size_t)r);
    }
    return 0;
}

/* Frames into the queue and the queue to the socket until one of them is through. 0, 1 = wait for
 * the socket, -errno. */
static int send_all(struct grpc_conn *n)
{
    for (;;) {
        int r = nghttp2_session_send(n->h2);
        if (r != 0) {
            snprintf(n->why, sizeof(n->why), "%s", nghttp2_strerror(r));
            return -EIO;
        }
        bool any = n->out.n > 0;
        r = out_flush(n);
        if (r != 0 || !any)
            return r;
    }
}

/* ---- bytes in */

/* Bytes read, 0 = nothing there, -errno = the connection ended. */
static ssize_t receive(struct grpc_conn *n, uint8_t *to, size_t size)
{
    ssize_t r;
    if (n->tls) {
        r = gnutls_record_recv(n->tls, to, size);
        if (r > 0)
            return r;
        if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED ||
            (r < 0 && !gnutls_error_is_fatal((int)r)))
            return 0;
        snprintf(n->why, sizeof(n->why), "error reading from server: %s",
                 r ? gnutls_strerror((int)r) : "EOF");
        return -ECONNRESET;
    }
    r = recv(n->fd, to, size, 0);
    if (r > 0)
        return r;
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    snprintf(n->why, sizeof(n->why), "error reading from server: %s", r ? strerror(errno) : "EOF");
    return -ECONNRESET;
}

static int read_all(struct grpc_conn *n)
{
    uint8_t in[READ_BYTES];
    for (;;) {
        ssize_t got = receive(n, in, sizeof(in));
        if (got <= 0)
            return (int)got;
        n->last_read_ns = clock_now_ns();
        n->dead_ns = 0;
        ssize_t used = nghttp2_session_mem_recv(n->h2, in, (size_t)got);
        if (used < 0) {
            snprintf(n->why, sizeof(n->why), "error reading server preface or frame: %s",
                     nghttp2_strerror((int)used));
            return -EPROTO;
        }
        if ((size_t)got < sizeof(in) && !n->tls)
            return 0;
    }
}

/* ---- the loop */

static void submit_pending(struct grpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->conn.draining && c->pending.head) {
        struct grpc_call *k = c->pending.head;
        calls_remove(&c->pending, k);
        k->state = CALL_ACTIVE;
        pthread_mutex_unlock(&c->lock);
        calls_push(&c->conn.active, k);
        k->begun_ns = clock_now_ns();
        if (grpc_h2_submit(c, k) < 0) {
            calls_remove(&c->conn.active, k);
            grpc_call_finish(c, k, GRPC_UNAVAILABLE, "the connection takes no more calls");
        }
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

static void ping(struct grpc_conn *n, int64_t patience_ns)
{
    nghttp2_submit_ping(n->h2, NGHTTP2_FLAG_NONE, NULL);
    n->dead_ns = clock_now_ns() + (uint64_t)patience_ns;
}

/* Calls whose time is over. A peer that was silent all the while is asked whether it is there: a
 * connection that something on the way has forgotten would swallow the next call as well. */
static void cancel_late(struct grpc_client *c)
{
    for (struct grpc_call *k = c->conn.active.head, *next; k; k = next) {
        next = k->next;
        pthread_mutex_lock(&c->lock);
        bool late = k->cancel == CALL_DEADLINE;
        pthread_mutex_unlock(&c->lock);
        if (late && !c->conn.dead_ns && c->conn.last_read_ns <= k->begun_ns)
            ping(&c->conn, SILENT_NS);
        if (late)
            grpc_h2_cancel(c, k);
    }
}

/* Keep-alive: milliseconds to sleep at most, -1 = no limit; -2 = the peer is dead. */
static int keepalive(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    uint64_t now = clock_now_ns(), time_ns = (uint64_t)c->settings.keepalive_time_ns, due;
    if (n->dead_ns && now >= n->dead_ns) {
        snprintf(n->why, sizeof(n->why), "keepalive ping failed to receive ACK within timeout");
        return -2;
    }
    if (n->dead_ns)
        return (int)((n->dead_ns - now) / NS_PER_MS) + 1;
    if (!time_ns || (!n->active.head && !c->settings.keepalive_permit_without_stream))
        return -1;
    due = n->last_read_ns + time_ns;
    if (now >= due) {
        ping(n, c->settings.keepalive_timeout_ns);
        due = n->dead_ns;
    }
    return (int)((due - now) / NS_PER_MS) + 1;
}

/* One round: 0 = go on, -1 = the connection is over. */
static int serve_once(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    submit_pending(c);
    cancel_late(c);
    int wait_ms = keepalive(c), full = send_all(n);
    if (wait_ms == -2 || full < 0 || (n->draining && !n->active.head) || grpc_client_stopping(c))
        return -1;
    if (!nghttp2_session_want_read(n->h2) && !nghttp2_session_want_write(n->h2))
        return -1;
    struct pollfd p[] = {{n->fd, (short)(POLLIN | (full ? POLLOUT : 0)), 0},
                         {c->wake_fd, POLLIN, 0}};
    if (poll(p, 2, n->tls && gnutls_record_check_pending(n->tls) ? 0 : wait_ms) < 0 &&
        errno != EINTR)
        return -1;
    if (p[1].revents & POLLIN)
        grpc_client_woken(c);
    return (p[0].revents & (POLLIN | POLLHUP | POLLERR)) ||
                   (n->tls && gnutls_record_check_pending(n->tls))
               ? read_all(n)
               : 0;
}

/* What the connection leaves behind. */
static void abandon(struct grpc_client *c)
{
    struct grpc_conn *n = &c->conn;
    const char *why = n->why[0] ? n->why : "the connection is draining";
    bool stopping = grpc_client_stopping(c);
    snprintf(c->last_error, sizeof(c->last_error), "connection error: desc = \"%s\"", why);
    for (struct grpc_call *k; (k = n->active.head);) {
        calls_remove(&n->active, k);
        if (stopping)
            grpc_call_finish(c, k, GRPC_CANCELLED, "grpc: the client connection is closing");
        else
            grpc_call_finish(c, k, GRPC_UNAVAILABLE, "%s", why);
    }
}

void grpc_conn_serve(struct grpc_client *c)
{
    while (serve_once(c) == 0)
        ;
    if (grpc_client_stopping(c) && c->conn.h2) {
        nghttp2_submit_goaway(c->conn.h2, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
        send_all(&c->conn);
    }
    abandon(c);
}
