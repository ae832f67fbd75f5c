/* Every allocation of our own code in codecs and clients fails once: an error, no leak, no crash,
 * and the next try is good. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/net/codec.h"
#include "agent/net/grpc.h"
#include "agent/net/grpc_client.h"
#include "agent/net/http_pool.h"
#include "agent/pipeline/otlp_client.h"
#include "proto/wire_order.h"

#include "canned.h"
#include "h2_server.h"
#include "tests/unit/oom.h"

/* Runs `one` with the first, second, … allocation failing until it is good; returns how many
 * failed. */
static unsigned each_failure(int (*one)(void *ctx), void *ctx)
{
    for (unsigned n = 1; n < 1000; n++) {
        size_t before = mem_used();
        fail_in = n;
        int r = one(ctx);
        bool reached = fail_in == 0;
        fail_in = 0;
        assert_int_equal(mem_used(), before);
        if (!reached) {
            assert_int_equal(r, 0);
            return n - 1;
        }
    }
    fail();
    return 0;
}

static struct buf *text(size_t len)
{
    struct buf *b = buf_new(0);
    for (size_t i = 0; i < len; i++)
        buf_putc(b, (char)(i * i >> 3));
    return b;
}

struct codec_case {
    enum codec codec;
    int level;
    const struct buf *plain;
};

/* Two parts, so that they have to be joined where the codec needs that. */
static int pack_and_unpack(void *ctx)
{
    const struct codec_case *t = ctx;
    struct bytes parts[] = {bytes_of(t->plain->data, 1000),
                            bytes_of(t->plain->data + 1000, t->plain->len - 1000)};
    _cleanup_buf_ struct buf *packed = buf_new(0);
    _cleanup_buf_ struct buf *out = buf_new(0);
    int r = packed && out ? codec_compress(t->codec, t->level, parts, 2, packed) : -ENOMEM;
    if (r == 0)
        r = codec_decompress(t->codec, buf_bytes(packed), out, NULL);
    if (r == 0)
        assert_true(bytes_eq(buf_bytes(out), buf_bytes(t->plain)));
    else
        assert_int_equal(r, -ENOMEM);
    return r;
}

static void test_codecs(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *plain = text(200000);
    for (enum codec c = CODEC_IDENTITY; c < CODEC_UNKNOWN; c++)
        for (int level = 0; level < 2; level++) {
            struct codec_case t = {c, level, plain};
            assert_true(each_failure(pack_and_unpack, &t) >= 2);
        }
}

static int call_grpc(void *ctx)
{
    const struct h2_server *s = ctx;
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", s->port);
    const struct grpc_client_settings settings = {.endpoint = endpoint, .compression = CODEC_GZIP};
    _cleanup_(grpc_client_freep) struct grpc_client *c = NULL;
    int r = grpc_client_new(&settings, &c, NULL);
    if (r < 0)
        return r;
    struct grpc_response res;
    struct bytes part = bytes_str("hello");
    grpc_client_call(c, "/p.S/M", &part, 1, clock_now_ns() + 5 * NS_PER_S, &res);
    assert_true(res.code == GRPC_OK || res.code == GRPC_UNAVAILABLE);
    buf_unref(res.message_bytes);
    buf_unref(res.details);
    return res.code == GRPC_OK ? 0 : -ENOMEM;
}

static void test_grpc_client(void **state)
{
    (void)state;
    const struct h2_answer answer = {.grpc_status = "0"};
    struct h2_server *s = h2_start(&answer, 1);
    buf_reserve(s->headers, 1 << 20); /* the server's own memory does not grow meanwhile */
    buf_reserve(s->body, 1 << 20);
    assert_true(each_failure(call_grpc, s) >= 3);
    h2_stop(s);
}

static int call_http(void *ctx)
{
    const struct canned *s = ctx;
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s->port);
    struct http_pool *p = http_pool_new(&(struct http_client_settings){.user_agent = "x"}, 1, NULL);
    if (!p)
        return -ENOMEM;
    struct http_client_response res = {0};
    struct bytes part = bytes_str("hello");
    const struct http_client_request q = {.method = "POST",
                                          .url = url,
                                          .body = &part,
                                          .nbody = 1,
                                          .max_response_bytes = 100,
                                          .deadline_ns = clock_now_ns() + 5 * NS_PER_S};
    int r = http_pool_send(p, &q, &res, NULL);
    buf_unref(res.body);
    http_pool_free(p);
    return r;
}

static void test_http_pool(void **state)
{
    (void)state;
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", NULL};
    struct canned *s = canned_start(answers);
    assert_true(each_failure(call_http, s) >= 4);
    canned_stop(s);
}

static int make_request(void *ctx)
{
    const struct batch *b = ctx;
    _cleanup_(wire_order_freep) struct wire_order *owner = NULL;
    _cleanup_buf_ struct buf *packed = NULL;
    struct bytes made;
    int r = otlp_client_request(b, &owner, &made);
    if (r == 0)
        r = (packed = buf_new(0)) ? otlp_client_request_compressed(b, CODEC_ZSTD, 0, packed)
                                  : -ENOMEM;
    return r;
}

static void test_requests(void **state)
{
    (void)state;
    struct buf *segs[2] = {buf_new(0), buf_new(0)};
    for (int i = 0; i < 2; i++)
        buf_append(segs[i], "\x0a\x04\x12\x02\x12\x00", 6);
    _cleanup_batch_ struct batch *b = batch_new(SIGNAL_TRACES, segs, 2, 2);
    assert_true(each_failure(make_request, b) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs),
        cmocka_unit_test(test_grpc_client),
        cmocka_unit_test(test_http_pool),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
