/* HTTP/2 connections: keep-alive, ages, floods, early answers, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/server.h"
#include "fake_pipeline.h"
#include "h2_client.h"

struct world {
    struct listener *l;
    atomic_uint gone, requests;
    struct http_exchange *_Atomic held;
};

static void reply(struct http_exchange *x, const char *text)
{
    struct buf *b = buf_new(0);
    buf_append_str(b, text);
    http_reply(x, 200, NULL, 0, b, NULL, 0, false);
}

static size_t on_headers(void *ctx _unused_, struct http_exchange *x)
{
    if (bytes_eq_str(http_path(x), "/refuse"))
        reply(x, "no");
    return 1 << 20;
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    atomic_fetch_add(&w->requests, 1);
    buf_unref(http_take_body(x));
    if (bytes_eq_str(http_path(x), "/hold"))
        atomic_store(&w->held, x);
    else if (bytes_eq_str(http_path(x), "/drop"))
        http_set_user(x, w);
    else
        reply(x, "yes");
}

static void on_too_large(void *ctx _unused_, struct http_exchange *x)
{
    reply(x, "large");
}

static void on_gone(void *ctx, struct http_exchange *x)
{
    if (http_user(x)) /* nobody else answers it */
        reply(x, "nobody hears this");
    atomic_fetch_add(&((struct world *)ctx)->gone, 1);
}

static void open_world(struct world *w, struct server_settings s)
{
    struct err e = {0};
    const struct http_service service = {on_headers, on_request, on_too_large, on_gone, w};
    *w = (struct world){0};
    s.endpoint = "127.0.0.1:0";
    if (listener_open(&s, &w->l, &e) < 0 || listener_serve(w->l, &service, &e) < 0)
        fail_msg("%s", e.text);
}

static void close_world(struct world *w)
{
    listener_stop(w->l, clock_now_ns() + NS_PER_S);
    w->l = listener_free(w->l);
}

#define FIELDS(path, ...)                                                                          \
    (const char *const[])                                                                          \
    {                                                                                              \
        ":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", ##__VA_ARGS__,     \
            NULL                                                                                   \
    }

static struct h2_peer *connect_world(const struct world *w)
{
    struct h2_peer *p = h2_open(listener_address(w->l));
    assert_true(p->fd >= 0);
    return p;
}

/* "200 yes", "reset 1" or "nothing", of one request. */
static const char *ask(struct h2_peer *p, const char *const *fields, struct bytes body)
{
    static char text[64];
    struct h2_answer a = {.out = body, .end = true};
    h2_begin(p, fields, &a);
    h2_run(p, &a.done, 5000);
    snprintf(text, sizeof(text), "nothing");
    if (a.ended)
        snprintf(text, sizeof(text), "%d %.*s", a.status, (int)a.data->len,
                 a.data->len ? (const char *)a.data->data : "");
    else if (a.reset >= 0)
        snprintf(text, sizeof(text), "reset %d", a.reset);
    if (a.done)
        h2_answer_done(&a);
    return text;
}

static const struct bytes nothing = {(const uint8_t *)"", 0};

static void test_many_requests(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct h2_peer *p = connect_world(&w);
    for (int i = 0; i < 300; i++)
        assert_string_equal(ask(p, FIELDS("/x"), bytes_of("abc", 3)), "200 yes");
    h2_close(p);
    close_world(&w);
}

/* ---- keep-alive and ages ---- */

static void test_age(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){.max_connection_age_ns = 200 * (int64_t)NS_PER_MS});
    struct h2_peer *p = connect_world(&w);
    struct h2_answer a = {.end = true};
    h2_begin(p, FIELDS("/hold"), &a);
    bool never = false;
    h2_run(p, &never, 600);
    assert_int_equal(p->goaway, NGHTTP2_NO_ERROR);
    assert_false(p->closed); /* the request under way is waited for */
    reply(atomic_load(&w.held), "yes");
    h2_run(p, &never, 2000);
    assert_true(a.ended && p->closed);
    h2_answer_done(&a);
    h2_close(p);
    close_world(&w);
}

static void test_grace(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               (struct server_settings){.max_connection_age_ns = 100 * (int64_t)NS_PER_MS,
                                        .max_connection_age_grace_ns = 200 * (int64_t)NS_PER_MS});
    struct h2_peer *p = connect_world(&w);
    struct h2_answer a = {.end = true};
    h2_begin(p, FIELDS("/hold"), &a);
    bool never = false;
    h2_run(p, &never, 2000);
    assert_true(p->closed);
    assert_soon(atomic_load(&w.gone) == 1);
    reply(atomic_load(&w.held), "yes");
    h2_answer_done(&a);
    h2_close(p);
    close_world(&w);
}

