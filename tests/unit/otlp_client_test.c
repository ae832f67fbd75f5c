/* What the OTLP exporters share: compression names, headers, the meaning of answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/codec.h"
#include "agent/pipeline/otlp_client.h"
#include "proto/wire_order.h"
#include "rig.h"

static void test_compression(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t level;
        bool http, grpc;
    } rows[] = {
        {"gzip", 0, true, true},      {"", 0, true, true},
        {"none", 0, true, true},      {"zstd", 22, true, true},
        {"snappy", 0, true, true},    {"zlib", 9, true, false},
        {"deflate", -2, true, false}, {"x-snappy-framed", 0, true, false},
        {"lz4", 0, true, false},      {"gzip", 10, false, false},
        {"gzip", -3, false, false},   {"zstd", 23, false, false},
        {"snappy", 1, false, false},  {"lz4", 1, false, false},
        {"br", 0, false, false},      {"identity", 0, false, false},
        {"GZIP", 0, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct compression_params p = {rows[i].level};
        struct err e = {""};
        assert_int_equal(compression_check(rows[i].name, &p, false, &e),
                         rows[i].http ? 0 : -EINVAL);
        assert_int_equal(compression_check(rows[i].name, &p, true, &e), rows[i].grpc ? 0 : -EINVAL);
    }
    assert_int_equal(compression_codec("snappy", true), CODEC_SNAPPY_FRAMED);
    assert_int_equal(compression_codec("snappy", false), CODEC_SNAPPY);
    assert_int_equal(compression_codec("none", false), CODEC_IDENTITY);
    assert_int_equal(compression_codec("", true), CODEC_IDENTITY);
}

static struct cfg_map headers_of(const char **names, const char **values, size_t n)
{
    return (struct cfg_map){.keys = names, .values = values, .n = n};
}

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool good;
    } rows[] = {
        {"X-Token", "Bearer abc", true},
        {"x", "", true},
        {"x", "tab\there \xc3\xa9", true},
        {"", "v", false},
        {"x y", "v", false},
        {"x:", "v", false},
        {"x\r\ny", "v", false},
        {"x", "a\r\nb: c", false},
        {"x", "SEKRET\n", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *name = rows[i].name, *value = rows[i].value;
        struct cfg_map m = headers_of(&name, &value, 1);
        struct err e = {""};
        assert_int_equal(client_headers_check(&m, &e), rows[i].good ? 0 : -EINVAL);
        assert_null(strstr(e.text, "SEKRET"));
    }
}

static void test_scrub(void **state)
{
    (void)state;
    const char *names[] = {"Authorization", "x-k", "x-short"},
               *values[] = {"Bearer SEKRET1", "SEKRET3", "ab"};
    struct cfg_map m = headers_of(names, values, 3);
    char text[] = "token SEKRET1 of 'Bearer SEKRET1' and SEKRET3SEKRET3, abc";
    client_headers_scrub(&m, text);
    assert_string_equal(text, "token ******* of '**************' and **************, abc");
    assert_string_equal(client_headers_get(&m, "AUTHORIZATION"), "Bearer SEKRET1");
    assert_null(client_headers_get(&m, "x"));
}

/* Which answers are tried again, and what the client of a pipeline without a queue is told. */
static void test_http_verdicts(void **state)
{
    (void)state;
    static const struct {
        int http;
        enum verdict v;
        int status;
        bool delay;
    } rows[] = {
        {200, VERDICT_OK, 0, false},     {202, VERDICT_OK, 0, false},
        {204, VERDICT_OK, 0, false},     {302, VERDICT_REJECT, 2, false},
        {400, VERDICT_REJECT, 3, false}, {401, VERDICT_REJECT, 16, false},
        {403, VERDICT_REJECT, 7, false}, {404, VERDICT_REJECT, 12, false},
        {408, VERDICT_REJECT, 2, false}, {413, VERDICT_REJECT, 2, false},
        {429, VERDICT_RETRY, 8, true},   {500, VERDICT_REJECT, 2, false},
        {501, VERDICT_REJECT, 2, false}, {502, VERDICT_RETRY, 14, false},
        {503, VERDICT_RETRY, 14, true},  {504, VERDICT_RETRY, 14, false},
        {530, VERDICT_REJECT, 2, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct outcome out = {0};
        assert_int_equal(verdict_of_http(rows[i].http, 3000, &out), rows[i].v);
        assert_int_equal(out.status, rows[i].status);
        assert_int_equal(out.retry_after_ms, rows[i].delay ? 3000 : 0);
        assert_int_equal(out.retry_after_own, rows[i].delay);
    }
}

static void test_grpc_verdicts(void **state)
{
    (void)state;
    for (int code = 0; code < 20; code++) {
        static const bool again[20] = {
            [1] = true, [4] = true, [10] = true, [11] = true, [14] = true, [15] = true};
        struct outcome out = {0};
        struct rpc_status info = {.code = code, .has_retry = true, .retry_after_ms = 1500},
                          none = {.code = code};
        enum verdict v = verdict_of_grpc(code, NULL, &out);
        assert_int_equal(v, code == 0 ? VERDICT_OK : again[code] ? VERDICT_RETRY : VERDICT_REJECT);
        assert_int_equal(out.status, code <= 16 ? code : 2);
        assert_int_equal(verdict_of_grpc(code, &none, &out), v);
        assert_int_equal(out.retry_after_ms, 0);
        v = verdict_of_grpc(code, &info, &out);
        assert_int_equal(v, code == 0                  ? VERDICT_OK
                            : again[code] || code == 8 ? VERDICT_RETRY
                                                       : VERDICT_REJECT);
        assert_int_equal(out.retry_after_ms, v == VERDICT_RETRY ? 1500 : 0);
    }
}

static void test_partial_success(void **state)
{
    (void)state;
    struct outcome out = {0};
    partial_success_note(NULL, SIGNAL_LOGS, &(struct partial_success){0}, &out);
    assert_int_equal(out.rejected, 0);
    partial_success_note(NULL, SIGNAL_METRICS,
                         &(struct partial_success){.rejected = 5000000000, .message = "too old"},
                         &out);
    assert_int_equal(out.rejected, UINT32_MAX);
}

static struct buf *compressed(const struct batch *b, enum codec c, int level)
{
    struct buf *out = buf_new(0);
    assert_int_equal(otlp_client_request_compressed(b, c, level, out), 0);
    return out;
}

/* The default level of gzip and zlib is 4 for metrics and the codec's own for the rest. */
static void test_default_level(void **state)
{
    (void)state;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        _cleanup_batch_ struct batch *b = rig_all_fields((enum signal)s);
        for (int i = 0; i < 4; i++) {
            const enum codec c = i & 1 ? CODEC_ZLIB : CODEC_GZIP;
            _cleanup_buf_ struct buf *usual = compressed(b, c, i & 2 ? -1 : 0);
            _cleanup_buf_ struct buf *want = buf_new(0);
            _cleanup_(wire_order_freep) struct wire_order *order = NULL;
            struct bytes plain;
            assert_int_equal(otlp_client_request(b, &order, &plain), 0);
            assert_int_equal(codec_compress(c, s == SIGNAL_METRICS ? 4 : 0, &plain, 1, want), 0);
            assert_int_equal(usual->len, want->len);
            assert_memory_equal(usual->data, want->data, want->len);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compression),   cmocka_unit_test(test_headers),
        cmocka_unit_test(test_scrub),         cmocka_unit_test(test_http_verdicts),
        cmocka_unit_test(test_grpc_verdicts), cmocka_unit_test(test_partial_success),
        cmocka_unit_test(test_default_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
