/* The attributes processor: which spans, log records and data points are edited. The expected
 * answers were recorded from the OpenTelemetry Collector 0.161.0, but where a line says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "proto/json.h"

extern const struct component_type processor_attributes;

/* What leaves the processor when `json` comes in. */
static void run(enum signal s, const char *yaml, const char *json, struct buf *ret)
{
    struct rig r = {0};
    rig_make(&r, &processor_attributes, "attributes", s, 1, yaml);
    assert_int_equal(rig_offer(&r, rig_batch(s, json), NULL), VERDICT_OK);
    assert_int_equal(r.sinks[0].ntaken, 1);
    assert_int_equal(json_write_batch(r.sinks[0].taken[0], 0, ret), 0);
    assert_non_null(buf_str(ret));
    rig_done(&r);
}

/* The names of the records that have the attribute HIT, as far as their name stands right before it
 * in `text`. */
static void hits(const char *text, const char *mark, char *ret, size_t size)
{
    *ret = 0;
    for (const char *p = text; (p = strstr(p, mark)); p += strlen(mark)) {
        const char *name = p + strlen(mark), *end = strchr(name, '"'), *next = strstr(end, mark);
        const char *hit = strstr(end, "\"HIT\"");
        if (hit && (!next || hit < next))
            snprintf(ret + strlen(ret), size - strlen(ret), "%s%.*s", *ret ? " " : "",
                     (int)(end - name), name);
    }
}

#define SPANS                                                                                      \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"     \
    "\"stringValue\":\"x\"}},"                                                                     \
    "{\"key\":\"n\",\"value\":{\"intValue\":5}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"s\","     \
    "\"version\":\"1\"},"                                                                          \
    "\"spans\":[{\"name\":\"a\",\"kind\":2,\"attributes\":[{\"key\":\"i\",\"value\":{"             \
    "\"intValue\":5}},"                                                                            \
    "{\"key\":\"s\",\"value\":{\"stringValue\":\"hello\"}},{\"key\":\"b\",\"value\":{"             \
    "\"boolValue\":true}},"                                                                        \
    "{\"key\":\"d\",\"value\":{\"doubleValue\":1.5}},{\"key\":\"l\",\"value\":{\"arrayValue\":{"   \
    "\"values\":"                                                                                  \
    "[{\"intValue\":1}]}}}]},{\"name\":\"b\"},{\"name\":\"k6\",\"kind\":6}]}]},"                   \
    "{\"scopeSpans\":[{\"spans\":[{\"name\":\"nores\"}]}]}]}"

static const struct {
    const char *match, *want;
} span_cases[] = {
    {"{match_type: strict, services: [x]}", "a b k6"},
    {"{match_type: regexp, services: [nil]}", "nores"},
    {"{match_type: regexp, services: [^$]}", ""},
    {"{match_type: strict, span_kinds: [SPAN_KIND_SERVER]}", "a"},
    {"{match_type: strict, span_kinds: [SPAN_KIND_SERVER, SPAN_KIND_CLIENT]}", "a"},
    {"{match_type: regexp, span_kinds: [SPAN]}", "a b nores"},
    {"{match_type: regexp, span_kinds: [^$]}", "k6"},
    {"{match_type: strict, attributes: [{key: i, value: 5}]}", "a"},
    {"{match_type: strict, attributes: [{key: i, value: '5'}]}", ""},
    {"{match_type: regexp, attributes: [{key: i, value: '5'}]}", "a"},
    {"{match_type: regexp, attributes: [{key: b, value: tr}]}", "a"},
    {"{match_type: regexp, attributes: [{key: d, value: '^1.5$'}]}", "a"},
    {"{match_type: regexp, attributes: [{key: l, value: '1'}]}", ""},
    {"{match_type: strict, attributes: [{key: l, value: [1]}]}", "a"},
    {"{match_type: strict, attributes: [{key: i, value: 5.0}]}", ""},
    {"{match_type: strict, attributes: [{key: i}, {key: s, value: hello}]}", "a"},
    {"{match_type: strict, attributes: [{key: i}, {key: s, value: hell}]}", ""},
    {"{match_type: regexp, attributes: [{key: s, value: ell}]}", "a"},
    {"{match_type: strict, resources: [{key: n, value: 5}]}", "a b k6"},
    {"{match_type: strict, libraries: [{name: s}]}", "a b k6"},
    {"{match_type: strict, libraries: [{name: s, version: '1'}]}", "a b k6"},
    {"{match_type: strict, libraries: [{name: s, version: '2'}]}", ""},
    {"{match_type: strict, libraries: [{name: s, version: ''}]}", ""},
    {"{match_type: strict, libraries: [{name: ''}]}", "nores"},
    {"{match_type: strict, services: [y], span_names: [a]}", ""},
    {"{match_type: strict, services: [x], span_names: [a, b]}", "a b"},
    {"{match_type: strict, services: [x]}\nexclude: {match_type: strict, span_names: [b]}", "a k6"},
    {"{match_type: strict, services: [''], span_names: ['']}", ""},
    {"{match_type: strict, span_names: [a], regexp: {cacheenabled: true, cachemaxnumentries: 10}}",
     "a"},
};

