/* The console exporter's lines are the Python SDK's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "exporters/console/lines.h"
#include "proto/json.h"

#define FOLDER TEST_DATA "/golden/console/"

static struct buf *load(const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    struct buf *b = buf_new(0);
    assert_non_null(f);
    for (size_t n = 1; n > 0; buf_commit(b, n)) {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = fread(buf_tail(b), 1, 65536, f);
    }
    return b;
}

static void add_lines(enum signal s, const char *path, struct buf *out)
{
    struct batch *b = NULL;
    assert_int_equal(batch_from_wire(s, load(path), &b, NULL), 0);
    assert_int_equal(console_lines(b, out), 0);
    batch_unref(b);
}

/* The first line of `*text`, which moves on; NULL at the end. */
static char *next_line(char **text)
{
    return **text ? strsep(text, "\n") : NULL;
}

static void cut(char *from, size_t n)
{
    memmove(from, from + n, strlen(from + n) + 1);
}

/* What the SDK's span lines do not have. */
static void without_trace_id(char *line)
{
    static const char key[] = ", \"trace_id\": \"0x";
    char *at = strstr(line, "}, \"trace_id\": \"0x");
    if (at && strstr(line, "\"kind\": \"SpanKind."))
        cut(at + 1, strlen(key) + 32 + 1);
}

/* Python keeps 1 and 1.0 apart where OTLP has doubles only, and null and {} where it has an empty
 * list. */
static void normalize_metrics(char *line)
{
    for (char *p = line; (p = strstr(p, ".0"));) {
        if (p[2] >= '0' && p[2] <= '9')
            p += 2;
        else
            cut(p, 2);
    }
    for (char *p = line; (p = strstr(p, "\"filtered_attributes\": null"));) {
        memcpy(p + 23, "{}", 2);
        cut(p + 25, 2);
    }
}

static bool is_of(enum signal s, const char *line)
{
    bool metrics = strstr(line, "{\"resource_metrics\":") == line,
         log = strstr(line, "\"observed_timestamp\"");
    return s == SIGNAL_METRICS ? metrics : s == SIGNAL_LOGS ? log && !metrics : !log && !metrics;
}

/* Every line of theirs is among ours (which are in the order of the scopes), and there are no
 * others. */
static void check_paired(enum signal s, struct buf *got, int want_lines)
{
    _cleanup_buf_ struct buf *log = load(FOLDER "paired.line.log"), *mine = buf_new(0);
    char *theirs = (char *)buf_str(log), *ours = (char *)buf_str(got);
    int seen = 0;
    for (char *line; (line = next_line(&ours)); want_lines--) {
        without_trace_id(line);
        if (s == SIGNAL_METRICS)
            normalize_metrics(line);
        buf_printf(mine, "%s\n", line);
    }
    for (char *want; (want = next_line(&theirs));) {
        if (!is_of(s, want))
            continue;
        if (s == SIGNAL_METRICS)
            normalize_metrics(want);
        const char *at = strstr(buf_str(mine), want);
        if (!at || at[strlen(want)] != '\n')
            fail_msg("missing: %.900s", want);
        seen++;
    }
    assert_true(seen > 0);
    assert_int_equal(want_lines, 0);
}

static void test_paired(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *metrics = buf_new(0), *logs = buf_new(0), *spans = buf_new(0);
    for (int i = 1; i <= 4; i++) {
        char path[256];
        snprintf(path, sizeof(path), FOLDER "paired-%03d-metrics.http.pb", i);
        add_lines(SIGNAL_METRICS, path, metrics);
    }
    add_lines(SIGNAL_LOGS, FOLDER "paired-005-logs.http.pb", logs);
    add_lines(SIGNAL_TRACES, FOLDER "paired-006-traces.http.pb", spans);
    check_paired(SIGNAL_METRICS, metrics, 4);
    check_paired(SIGNAL_LOGS, logs, 17);
    check_paired(SIGNAL_TRACES, spans, 13);
}