static void test_idle(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){.max_connection_idle_ns = 200 * (int64_t)NS_PER_MS});
    struct h2_peer *p = connect_world(&w);
    assert_string_equal(ask(p, FIELDS("/x"), nothing), "200 yes");
    bool never = false;
    h2_run(p, &never, 2000);
    assert_int_equal(p->goaway, NGHTTP2_NO_ERROR);
    assert_true(p->closed);
    h2_close(p);
    close_world(&w);
}

/* A client that answers pings stays, one that does not is dropped. */
static void test_keepalive(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){.keepalive_time_ns = 100 * (int64_t)NS_PER_MS,
                                            .keepalive_timeout_ns = 200 * (int64_t)NS_PER_MS});
    struct h2_peer *p = connect_world(&w), *dead = connect_world(&w);
    assert_string_equal(ask(p, FIELDS("/x"), nothing), "200 yes");
    assert_string_equal(ask(dead, FIELDS("/x"), nothing), "200 yes");
    bool never = false;
    h2_run(p, &never, 700);
    assert_false(p->closed);
    struct raw_result r = raw_talk(dead->fd, nothing, NULL, 0, 1000);
    assert_int_equal(r.end, RAW_CLOSED);
    buf_unref(r.got);
    h2_close(p);
    h2_close(dead);
    close_world(&w);
}

static void test_too_many_pings(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){.keepalive_min_time_ns = 300 * (int64_t)NS_PER_S});
    struct h2_peer *p = connect_world(&w);
    assert_string_equal(ask(p, FIELDS("/x"), nothing), "200 yes");
    bool never = false;
    for (int i = 0; i < 8 && !p->closed; i++) {
        nghttp2_submit_ping(p->session, NGHTTP2_FLAG_NONE, NULL);
        h2_run(p, &never, 100);
    }
    assert_int_equal(p->goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_in_range(p->pings, 2, 5);
    h2_close(p);
    close_world(&w);
    open_world(&w, (struct server_settings){0}); /* without a policy all are answered */
    p = connect_world(&w);
    for (int i = 0; i < 8; i++) {
        nghttp2_submit_ping(p->session, NGHTTP2_FLAG_NONE, NULL);
        h2_run(p, &never, 20);
    }
    assert_int_equal(p->pings, 8);
    h2_close(p);
    close_world(&w);
}

/* ---- limits ---- */

static void test_header_limits(void **state)
{
    (void)state;
    struct world w;
    static char value[15000];
    const char *fields[64] = {":method", "POST", ":scheme",    "http",
                              ":path",   "/x",   ":authority", "x"};
    memset(value, 'v', sizeof(value) - 1);
    for (size_t i = 8; i < 18; i += 2) {
        fields[i] = "x-long";
        fields[i + 1] = value;
    }
    open_world(&w, (struct server_settings){0});
    struct h2_peer *p = connect_world(&w);
    assert_string_equal(ask(p, fields, nothing), "431 431 Request Header Fields Too Large");
    fields[12] = NULL;
    assert_string_equal(ask(p, fields, nothing), "200 yes");
    h2_close(p);
    close_world(&w);
}

static void test_concurrent_streams(void **state)
{
    (void)state;
    struct world w;
    struct h2_answer a[4] = {0};
    open_world(&w, (struct server_settings){.max_concurrent_streams = 2});
    struct h2_peer *p = connect_world(&w);
    bool never = false;
    h2_run(p, &never, 100); /* its settings arrive */
    for (size_t i = 0; i < ARRAY_SIZE(a); i++) {
        a[i].end = true;
        h2_begin(p, FIELDS("/drop"), &a[i]);
    }
    h2_run(p, &never, 200);
    assert_int_equal(atomic_load(&w.requests), 2); /* the client holds the others back */
    for (int i = 0; i < 2; i++) {
        nghttp2_submit_rst_stream(p->session, NGHTTP2_FLAG_NONE, a[i].id, NGHTTP2_CANCEL);
        h2_run(p, &never, 100);
    }
    assert_soon(atomic_load(&w.requests) == 4);
    assert_soon(atomic_load(&w.gone) == 2);
    h2_close(p);
    assert_soon(atomic_load(&w.gone) == 4);
    for (size_t i = 0; i < ARRAY_SIZE(a); i++)
        h2_answer_done(&a[i]);
    close_world(&w);
}

