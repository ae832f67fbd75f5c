/* Each member of the three shapes, and what is refused. */
#include "console_rig.h"

#define CONTEXT                                                                                    \
    "\"context\": {\"trace_id\": \"0x01\", \"span_id\": \"0x02\", \"trace_state\": \"[]\"}"
#define SPAN_HEAD CONTEXT ", \"kind\": \"SpanKind.INTERNAL\""
#define IDS "\"traceId\":\"00000000000000000000000000000001\",\"spanId\":\"0000000000000002\","

/* The record alone, as OTLP/JSON. */
static const struct {
    const char *members, *want;
} spans[] = {
    {SPAN_HEAD, IDS "\"kind\":1,\"status\":{}"},
    {"\"name\": \"n\", \"context\": {\"trace_id\": \"0af7651916cd43dd8448eb211c80319c\", "
     "\"span_id\": \"B7AD6B7169203331\", \"trace_state\": \"['{key=a, value=1}', '{key=b, "
     "value=2}']\"}, \"kind\": \"SpanKind.SERVER\", \"parent_id\": \"0xb7ad6b7169203332\"",
     "\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"b7ad6b7169203331\","
     "\"traceState\":\"a=1,b=2\",\"parentSpanId\":\"b7ad6b7169203332\",\"name\":\"n\",\"kind\":2,"
     "\"status\":{}"},
    {CONTEXT ", \"kind\": \"SpanKind.CLIENT\"", IDS "\"kind\":3,\"status\":{}"},
    {CONTEXT ", \"kind\": \"PRODUCER\"", IDS "\"kind\":4,\"status\":{}"},
    {CONTEXT ", \"kind\": \"SpanKind.CONSUMER\"", IDS "\"kind\":5,\"status\":{}"},
    {CONTEXT ", \"kind\": \"SpanKind.UNSPECIFIED\"", IDS "\"status\":{}"},
    {SPAN_HEAD ", \"parent_id\": \"b7ad6b7169203332\"",
     IDS "\"parentSpanId\":\"b7ad6b7169203332\",\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"parent_id\": null", IDS "\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"parent_id\": \"\"", IDS "\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"start_time\": \"2026-01-01T00:00:00.123456Z\", \"end_time\": null",
     IDS "\"kind\":1,\"startTimeUnixNano\":\"1767225600123456000\",\"status\":{}"},
    {SPAN_HEAD ", \"start_time\": 5, \"end_time\": \"2026-01-01T00:00:00.123456789Z\"",
     IDS "\"kind\":1,\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"1767225600123456789\","
         "\"status\":{}"},
    {SPAN_HEAD ", \"status\": {\"status_code\": \"UNSET\"}", IDS "\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"status\": {\"status_code\": \"OK\"}", IDS "\"kind\":1,\"status\":{\"code\":1}"},
    {SPAN_HEAD ", \"status\": {\"status_code\": \"ERROR\", \"description\": \"why\"}",
     IDS "\"kind\":1,\"status\":{\"message\":\"why\",\"code\":2}"},
    {SPAN_HEAD ", \"attributes\": {\"s\": \"v\", \"i\": -1, \"f\": 1.0, \"e\": 1e300, \"b\": true, "
               "\"n\": null, \"l\": [1, \"x\", []], \"m\": {\"k\": {}}, \"\": 0}",
     IDS
     "\"kind\":1,\"attributes\":[{\"key\":\"s\",\"value\":{\"stringValue\":\"v\"}},{\"key\":"
     "\"i\",\"value\":{\"intValue\":\"-1\"}},{\"key\":\"f\",\"value\":{\"doubleValue\":1}},{"
     "\"key\":\"e\",\"value\":{\"doubleValue\":1e+300}},{\"key\":\"b\",\"value\":{\"boolValue\":"
     "true}},{\"key\":\"n\",\"value\":{}},{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":["
     "{\"intValue\":\"1\"},{\"stringValue\":\"x\"},{\"arrayValue\":{}}]}}},{\"key\":\"m\","
     "\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"kvlistValue\":{}}}]}}}"
     ",{\"value\":{\"intValue\":\"0\"}}],\"status\":{}"},
    {SPAN_HEAD ", \"attributes\": {\"a\": NaN, \"b\": Infinity, \"c\": -Infinity, \"d\": "
               "9223372036854775807, \"e\": 9223372036854775808, \"f\": "
               "-340282366920938463463374607431768211455, \"g\": \"\\ud800!\", \"h\": "
               "\"\\ud83d\\ude80\", \"i\": -0.0}",
     IDS
     "\"kind\":1,\"attributes\":[{\"key\":\"a\",\"value\":{\"doubleValue\":\"NaN\"}},{\"key\":"
     "\"b\",\"value\":{\"doubleValue\":\"Infinity\"}},{\"key\":\"c\",\"value\":{\"doubleValue\":"
     "\"-Infinity\"}},{\"key\":\"d\",\"value\":{\"intValue\":\"9223372036854775807\"}},{\"key\":"
     "\"e\",\"value\":{\"stringValue\":\"9223372036854775808\"}},{\"key\":\"f\",\"value\":{"
     "\"stringValue\":\"-340282366920938463463374607431768211455\"}},{\"key\":\"g\",\"value\":{"
     "\"stringValue\":\"\xef\xbf\xbd!\"}},{\"key\":\"h\",\"value\":{\"stringValue\":"
     "\"\xf0\x9f\x9a\x80\"}},{\"key\":\"i\",\"value\":{\"doubleValue\":-0}}],\"status\":{}"},
    {SPAN_HEAD ", \"attributes\": null, \"events\": null, \"links\": null, \"unknown\": [NaN, {}]",
     IDS "\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"events\": [{\"name\": \"e\", \"timestamp\": \"2026-01-01T00:00:00.000001Z\", "
               "\"attributes\": {\"k\": 1}}, {\"name\": \"f\", \"attributes\": null}]",
     IDS "\"kind\":1,\"events\":[{\"timeUnixNano\":\"1767225600000001000\",\"name\":\"e\","
         "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"1\"}}]},{\"name\":\"f\"}],"
         "\"status\":{}"},
    {SPAN_HEAD ", \"links\": [{\"context\": {\"trace_id\": \"0x03\", \"span_id\": \"0x04\", "
               "\"trace_state\": \"['{key=v, value=x}']\"}, \"attributes\": {\"k\": [true]}}]",
     IDS "\"kind\":1,\"links\":[{\"traceId\":\"00000000000000000000000000000003\",\"spanId\":"
         "\"0000000000000004\",\"traceState\":\"v=x\",\"attributes\":[{\"key\":\"k\",\"value\":{"
         "\"arrayValue\":{\"values\":[{\"boolValue\":true}]}}}]}],\"status\":{}"},
    {"\"kind\": \"SpanKind.INTERNAL\", \"attributes\": {}, " CONTEXT ", \"name\": \"sorted\"",
     IDS "\"name\":\"sorted\",\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"name\": \"first\", \"name\": \"last\"",
     IDS "\"name\":\"last\",\"kind\":1,\"status\":{}"},
    {SPAN_HEAD ", \"name\": \"bad \xff utf-8\"",
     IDS "\"name\":\"bad \xef\xbf\xbd utf-8\",\"kind\":1,\"status\":{}"},
};

#define OBSERVED "\"observed_timestamp\": \"2026-01-01T00:00:00.000001Z\""
#define OBSERVED_OUT "\"observedTimeUnixNano\":\"1767225600000001000\""

static const struct {
    const char *members, *want;
} logs[] = {
    {OBSERVED, OBSERVED_OUT ",\"body\":{}"},
    {"\"body\": \"b\", \"severity_number\": 9, \"severity_text\": \"INFO\", \"attributes\": "
     "{\"k\": "
     "1}, \"dropped_attributes\": 2, \"timestamp\": \"2026-01-01T00:00:00.000002Z\", " OBSERVED
     ", \"trace_id\": \"0x01\", \"span_id\": \"0x02\", \"trace_flags\": 3, \"event_name\": \"ev\"",
     "\"timeUnixNano\":\"1767225600000002000\"," OBSERVED_OUT
     ",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"b\"},"
     "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"1\"}}],\"droppedAttributesCount\":2,"
     "\"flags\":3," IDS "\"eventName\":\"ev\""},
    {"\"body\": null, \"severity_number\": null, \"severity_text\": null, \"attributes\": null, "
     "\"dropped_attributes\": 0, \"timestamp\": null, " OBSERVED
     ", \"trace_id\": \"0x00000000000000000000000000000000\", \"span_id\": \"0x0000000000000000\", "
     "\"trace_flags\": 0, \"event_name\": \"\"",
     OBSERVED_OUT ",\"body\":{}"},
    {"\"body\": 7, \"observed_timestamp\": null, \"trace_id\": \"\", \"span_id\": \"\"",
     "\"body\":{\"intValue\":\"7\"}"},
    {"\"body\": \"old\", \"severity_number\": \"<SeverityNumber.WARN: 13>\", \"timestamp\": "
     "1767225600000000000, "
     "\"trace_flags\": 1, \"resource\": \"BoundedAttributes({...})\"",
     "\"timeUnixNano\":\"1767225600000000000\",\"severityNumber\":13,\"body\":{\"stringValue\":"
     "\"old\"},\"flags\":1"},
    {"\"body\": -2.5, " OBSERVED, OBSERVED_OUT ",\"body\":{\"doubleValue\":-2.5}"},
    {"\"body\": true, " OBSERVED, OBSERVED_OUT ",\"body\":{\"boolValue\":true}"},
    {"\"body\": \"\", " OBSERVED, OBSERVED_OUT ",\"body\":{\"stringValue\":\"\"}"},
    {"\"body\": \"3q0=\", " OBSERVED, OBSERVED_OUT ",\"body\":{\"stringValue\":\"3q0=\"}"},
    {"\"body\": [\"a\", 1, [2.5, null]], " OBSERVED,
     OBSERVED_OUT ",\"body\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"a\"},{\"intValue\":"
                  "\"1\"},{\"arrayValue\":{\"values\":[{\"doubleValue\":2.5},{}]}}]}}"},
    {"\"body\": {\"k\": {\"z\": false}}, " OBSERVED, OBSERVED_OUT
     ",\"body\":{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{"
     "\"kvlistValue\":{\"values\":[{\"key\":\"z\",\"value\":{\"boolValue\":false}}]}}}]"
     "}}"},
};

#define DATA(data) "\"name\": \"m\", \"data\": {" data "}"
#define TIMES "\"attributes\": {\"k\": 1}, \"start_time_unix_nano\": 1, \"time_unix_nano\": 2"
#define TIMES_OUT                                                                                  \
    "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"1\"}}],\"startTimeUnixNano\":\"1\"," \
    "\"timeUnixNano\":\"2\""

static const struct {
    const char *members, *want;
} metrics[] = {
    {"\"name\": \"m\", \"description\": \"d\", \"unit\": \"u\", \"data\": {\"data_points\": [{"
     "\"attributes\": {}, \"start_time_unix_nano\": null, \"time_unix_nano\": 2, \"value\": 0, "
     "\"exemplars\": []}]}",
     "\"name\":\"m\",\"description\":\"d\",\"unit\":\"u\",\"gauge\":{\"dataPoints\":[{"
     "\"timeUnixNano\":\"2\",\"asInt\":\"0\"}]}"},
    {DATA("\"data_points\": [{" TIMES ", \"value\": 1.5}, {" TIMES ", \"value\": NaN}]"),
     "\"name\":\"m\",\"gauge\":{\"dataPoints\":[{" TIMES_OUT ",\"asDouble\":1.5},{" TIMES_OUT
     ",\"asDouble\":\"NaN\"}]}"},
    {DATA("\"data_points\": [{" TIMES ", \"value\": -7}], \"aggregation_temporality\": 2, "
          "\"is_monotonic\": false"),
     "\"name\":\"m\",\"sum\":{\"dataPoints\":[{" TIMES_OUT
     ",\"asInt\":\"-7\"}],\"aggregationTemporality\":2}"},
    {DATA("\"data_points\": [{" TIMES ", \"value\": 9223372036854775808}], "
          "\"aggregation_temporality\": 1, \"is_monotonic\": true"),
     "\"name\":\"m\",\"sum\":{\"dataPoints\":[{" TIMES_OUT
     ",\"asDouble\":9223372036854776000}],\"aggregationTemporality\":1,\"isMonotonic\":true}"},
    {DATA("\"is_monotonic\": true, \"aggregation_temporality\": 1, \"data_points\": [{\"value\": "
          "true}]"),
     "\"name\":\"m\",\"sum\":{\"dataPoints\":[{\"asInt\":\"1\"}],\"aggregationTemporality\":1,"
     "\"isMonotonic\":true}"},
    {DATA("\"data_points\": [{\"value\": 1, \"exemplars\": [{\"filtered_attributes\": {\"x\": "
          "\"y\"}, \"value\": 3, \"time_unix_nano\": 4, \"span_id\": 13236045131103286065, "
          "\"trace_id\": 340282366920938463463374607431768211455}, {\"filtered_attributes\": {}, "
          "\"value\": 0.5, \"time_unix_nano\": 4, \"span_id\": null, \"trace_id\": null}]}]"),
     "\"name\":\"m\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\",\"exemplars\":[{"
     "\"filteredAttributes\":[{\"key\":\"x\",\"value\":{\"stringValue\":\"y\"}}],\"timeUnixNano\":"
     "\"4\",\"asInt\":\"3\",\"traceId\":\"ffffffffffffffffffffffffffffffff\","
     "\"spanId\":\"b7afe0eb4e733331\"},{\"timeUnixNano\":\"4\",\"asDouble\":0.5}]}]}"},
    {DATA("\"data_points\": [{" TIMES ", \"count\": 3, \"sum\": 7, \"bucket_counts\": [1, 0, 2], "
          "\"explicit_bounds\": [0.5, 10], \"min\": 0, \"max\": 6.5, \"exemplars\": []}], "
          "\"aggregation_temporality\": 2"),
     "\"name\":\"m\",\"histogram\":{\"dataPoints\":[{" TIMES_OUT
     ",\"count\":\"3\",\"sum\":7,\"bucketCounts\":[\"1\",\"0\",\"2\"],\"explicitBounds\":[0.5,10],"
     "\"min\":0,\"max\":6.5}],\"aggregationTemporality\":2}"},
    {DATA("\"data_points\": [{\"count\": 0, \"sum\": 0, \"bucket_counts\": [0], "
          "\"explicit_bounds\": [], \"min\": Infinity, \"max\": -Infinity}], "
          "\"aggregation_temporality\": 1"),
     "\"name\":\"m\",\"histogram\":{\"dataPoints\":[{\"sum\":0,\"bucketCounts\":[\"0\"],\"min\":"
     "\"Infinity\",\"max\":\"-Infinity\"}],\"aggregationTemporality\":1}"},
    {DATA("\"data_points\": [{" TIMES ", \"count\": 4, \"sum\": 1.5, \"scale\": -3, "
          "\"zero_count\": 1, \"positive\": {\"offset\": -5, \"bucket_counts\": [1, 0, 300]}, "
          "\"negative\": {\"offset\": 0, \"bucket_counts\": [0]}, \"flags\": 1, \"min\": null, "
          "\"max\": 2}], \"aggregation_temporality\": 1"),
     "\"name\":\"m\",\"exponentialHistogram\":{\"dataPoints\":[{" TIMES_OUT
     ",\"count\":\"4\",\"sum\":1.5,\"scale\":-3,\"zeroCount\":\"1\",\"positive\":{\"offset\":-5,"
     "\"bucketCounts\":[\"1\",\"0\",\"300\"]},\"negative\":{\"bucketCounts\":[\"0\"]},\"flags\":1,"
     "\"max\":2}],\"aggregationTemporality\":1}"},
    {DATA("\"data_points\": [{" TIMES ", \"count\": 2, \"sum\": 3.5, \"quantile_values\": "
          "[{\"quantile\": 0.5, \"value\": 1}]}]"),
     "\"name\":\"m\",\"summary\":{\"dataPoints\":[{" TIMES_OUT
     ",\"count\":\"2\",\"sum\":3.5,\"quantileValues\":[{\"quantile\":0.5,\"value\":1}]}]}"},
    {DATA("\"data_points\": [{" TIMES ", \"value\": null}]"),
     "\"name\":\"m\",\"gauge\":{\"dataPoints\":[{" TIMES_OUT "}]}"},
    {DATA("\"data_points\": []"), "\"name\":\"m\",\"gauge\":{}"},
};

/* Checks that the object becomes `want`, a line of the file exporter. */
static void check(const char *object, struct bytes server, const char *want)
{
    enum signal s = SIGNAL_COUNT;
    size_t used = 0;
    struct err e = {0};
    struct batch *b = NULL;
    struct buf *wire = buf_new(0);
    _cleanup_buf_ struct buf *text = buf_new(0), *got = buf_new(0);
    buf_printf(text, "%s trailing", object);
    int kind = console_read(buf_bytes(text), server, wire, &s, &used, &e);
    if (kind <= 0)
        fail_msg("%s: %d, %s", object, kind, e.text);
    assert_int_equal(used, strlen(object));
    assert_int_equal(batch_from_wire(s, wire, &b, &e), 0);
    assert_int_equal(json_write_batch(b, 0, got), 0);
    assert_string_equal(buf_str(got), want);
    batch_unref(b);
}

static void check_members(const char *members, const char *head, const char *tail, const char *want,
                          const char *want_head, const char *want_tail)
{
    _cleanup_buf_ struct buf *in = buf_new(0), *out = buf_new(0);
    buf_printf(in, "%s%s%s", head, members, tail);
    buf_printf(out, "%s%s%s", want_head, want, want_tail);
    check(buf_str(in), bytes_of("", 0), buf_str(out));
}

static void test_spans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
        check_members(spans[i].members, "{", "}", spans[i].want,
                      "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},"
                      "\"spans\":[{",
                      "}]}]}]}");
}

