/*
 * Listeners that speak HTTP/1.1 (libmicrohttpd) and HTTP/2 (nghttp2) on one port, chosen by the first bytes of a connection, and one
 * request object over both. Who serves requests sees neither library.
 */
#ifndef MOTEL_NET_SERVER_H
#define MOTEL_NET_SERVER_H

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/config/bind.h"
#include "agent/net/codec.h"

struct tls_server;
struct tls_server_settings;
struct http_exchange; /* one request and its reply; lives until http_reply() was called */

/* What came. To be read in headers(), request() and too_large(), on their thread; what is needed later is kept by the service. */
enum http_carrier { CARRIER_HTTP1, CARRIER_HTTP2 };
enum http_carrier http_carrier(const struct http_exchange *x);
struct bytes http_method(const struct http_exchange *x);
struct bytes http_path(const struct http_exchange *x);                      /* without the query; as sent, not decoded */
struct bytes http_header(const struct http_exchange *x, const char *lower); /* first value; len 0 and data NULL = absent */
/* All header fields in order (no pseudo headers); stops when `each` returns false. */
void http_each_header(const struct http_exchange *x, bool (*each)(void *ctx, struct bytes name, struct bytes value), void *ctx);
const char *http_peer(struct http_exchange *x);           /* "127.0.0.1:51234" */
const char *http_listener_address(struct http_exchange *x); /* listener_address() of where it came in */
/* HTTP/2 with content type application/grpc, +suffix or ;parameters: the body is one message without its 5-byte prefix. */
bool http_is_grpc(const struct http_exchange *x);
bool http_grpc_compressed(const struct http_exchange *x); /* the flag of the prefix */
bool http_truncated(const struct http_exchange *x);       /* gRPC: the stream ended before a whole message was there */
uint64_t http_announced(const struct http_exchange *x);   /* Content-Length or the length in the gRPC prefix; 0 = unknown */
/* What came, content-coding still on; NULL = empty. Taken: the caller owns the reference, a second call gives NULL. */
struct buf *http_take_body(struct http_exchange *x);
/* In headers(): the body is read only while mem_room(limit) has room for it, for an announced length (also that of a gRPC message) before
 * the first byte of it is kept; else no_room(). Without this call nothing is asked. */
void http_bound_memory(struct http_exchange *x, size_t limit);
void *http_user(const struct http_exchange *x);
void http_set_user(struct http_exchange *x, void *user);
/* Something that goes with the request and is given to `drop` when the request ends before somebody took it, whatever ends it. */
void http_set_ticket(struct http_exchange *x, void *ticket, void (*drop)(void *ticket));
void *http_take_ticket(struct http_exchange *x); /* NULL = none, or taken before */

/* Replies once, from any thread, in headers() or request() or later; `x` is gone for the caller. Header names in lower case. `body` is
 * taken (NULL = empty). On HTTP/2 the trailers are sent behind the body; without body and trailers the headers end the stream.
 * `close`: end an HTTP/1 connection afterwards. */
struct http_header_out {
    const char *name, *value;
};
void http_reply(struct http_exchange *x, int status, const struct http_header_out *headers, unsigned nheaders, struct buf *body,
                const struct http_header_out *trailers, unsigned ntrailers, bool close);

struct http_service { /* the callbacks run on the I/O threads and do not block */
    /* Header section complete. May reply at once (the body is then discarded, bounded, or the connection closed). Else returns the
     * largest body it will take, in bytes; one byte more ends in too_large(). */
    size_t (*headers)(void *ctx, struct http_exchange *x);
    /* The body is there: on gRPC one whole message, END_STREAM or not. Reply now or keep `x` and reply later from another thread. */
    void (*request)(void *ctx, struct http_exchange *x);
    void (*too_large)(void *ctx, struct http_exchange *x); /* must reply */
    /* The peer went away before the reply. After request() was called, http_reply() is still to be called (and does nothing); before,
     * `x` is gone when this returns. May be NULL. */
    void (*gone)(void *ctx, struct http_exchange *x);
    void *ctx;
    /* There is no memory for the body (http_bound_memory()): must reply. NULL = 503, UNAVAILABLE. */
    void (*no_room)(void *ctx, struct http_exchange *x);
};

struct server_settings { /* keys shared by every HTTP and gRPC server of the config, and limits */
    const char *endpoint;  /* "localhost:4318", ":4317", "[::1]:4317", a path for unix */
    const char *transport; /* tcp, tcp4, tcp6, unix; NULL or "" = tcp */
    int64_t read_header_timeout_ns, read_timeout_ns, write_timeout_ns, idle_timeout_ns; /* 0 = motel's: 60 s for headers, 65 s idle,
                                                    60 s without progress of a body, 60 s until a reply was taken */
    int64_t max_concurrent_streams; /* 0 = 100 */
    /* HTTP/2; 0 = off */
    int64_t keepalive_time_ns, keepalive_timeout_ns, max_connection_idle_ns, max_connection_age_ns, max_connection_age_grace_ns;
    int64_t keepalive_min_time_ns;  /* enforcement; 0 = off */
    bool keepalive_permit_without_stream;
    bool no_keepalive;              /* HTTP/1: one request a connection */
    /* Resets by the peer that a connection stands, and how many are forgotten a second; 0 = 10000, 500. */
    int64_t stream_reset_burst, stream_reset_rate;
    /* The `tls:` block; NULL = plain text. Who opens a listener loads it (served_start() does) and puts it into `tls`, whose reference
     * stays the caller's. */
    const struct tls_server_settings *tls_keys;
    struct tls_server *tls;
};

struct listener;
/* Binds and listens ("refused before listening": nothing accepts before). -errno with "listen tcp 127.0.0.1:4317: bind: address already
 * in use". The endpoint and transport are copied. Serves only after listener_serve(). */
int listener_open(const struct server_settings *s, struct listener **ret, struct err *reterr);
/* The address really bound ("127.0.0.1:4317"), for logs and port 0. */
const char *listener_address(const struct listener *l);
/* New limits and time-outs, for connections accepted from now on. */
void listener_configure(struct listener *l, const struct server_settings *s);
/* Starts accepting; `service` is copied. Called again (a reload) it replaces the service for later requests. -ESHUTDOWN once stopped. */
int listener_serve(struct listener *l, const struct http_service *service, struct err *reterr);
/* True while a service is in place; *ret_ctx is its ctx. */
bool listener_serving(const struct listener *l, void **ret_ctx);
/* The service with this ctx ends; after the return none of its callbacks runs any more. Its requests under way may finish until the
 * deadline (clock_now_ns). When it was the one in place, the one before it serves again, if that has not left (a reload that failed);
 * else accepting stops and the connections end (HTTP/2 peers get GOAWAY). */
void listener_leave(struct listener *l, const void *ctx, uint64_t deadline_ns);
/* Stops accepting; requests under way may finish until the deadline, then connections are cut. HTTP/2 peers get GOAWAY. */
void listener_stop(struct listener *l, uint64_t deadline_ns);
struct listener *listener_free(struct listener *l); /* NULL ok; returns NULL; stopped before (else at once) */

/* "host:port" by the rules of net.SplitHostPort: 0 or -EINVAL with "address foo: missing port in address". */
int endpoint_check(const char *endpoint, struct err *reterr);

#endif