static void test_rapid_reset(void **state)
{
    (void)state;
    struct world w;
    bool never = false;
    open_world(&w, (struct server_settings){.stream_reset_burst = 100, .stream_reset_rate = 10});
    struct h2_peer *p = connect_world(&w);
    struct h2_answer a[40];
    unsigned n = 0;
    while (!p->closed && p->goaway < 0 && n < 2000) {
        memset(a, 0, sizeof(a));
        for (size_t i = 0; i < ARRAY_SIZE(a); i++, n++) {
            h2_begin(p, FIELDS("/x"), &a[i]);
            h2_send(p);
            nghttp2_submit_rst_stream(p->session, NGHTTP2_FLAG_NONE, a[i].id, NGHTTP2_CANCEL);
        }
        h2_run(p, &never, 20);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
            h2_answer_done(&a[i]);
    }
    assert_in_range(n, 80, 1000);
    h2_close(p);
    p = connect_world(&w); /* the others are served */
    assert_string_equal(ask(p, FIELDS("/x"), nothing), "200 yes");
    h2_close(p);
    close_world(&w);
}

/* ---- answers before the end of a request ---- */

static void test_early_answer(void **state)
{
    (void)state;
    struct world w;
    _cleanup_buf_ struct buf *body = buf_new(0);
    buf_reserve(body, 24 << 20);
    memset(body->data, 'B', 24 << 20);
    buf_commit(body, 24 << 20);
    open_world(&w, (struct server_settings){0});
    struct h2_peer *p = connect_world(&w);
    assert_string_equal(ask(p, FIELDS("/refuse"), bytes_of(body->data, 3 << 20)), "200 no");
    assert_string_equal(ask(p, FIELDS("/x"), bytes_of(body->data, 3 << 20)), "200 large");
    assert_string_equal(
        ask(p, FIELDS("/x", "content-length", "3145728"), bytes_of(body->data, 3 << 20)),
        "200 large");
    assert_string_equal(ask(p, FIELDS("/x"), buf_bytes(body)),
                        "200 large"); /* cut off at some point */
    assert_string_equal(ask(p, FIELDS("/x"), bytes_of("abc", 3)), "200 yes");
    h2_close(p);
    close_world(&w);
}

/* ---- the end ---- */

static void *stop_world(void *w)
{
    close_world(w);
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    struct world w;
    pthread_t t;
    bool never = false;
    open_world(&w, (struct server_settings){0});
    struct h2_peer *p = connect_world(&w), *idle = connect_world(&w);
    struct h2_answer a = {.end = true};
    assert_string_equal(ask(idle, FIELDS("/x"), nothing), "200 yes");
    h2_begin(p, FIELDS("/hold"), &a);
    h2_run(p, &never, 50);
    assert_soon(atomic_load(&w.held) != NULL);
    pthread_create(&t, NULL, stop_world, &w);
    h2_run(idle, &idle->closed, 3000);
    assert_true(idle->closed && idle->goaway == NGHTTP2_NO_ERROR);
    h2_run(p, &never, 100);
    assert_int_equal(p->goaway, NGHTTP2_NO_ERROR);
    reply(atomic_load(&w.held), "in time");
    h2_run(p, &p->closed, 3000);
    assert_true(a.ended && a.status == 200);
    pthread_join(t, NULL);
    h2_answer_done(&a);
    h2_close(p);
    h2_close(idle);
}

static void test_garbage_after_the_preface(void **state)
{
    (void)state;
    static const char junk[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\5\4\0\0\0\0\1hello more junk that is no frame at all";
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct raw_result r =
        raw_exchange(listener_address(w.l), bytes_of(junk, sizeof(junk) - 1), NULL, 3000);
    assert_int_equal(r.end, RAW_CLOSED);
    buf_unref(r.got);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_requests), cmocka_unit_test(test_age),
        cmocka_unit_test(test_grace),         cmocka_unit_test(test_idle),
        cmocka_unit_test(test_keepalive),     cmocka_unit_test(test_too_many_pings),
        cmocka_unit_test(test_header_limits), cmocka_unit_test(test_concurrent_streams),
        cmocka_unit_test(test_rapid_reset),   cmocka_unit_test(test_early_answer),
        cmocka_unit_test(test_stop),          cmocka_unit_test(test_garbage_after_the_preface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