static void test_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++)
        check_members(logs[i].members, "{", "}", logs[i].want,
                      "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},"
                      "\"logRecords\":[{",
                      "}]}]}]}");
}

static void test_metrics(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
        check_members(
            metrics[i].members,
            "{\"resource_metrics\": [{\"resource\": {\"attributes\": {}, \"schema_url\": "
            "\"\"}, \"scope_metrics\": [{\"scope\": {\"name\": \"s\", \"version\": null, "
            "\"schema_url\": \"u\", \"attributes\": {\"a\": 1}}, \"metrics\": [{",
            "}], \"schema_url\": \"u\"}], \"schema_url\": \"v\"}]}", metrics[i].want,
            "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{"
            "\"name\":\"s\",\"attributes\":[{\"key\":\"a\",\"value\":{\"intValue\":\"1\"}}"
            "]},\"metrics\":[{",
            "}],\"schemaUrl\":\"u\"}],\"schemaUrl\":\"v\"}]}");
}

static const struct {
    const char *resource, *server, *want; /* the entry's members but for the scope entries */
} resources[] = {
    {"{\"attributes\": {\"service.name\": \"x\"}, \"schema_url\": \"u\"}", "",
     "\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"x\"}}]"},
    {"{\"attributes\": {}, \"schema_url\": \"u\"}", "srv",
     "\"attributes\":[{\"key\":\"nemo.gym.server.name\",\"value\":{\"stringValue\":\"srv\"}}]"},
    {"{\"attributes\": {\"nemo.gym.server.name\": \"own\"}, \"schema_url\": \"u\"}", "srv",
     "\"attributes\":[{\"key\":\"nemo.gym.server.name\",\"value\":{\"stringValue\":\"own\"}}]"},
    {"{\"telemetry.sdk.language\": \"python\", \"attributes\": \"odd\", \"schema_url\": \"u\"}", "",
     "\"attributes\":[{\"key\":\"telemetry.sdk.language\",\"value\":{\"stringValue\":\"python\"}},{"
     "\"key\":\"attributes\",\"value\":{\"stringValue\":\"odd\"}}]"},
    {"{\"attributes\": null, \"schema_url\": null, \"schema_url\": \"u\"}", "", ""},
};

