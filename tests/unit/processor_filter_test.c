/* The filter processor: what is left of one request per signal, as the OpenTelemetry Collector
 * 0.161.0 leaves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "rig.h"

#include "proto/json.h"

extern const struct component_type processor_filter;

static enum signal signal_of(const char *name)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (strcmp(signal_name((enum signal)s), name) == 0)
            return (enum signal)s;
    fail_msg("signal %s", name);
    return SIGNAL_COUNT;
}

/* What leaves the processor; "" when nothing does. */
static void run(enum signal s, const char *yaml, const char *json, struct buf *ret,
                int64_t *ret_filtered)
{
    static const char *const names[] = {"otelcol_processor_filter_spans_filtered",
                                        "otelcol_processor_filter_datapoints_filtered",
                                        "otelcol_processor_filter_logs_filtered"};
    struct rig r = {0};
    rig_make(&r, &processor_filter, "filter", s, 1, yaml);
    assert_int_equal(rig_offer(&r, rig_batch(s, json), NULL), VERDICT_OK);
    if (r.sinks[0].ntaken)
        assert_int_equal(json_write_batch(r.sinks[0].taken[0], 0, ret), 0);
    assert_non_null(buf_str(ret));
    *ret_filtered = rig_metric(&r, names[s], "filter=\"filter\"");
    rig_done(&r);
}

static void test_cases(void **state)
{
    (void)state;
    json_error_t error;
    json_t *root = json_load_file(TEST_DATA "/golden/filter/cases.json", 0, &error);
    if (!root)
        fail_msg("%s", error.text);
    json_t *cases = json_object_get(root, "cases");
    assert_true(json_array_size(cases) > 20);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *c = json_array_get(cases, i);
        const char *signal = json_string_value(json_object_get(c, "signal"));
        const char *yaml = json_string_value(json_object_get(c, "config"));
        char *input =
            json_dumps(json_object_get(json_object_get(root, "inputs"), signal), JSON_COMPACT);
        _cleanup_buf_ struct buf *out = buf_new(0);
        int64_t filtered;
        run(signal_of(signal), yaml, input, out, &filtered);
        if (strcmp(buf_str(out), json_string_value(json_object_get(c, "output"))) != 0)
            fail_msg("%s: got %s", yaml, buf_str(out));
        free(input);
    }
    json_decref(root);
}

#define SPANS                                                                                      \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\"},{\"name\":\"7\"},{"         \
    "\"name\":\"b\"}]}]}]}"

static void test_counts(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *out = buf_new(0);
    int64_t filtered;
    run(SIGNAL_TRACES, "trace_conditions: ['span.name == \"a\"', 'span.name == \"b\"']", SPANS, out,
        &filtered);
    assert_int_equal(filtered, 2);
}

#define NOTHING_IN_THEM                                                                            \
    "{\"resource\":{\"attributes\":[{\"key\":\"no "                                                \
    "scope\"}]}},{\"scopeSpans\":[{\"scope\":{\"name\":"                                           \
    "\"no span\"}}]}"
#define SOME_EMPTY                                                                                 \
    "{\"resourceSpans\":[" NOTHING_IN_THEM                                                         \
    ",{\"scopeSpans\":[{\"scope\":{\"name\":\"no span\"}},{\"spans\":[{\"name\":\"a\"}]}]}]}"

/* What came with nothing in it goes where it is looked into, even if no condition holds. */
static void test_empty_entries(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        bool resource_stays, scope_stays; /* the one without scopes, the one without spans */
    } cases[] = {{"trace_conditions: ['span.name == \"x\"']", false, false},
                 {"trace_conditions: ['spanevent.name == \"x\"']", false, false},
                 {"trace_conditions: ['scope.name == \"x\"']", false, false},
                 {"trace_conditions: ['resource.attributes[\"x\"] == 1']", false, true},
                 {"traces: {span: ['name == \"x\"']}", false, false},
                 {"traces: {resource: ['attributes[\"x\"] == 1']}", false, true},
                 {"spans: {exclude: {match_type: strict, span_names: [x]}}", false, false},
                 {"metric_conditions: ['metric.name == \"x\"']", true, true}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *some = buf_new(0), *none = buf_new(0);
        int64_t filtered;
        run(SIGNAL_TRACES, cases[i].yaml, SOME_EMPTY, some, &filtered);
        assert_int_equal(filtered, 0);
        assert_non_null(strstr(buf_str(some), "\"name\":\"a\""));
        if (cases[i].resource_stays != !!strstr(buf_str(some), "no scope") ||
            cases[i].scope_stays != !!strstr(buf_str(some), "no span"))
            fail_msg("%s: %s", cases[i].yaml, buf_str(some));
        run(SIGNAL_TRACES, cases[i].yaml, "{\"resourceSpans\":[" NOTHING_IN_THEM "]}", none,
            &filtered);
        assert_int_equal(none->len > 0, cases[i].scope_stays);
    }
}