static void test_spans(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(span_cases); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0), *yaml = buf_new(0);
        char got[100];
        buf_printf(yaml, "actions: [{key: HIT, action: upsert, value: 1}]\ninclude: %s\n",
                   span_cases[i].match);
        run(SIGNAL_TRACES, buf_str(yaml), SPANS, out);
        hits(buf_str(out), "\"name\":\"", got, sizeof(got));
        if (strcmp(got, span_cases[i].want) != 0)
            fail_msg("%s: got \"%s\"", span_cases[i].match, got);
    }
}

#define LOGS                                                                                       \
    "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"r\",\"value\":{\"stringValue\":" \
    "\"x\"}}]},"                                                                                   \
    "\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},\"logRecords\":[{\"severityNumber\":9,"            \
    "\"severityText\":\"INFO\","                                                                   \
    "\"body\":{\"stringValue\":\"hello\"},\"eventName\":\"x\",\"attributes\":[{\"key\":\"n\","     \
    "\"value\":{\"stringValue\":\"1\"}}]},"                                                        \
    "{\"severityNumber\":17,\"severityText\":\"Error\",\"body\":{\"intValue\":5},\"attributes\":[" \
    "{\"key\":\"n\","                                                                              \
    "\"value\":{\"stringValue\":\"2\"}}]},{\"body\":{\"stringValue\":\"\"},\"attributes\":[{"      \
    "\"key\":\"n\",\"value\":"                                                                     \
    "{\"stringValue\":\"3\"}}]}]}]}]}"

static const struct {
    const char *match, *want;
} log_cases[] = {
    {"{match_type: strict, log_bodies: [hello]}", "1"},
    {"{match_type: strict, log_bodies: ['']}", "3"},
    {"{match_type: regexp, log_bodies: [^h]}", "1"},
    {"{match_type: regexp, log_bodies: ['5']}", "2"},
    {"{match_type: strict, log_severity_texts: [INFO]}", "1"},
    {"{match_type: regexp, log_severity_texts: ['^(INFO|Error)']}", "1 2"},
    {"{match_type: strict, log_severity_number: {min: 9}}", "1 2"},
    {"{match_type: strict, log_severity_number: {min: 10, match_undefined: true}}", "2 3"},
    {"{match_type: strict, log_severity_number: {match_undefined: true}}", "1 2 3"},
    {"{match_type: strict, attributes: [{key: n, value: '2'}]}", "2"},
    {"{match_type: strict, resources: [{key: r, value: x}], log_bodies: [hello]}", "1"},
    {"{match_type: strict, libraries: [{name: s}], log_severity_texts: ['']}", "3"},
    /* the reference takes a number only */
    {"{match_type: strict, log_severity_number: {min: error}}", "2"},
};

static void test_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(log_cases); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0), *yaml = buf_new(0);
        char got[100];
        buf_printf(yaml, "actions: [{key: HIT, action: upsert, value: 1}]\ninclude: %s\n",
                   log_cases[i].match);
        run(SIGNAL_LOGS, buf_str(yaml), LOGS, out);
        hits(buf_str(out), "\"key\":\"n\",\"value\":{\"stringValue\":\"", got, sizeof(got));
        if (strcmp(got, log_cases[i].want) != 0)
            fail_msg("%s: got \"%s\" in %s", log_cases[i].match, got, buf_str(out));
    }
}

#define HIT "\"attributes\":[{\"key\":\"HIT\",\"value\":{\"intValue\":\"1\"}}]"
#define METRICS(g, others, other_counts)                                                           \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"r\",\"value\":{"              \
    "\"stringValue\":\"x\"}}]},"                                                                   \
    "\"scopeMetrics\":[{\"scope\":{\"name\":\"s\"},\"metrics\":[{\"name\":\"g\",\"gauge\":{"       \
    "\"dataPoints\":[" g "]}},{\"name\":\"su\",\"sum\":{\"dataPoints\":[{" others                  \
    "\"asInt\":\"1\"}]}},{\"name\":\"h\",\"histogram\":"                                           \
    "{\"dataPoints\":[{" others                                                                    \
    "\"count\":\"1\"}]}},{\"name\":\"e\",\"exponentialHistogram\":{\"dataPoints\":[{" others       \
    "\"count\":\"1\"" other_counts "}]}},{\"name\":\"y\",\"summary\":{\"dataPoints\":[{" others    \
    "\"count\":"                                                                                   \
    "\"1\"}]}}]}]}]}"
#define OLD                                                                                        \
    "{\"asInt\":\"1\"},{\"attributes\":[{\"key\":\"HIT\",\"value\":{\"stringValue\":\"o\"}}],"     \
    "\"asInt\":\"2\"}"
