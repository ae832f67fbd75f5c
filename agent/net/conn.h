/* Connections, inside of the server. */
#ifndef MOTEL_NET_CONN_H
#define MOTEL_NET_CONN_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/base/log.h"
#include "agent/net/limits.h"
#include "agent/net/listener_parts.h"
#include "agent/net/loop.h"
#include "agent/net/server.h"

#define H1_MEMORY_BYTES (32u << 10)   /* libmicrohttpd's pool, one a connection; twice the largest head when that is more */
#define H2_CONN_BYTES (14u << 10)     /* what an HTTP/2 connection costs, for the memory account */
#define DEFAULT_IDLE_NS (65ull * 1000000000) /* above the 60 s at which metrics are usually exported */

struct conn_ops {
    void (*expired)(struct conn *c, uint64_t now_ns); /* the deadline passed: close, or set a new one */
    void (*drain)(struct conn *c);                    /* the listener ends: finish what is under way, then close */
    void (*cut)(struct conn *c);                      /* close now */
};
struct conn {
    struct watch watch; /* first */
    const struct conn_ops *ops;
    struct task task; /* on the way to its loop */
    struct conn *prev, *next;
    struct loop *loop;
    struct listener *listener;
    int fd;
    uint64_t accepted_ns, deadline_ns; /* UINT64_MAX = none */
    uint64_t idle_ns;                  /* since when no request is under way; 0 = one is */
    enum server_event why;             /* HTTP/1: what it means when the deadline passes */
    struct server_settings limits;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer;
    socklen_t peer_len;
    bool draining, linger, peer_ended;
    bool secure;             /* the inner end of a TLS connection with HTTP/1.1 */
    struct tls_session *tls; /* NULL = plain text */
    void *attached;          /* freed with it, after the batch of events */
    bool had_request; /* it has sent the head of a request */
    uint8_t pokes; /* HTTP/1: how often libmicrohttpd was told that the peer ended */
    size_t charged;
    void *proto; /* struct h2_session, or HTTP/1's struct MHD_Connection */
    struct http_exchange *x; /* HTTP/1: the request under way */
    struct bytes url;        /* HTTP/1: its target, until its head is whole */
    uint8_t *pool;           /* HTTP/1: the memory that libmicrohttpd has for it; NULL = not known */
    bool pool_first;         /* its first request will begin where the memory does */
    struct conn *next_woken;
    bool woken;
    bool tidy;               /* what it does not need while it is idle was given back */
};
/* A new connection of `l`, counted in; starts in the peek phase on the least loaded loop. Takes fd. */
void conn_accept(struct listener *l, int fd, const struct sockaddr_storage *peer, socklen_t len, struct loop *here);
static inline void conn_deadline(struct conn *c, uint64_t at_ns)
{
    c->deadline_ns = at_ns;
    if (at_ns < c->loop->scan_at_ns)
        c->loop->scan_at_ns = at_ns;
}
/* HTTP/1.1 of `outer`, decrypted, on the socket `fd`, which is taken: counted as a connection of the same listener and loop. -errno when
 * there is no room. */
int conn_inner(const struct conn *outer, int fd);
/* As recv() and send(), through TLS where there is; what conn_send() did not take is to be offered again first. */
ssize_t conn_recv(struct conn *c, uint8_t *data, size_t size);
ssize_t conn_send(struct conn *c, const uint8_t *data, size_t len);
bool conn_ended(const struct conn *c); /* TLS has ended behind the data that conn_recv() gave, and no event will tell */
/* The same, with what is counted when it passes. */
static inline void conn_deadline_for(struct conn *c, uint64_t at_ns, enum server_event why)
{
    c->why = why;
    conn_deadline(c, at_ns);
}
uint64_t timeout_ns(int64_t configured); /* the setting, or the limit for all clients */
void conn_charge(struct conn *c, size_t bytes); /* replaces the earlier charge */
void conn_close(struct conn *c);  /* closes fd, frees after the batch */
void conn_forget(struct conn *c); /* the same when somebody else closes fd */
void conn_abortive(const struct conn *c); /* a peer that is stuck: the close drops what it did not take */
/* The last reply was sent: ends our sending, then reads and drops for a while so that the peer gets it. */
void conn_linger(struct conn *c);
/* Ends some connections of `l` on this loop that have been idle for a while, those that never sent a request first; false when there
 * are none. Some end only when the loop comes round. */
bool conn_evict(struct loop *loop, const struct listener *l);
void sniff_start(struct conn *c);
void tls_accept_start(struct conn *c); /* the same on a port with TLS */
void tls_tunnel_start(struct conn *c); /* TLS is there: HTTP/1.1 */

void h1_start(struct conn *c, uint8_t first); /* hands the connection to libmicrohttpd; `first` is the first byte to come */
void h1_run(struct loop *l);   /* drives it; sets mhd_dirty or mhd_at_ns when it is to run again */
void h1_look_at_woken(struct loop *l, bool ran); /* `ran`: h1_run() was called after the events */
void h1_tidy(struct loop *l, uint64_t now_ns); /* tidy_at_ns has come */
void h1_stop(struct loop *l);
void h2_start(struct conn *c);

#endif
