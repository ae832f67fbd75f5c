/*
 * Inside of the server: I/O threads, connections, exchanges. For agent/net only.
 *
 * Every connection belongs to one I/O thread ("loop") and is touched by that thread alone; other threads send it tasks. A loop is one
 * epoll instance, inside which libmicrohttpd's own epoll instance hangs (polled by us, no thread of its own).
 */
#ifndef MOTEL_NET_SERVER_IMPL_H
#define MOTEL_NET_SERVER_IMPL_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "agent/base/log.h"
#include "agent/net/server.h"

#define HEAD_MAX_BYTES 16384          /* request line and header section of HTTP/1 */
#define H1_MEMORY_BYTES (32u << 10)   /* libmicrohttpd's pool, one a connection */
#define H2_CONN_BYTES (14u << 10)     /* what an HTTP/2 connection costs, for the memory account */
#define SCRATCH_BYTES (256u << 10)    /* read buffer, one a loop */
#define DISCARD_KEEP_BYTES (64u << 10)   /* a refused body up to this is read away and the connection kept */
#define DISCARD_MAX_BYTES (16u << 20)    /* of a refused HTTP/2 stream, before it is reset */
#define RECEIVING_MAX_BYTES ((size_t)256 << 20)  /* of bodies that are not whole yet, all connections together */
#define DEFAULT_TIMEOUT_NS (60ull * 1000000000)
#define DEFAULT_IDLE_NS (65ull * 1000000000) /* above the 60 s at which metrics are usually exported */

struct watch { /* what an epoll event belongs to */
    void (*event)(struct watch *w, uint32_t events);
};
struct task { /* work sent to a loop; owned by whoever embeds it */
    struct task *next;
    void (*run)(struct task *t);
};

struct conn;
struct MHD_Daemon;
struct loop {
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct watch wake, mhd_watch;
    pthread_mutex_t lock;       /* tasks */
    struct task *tasks, **tasks_end;
    struct conn *conns, *dead;  /* loop thread only; dead ones are freed after the batch of events */
    atomic_uint nconns;
    unsigned owed;              /* replies on their way to exchanges whose connection is gone */
    uint64_t scan_at_ns;        /* when the next deadline may pass; UINT64_MAX = none */
    struct acceptor *paused;    /* no descriptors or too many connections: looked at again at resume_at_ns */
    uint64_t resume_at_ns;
    struct MHD_Daemon *mhd;     /* made by the first HTTP/1 connection */
    struct conn *adding;        /* being handed to libmicrohttpd right now */
    bool mhd_dirty;             /* a connection was resumed: run it before waiting */
    unsigned mhd_calls;         /* how often it called us */
    uint64_t mhd_at_ns;         /* when it is run again without an event; UINT64_MAX = not */
    uint8_t *scratch;           /* SCRATCH_BYTES, made at first use */
    struct buf *out;            /* gathered HTTP/2 output of one wake-up */
    bool stop;
};

/* engine (loop.c): the loops of the process, made by the first user and ended by the last one. */
int engine_acquire(struct err *reterr);
void engine_release(void);
unsigned engine_loops(void);
struct loop *engine_loop(unsigned i);
struct loop *engine_least_loaded(void);
bool engine_conn_admit(void);  /* counts a connection in; false at the limit */
void engine_conn_leave(void);
/* Runs fn(loop, arg) on every loop and waits for all. Not from a loop. */
void engine_barrier(void (*fn)(struct loop *l, void *arg), void *arg);

void loop_post(struct loop *l, struct task *t); /* any thread; tasks run in order */
int loop_watch(struct loop *l, int fd, uint32_t events, struct watch *w);
int loop_rewatch(struct loop *l, int fd, uint32_t events, struct watch *w);
void loop_unwatch(struct loop *l, int fd);
uint8_t *loop_scratch(struct loop *l); /* NULL when out of memory */

void acceptors_resume(struct loop *l); /* listener.c: the pause is over */

