/* JSON in: what is taken, what it becomes, what is refused and where. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/check.h"
#include "proto/json.h"

static const struct schema_message *message(const char *name)
{
    char full[100];
    snprintf(full, sizeof(full), "opentelemetry.proto.%s", name);
    const struct schema_message *m = schema_find(full);
    assert_non_null(m);
    return m;
}

struct taken {
    const char *in, *out;
};

/* Reads `in` as `m` and writes it again. */
static void check_taken(const struct schema_message *m, const struct taken *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_buf_ struct buf *wire = buf_new(0);
        _cleanup_buf_ struct buf *out = buf_new(0);
        struct err e = {0};
        if (json_read(m, bytes_str(cases[i].in), wire, &e) < 0)
            fail_msg("%s: %s", cases[i].in, e.text);
        assert_int_equal(json_write(m, buf_bytes(wire), 0, out), 0);
        assert_string_equal(buf_str(out), cases[i].out);
    }
}

static void test_values(void **state)
{
    (void)state;
    static const struct taken cases[] = {
        {"{}", "{}"},
        {" \r\n\t{ } trailing {", "{}"},
        {"null", "{}"},
        {"{\"stringValue\":\"\"}", "{\"stringValue\":\"\"}"},
        {"{\"stringValue\":null}", "{\"stringValue\":\"\"}"},
        {"{\"string_value\":\"x\"}", "{\"stringValue\":\"x\"}"},
        {"{\"string\\u0056alue\":\"x\"}", "{\"stringValue\":\"x\"}"},
        {"{\"stringValue\":\"a\\u0000b\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
         "{\"stringValue\":\"a\\u0000b\\\"\\\\/\\u0008\\u000c\\n\\r\\t\"}"},
        {"{\"stringValue\":\"\\u00e9\\u503c\\ud83d\\ude80\"}", "{\"stringValue\":\"é值🚀\"}"},
        {"{\"stringValue\":\"\\ud800\"}", "{\"stringValue\":\"\xef\xbf\xbd\"}"},
        {"{\"stringValue\":\"\\ud800x\\udc00\"}",
         "{\"stringValue\":\"\xef\xbf\xbdx\xef\xbf\xbd\"}"},
        {"{\"stringValue\":\"\\ud800\\u0041\"}", "{\"stringValue\":\"\xef\xbf\xbd"
                                                 "A\"}"},
        {"{\"stringValue\":\"\\ud83d\\ud83d\\ude80\"}", "{\"stringValue\":\"\xef\xbf\xbd🚀\"}"},
        {"{\"stringValue\":\"a\xff\"}", "{\"stringValue\":\"a\xef\xbf\xbd\"}"},
        {"{\"boolValue\":false}", "{\"boolValue\":false}"},
        {"{\"intValue\":0}", "{\"intValue\":\"0\"}"},
        {"{\"intValue\":\"0\"}", "{\"intValue\":\"0\"}"},
        {"{\"intValue\":9007199254740993}", "{\"intValue\":\"9007199254740993\"}"},
        {"{\"intValue\":\"-9223372036854775808\"}", "{\"intValue\":\"-9223372036854775808\"}"},
        {"{\"intValue\":9223372036854775807}", "{\"intValue\":\"9223372036854775807\"}"},
        {"{\"intValue\":\"+7\"}", "{\"intValue\":\"7\"}"},
        {"{\"doubleValue\":1.5}", "{\"doubleValue\":1.5}"},
        {"{\"doubleValue\":-0.0}", "{\"doubleValue\":-0}"},
        {"{\"doubleValue\":1e-7}", "{\"doubleValue\":1e-07}"},
        {"{\"doubleValue\":123456789012345678901234567890}",
         "{\"doubleValue\":1.2345678901234568e+29}"},
        {"{\"doubleValue\":0."
         "1000000000000000055511151231257827021181583404541015625000000000000000000000000000000000"
         "}",
         "{\"doubleValue\":0.1}"},
        {"{\"doubleValue\":1e-400}", "{\"doubleValue\":0}"},
        {"{\"doubleValue\":\"NaN\"}", "{\"doubleValue\":\"NaN\"}"},
        {"{\"doubleValue\":\"-Infinity\"}", "{\"doubleValue\":\"-Infinity\"}"},
        {"{\"doubleValue\":\"+inf\"}", "{\"doubleValue\":\"Infinity\"}"},
        {"{\"doubleValue\":\"2.50\"}", "{\"doubleValue\":2.5}"},
        {"{\"doubleValue\":\".5e1\"}", "{\"doubleValue\":5}"},
        {"{\"bytesValue\":\"AP8=\"}", "{\"bytesValue\":\"AP8=\"}"},
        {"{\"bytesValue\":\"\"}", "{\"bytesValue\":\"\"}"},
        {"{\"arrayValue\":{}}", "{\"arrayValue\":{}}"},
        {"{\"arrayValue\":null}", "{\"arrayValue\":{}}"},
        {"{\"arrayValue\":{\"values\":[]}}", "{\"arrayValue\":{}}"},
        {"{\"arrayValue\":{\"values\":null}}", "{\"arrayValue\":{}}"},
        {"{\"arrayValue\":{\"values\":[{},null]}}", "{\"arrayValue\":{\"values\":[{},{}]}}"},
        {"{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[{"
         "\"kvlistValue\":{\"values\":["
         "{\"key\":\"z\",\"value\":{\"intValue\":\"1\"}}]}},{\"boolValue\":false},{\"bytesValue\":"
         "\"AP8=\"},{\"doubleValue\":1.5}]}}}]}}",
         "{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[{"
         "\"kvlistValue\":{\"values\":["
         "{\"key\":\"z\",\"value\":{\"intValue\":\"1\"}}]}},{\"boolValue\":false},{\"bytesValue\":"
         "\"AP8=\"},{\"doubleValue\":1.5}]}}}]}}"},
        {"{\"future\":{\"a\":[1,{\"b\":null,\"c\\n\":\"\\u0041\\\"\"},[],{},-1.5e+3,true,false,"
         "\"x\"]},\"boolValue\":true}",
         "{\"boolValue\":true}"},
    };
    check_taken(message("common.v1.AnyValue"), cases, ARRAY_SIZE(cases));
}

