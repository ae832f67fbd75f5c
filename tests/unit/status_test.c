/* Status and export responses in both encodings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/status.h"
#include "tests/unit/wire_text.h"

static const struct {
    struct rpc_status status;
    const char *wire, *json;
} statuses[] = {
    {{.code = 0}, "", "{}"},
    {{.code = 3, .message = "bad \"x\""}, "0803 12{'bad \"x\"'}", "{\"code\":3,\"message\":\"bad \\\"x\\\"\"}"},
    {{.code = 14, .message = "full", .has_retry = true, .retry_after_ms = 1500},
     "080e 12{'full'} 1a{0a{'type.googleapis.com/google.rpc.RetryInfo'}12{0a{0801 1080cab5ee01}}}",
     "{\"code\":14,\"message\":\"full\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\","
     "\"retryDelay\":\"1.500s\"}]}"},
    {{.code = 8, .has_retry = true}, "0808 1a{0a{'type.googleapis.com/google.rpc.RetryInfo'}12{0a{}}}",
     "{\"code\":8,\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"0s\"}]}"},
    {{.code = 1, .has_retry = true, .retry_after_ms = 30000},
     "0801 1a{0a{'type.googleapis.com/google.rpc.RetryInfo'}12{0a{081e}}}",
     "{\"code\":1,\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"30s\"}]}"},
};

static void assert_status(const struct rpc_status *got, const struct rpc_status *expected)
{
    assert_int_equal(got->code, expected->code);
    assert_string_equal(got->message, expected->message);
    assert_int_equal(got->has_retry, expected->has_retry);
    assert_int_equal(got->retry_after_ms, expected->retry_after_ms);
}

static void test_status_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        _cleanup_buf_ struct buf *wire = buf_new(0), *json = buf_new(0);
        struct rpc_status st;
        assert_int_equal(status_write(&statuses[i].status, false, wire), 0);
        assert_wire(wire, statuses[i].wire);
        assert_int_equal(status_read(buf_bytes(wire), &st), 0);
        assert_status(&st, &statuses[i].status);
        assert_int_equal(status_write(&statuses[i].status, true, json), 0);
        assert_string_equal(buf_str(json), statuses[i].json);
        assert_int_equal(status_read_json(buf_bytes(json), &st), 0);
        assert_status(&st, &statuses[i].status);
    }
}

static void test_status_from_others(void **state)
{
    (void)state;
    static const struct {
        const char *wire;
        struct rpc_status status;
    } cases[] = {
        {"08ffffffffffffffffff01 12{61ff00'b'}", {.code = -1, .message = "a\xef\xbf\xbd"}},
        {"080e 1a{0a{'type.googleapis.com/google.rpc.Other'}12{ff}}", {.code = 14}},
        {"080e 1a{0a{'type.googleapis.com/google.rpc.RetryInfo'}12{ff}}", {.code = 14}},
        {"080e 1a{0a{'x/google.rpc.RetryInfo'}12{}}", {.code = 14, .has_retry = true}},
        {"1a{0a{'/google.rpc.RetryInfo'}12{0a{08ffffffffffffffffff01}}}", {.code = 0}},
        {"1a{0a{'x/google.rpc.RetryInfo'}12{0a{08ffffffffffffffffff01}}}", {.has_retry = true}},
        {"1a{0a{'x/google.rpc.RetryInfo'}12{0a{1001}}}", {.has_retry = true, .retry_after_ms = 1}},
        {"1a{0a{'x/google.rpc.RetryInfo'}12{0a{08ffffffffffffffff7f}}}",
         {.has_retry = true, .retry_after_ms = 365ull * 24 * 3600 * 1000}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *b = wire_text(cases[i].wire);
        struct rpc_status st;
        assert_int_equal(status_read(buf_bytes(b), &st), 0);
        assert_status(&st, &cases[i].status);
    }
    _cleanup_buf_ struct buf *bad = wire_text("0803 12{'cut'} 1a");
    struct rpc_status st;
    assert_int_equal(status_read(buf_bytes(bad), &st), -EBADMSG);
}

static void test_status_json_from_others(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int result;
        struct rpc_status status;
    } cases[] = {
        {" { \"message\" : \"m\\u00e9\", \"code\" : 16 } ", 0, {.code = 16, .message = "m\xc3\xa9"}},
        {"{\"code\":null,\"message\":null,\"details\":null,\"more\":[{}]}", 0, {.code = 0}},
        {"{\"details\":[3,{\"retryDelay\":\"2s\",\"@type\":\"t/google.rpc.RetryInfo\"},{\"@type\":1}]}", 0,
         {.has_retry = true, .retry_after_ms = 2000}},
        {"{\"details\":[{\"retryDelay\":\"0.0001s\",\"@type\":\"t/google.rpc.RetryInfo\"}]}", 0,
         {.has_retry = true, .retry_after_ms = 1}},
        {"{\"details\":[{\"retryDelay\":\"soon\",\"@type\":\"t/google.rpc.RetryInfo\"}]}", 0, {.has_retry = true}},
        {"{\"details\":[{\"retryDelay\":\"2s\",\"@type\":\"t/google.rpc.Other\"}]}", 0, {.code = 0}},
        {"", -EBADMSG, {.code = 0}},
        {"{\"code\":", -EBADMSG, {.code = 0}},
        {"{\"code\":{}}", -EBADMSG, {.code = 0}},
        {"<html>", -EBADMSG, {.code = 0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rpc_status st;
        assert_int_equal(status_read_json(bytes_str(cases[i].json), &st), cases[i].result);
        if (cases[i].result == 0)
            assert_status(&st, &cases[i].status);
    }
}

/* A long message is cut at a character. */
static void test_long_message(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(0), *text = buf_new(0);
    struct rpc_status st;
    for (int i = 0; i < 200; i++)
        assert_int_equal(buf_append_str(text, "\xe2\x82\xac"), 0);
    assert_int_equal(wire_put_bytes(b, 2, buf_bytes(text)), 0);
    assert_int_equal(status_read(buf_bytes(b), &st), 0);
    assert_int_equal(strlen(st.message), 510);
}

