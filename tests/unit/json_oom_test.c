/* Every allocation of JSON in, JSON out and the texts for people fails once: an error, no leak, no
 * crash. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "exporters/console/lines.h"
#include "exporters/debug/text.h"
#include "proto/json.h"
#include "tests/unit/oom.h"

static const char trace_text[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"k\\n\",\"value\":{"
    "\"stringValue\":\"the-secret \\u00e9\"}},"
    "{\"key\":\"b\",\"value\":{\"bytesValue\":\"AP8=\"}},{\"key\":\"m\",\"value\":{\"kvlistValue\":"
    "{\"values\":[{\"key\":\"z\"},{\"key\":\"a\"}]}}}]},"
    "\"scopeSpans\":[{\"spans\":[{\"name\":\"n\",\"traceState\":\"a=1,b=2\",\"events\":[{\"name\":"
    "\"e\"}]}]}]}]}";
static const char metric_text[] =
    "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"the-secret\","
    "\"exponentialHistogram\":{\"dataPoints\":[{\"count\":3,"
    "\"positive\":{\"bucketCounts\":[1,2]},\"negative\":{\"bucketCounts\":[3]}}]}},{\"histogram\":{"
    "\"dataPoints\":[{\"bucketCounts\":[1,2],"
    "\"explicitBounds\":[0.5]}]}}]}]}]}";

static int read_text(const struct batch *b, struct buf *out)
{
    return json_read(schema_request(b->signal),
                     bytes_str(b->signal == SIGNAL_TRACES ? trace_text : metric_text), out, NULL);
}

static int write_json(const struct batch *b, struct buf *out)
{
    return json_write_batch(b, JSON_REDACT, out);
}

static int normal(const struct batch *b, struct buf *out)
{
    struct text t = {.out = out};
    normal_text(&t, b);
    return t.error;
}

static int detailed(const struct batch *b, struct buf *out)
{
    struct text t = {.out = out};
    detailed_text(&t, b);
    return t.error;
}

static int (*const cases[])(const struct batch *b, struct buf *out) = {
    read_text, write_json, console_lines, normal, detailed};

static struct batch *batch_of(enum signal s, const char *text)
{
    struct buf *wire = buf_new(0);
    struct batch *b;
    assert_int_equal(json_read(schema_request(s), bytes_str(text), wire, NULL), 0);
    assert_int_equal(batch_from_wire(s, wire, &b, NULL), 0);
    return b;
}

/* Runs until it gets through; how many allocations there were. */
static unsigned run_all(int (*run)(const struct batch *b, struct buf *out), const struct batch *b)
{
    size_t before = mem_used();
    for (unsigned n = 1;; n++) {
        struct buf *out = buf_new(0);
        fail_in = n;
        int r = run(b, out);
        bool done = fail_in > 0;
        fail_in = 0;
        buf_unref(out);
        assert_int_equal(mem_used(), before);
        assert_int_equal(r, done ? 0 : -ENOMEM);
        if (done)
            return n;
    }
}

static void test_each_allocation(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *spans = batch_of(SIGNAL_TRACES, trace_text);
    _cleanup_batch_ struct batch *metrics = batch_of(SIGNAL_METRICS, metric_text);
    secrets_add("the-secret");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(run_all(cases[i], spans) > 1);
        assert_true(run_all(cases[i], metrics) > 1);
    }
    secrets_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