static void test_resources(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
        _cleanup_buf_ struct buf *in = buf_new(0), *out = buf_new(0);
        buf_printf(in, "{%s, \"resource\": %s}", SPAN_HEAD, resources[i].resource);
        buf_printf(out,
                   "{\"resourceSpans\":[{\"resource\":{%s},\"scopeSpans\":[{\"scope\":{},\"spans\":"
                   "[{%s\"kind\":1,\"status\":{}}]}],\"schemaUrl\":\"u\"}]}",
                   resources[i].want, IDS);
        check(buf_str(in), bytes_str(resources[i].server), buf_str(out));
    }
}

#define OTLP_LOGS(resource)                                                                        \
    "{\"resourceLogs\":[{\"resource\":{" resource                                                  \
    "},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{"                                             \
    "\"body\":{\"stringValue\":\"b\"}}]}]}]}"
#define NAMED                                                                                      \
    "\"attributes\":[{\"key\":\"nemo.gym.server.name\",\"value\":{\"stringValue\":\"srv\"}}]"

static void test_otlp_lines(void **state)
{
    (void)state;
    check(OTLP_LOGS(""), bytes_of("", 0), OTLP_LOGS(""));
    check(OTLP_LOGS(""), bytes_str("srv"), OTLP_LOGS(NAMED));
    check(OTLP_LOGS(NAMED), bytes_str("other"), OTLP_LOGS(NAMED));
}

