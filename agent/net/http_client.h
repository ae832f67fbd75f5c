/* HTTP requests to others (libcurl; only http_*.c here include it, and only the first use initialises it). */
#ifndef MOTEL_NET_HTTP_CLIENT_H
#define MOTEL_NET_HTTP_CLIENT_H

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/net/tls.h"

struct http_client; /* kept-alive connections of one worker; one thread at a time, but for http_client_interrupt() */

struct http_client_settings {
    const struct tls_client_settings *tls; /* NULL = defaults; it and the strings must outlive the client */
    const char *proxy_url;                 /* NULL or "" = HTTP_PROXY, HTTPS_PROXY, NO_PROXY by Go's rules */
    const char *no_proxy;                  /* hosts that proxy_url is not for, comma separated; NULL or "" = none */
    const char *user_agent;                /* NULL or "" = none sent */
    int64_t max_conns_per_host, idle_timeout_ns; /* 0 = no limit; idle 0 = 90 s */
    const char *unix_socket; /* the path of one to connect to, whatever host the URL names; NULL = none */
    bool http2;         /* h2 by ALPN on https */
    bool no_keepalive;  /* a new connection for every request */
    bool no_env_proxy;  /* the environment names no proxy */
    bool no_redirects;  /* a redirect is the answer */
};
struct http_client_request {
    const char *method, *url;
    const char *const *headers; /* "name: value", NULL ended; NULL = none */
    const struct bytes *body;   /* parts, sent one after the other without joining them */
    unsigned nbody;
    uint64_t deadline_ns;       /* clock_now_ns; 0 = none */
    size_t max_response_bytes;  /* of the body; the rest is read and dropped, or cut when it is long */
    size_t expected_bytes;      /* how long the body was the last time, about: room for that is made at once; 0 = not known */
    size_t memory_limit;        /* the body is read while mem_room() has room within it; 0 = not asked */
    bool repeatable;            /* may go out again when a kept-alive connection turns out to be dead */
};
struct http_client_response {
    int status;
    struct buf *body;           /* owned by the caller; never NULL after 0 */
    char content_type[128], content_encoding[32], retry_after[64], location[1024];
};
struct http_client *http_client_new(const struct http_client_settings *s, struct err *reterr);
struct http_client *http_client_free(struct http_client *c); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct http_client *, http_client_free)
/* One exchange, redirects by Go's rules. 0; -ETIMEDOUT; -ECANCELED after http_client_interrupt(); -ECONNREFUSED, -EHOSTUNREACH,
 * -EPROTO (TLS), -ELOOP, -EIO … with the reason, which names no secret. */
int http_client_send(struct http_client *c, const struct http_client_request *q, struct http_client_response *ret, struct err *reterr);
/* From any thread: the exchange under way, and every later one, ends with -ECANCELED. */
void http_client_interrupt(struct http_client *c);

/* The parts of a URL; the scheme may be missing (http). IPv6 hosts are in brackets. 0 or -EINVAL. */
struct http_url {
    char scheme[8], host[256], port[8], path[512];
    bool tls;
};
int http_url_split(const char *url, struct http_url *ret);
/* The proxy that a request to `url` takes; false = it goes there directly. */
bool http_client_proxy(const struct http_client_settings *s, const char *url, struct http_url *ret);
/* Appends `url` without user name, password, query values or fragment, for logs and errors. */
void http_url_redact(const char *url, char *ret, size_t size);

#endif