static void test_spans(void **state)
{
    (void)state;
    static const struct taken cases[] = {
        {"{\"traceId\":\"000102030405060708090A0B0C0D0E0F\",\"spanId\":\"0F0e0d0c0b0a0908\"}",
         "{\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":\"0f0e0d0c0b0a0908\","
         "\"status\":{}}"},
        {"{\"traceId\":\"\",\"parentSpanId\":\"\",\"name\":\"\",\"traceState\":null,\"kind\":0,"
         "\"flags\":0,\"events\":[],\"status\":null}",
         "{\"status\":{}}"},
        {"{\"traceId\":\"00000000000000000000000000000000\"}", "{\"status\":{}}"},
        {"{\"start_time_unix_nano\":1700000000123456789,\"endTimeUnixNano\":"
         "\"18446744073709551615\"}",
         "{\"startTimeUnixNano\":\"1700000000123456789\",\"endTimeUnixNano\":"
         "\"18446744073709551615\",\"status\":{}}"},
        {"{\"endTimeUnixNano\":18446744073709551615}",
         "{\"endTimeUnixNano\":\"18446744073709551615\",\"status\":{}}"},
        {"{\"flags\":\"4294967295\",\"droppedAttributesCount\":\"2\"}",
         "{\"flags\":4294967295,\"droppedAttributesCount\":2,\"status\":{}}"},
        {"{\"kind\":\"SPAN_KIND_SERVER\",\"status\":{\"code\":\"STATUS_CODE_ERROR\"}}",
         "{\"kind\":2,\"status\":{\"code\":2}}"},
        {"{\"kind\":99}", "{\"kind\":99,\"status\":{}}"},
        {"{\"name\":\"a\",\"name\":\"b\",\"kind\":2,\"kind\":0}", "{\"name\":\"b\",\"status\":{}}"},
        {"{\"traceId\":\"000102030405060708090A0B0C0D0E0F\",\"traceId\":\"\"}", "{\"status\":{}}"},
        {"{\"attributes\":[{\"key\":\"k\",\"value\":null},{\"key\":\"\"},{}],\"links\":[{"
         "\"spanId\":\"0F0e0d0c0b0a0908\"}]}",
         "{\"attributes\":[{\"key\":\"k\",\"value\":{}},{\"value\":{}},{\"value\":{}}],\"links\":[{"
         "\"spanId\":\"0f0e0d0c0b0a0908\"}],"
         "\"status\":{}}"},
        {"{\"attributes\":[{\"key\":\"a\"}],\"name\":\"n\",\"attributes\":[{\"key\":\"b\"}]}",
         "{\"name\":\"n\",\"attributes\":[{\"key\":\"a\",\"value\":{}},{\"key\":\"b\",\"value\":{}}"
         "],\"status\":{}}"},
    };
    check_taken(message("trace.v1.Span"), cases, ARRAY_SIZE(cases));
}