static const char *const not_telemetry[] = {
    "{}",
    "{\"reward\": 1.0}",
    "{\"name\": \"x\"}",
    "{\"name\": \"x\", \"kind\": \"SpanKind.INTERNAL\"}",
    "{\"body\": \"x\", \"severity_number\": 9}",
    "{\"level\": \"info\", \"ts\": NaN, \"context\": 1}",
    "{'name': 'x'}",
    "[1]",
    "text",
    "",
};

static void test_not_telemetry(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(not_telemetry); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        enum signal s;
        size_t used = 77;
        int kind = console_read(bytes_str(not_telemetry[i]), bytes_of("", 0), out, &s, &used, NULL);
        if (kind != CONSOLE_NOT_TELEMETRY || out->len)
            fail_msg("%s: %d", not_telemetry[i], kind);
        assert_int_equal(used, i < 6 ? strlen(not_telemetry[i]) : 0);
    }
}

#define METRIC(data)                                                                               \
    "{\"resource_metrics\": [{\"resource\": {}, \"scope_metrics\": [{\"metrics\": [{\"name\": "    \
    "\"m\", \"data\": " data "}]}]}]}"

static const struct {
    const char *object, *error;
} malformed[] = {
    {"{\"name\": 5, " SPAN_HEAD "}", "line 1, column 10: expected a string, got '5'"},
    {"{" CONTEXT ", \"kind\": \"event\"}",
     "line 1, column 83: expected a kind of span such as \"SpanKind.SERVER\", got \"event\""},
    {"{\"context\": null, \"kind\": \"SpanKind.SERVER\"}",
     "line 1, column 1: expected \"context\" in this object"},
    {"{\"context\": {\"trace_id\": \"0x1\"}, \"kind\": \"SpanKind.SERVER\"}",
     "line 1, column 13: expected \"span_id\" in this object"},
    {"{\"context\": {\"trace_id\": \"xyz\", \"span_id\": \"0x1\"}, \"kind\": \"SpanKind.SERVER\"}",
     "line 1, column 27: expected an id of 16 bytes, got xyz"},
    {"{\n" SPAN_HEAD ",\n\"start_time\": \"noon\"}",
     "line 3, column 16: expected a time such as 2026-01-31T23:59:59.123456Z, got noon"},
    {"{" SPAN_HEAD ", \"status\": {\"status_code\": \"FINE\"}}",
     "line 1, column 130: expected a status code such as \"OK\", got \"FINE\""},
    {"{" SPAN_HEAD ", \"links\": [{\"attributes\": {}}]}",
     "line 1, column 114: expected \"context\" in this object"},
    {"{" SPAN_HEAD ", \"attributes\": [1]}", "line 1, column 118: expected '{', got '['"},
    {"{" SPAN_HEAD ", \"resource\": [1]}", "line 1, column 116: expected an object, got '['"},
    {"{" SPAN_HEAD, "line 1, column 102: expected ',' or '}', got the end of the text"},
    {"{\"body\": 1, \"severity_number\": -1, " OBSERVED "}",
     "line 1, column 32: expected the number of a severity, got -1"},
    {"{\"body\": 1, " OBSERVED ", \"trace_flags\": 4294967296}",
     "line 1, column 81: expected an unsigned 32-bit number, got 4294967296"},
    {"{\"body\": 1e999, " OBSERVED "}", "line 1, column 10: expected a number that a double holds"},
    {"{\"resource_metrics\": [{\"resource\": \"x\"}]}",
     "line 1, column 36: expected an object, got '\"'"},
    {"{\"resource_metrics\": {}}", "line 1, column 22: expected '[', got '{'"},
    {METRIC("{\"aggregation_temporality\": 1}"),
     "line 1, column 93: expected \"data_points\" in this object"},
    {METRIC("{\"data_points\": [{\"count\": 1}]}"),
     "line 1, column 93: expected points with \"value\", \"bucket_counts\", \"scale\" or "
     "\"quantile_values\""},
    {METRIC("{\"data_points\": [{\"value\": 1}, {\"bucket_counts\": []}]}"),
     "line 1, column 124: expected \"value\" in this object"},
    {METRIC("{\"data_points\": [{\"scale\": 3000000000, \"count\": 1}]}"),
     "line 1, column 120: expected a 32-bit number, got 3000000000"},
    {"{\"resourceLogs\": [{\"scopeLogs\": 5}]}", "line 1, column 33: expected a list, got '5'"},
    {"{\"resourceLogs\": [", "the object does not end"},
};