#define NEW "{" HIT ",\"asInt\":\"1\"},{" HIT ",\"asInt\":\"2\"}"

static const struct {
    const char *match, *want;
} metric_cases[] = {
    {"include: {match_type: regexp, metric_names: [.]}",
     METRICS(NEW, HIT ",", ",\"positive\":{},\"negative\":{}")},
    {"include: {match_type: strict, metric_names: [g]}",
     METRICS(NEW, "", ",\"positive\":{},\"negative\":{}")},
    {"exclude: {match_type: strict, metric_names: [su, h, e, y]}",
     METRICS(NEW, "", ",\"positive\":{},\"negative\":{}")},
    {"include: {match_type: strict, metric_names: [q]}",
     METRICS(OLD, "", ",\"positive\":{},\"negative\":{}")},
    /* the reference ignores `resources` for metrics */
    {"include: {match_type: strict, resources: [{key: r, value: z}]}",
     METRICS(OLD, "", ",\"positive\":{},\"negative\":{}")},
};

static void test_metrics(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(metric_cases); i++) {
        _cleanup_buf_ struct buf *out = buf_new(0), *yaml = buf_new(0);
        buf_printf(yaml, "actions: [{key: HIT, action: upsert, value: 1}]\n%s\n",
                   metric_cases[i].match);
        run(SIGNAL_METRICS, buf_str(yaml), METRICS(OLD, "", ""), out);
        assert_string_equal(buf_str(out), metric_cases[i].want);
    }
}

static void test_nothing_to_do_gives_the_same_batch(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &processor_attributes, "attributes", SIGNAL_TRACES, 1,
             "actions: [{key: none, action: delete}]");
    struct batch *b = batch_ref(rig_batch(SIGNAL_TRACES, SPANS));
    assert_int_equal(rig_offer(&r, b, NULL), VERDICT_OK);
    assert_ptr_equal(r.sinks[0].taken[0], b);
    batch_unref(b);
    rig_done(&r);
}

static const struct {
    enum signal signal;
    const char *yaml, *path, *text;
} mistakes[] = {
    {SIGNAL_TRACES, "include: {match_type: strict}", "include",
     "at least one thing to match must be given"},
    {SIGNAL_TRACES, "exclude: {services: [a]}", "exclude::match_type",
     "expected strict or regexp, got \"\""},
    {SIGNAL_TRACES, "include: {match_type: regexp, services: [a, 'a(']}", "include::services[1]",
     "invalid expression \"a(\""},
    {SIGNAL_TRACES, "include: {match_type: strict, log_bodies: [a]}", "include::log_bodies",
     "log_bodies cannot be asked of spans"},
    {SIGNAL_LOGS, "include: {match_type: strict, span_names: [a]}", "include::span_names",
     "span_names cannot be asked of log records"},
    {SIGNAL_METRICS, "include: {match_type: strict, attributes: [{key: a}]}", "include::attributes",
     "attributes cannot be asked of metrics"},
    {SIGNAL_TRACES, "include: {match_type: strict, span_kinds: [FOO]}", "include::span_kinds",
     "expected SPAN_KIND_INTERNAL"},
    {SIGNAL_TRACES, "include: {match_type: strict, attributes: [{value: a}]}",
     "include::attributes[0]", "\"key\" must be given"},
    {SIGNAL_TRACES, "include: {match_type: regexp, attributes: [{key: a, value: 5}]}",
     "include::attributes[0]", "in quotes; got int"},
    {SIGNAL_TRACES, "include: {match_type: regexp, attributes: [{key: a, value: '('}]}",
     "include::attributes[0]", "invalid expression"},
    {SIGNAL_LOGS, "include: {match_type: strict, log_severity_number: {min: HIGH}}",
     "include::log_severity_number::min", "expected a number from 1 to 24"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        struct rig r = {.host = host_new(&(struct motel_settings){0})};
        struct err e = {.text = ""};
        void *bound = NULL;
        struct component *c = NULL;
        _cleanup_buf_ struct buf *yaml = buf_new(0);
        buf_printf(yaml, "actions: [{key: HIT, action: upsert, value: 1}]\n%s\n", mistakes[i].yaml);
        assert_int_equal(rig_bind(&r, &processor_attributes, buf_str(yaml), &bound, &e), 0);
        struct component_args args = {
            .id = "attributes", .signal = mistakes[i].signal, .config = bound, .host = r.host};
        assert_int_equal(processor_attributes.create(&args, &c, &e), -EINVAL);
        assert_string_equal(e.path, mistakes[i].path);
        if (!strstr(e.text, mistakes[i].text))
            fail_msg("%s: got \"%s\"", mistakes[i].yaml, e.text);
        host_free(r.host);
        config_free(r.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),    cmocka_unit_test(test_logs),
        cmocka_unit_test(test_metrics),  cmocka_unit_test(test_nothing_to_do_gives_the_same_batch),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