struct service_ref { /* one service, refcounted: who serves and the exchanges under way */
    struct http_service svc;
    struct server_settings settings;
    atomic_uint refs;
    unsigned inflight;        /* under the listener's lock */
    atomic_bool dead;         /* no callback any more */
    struct service_ref *next; /* replaced ones that have not left yet */
};
struct listener {
    atomic_uint refs;
    pthread_mutex_t lock; /* service, settings, counts */
    pthread_cond_t changed;
    int fd;
    bool serving, tls_warned;
    atomic_bool stopping;
    struct server_settings settings;
    char *endpoint, *transport, *unix_path;
    char address[128];
    struct service_ref *service, *retired;
    unsigned nconns;
    struct acceptor *acceptors; /* one a loop */
};
struct acceptor {
    struct watch watch;
    struct listener *listener;
    struct loop *loop;
    struct acceptor *next_paused;
    bool watching;
};

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
    struct server_settings limits;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer;
    socklen_t peer_len;
    bool draining, linger, peer_ended;
    uint8_t pokes; /* HTTP/1: how often libmicrohttpd was told that the peer ended */
    size_t charged;
    void *proto; /* struct h2_session, or HTTP/1's struct MHD_Connection */
    struct http_exchange *x; /* HTTP/1: the request under way */
};
/* A new connection of `l`, counted in; starts in the peek phase on the least loaded loop. Takes fd. */
void conn_accept(struct listener *l, int fd, const struct sockaddr_storage *peer, socklen_t len, struct loop *here);
static inline void conn_deadline(struct conn *c, uint64_t at_ns)
{
    c->deadline_ns = at_ns;
    if (at_ns < c->loop->scan_at_ns)
        c->loop->scan_at_ns = at_ns;
}
uint64_t timeout_ns(int64_t configured); /* the setting or DEFAULT_TIMEOUT_NS */
void conn_charge(struct conn *c, size_t bytes); /* replaces the earlier charge */
void conn_close(struct conn *c);  /* closes fd, frees after the batch */
void conn_forget(struct conn *c); /* the same when somebody else closes fd */
void conn_abortive(const struct conn *c); /* a peer that is stuck: the close drops what it did not take */
/* The last reply was sent: ends our sending, then reads and drops for a while so that the peer gets it. */
void conn_linger(struct conn *c);
/* Closes the oldest connection that has been in the peek phase for a while; false when there is none. */
bool conn_evict(struct loop *l);
void sniff_start(struct conn *c);

void h1_start(struct conn *c); /* hands the connection to libmicrohttpd */
void h1_run(struct loop *l);   /* drives it; sets mhd_dirty or mhd_at_ns when it is to run again */
void h1_stop(struct loop *l);
void h2_start(struct conn *c);

struct listener *listener_ref(struct listener *l);
void listener_unref(struct listener *l);
void listener_conn_left(struct listener *l);

/* Exchanges (exchange.c). A carrier embeds what it needs by `carrier`. */
struct reply {
    int status;
    bool close;
    unsigned nheaders, ntrailers;
    const struct http_header_out *headers, *trailers;
    struct buf *body;
};
struct carrier {
    enum http_carrier kind;
    void (*each)(const struct http_exchange *x, bool (*each)(void *ctx, struct bytes name, struct bytes value), void *ctx);
    /* On the loop thread, connection alive. Takes r->body. */
    void (*reply)(struct http_exchange *x, struct reply *r);
};
enum exchange_phase { PHASE_OPEN, PHASE_REPLIED, PHASE_ABANDONED };
struct http_exchange { /* first member of the carrier's struct */
    struct task task; /* the reply on its way; first */
    const struct carrier *carrier;
    struct loop *loop;
    struct conn *conn;
    struct service_ref *service;
    struct listener *listener;
    atomic_uint refs;
    _Atomic int phase;
    bool handed;       /* the service was given it to answer */
    bool reply_seen;   /* loop thread: the carrier has the reply */
    bool detached;     /* the carrier let go while the reply was on its way */
    bool grpc, grpc_compressed, truncated;
    struct reply late; /* a reply from another thread */
    struct http_header_out *late_headers, *late_trailers;
    void *user;
    struct bytes method, path;
    struct buf *body;
    size_t receiving; /* its share of RECEIVING_MAX_BYTES */
    uint64_t announced;
    size_t limit;
    char peer_text[64];
};
/* NULL when out of memory or nothing serves. */
void *exchange_new(const struct carrier *carrier, struct conn *c, size_t size);
/* The carrier is done with `x` (answered, or the peer is gone). */
void exchange_release(struct http_exchange *x);
/* Calls into the service on behalf of the carrier. */
void exchange_headers(struct http_exchange *x);
void exchange_request(struct http_exchange *x);
void exchange_too_large(struct http_exchange *x);
/* Replied, perhaps on another thread and still on its way; the carrier has the reply. */
static inline bool exchange_replied(const struct http_exchange *x) { return atomic_load(&x->phase) != PHASE_OPEN; }
static inline bool exchange_has_reply(const struct http_exchange *x) { return x->reply_seen; }
/* Appends to the body, which grows towards `announced`. False when that cannot be; then the request was answered. */
bool exchange_body_append(struct http_exchange *x, const void *data, size_t len);
/* Replies of the server itself, on the loop thread. */
void exchange_reply_text(struct http_exchange *x, int status, const char *text, bool close);
void exchange_reply_headers(struct http_exchange *x, int status, const struct http_header_out *headers, unsigned n);
/* Copies fields and their strings into one block, to be freed with free(). NULL when out of memory. */
struct http_header_out *http_fields_copy(const struct http_header_out *from, unsigned n);

#endif