static void test_points(void **state)
{
    (void)state;
    static const struct taken histogram[] = {
        {"{\"count\":\"3\",\"bucketCounts\":[\"1\",2],\"explicitBounds\":[1,\"2.5\"],\"min\":0}",
         "{\"count\":\"3\",\"bucketCounts\":[\"1\",\"2\"],\"explicitBounds\":[1,2.5],\"min\":0}"},
        {"{\"bucketCounts\":[],\"explicitBounds\":null,\"count\":0}", "{}"},
    };
    static const struct taken exponential[] = {
        {"{\"scale\":-1,\"positive\":{\"offset\":-5,\"bucketCounts\":[1,\"300\"]}}",
         "{\"scale\":-1,\"positive\":{\"offset\":-5,\"bucketCounts\":[\"1\",\"300\"]},\"negative\":"
         "{}}"},
        {"{\"scale\":2147483647,\"negative\":{\"offset\":-2147483648}}",
         "{\"scale\":2147483647,\"positive\":{},\"negative\":{\"offset\":-2147483648}}"},
    };
    static const struct taken number[] = {
        {"{\"asDouble\":0}", "{\"asDouble\":0}"},
        {"{\"asInt\":\"-5\"}", "{\"asInt\":\"-5\"}"},
        {"{\"asInt\":0}", "{\"asInt\":\"0\"}"},
    };
    check_taken(message("metrics.v1.HistogramDataPoint"), histogram, ARRAY_SIZE(histogram));
    check_taken(message("metrics.v1.ExponentialHistogramDataPoint"), exponential,
                ARRAY_SIZE(exponential));
    check_taken(message("metrics.v1.NumberDataPoint"), number, ARRAY_SIZE(number));
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *message, *in, *want;
    } cases[] = {
        {"common.v1.AnyValue", "", "line 1, column 1: expected an object, got the end of the text"},
        {"common.v1.AnyValue", "[]", "line 1, column 1: expected an object, got '['"},
        {"common.v1.AnyValue", "nul", "line 1, column 1: expected null, got 'n'"},
        {"common.v1.AnyValue", "{", "line 1, column 2: expected a string, got the end of the text"},
        {"common.v1.AnyValue", "{\"a\"", "line 1, column 5: expected ':', got the end of the text"},
        {"common.v1.AnyValue", "{\"a\":1,}", "line 1, column 8: expected a string, got '}'"},
        {"common.v1.AnyValue", "{\"a\":1 \"b\":2}",
         "line 1, column 8: expected ',' or '}', got '\"'"},
        {"common.v1.AnyValue", "{\"a\":[1,]}", "line 1, column 9: expected a value, got ']'"},
        {"common.v1.AnyValue", "{\"a\":[1}}", "line 1, column 8: expected ',' or ']', got '}'"},
        {"common.v1.AnyValue", "{\"a\":NaN}", "line 1, column 6: expected a value, got 'N'"},
        {"common.v1.AnyValue", "{\"a\":01}", "line 1, column 6: malformed number"},
        {"common.v1.AnyValue", "{\"a\":1.}", "line 1, column 6: malformed number"},
        {"common.v1.AnyValue", "{\"a\":-}", "line 1, column 6: malformed number"},
        {"common.v1.AnyValue", "{\"a\":1e}", "line 1, column 6: malformed number"},
        {"common.v1.AnyValue", "{\n \"é\":\n  \"x\ty\"}",
         "line 3, column 5: control character 0x09 in a string"},
        {"common.v1.AnyValue", "{\"stringValue\":\"\\x\"}",
         "line 1, column 17: bad escape in a string"},
        {"common.v1.AnyValue", "{\"stringValue\":\"\\u12g4\"}",
         "line 1, column 17: bad escape in a string"},
        {"common.v1.AnyValue", "{\"stringValue\":\"abc",
         "line 1, column 20: the text ends inside a string"},
        {"common.v1.AnyValue", "{\"stringValue\":\"abc\\",
         "line 1, column 20: bad escape in a string"},
        {"common.v1.AnyValue", "{\"stringValue\":5}",
         "line 1, column 16: expected a string, got '5'"},
        {"common.v1.AnyValue", "{\"boolValue\":\"true\"}",
         "line 1, column 14: expected true or false, got '\"'"},
        {"common.v1.AnyValue", "{\"boolValue\":null}",
         "line 1, column 14: expected true or false, got 'n'"},
        {"common.v1.AnyValue", "{\"intValue\":9223372036854775808}",
         "line 1, column 13: intValue: expected a 64-bit integer, got one out of range"},
        {"common.v1.AnyValue", "{\"intValue\":\"-9223372036854775809\"}",
         "line 1, column 13: intValue: expected a 64-bit integer, got one out of range"},
        {"common.v1.AnyValue", "{\"intValue\":99999999999999999999}",
         "line 1, column 13: intValue: expected a 64-bit integer, got one out of range"},
        {"common.v1.AnyValue", "{\"intValue\":\"12x\"}",
         "line 1, column 13: intValue: expected a 64-bit integer, got something else"},
        {"common.v1.AnyValue", "{\"intValue\":\"\"}",
         "line 1, column 13: intValue: expected a 64-bit integer, got something else"},
        {"common.v1.AnyValue", "{\"intValue\":1.5}",
         "line 1, column 13: intValue: expected a 64-bit integer, got something else"},
        {"common.v1.AnyValue", "{\"intValue\":null}",
         "line 1, column 13: expected a number, got 'n'"},
        {"common.v1.AnyValue", "{\"doubleValue\":1e400}",
         "line 1, column 16: doubleValue: expected a number that a double holds, got something "
         "else"},
        {"common.v1.AnyValue", "{\"doubleValue\":\"1e\"}",
         "line 1, column 16: doubleValue: expected a number that a double holds, got something "
         "else"},
        {"common.v1.AnyValue", "{\"doubleValue\":\"\"}",
         "line 1, column 16: doubleValue: expected a number that a double holds, got something "
         "else"},
        {"common.v1.AnyValue", "{\"doubleValue\":\"-nan\"}",
         "line 1, column 16: doubleValue: expected a number that a double holds, got something "
         "else"},
        {"common.v1.AnyValue", "{\"doubleValue\":null}",
         "line 1, column 16: expected a number, got 'n'"},
        {"common.v1.AnyValue", "{\"bytesValue\":\"_-8=\"}",
         "line 1, column 15: bytesValue: expected base64 with padding, got something else"},
        {"common.v1.AnyValue", "{\"arrayValue\":[]}",
         "line 1, column 15: expected an object, got '['"},
        {"common.v1.AnyValue", "{\"arrayValue\":{\"values\":{}}}",
         "line 1, column 25: expected a list, got '{'"},
        {"trace.v1.Span", "{\"traceId\":\"abcd\"}",
         "line 1, column 12: traceId: expected 32 hex digits, got 4 characters"},
        {"trace.v1.Span", "{\"spanId\":\"abcdefgh01234567\"}",
         "line 1, column 11: spanId: expected 16 hex digits, got other characters"},
        {"trace.v1.Span", "{\"traceId\":\"W47/95gDgQPSabYzgT/GDA==\"}",
         "line 1, column 12: traceId: expected 32 hex digits, got 24 characters"},
        {"trace.v1.Span", "{\"traceId\":null}", "line 1, column 12: expected a string, got 'n'"},
        {"trace.v1.Span", "{\"kind\":\"2\"}",
         "line 1, column 9: kind: expected a number or a name of "
         "opentelemetry.proto.trace.v1.Span.SpanKind, got another name"},
        {"trace.v1.Span", "{\"kind\":2147483648}",
         "line 1, column 9: kind: expected a 32-bit integer, got one out of range"},
        {"trace.v1.Span", "{\"flags\":-1}",
         "line 1, column 10: flags: expected an unsigned 32-bit integer, got something else"},
        {"trace.v1.Span", "{\"flags\":4294967296}",
         "line 1, column 10: flags: expected an unsigned 32-bit integer, got one out of range"},
        {"metrics.v1.HistogramDataPoint", "{\"bucketCounts\":[null]}",
         "line 1, column 18: expected a number, got 'n'"},
        {"collector.trace.v1.ExportTraceServiceRequest", "{\"resourceSpans\":5}",
         "line 1, column 18: expected a list, got '5'"},
        {"collector.trace.v1.ExportTraceServiceRequest", "{\"resourceSpans\":[",
         "line 1, column 19: expected an object, got the end of the text"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *wire = buf_new(0);
        struct err e = {0};
        int r = json_read(message(cases[i].message), bytes_str(cases[i].in), wire, &e);
        if (r != -EBADMSG)
            fail_msg("%s: %d", cases[i].in, r);
        assert_string_equal(e.text, cases[i].want);
        assert_true(e.line > 0 && e.column > 0);
    }
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *wire = buf_new(0);
    struct err e = {0};
    assert_int_equal(json_read(schema_request(SIGNAL_LOGS), bytes_str("\xef\xbb\xbf{}"), wire, &e),
                     -EILSEQ);
    assert_string_equal(e.text, "line 1, column 1: expected an object, got byte 0xef");
}

