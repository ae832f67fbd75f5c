/*
 * Connections to a port with TLS: the handshake, on the I/O thread and under the deadline of the
 * peek phase, and what follows by ALPN. HTTP/2 is spoken over the TLS session itself; HTTP/1.1 goes
 * through a pair of sockets to libmicrohttpd, which reads from nothing else (tls_tunnel.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/net/conn.h"
#include "agent/net/endpoint.h"
#include "agent/net/tls_session.h"

#define TLS_HANDSHAKE_RECORD 0x16
#define PEEK_BYTES 8

static void failed(const struct conn *c, const char *reason)
{
    char peer[64];
    endpoint_format(&c->peer.any, c->peer_len, peer, sizeof(peer));
    tls_server_failed(c->limits.tls, listener_address(c->listener), peer, reason);
}

static void shake_expired(struct conn *c, _unused_ uint64_t now_ns)
{
    server_count(CLOSED_HEADER_TIMEOUT);
    failed(c, "the client took too long");
    conn_abortive(c);
    conn_close(c);
}

static bool is_http(const uint8_t *data, ssize_t n)
{
    static const char *const starts[] = {"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"};
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
        if (n >= 5 && memcmp(data, starts[i], 5) == 0)
            return true;
    return false;
}

/* Who forgot the s of https is told, as the reference does. */
static void refuse_plain(struct conn *c, const uint8_t *data, ssize_t n)
{
    static const char answer[] =
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    failed(c, "the client speaks plain text to a port with TLS");
    if (is_http(data, n) &&
        send(c->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) == sizeof(answer) - 1)
        conn_linger(c);
    else
        conn_close(c);
}

static void refuse(struct conn *c, const char *reason)
{
    failed(c, reason);
    conn_linger(c); /* so that the alert arrives */
}

static void shake(struct conn *c)
{
    char reason[256];
    int r = tls_session_shake(c->tls, reason, sizeof(reason));
    if (r == -EAGAIN) {
        uint32_t events = EPOLLIN | (tls_session_wants_write(c->tls) ? (uint32_t)EPOLLOUT : 0);
        if (loop_rewatch(c->loop, c->fd, events, &c->watch) < 0)
            conn_close(c);
    } else if (r < 0) {
        refuse(c, reason);
    } else if (tls_session_is_h2(c->tls)) {
        h2_start(c);
        if (c->proto) /* the first request may have come with the end of the handshake */
            c->watch.event(&c->watch, EPOLLIN);
    } else {
        tls_tunnel_start(c);
    }
}

static void on_shake(struct watch *w, _unused_ uint32_t events)
{
    shake(container_of(w, struct conn, watch));
}

/* The first bytes: a client that does not speak TLS has other ones. */
static void on_first(struct watch *w, _unused_ uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    uint8_t data[PEEK_BYTES];
    ssize_t n = recv(c->fd, data, sizeof(data), MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* a port check */
        conn_close(c);
        return;
    }
    if (data[0] != TLS_HANDSHAKE_RECORD) {
        refuse_plain(c, data, n);
        return;
    }
    c->tls = tls_session_new(c->limits.tls, c->fd);
    if (!c->tls) {
        conn_close(c);
        return;
    }
    conn_charge(c, sizeof(*c));
    c->watch.event = on_shake;
    shake(c);
}

static const struct conn_ops shake_ops = {
    .expired = shake_expired, .drain = conn_close, .cut = conn_close};

void tls_accept_start(struct conn *c)
{
    c->ops = &shake_ops;
    c->watch.event = on_first;
    conn_deadline(c, c->accepted_ns + timeout_ns(c->limits.read_header_timeout_ns));
    if (c->listener->stopping || loop_watch(c->loop, c->fd, EPOLLIN, &c->watch) < 0)
        conn_close(c);
}