static void test_malformed(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0);
        enum signal s;
        size_t used;
        struct err e = {0};
        int r = console_read(bytes_str(malformed[i].object), bytes_of("", 0), out, &s, &used, &e);
        assert_int_equal(out->len, 0);
        if (r != -EBADMSG || strcmp(e.text, malformed[i].error) != 0)
            print_error("%s:\n %d, %s\n", malformed[i].object, r, e.text), bad++;
    }
    assert_int_equal(bad, 0);
}

/* Values may nest 64 deep, as in OTLP. */
static void test_depth(void **state)
{
    (void)state;
    for (int depth = 63; depth <= 66; depth++) {
        _cleanup_buf_ struct buf *in = buf_new(0), *out = buf_new(0);
        enum signal s;
        size_t used;
        buf_append_str(in, "{\"body\": ");
        for (int i = 0; i < depth; i++)
            buf_append_str(in, i % 2 ? "{\"k\": " : "[");
        buf_append_str(in, "1");
        for (int i = depth; i-- > 0;)
            buf_append_str(in, i % 2 ? "}" : "]");
        buf_printf(in, ", %s}", OBSERVED);
        assert_int_equal(console_read(buf_bytes(in), bytes_of("", 0), out, &s, &used, NULL),
                         depth <= 64 ? (int)CONSOLE_LOG : -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),      cmocka_unit_test(test_logs),
        cmocka_unit_test(test_metrics),    cmocka_unit_test(test_resources),
        cmocka_unit_test(test_otlp_lines), cmocka_unit_test(test_not_telemetry),
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
