/* HTTP clients shared by the workers of one exporter: each request gets one that is free, with its kept-alive connection. */
#ifndef MOTEL_NET_HTTP_POOL_H
#define MOTEL_NET_HTTP_POOL_H

#include "agent/net/http_client.h"

struct http_pool;
/* `s` is copied (what it points to is not). `max_idle`: clients kept while unused. s->max_conns_per_host > 0 bounds the requests that
 * are under way; more of them wait. */
struct http_pool *http_pool_new(const struct http_client_settings *s, unsigned max_idle, struct err *reterr);
struct http_pool *http_pool_free(struct http_pool *p); /* NULL ok; returns NULL; no request is under way */
/* http_client_send() on a free client; any thread. */
int http_pool_send(struct http_pool *p, const struct http_client_request *q, struct http_client_response *ret, struct err *reterr);
/* From any thread: requests under way, and all later ones, end with -ECANCELED. */
void http_pool_interrupt(struct http_pool *p);

#endif