/* `n` levels of OPEN around `inner`. */
static struct buf *nest(const char *open, const char *inner, const char *close, int n)
{
    struct buf *b = buf_new(0);
    for (int i = 0; i < n; i++)
        buf_append_str(b, open);
    buf_append_str(b, inner);
    for (int i = 0; i < n; i++)
        buf_append_str(b, close);
    return b;
}

static int read_nested(const char *open, const char *inner, const char *close, int n)
{
    _cleanup_buf_ struct buf *text = nest(open, inner, close, n);
    _cleanup_buf_ struct buf *wire = buf_new(0);
    return json_read(message("common.v1.AnyValue"), buf_bytes(text), wire, NULL);
}

static void test_depth(void **state)
{
    (void)state;
    const char *list = "{\"arrayValue\":{\"values\":[",
               *map = "{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":";
    assert_int_equal(read_nested(list, "{\"intValue\":1}", "]}}", OTLP_MAX_DEPTH), 0);
    assert_int_equal(read_nested(list, "{}", "]}}", OTLP_MAX_DEPTH + 1), -EBADMSG);
    assert_int_equal(read_nested(list, "{}", "]}}", 100000), -EBADMSG);
    assert_int_equal(read_nested(map, "{}", "}]}}", OTLP_MAX_DEPTH), 0);
    assert_int_equal(read_nested(map, "{}", "}]}}", OTLP_MAX_DEPTH + 1), -EBADMSG);
    /* In what is skipped. */
    assert_int_equal(read_nested("{\"x\":", "1", "}", 10000), 0);
    assert_int_equal(read_nested("{\"x\":", "1", "}", 10002), -EBADMSG);
    _cleanup_buf_ struct buf *lists = nest("[", "", "]", 11000);
    _cleanup_buf_ struct buf *text = nest("", "{\"x\":", "", 1);
    _cleanup_buf_ struct buf *wire = buf_new(0);
    assert_int_equal(buf_append(text, lists->data, lists->len), 0);
    assert_int_equal(buf_putc(text, '}'), 0);
    assert_int_equal(json_read(message("common.v1.AnyValue"), buf_bytes(text), wire, NULL),
                     -EBADMSG);
}

