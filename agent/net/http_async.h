/* Many HTTP requests at a time on one thread; all functions but http_async_wake() are for that thread. */
#ifndef MOTEL_NET_HTTP_ASYNC_H
#define MOTEL_NET_HTTP_ASYNC_H

#include "agent/net/http_client.h"

struct http_async;
/* `max_idle`: connections kept alive while unused, of all callers together. NULL with the reason. */
struct http_async *http_async_new(unsigned max_idle, struct err *reterr);
struct http_async *http_async_free(struct http_async *a); /* NULL ok; returns NULL; after its callers */
DEFINE_CLEANUP(struct http_async *, http_async_free)

/* Who makes one request at a time, always with the same settings. */
struct http_caller;
struct http_caller *http_caller_new(struct http_async *a, const struct http_client_settings *s, struct err *reterr);
struct http_caller *http_caller_free(struct http_caller *c); /* NULL ok; returns NULL; a request under way ends without done() */
DEFINE_CLEANUP(struct http_caller *, http_caller_free)

/* Called once for each request from http_async_run(): `error` and the reason as of http_client_send(). The response is the callee's to
 * read; it may take the body (res->body = NULL). The next request may be made from it. */
struct http_done {
    void (*fn)(void *ctx, int error, struct http_client_response *res, const struct err *reason);
    void *ctx;
};
/* Starts a request; the strings of `q` must last until done(). -EBUSY while one is under way; or -errno with the reason (then no done()). */
int http_caller_send(struct http_caller *c, const struct http_client_request *q, struct http_done done, struct err *reterr);
bool http_caller_busy(const struct http_caller *c);
/* The request under way ends without done(). */
void http_caller_cancel(struct http_caller *c);

/* Moves all requests on: waits until something happens, http_async_wake(), or the clock_now_ns() time. */
void http_async_run(struct http_async *a, uint64_t until_ns);
/* From any thread: the wait under way, or the next one, ends at once. */
void http_async_wake(struct http_async *a);

#endif