static void test_metrics_without_points(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *out = buf_new(0);
    int64_t filtered;
    run(SIGNAL_METRICS, "metric_conditions: ['datapoint.attributes[\"x\"] == 1']",
        "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"no data\"},{\"name\":"
        "\"no points\",\"gauge\":{}}]}]}]}",
        out, &filtered);
    assert_non_null(strstr(buf_str(out), "no data"));
    assert_null(strstr(buf_str(out), "no points"));
}

static void test_error_modes(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        static const char *const names[] = {"ignore", "silent", "propagate"};
        struct rig r = {0};
        struct outcome out = {0};
        _cleanup_buf_ struct buf *yaml = buf_new(0);
        buf_printf(yaml, "error_mode: %s\ntrace_conditions: ['Int(span.name) == 7']", names[mode]);
        rig_make(&r, &processor_filter, "filter", SIGNAL_TRACES, 1, buf_str(yaml));
        enum verdict v = rig_offer(&r, rig_batch(SIGNAL_TRACES, SPANS), &out);
        /* a group's own mode wins; what fails is counted in every mode */
        assert_int_equal(v, mode == 2 ? VERDICT_REJECT : VERDICT_OK);
        assert_int_equal(out.status, mode == 2 ? 14 : 0);
        assert_int_equal(r.sinks[0].records, mode == 2 ? 0 : 2);
        assert_true(rig_metric(&r, "motel_processor_filter_errors", "filter=\"filter\"") >= 1);
        rig_done(&r);
    }
}

static void test_a_group_has_its_own_error_mode(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &processor_filter, "filter", SIGNAL_TRACES, 1,
             "error_mode: propagate\ntrace_conditions: [{context: span, error_mode: silent, "
             "conditions: ['Int(name) == 7']}]");
    assert_int_equal(rig_offer(&r, rig_batch(SIGNAL_TRACES, SPANS), NULL), VERDICT_OK);
    assert_int_equal(r.sinks[0].records, 2);
    rig_done(&r);
}

static void test_nothing_dropped_gives_the_same_batch(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &processor_filter, "filter", SIGNAL_TRACES, 1,
             "trace_conditions: ['span.name == \"none\"']");
    struct batch *b = batch_ref(rig_batch(SIGNAL_TRACES, SPANS));
    assert_int_equal(rig_offer(&r, b, NULL), VERDICT_OK);
    assert_ptr_equal(r.sinks[0].taken[0], b);
    batch_unref(b);
    rig_done(&r);
}

static const struct {
    const char *yaml, *path, *text;
} mistakes[] = {
    {"trace_conditions: ['name == \"a\"']", "trace_conditions[0]", "unable to infer"},
    {"trace_conditions: ['span.nme == \"a\"']", "trace_conditions[0]", "nme"},
    {"trace_conditions: [{context: span, conditions: ['name == \"a\"', 'name = 1']}]",
     "trace_conditions[0]::conditions[1]", "column"},
    {"trace_conditions: [{context: foo, conditions: ['true']}]", "trace_conditions[0]",
     "unknown context foo"},
    {"trace_conditions: [{context: metric, conditions: ['true']}]", "trace_conditions[0]",
     "unknown context metric"},
    {"trace_conditions: [null]", "trace_conditions[0]", "condition cannot be empty"},
    {"trace_conditions: ['span.name == \"b\"', {conditions: ['span.name == \"a\"']}]",
     "trace_conditions[1]", "multiple configuration styles"},
    {"traces: {span: ['name == \"a\"']}\ntrace_conditions: ['span.name == \"b\"']",
     "trace_conditions", "cannot be used at the same time"},
    {"traces: {span: ['name == \"a\"']}\nspans: {include: {match_type: strict, services: [a]}}",
     "spans::include", "cannot be used at the same time"},
    {"traces: {span: ['nme == \"a\"']}", "traces::span[0]", "nme"},
    {"logs: {include: {match_type: strict, severity_number: {min: LOUD}}}",
     "logs::include::log_severity_number::min", "1 to 24"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound = NULL;
        if (rig_bind(&r, &processor_filter, mistakes[i].yaml, &bound, &e) != -EINVAL)
            fail_msg("%s: taken", mistakes[i].yaml);
        if (strcmp(e.path, mistakes[i].path) != 0 || !strstr(e.text, mistakes[i].text))
            fail_msg("%s: got \"%s\": %s", mistakes[i].yaml, e.path, e.text);
        config_free(r.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_empty_entries),
        cmocka_unit_test(test_metrics_without_points),
        cmocka_unit_test(test_error_modes),
        cmocka_unit_test(test_a_group_has_its_own_error_mode),
        cmocka_unit_test(test_nothing_dropped_gives_the_same_batch),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