static const struct {
    enum signal signal;
    struct partial_success ps;
    const char *wire, *json;
} responses[] = {
    {SIGNAL_TRACES, {.rejected = 0}, "0a00", "{\"partialSuccess\":{}}"},
    {SIGNAL_TRACES, {.rejected = 3, .message = "no"}, "0a{0803 12{'no'}}",
     "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"no\"}}"},
    {SIGNAL_METRICS, {.rejected = 1}, "0a{0801}", "{\"partialSuccess\":{\"rejectedDataPoints\":\"1\"}}"},
    {SIGNAL_LOGS, {.message = "a warning"}, "0a{12{'a warning'}}",
     "{\"partialSuccess\":{\"errorMessage\":\"a warning\"}}"},
};

static void test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(responses); i++) {
        enum signal s = responses[i].signal;
        for (int json = 0; json < 2; json++) {
            _cleanup_buf_ struct buf *b = buf_new(0);
            struct partial_success ps;
            assert_int_equal(response_write(s, &responses[i].ps, json, b), 0);
            if (json)
                assert_string_equal(buf_str(b), responses[i].json);
            else
                assert_wire(b, responses[i].wire);
            assert_int_equal(response_read(s, buf_bytes(b), json, &ps), 0);
            assert_int_equal(ps.rejected, responses[i].ps.rejected);
            assert_string_equal(ps.message, responses[i].ps.message);
        }
    }
}

static void test_responses_from_others(void **state)
{
    (void)state;
    struct partial_success ps;
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_of("", 0), false, &ps), 0);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_of("", 0), true, &ps), 0);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_str("{}"), true, &ps), 0);
    assert_int_equal(ps.rejected, 0);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_str("{\"partialSuccess\":{\"rejectedLogRecords\":7}}"), true, &ps), 0);
    assert_int_equal(ps.rejected, 7);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_str("<html>"), true, &ps), -EBADMSG);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_str("<html>"), false, &ps), -EBADMSG);
    assert_int_equal(response_read(SIGNAL_LOGS, bytes_str("{\"partialSuccess\":{}}"), false, &ps), -EBADMSG);
    _cleanup_buf_ struct buf *negative = wire_text("0a{08ffffffffffffffffff01}");
    assert_int_equal(response_read(SIGNAL_LOGS, buf_bytes(negative), false, &ps), 0);
    assert_int_equal(ps.rejected, 0);
}

static void test_code_names(void **state)
{
    (void)state;
    assert_string_equal(rpc_code_name(RPC_OK), "OK");
    assert_string_equal(rpc_code_name(RPC_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(rpc_code_name(14), "UNAVAILABLE");
    assert_string_equal(rpc_code_name(17), "UNKNOWN");
    assert_string_equal(rpc_code_name(-1), "UNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_both_ways),
        cmocka_unit_test(test_status_from_others),
        cmocka_unit_test(test_status_json_from_others),
        cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_responses_from_others),
        cmocka_unit_test(test_code_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
