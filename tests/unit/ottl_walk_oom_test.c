/* Every allocation of a walk fails once: -ENOMEM and nothing else, or the result is as it should
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ottl/ottl.h"
#include "tests/unit/oom.h"
#include "tests/unit/ottl_batches.h"

static const char traces[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"host\",\"value\":{"
    "\"stringValue\":\"h\"}}]},"
    "\"scopeSpans\":[{\"scope\":{\"name\":\"lib\"},\"spans\":[{\"name\":\"op\",\"attributes\":[{"
    "\"key\":\"a\",\"value\":{"
    "\"arrayValue\":{\"values\":[{\"intValue\":\"1\"}]}}},{\"key\":\"b\",\"value\":{"
    "\"stringValue\":\"v\"}}],\"events\":[{"
    "\"name\":\"e\"},{\"name\":\"f\"}]},{\"name\":\"op2\"}]}],\"schemaUrl\":\"u\"}]}";
static const char metrics[] = "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":"
                              "\"m\",\"sum\":{\"dataPoints\":[{\"asInt\":\"1\","
                              "\"exemplars\":[{\"asInt\":\"2\"}]},{\"asInt\":\"3\"}],"
                              "\"isMonotonic\":true}},{\"name\":\"e\",\"exponentialHistogram\":{"
                              "\"dataPoints\":[{\"count\":\"1\",\"positive\":{\"offset\":1,"
                              "\"bucketCounts\":[\"1\"]}}]}}]}]}]}";
static const char logs[] = "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"body\":{"
                           "\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{"
                           "\"intValue\":\"1\"}}]}}},{\"body\":{\"stringValue\":\"text\"}}]}]}]}";

static const struct {
    enum signal signal;
    enum ottl_context context;
    const char *in, *statement;
} cases[] = {
    {SIGNAL_TRACES, OTTL_RESOURCE, traces,
     "set(attributes[\"x\"][\"y\"][1], attributes[\"host\"])"},
    {SIGNAL_TRACES, OTTL_RESOURCE, traces, "set(schema_url, \"other\")"},
    {SIGNAL_TRACES, OTTL_SCOPE, traces, "set(attributes, resource.attributes)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "set(resource.attributes[\"last\"], attributes)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "set(status.message, trace_id.string)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "set(trace_state[\"a\"], name)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "set(events, events)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "set(cache[\"a\"][\"b\"], attributes)"},
    {SIGNAL_TRACES, OTTL_SPANEVENT, traces, "set(attributes[\"n\"], span.attributes[\"a\"][0])"},
    {SIGNAL_TRACES, OTTL_SPANEVENT, traces, "set(span.events, nil)"},
    {SIGNAL_TRACES, OTTL_SPAN, traces, "delete_key(attributes, \"a\")"},
    {SIGNAL_METRICS, OTTL_METRIC, metrics, "set(is_monotonic, false)"},
    {SIGNAL_METRICS, OTTL_METRIC, metrics, "copy_metric(name=\"copy\") where name == \"m\""},
    {SIGNAL_METRICS, OTTL_DATAPOINT, metrics, "set(value_double, 1.5)"},
    {SIGNAL_METRICS, OTTL_DATAPOINT, metrics, "set(positive.bucket_counts, [1, 2])"},
    {SIGNAL_METRICS, OTTL_EXEMPLAR, metrics,
     "set(filtered_attributes[\"x\"], datapoint.value_int)"},
    {SIGNAL_LOGS, OTTL_LOG, logs, "set(body[\"b\"], body)"},
    {SIGNAL_LOGS, OTTL_LOG, logs, "set(attributes[\"t\"], body.string)"},
};

static enum ottl_visit visit(void *statement, struct ottl_env *env)
{
    return ottl_statement_run(statement, env, NULL) == -ENOMEM ? OTTL_NO_MEMORY : OTTL_KEEP;
}

static struct ottl_statement *compile(enum ottl_context context, const char *text)
{
    static const struct ottl_function *const tables[] = {ottl_editors, ottl_converters,
                                                         ottl_metric_editors, NULL};
    const struct ottl_dialect d = {
        .context = (int)context, .allowed = ottl_context_reach(context), .functions = tables};
    struct ottl_statement *s = NULL;
    struct err e;
    if (ottl_statement_parse(bytes_str(text), &d, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static void test_walk(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ottl_statement *s = compile(cases[i].context, cases[i].statement);
        struct ottl_walk w = {.context = cases[i].context, .visit = visit, .ctx = s};
        _cleanup_batch_ struct batch *in = ottl_rig_batch(cases[i].signal, cases[i].in),
                                     *want = NULL;
        _cleanup_buf_ struct buf *expected = NULL, *got = NULL;
        struct err e;
        assert_int_equal(ottl_walk(&w, in, &want, &e), 0);
        expected = batch_flatten(want);
        unsigned n = 0;
        bool failed = true;
        while (failed) {
            struct batch *out = NULL;
            fail_in = ++n;
            int r = ottl_walk(&w, in, &out, &e);
            failed = fail_in == 0;
            fail_in = 0;
            assert_true(r == -ENOMEM || r == 0);
            if (r < 0) {
                assert_null(out);
                continue;
            }
            got = batch_flatten(out);
            assert_true(bytes_eq(buf_bytes(got), buf_bytes(expected)));
            got = buf_unref(got);
            batch_unref(out);
        }
        assert_true(n > 5);
        ottl_statement_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
