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

struct http_exchange; /* one request and its reply; lives until the reply was queued */

enum http_carrier { CARRIER_HTTP1, CARRIER_HTTP2 };
enum http_carrier http_carrier(const struct http_exchange *x);
struct bytes http_method(const struct http_exchange *x);
struct bytes http_path(const struct http_exchange *x);                        /* without the query; as sent, not decoded */
struct bytes http_header(const struct http_exchange *x, const char *lower);   /* first value; len 0 and data NULL = absent */
struct bytes http_peer(const struct http_exchange *x);                        /* "127.0.0.1:51234" */
struct buf *http_body(struct http_exchange *x);                               /* what came, content-coding still on; may be taken by ref */
void *http_user(struct http_exchange *x);
void http_set_user(struct http_exchange *x, void *user);

/* Replies once, from any thread, in headers() or request() or later. Header names in lower case. `body` is taken (NULL = empty). On
 * HTTP/2 the trailers are sent behind the body. `close`: end the connection afterwards. */
struct http_header_out {
    const char *name, *value;
};
void http_reply(struct http_exchange *x, int status, const struct http_header_out *headers, unsigned nheaders, struct buf *body,
                const struct http_header_out *trailers, unsigned ntrailers, bool close);

struct http_service {
    /* Header section complete. May reply at once (the body is then discarded, bounded, or the connection closed). Else returns the
     * largest body it will take, in bytes; one byte more ends in too_large(). */
    size_t (*headers)(void *ctx, struct http_exchange *x);
    /* The body is there (on HTTP/2 with grpc content type: one whole message with its 5-byte prefix, END_STREAM or not; an empty body
     * when the stream ended before). Reply now or keep `x` and reply later from another thread. */
    void (*request)(void *ctx, struct http_exchange *x);
    void (*too_large)(void *ctx, struct http_exchange *x); /* must reply */
    /* The peer went away before the reply; after it http_reply() is still legal (and does nothing). May be NULL. */
    void (*gone)(void *ctx, struct http_exchange *x);
    void *ctx;
};

struct server_settings { /* keys shared by every HTTP and gRPC server of the config, and limits */
    const char *endpoint;  /* "localhost:4318", ":4317", "[::1]:4317", a path for unix */
    const char *transport; /* tcp, tcp4, tcp6, unix */
    int64_t read_header_timeout_ns, read_timeout_ns, write_timeout_ns, idle_timeout_ns; /* 0 = default of motel: 60 s for headers and idle */
    int64_t max_concurrent_streams; /* 0 = 100 */
    int64_t keepalive_time_ns, keepalive_timeout_ns, max_connection_idle_ns, max_connection_age_ns, max_connection_age_grace_ns; /* HTTP/2; 0 = off */
    int64_t keepalive_min_time_ns;  /* enforcement; 0 = off */
    bool keepalive_permit_without_stream;
};

struct listener;
/* Binds and listens ("refused before listening": nothing accepts before). -errno with "listen tcp 127.0.0.1:4317: bind: Address already
 * in use". Serves only after listener_serve(). */
int listener_open(const struct server_settings *s, struct listener **ret, struct err *reterr);
/* The address really bound ("127.0.0.1:4317"), for logs and port 0. */
const char *listener_address(const struct listener *l);
/* Starts accepting; `service` is copied. Called again (a reload) it replaces the service for later requests. */
int listener_serve(struct listener *l, const struct http_service *service, struct err *reterr);
/* Stops accepting; requests under way may finish until the deadline, then connections are cut. HTTP/2 peers get GOAWAY. */
void listener_stop(struct listener *l, uint64_t deadline_ns);
struct listener *listener_free(struct listener *l); /* NULL ok; returns NULL */

/* "host:port" by the rules of net.SplitHostPort: 0 or -EINVAL with "address foo: missing port in address". */
int endpoint_check(const char *endpoint, struct err *reterr);

#endif
