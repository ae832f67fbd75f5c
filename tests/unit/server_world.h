/* A listener with a service that answers by path. */
#ifndef MOTEL_TESTS_SERVER_WORLD_H
#define MOTEL_TESTS_SERVER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/server.h"
#include "tests/unit/fake_pipeline.h"
#include "tests/unit/raw_client.h"

#define LIMIT (1u << 20) /* of bodies */
#define HEAD(path) "POST " path " HTTP/1.1\r\nHost: x\r\n"
#define GOOD HEAD("/good") "Content-Length: 4\r\nConnection: close\r\n\r\nMARK"

/* A service that answers by path. */
struct world {
    struct listener *l;
    const char *name;
    atomic_uint requests, gone, bodies;
    atomic_size_t last_body;
    struct http_exchange *_Atomic held; /* of /hold: answered by the test */
};

static inline struct buf *text(const char *s)
{
    struct buf *b = buf_new(0);
    buf_append_str(b, s);
    return b;
}

static inline void reply(struct http_exchange *x, int status, struct buf *body, bool close)
{
    const struct http_header_out type = {"content-type", "text/plain"};
    http_reply(x, status, &type, 1, body, NULL, 0, close);
}

static inline size_t on_headers(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    atomic_fetch_add(&w->requests, 1);
    if (bytes_eq_str(http_path(x), "/refuse"))
        reply(x, 404, text("404 refused"), false);
    if (bytes_eq_str(http_path(x), "/close"))
        reply(x, 503, text("503 go away"), true);
    return bytes_eq_str(http_path(x), "/ten") ? 10 : LIMIT;
}

static inline void *answer_late(void *arg)
{
    reply(arg, 200, text("late"), false);
    return NULL;
}

static inline void on_request(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    struct buf *body = http_take_body(x);
    pthread_t t;
    atomic_fetch_add(&w->bodies, 1);
    atomic_store(&w->last_body, body ? body->len : 0);
    if (bytes_eq_str(http_path(x), "/echo")) {
        reply(x, 200, body, false);
        return;
    }
    buf_unref(body);
    if (bytes_eq_str(http_path(x), "/late")) {
        pthread_create(&t, NULL, answer_late, x);
        pthread_detach(t);
    } else if (bytes_eq_str(http_path(x), "/hold")) {
        atomic_store(&w->held, x);
    } else if (bytes_eq_str(http_path(x), "/big")) {
        struct buf *b = buf_new(0);
        buf_reserve(b, 8u << 20);
        buf_commit(b, 8u << 20);
        memset(b->data, 'b', b->len);
        reply(x, 200, b, false);
    } else {
        reply(x, 200, text(w->name), false);
    }
}

static inline void on_too_large(void *ctx _unused_, struct http_exchange *x)
{
    reply(x, 413, text("413 too large"), true);
}

static inline void on_gone(void *ctx, struct http_exchange *x _unused_)
{
    atomic_fetch_add(&((struct world *)ctx)->gone, 1);
}

static inline struct http_service service_of(struct world *w)
{
    return (struct http_service){on_headers, on_request, on_too_large, on_gone, w};
}

static inline void open_world(struct world *w, struct server_settings s)
{
    struct err e = {0};
    const struct http_service service = service_of(w);
    *w = (struct world){.name = "hello"};
    s.endpoint = s.endpoint ? s.endpoint : "127.0.0.1:0";
    if (listener_open(&s, &w->l, &e) < 0 || listener_serve(w->l, &service, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void close_world(struct world *w)
{
    listener_stop(w->l, clock_now_ns() + 2 * NS_PER_S);
    w->l = listener_free(w->l);
}

static inline void *close_world_thread(void *w)
{
    close_world(w);
    return NULL;
}

static inline int connect_world(const struct world *w)
{
    return raw_connect(listener_address(w->l));
}

static inline struct raw_result say(const struct world *w, const char *request, const char *until)
{
    return raw_exchange(listener_address(w->l), bytes_str(request), until, 3000);
}

#endif
