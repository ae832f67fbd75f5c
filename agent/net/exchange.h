/* One request and its reply, inside of the server: what both carriers share. */
#ifndef MOTEL_NET_EXCHANGE_H
#define MOTEL_NET_EXCHANGE_H

#include "agent/net/conn.h"

#define DISCARD_KEEP_BYTES (64u << 10)   /* a refused body up to this is read away and the connection kept */
#define DISCARD_MAX_BYTES (16u << 20)    /* of a refused HTTP/2 stream, before it is reset */
#define RECEIVING_MAX_BYTES ((size_t)256 << 20)  /* of bodies that are not whole yet, all connections together */

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
    void *user, *ticket;
    void (*ticket_drop)(void *ticket);
    struct bytes method, path;
    struct buf *body;
    size_t receiving; /* its share of RECEIVING_MAX_BYTES */
    uint64_t announced;
    size_t limit;
    size_t memory_limit; /* http_bound_memory(); 0 = not asked */
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
/* The length of the body is known: false when there is no memory for it; then the request was answered. */
bool exchange_body_announced(struct http_exchange *x);
/* Appends to the body, which grows towards `announced`. False when that cannot be; then the request was answered. */
bool exchange_body_append(struct http_exchange *x, const void *data, size_t len);
/* Replies of the server itself, on the loop thread. */
void exchange_reply_text(struct http_exchange *x, int status, const char *text, bool close);
void exchange_reply_headers(struct http_exchange *x, int status, const struct http_header_out *headers, unsigned n);
/* Copies fields and their strings into one block, to be freed with free(). NULL when out of memory. */
struct http_header_out *http_fields_copy(const struct http_header_out *from, unsigned n);

#endif
