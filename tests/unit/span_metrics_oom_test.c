/* Every allocation of counting and exporting spans fails once: nothing leaks or crashes, and what
 * was not counted is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include "rig.h"

#include "span_metrics_rig.h"

extern const struct component_type connector_span_metrics;

#define COMMON "exclude_dimensions: [service.name, span.kind, status.code, collector.instance.id]\n"
#define LOST "motel_connector_lost_spans"
#define LABELS "connector=\"span_metrics\""

static const char *const yaml[] = {
    COMMON "histogram: {disable: true}",
    COMMON "histogram: {exponential: {max_size: 20}}\nexemplars: {enabled: "
           "true}\naggregation_cardinality_limit: 1\n"
           "resource_metrics_cache_size: 1",
    COMMON
    "histogram: {dimensions: [{glob: \"h**\"}]}\ndimensions: [{name: d, default: x}, {name: n}]\n"
    "events: {enabled: true, dimensions: [{name: e}]}\naggregation_temporality: "
    "AGGREGATION_TEMPORALITY_DELTA",
};

static const struct a_span spans[] = {
    {.name = "x", .attributes = "n=#5,h=1,ha=2", .event = "e=E", .id = 1},
    {.name = "x", .attributes = "n=#5,h=1,ha=2", .end_ns = 1000, .id = 2},
    {.name = "x", .attributes = "n=#5,h=1,ha=2", .end_ns = 70000000, .id = 3},
    {.name = "y", .id = 4},
};

/* Makes a connector, counts and exports, with the n-th allocation failing; true when none did. */
static bool run(const char *config, unsigned n)
{
    struct rig r = {0};
    void *bound = NULL;
    struct err e = {.text = ""};
    struct batch *batches[] = {make_spans("service.name=a,k=1", NULL, spans, ARRAY_SIZE(spans)),
                               make_spans("k=1,service.name=a", NULL, spans, ARRAY_SIZE(spans)),
                               make_spans("service.name=b", NULL, spans, ARRAY_SIZE(spans))};
    const size_t before = mem_used();
    r.host = host_new(&r.settings);
    assert_int_equal(rig_bind(&r, &connector_span_metrics, config, &bound, &e), 0);
    struct component_args args = {.id = "span_metrics", .config = bound, .host = r.host};
    fail_in = n;
    const int made = connector_span_metrics.create(&args, &r.c, &e);
    for (size_t i = 0; i < ARRAY_SIZE(batches); i++)
        if (made == 0)
            assert_int_equal(rig_offer(&r, batch_ref(batches[i]), NULL), VERDICT_OK);
    if (made == 0)
        connector_span_metrics.stop(r.c, clock_now_ns() + NS_PER_S);
    const bool all = fail_in > 0;
    fail_in = 0;
    if (made < 0)
        assert_string_equal(e.text, "out of memory");
    else if (all)
        assert_int_equal(rig_metric(&r, LOST, LABELS), 0);
    if (made == 0)
        connector_span_metrics.destroy(r.c);
    host_free(r.host);
    config_free(r.config);
    assert_true(mem_used() <= before);
    for (size_t i = 0; i < ARRAY_SIZE(batches); i++)
        batch_unref(batches[i]);
    return all;
}

static void test_every_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(yaml); i++) {
        unsigned n = 1;
        while (!run(yaml[i], n))
            n++;
        assert_true(n > 20);
    }
}

/* After a batch that could not be counted whole the next one is. */
static void test_goes_on(void **state)
{
    (void)state;
    for (unsigned n = 1, more = 1; more; n++) {
        struct rig r = {0};
        _cleanup_buf_ struct buf *text = buf_new(0);
        struct batch *b = make_spans("service.name=a", NULL, spans, ARRAY_SIZE(spans));
        rig_make(&r, &connector_span_metrics, "span_metrics", SIGNAL_METRICS, 1, yaml[0]);
        fail_in = n;
        r.c->type->consume(r.c, batch_ref(b), &(struct ack){.owed = ACK_ALL});
        more = fail_in == 0;
        fail_in = 0;
        rig_offer(&r, b, NULL);
        connector_span_metrics.stop(r.c, clock_now_ns() + NS_PER_S);
        assert_int_equal(r.sinks[0].ntaken, 2);
        const char *got = show_spans_metrics(r.sinks[0].taken[1], text);
        const int x = atoi(strstr(got, "x: ") + 3), y = atoi(strstr(got, "y: ") + 3);
        const int64_t lost = rig_metric(&r, LOST, LABELS);
        assert_in_range(x, 3, 6);
        assert_in_range(y, 1, 2);
        assert_int_equal(x + y + lost, 8);
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation),
                                       cmocka_unit_test(test_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