/* The lines of OTLP/JSON text. */
static struct buf *lines_of(enum signal s, const char *json)
{
    struct buf *wire = buf_new(0), *out = buf_new(0);
    struct batch *b = NULL;
    struct err e = {0};
    if (json_read(schema_request(s), bytes_str(json), wire, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(batch_from_wire(s, wire, &b, &e), 0);
    assert_int_equal(console_lines(b, out), 0);
    batch_unref(b);
    return out;
}

static void check(enum signal s, const char *json, const char *want)
{
    _cleanup_buf_ struct buf *got = lines_of(s, json);
    assert_string_equal(buf_str(got), want);
}

static void test_odd(void **state)
{
    (void)state;
    check(
        SIGNAL_TRACES,
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"parentSpanId\":\"0000000000000000\","
        "\"kind\":9,"
        "\"traceState\":\" a=it's , b=2,,c=\\\"'\\\\\",\"startTimeUnixNano\":\"1999999999\"}]}]}]}",
        "{\"name\": \"\", \"context\": {\"trace_id\": \"0x00000000000000000000000000000000\", "
        "\"span_id\": \"0x0000000000000000\", "
        "\"trace_state\": \"[\\\"{key=a, value=it's}\\\", '{key=b, value=2}', '{key=c, "
        "value=\\\"\\\\'\\\\\\\\}']\"}, "
        "\"trace_id\": \"0x00000000000000000000000000000000\", \"kind\": \"SpanKind.INTERNAL\", "
        "\"parent_id\": null, "
        "\"start_time\": \"1970-01-01T00:00:02.000000Z\", \"end_time\": null, \"status\": "
        "{\"status_code\": \"UNSET\"}, "
        "\"attributes\": {}, \"events\": [], \"links\": [], \"resource\": {\"attributes\": {}, "
        "\"schema_url\": \"\"}}\n");
    check(SIGNAL_METRICS, "{\"resourceMetrics\":[]}", "");
    check(SIGNAL_METRICS,
          "{\"resourceMetrics\":[{},{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"s\",\"summary\":{"
          "\"dataPoints\":[{\"count\":2,\"sum\":3,"
          "\"quantileValues\":[{\"quantile\":0.5,\"value\":1.5},{\"quantile\":1}]}]}}]}]}]}",
          "{\"resource_metrics\": [{\"resource\": {\"attributes\": {}, \"schema_url\": \"\"}, "
          "\"scope_metrics\": [], \"schema_url\": \"\"}, "
          "{\"resource\": {\"attributes\": {}, \"schema_url\": \"\"}, \"scope_metrics\": "
          "[{\"scope\": {\"name\": \"\", \"version\": \"\", "
          "\"schema_url\": \"\", \"attributes\": null}, \"metrics\": [{\"name\": \"s\", "
          "\"description\": \"\", \"unit\": \"\", "
          "\"data\": {\"data_points\": [{\"attributes\": {}, \"start_time_unix_nano\": null, "
          "\"time_unix_nano\": 0, \"count\": 2, "
          "\"sum\": 3.0, \"quantile_values\": [{\"quantile\": 0.5, \"value\": 1.5}, {\"quantile\": "
          "1.0, \"value\": 0.0}]}]}}], "
          "\"schema_url\": \"\"}], \"schema_url\": \"\"}]}\n");
}

#define LOG(fields) "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{" fields "}]}]}]}"
#define LOG_LINE(body)                                                                             \
    "{\"body\": " body ", \"severity_number\": null, \"severity_text\": null, \"attributes\": "    \
    "null, \"dropped_attributes\": 0, "                                                            \
    "\"timestamp\": null, \"observed_timestamp\": null, \"trace_id\": "                            \
    "\"0x00000000000000000000000000000000\", "                                                     \
    "\"span_id\": \"0x0000000000000000\", \"trace_flags\": 0, \"resource\": {\"attributes\": {}, " \
    "\"schema_url\": \"\"}, "                                                                      \
    "\"event_name\": \"\"}\n"

static void test_strings(void **state)
{
    (void)state;
    check(SIGNAL_LOGS,
          LOG("\"body\":{\"stringValue\":\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f "
              "\\u00e9\\u503c\\ud83d\\ude80\xff\"}"),
          LOG_LINE("\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f "
                   "\\u00e9\\u503c\\ud83d\\ude80\\ufffd\""));
    check(SIGNAL_LOGS, LOG("\"body\":{\"doubleValue\":\"NaN\"}"), LOG_LINE("NaN"));
    check(SIGNAL_LOGS,
          LOG("\"body\":{\"kvlistValue\":{\"values\":[{\"key\":\"b\",\"value\":{\"bytesValue\":"
              "\"AP8=\"}},{\"key\":\"l\","
              "\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":-1},{},{\"boolValue\":true},{"
              "\"doubleValue\":1e16}]}}}]}}"),
          LOG_LINE("{\"b\": \"AP8=\", \"l\": [-1, null, true, 1e+16]}"));
}

static void test_redaction(void **state)
{
    (void)state;
    secrets_add("s3cr\"t-value");
    secrets_add("123456789");
    check(SIGNAL_LOGS, LOG("\"body\":{\"stringValue\":\"token s3cr\\\"t-value!\"}"),
          LOG_LINE("\"token [REDACTED]!\""));
    check(SIGNAL_LOGS, LOG("\"body\":{\"intValue\":123456789}"), LOG_LINE("\"[REDACTED]\""));
    check(SIGNAL_LOGS, LOG("\"body\":{\"intValue\":1234567890}"), LOG_LINE("1234567890"));
    secrets_clear();
}

static void test_full(void **state)
{
    (void)state;
    struct batch *b = NULL;
    assert_int_equal(
        batch_from_wire(SIGNAL_TRACES, load(FOLDER "paired-006-traces.http.pb"), &b, NULL), 0);
    for (size_t max = 0; max < 3000; max += 7) {
        _cleanup_buf_ struct buf *out = buf_new(max + 1);
        assert_int_equal(console_lines(b, out), -EMSGSIZE);
    }
    batch_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paired),  cmocka_unit_test(test_odd),
        cmocka_unit_test(test_strings), cmocka_unit_test(test_redaction),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
