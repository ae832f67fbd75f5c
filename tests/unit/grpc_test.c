/* gRPC framing, texts, time-outs and codes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/grpc.h"

static void test_frames(void **state)
{
    (void)state;
    uint8_t in[] = {1, 0, 0, 0, 3, 'a', 'b', 'c', 'x'};
    bool compressed = false;
    struct bytes payload;
    size_t used = 0, need = 9;
    for (size_t n = 0; n < 5; n++) {
        assert_int_equal(grpc_frame_parse(bytes_of(in, n), &compressed, &payload, &used, &need), 0);
        assert_int_equal(need, 0);
    }
    assert_int_equal(grpc_frame_parse(bytes_of(in, 7), &compressed, &payload, &used, &need), 0);
    assert_int_equal(need, 3);
    assert_int_equal(grpc_frame_parse(bytes_of(in, 9), &compressed, &payload, &used, &need), 1);
    assert_true(compressed);
    assert_int_equal(used, 8);
    assert_true(bytes_eq_str(payload, "abc"));
    in[0] = 2;
    assert_int_equal(grpc_frame_parse(bytes_of(in, 1), &compressed, &payload, &used, &need),
                     -EBADMSG);
}

static void test_prefix(void **state)
{
    (void)state;
    uint8_t p[5];
    grpc_frame_prefix(true, 0x01020304, p);
    assert_memory_equal(p, "\1\1\2\3\4", 5);
}

static void test_percent(void **state)
{
    (void)state;
    static const struct {
        const char *text, *encoded;
    } rows[] = {{"plain text!", "plain text!"},
                {"50% \xc3\xa9\n", "50%25 %C3%A9%0A"},
                {"", ""},
                {"~\x7f", "~%7F"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0), *back = buf_new(0);
        assert_int_equal(grpc_percent_encode(bytes_str(rows[i].text), out), 0);
        assert_string_equal(buf_str(out), rows[i].encoded);
        assert_int_equal(grpc_percent_decode(buf_bytes(out), back), 0);
        assert_string_equal(buf_str(back), rows[i].text);
    }
    _cleanup_buf_ struct buf *odd = buf_new(0);
    grpc_percent_decode(bytes_str("%zz %4 %c3%A9%"), odd);
    assert_string_equal(buf_str(odd), "%zz %4 \xc3\xa9%");
}

static void test_timeouts(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        {0, "0n"},
        {1, "1n"},
        {99999999, "99999999n"},
        {100000000, "100000u"},
        {100000001, "100001u"},
        {5000000000, "5000000u"},
        {300000000000, "300000m"},
        {360000000000000, "360000S"},
        {UINT64_MAX, "5124096H"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[16];
        uint64_t back = 0;
        grpc_timeout_format(rows[i].ns, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(grpc_timeout_parse(bytes_str(text), &back), 0);
        assert_true(back >= rows[i].ns && back - rows[i].ns <= rows[i].ns / 1000);
    }
    static const char *const bad[] = {"", "5", "S", "5s", "-1S", "123456789S", "1 S"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t ns;
        assert_int_equal(grpc_timeout_parse(bytes_str(bad[i]), &ns), -EBADMSG);
    }
}

static void test_bin(void **state)
{
    (void)state;
    static const struct {
        const char *plain, *encoded, *padded;
    } rows[] = {{"", "", ""},
                {"f", "Zg", "Zg=="},
                {"fo", "Zm8", "Zm8="},
                {"foo", "Zm9v", "Zm9v"},
                {"\xff\xfe\xfd", "//79", "//79"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0), *a = buf_new(0), *b = buf_new(0);
        grpc_bin_encode(bytes_str(rows[i].plain), out);
        assert_string_equal(buf_str(out), rows[i].encoded);
        assert_int_equal(grpc_bin_decode(bytes_str(rows[i].encoded), a), 0);
        assert_int_equal(grpc_bin_decode(bytes_str(rows[i].padded), b), 0);
        assert_string_equal(buf_str(a), rows[i].plain);
        assert_string_equal(buf_str(b), rows[i].plain);
    }
    static const char *const bad[] = {"Z", "Zm9vZ", "Z===", "Zm=v", "Zm-_"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(grpc_bin_decode(bytes_str(bad[i]), out), -EBADMSG);
    }
}

static void test_codes(void **state)
{
    (void)state;
    static const struct {
        int http, plain, otlp;
    } rows[] = {{400, 13, 3}, {401, 16, 16}, {403, 7, 7},   {404, 12, 12}, {429, 14, 8},
                {500, 2, 2},  {502, 14, 14}, {503, 14, 14}, {504, 14, 14}, {418, 2, 2}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(grpc_code_of_http(rows[i].http), rows[i].plain);
        assert_int_equal(otlp_code_of_http(rows[i].http), rows[i].otlp);
    }
    static const int http[17] = {200, 503, 500, 400, 503, 500, 500, 403, 429,
                                 500, 503, 503, 404, 500, 503, 503, 401};
    for (int c = 0; c < 17; c++)
        assert_int_equal(http_status_of_grpc(c), http[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),  cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_percent), cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_bin),     cmocka_unit_test(test_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