/* What was read passes the check, also where the text repeats itself. */
static void test_checked(void **state)
{
    (void)state;
    static const char text[] =
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\"}]},\"resource\":{"
        "\"attributes\":[{\"key\":\"b\"}]},"
        "\"scopeSpans\":[{\"spans\":[{\"name\":\"x\",\"name\":\"y\",\"attributes\":[{\"key\":\"v\","
        "\"value\":{\"stringValue\":\"s\","
        "\"intValue\":\"7\"}}]},{\"name\":\"\xff\"}]}]}],\"instrumentationLibrarySpans\":[{}]}";
    struct buf *wire = buf_new(0);
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct err e = {0};
    struct batch *b = NULL;
    assert_int_equal(json_read(schema_request(SIGNAL_TRACES), bytes_str(text), wire, &e), 0);
    assert_int_equal(batch_from_wire(SIGNAL_TRACES, wire, &b, &e), 0);
    assert_int_equal(b->records, 2);
    assert_int_equal(json_write_batch(b, 0, out), 0);
    assert_string_equal(buf_str(out),
                        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"a\","
                        "\"value\":{}},{\"key\":\"b\",\"value\":{}}]},"
                        "\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":\"y\",\"attributes\":[{"
                        "\"key\":\"v\",\"value\":{\"intValue\":\"7\"}}],"
                        "\"status\":{}},{\"name\":\"\xef\xbf\xbd\",\"status\":{}}]}]}]}");
    batch_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_spans),
        cmocka_unit_test(test_points),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_byte_order_mark), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
