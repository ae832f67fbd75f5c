/* The memory limiter: its rules, what it refuses and when, and that receivers can ask for its
 * limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "agent/pipeline/memory_gate.h"
#include "proto/json.h"

#define TIB ((size_t)1 << 40)

extern const struct component_type processor_memory_limiter;

static const struct {
    const char *yaml, *error;
} mistakes[] = {
    {"limit_mib: 5", "'check_interval' must be greater than zero"},
    {"{check_interval: -1s, limit_mib: 5}", "'check_interval' must be greater than zero"},
    {"check_interval: 1s", "'limit_mib' or 'limit_percentage' must be greater than zero"},
    {"{check_interval: 1s, limit_mib: 5, spike_limit_mib: 5}",
     "'spike_limit_mib' must be smaller than 'limit_mib'"},
    {"{check_interval: 1s, limit_percentage: 101}",
     "'limit_percentage' and 'spike_limit_percentage' must be greater than zero and less than or "
     "equal to hundred"},
    {"{check_interval: 1s, limit_percentage: 50, spike_limit_percentage: 60}",
     "'spike_limit_percentage' must be smaller than 'limit_percentage'"},
    {"{check_interval: 1s, limit_mib: 5, min_gc_interval_when_soft_limited: 1s, "
     "min_gc_interval_when_hard_limited: 2s}",
     "'min_gc_interval_when_soft_limited' should be larger than "
     "'min_gc_interval_when_hard_limited'"},
    {"{check_interval: 1s, limit_mib: 5, max_gc_interval_when_soft_limited: -1s}",
     "'max_gc_interval_when_soft_limited' must be non-negative"},
    {"{check_interval: 1s, limit_mib: 5, max_gc_interval_when_hard_limited: -1s}",
     "'max_gc_interval_when_hard_limited' must be non-negative"},
    {"{check_interval: 1s, limit_mib: 5, max_gc_interval_when_soft_limited: 5s}",
     "'max_gc_interval_when_soft_limited' must be greater than or equal to "
     "'min_gc_interval_when_soft_limited' (or 0 to disable)"},
    {"{check_interval: 1s, limit_mib: 5, min_gc_interval_when_hard_limited: 5s, "
     "max_gc_interval_when_hard_limited: 4s}",
     "'max_gc_interval_when_hard_limited' must be greater than or equal to "
     "'min_gc_interval_when_hard_limited' (or 0 to disable)"},
    {"{check_interval: 1s, limit_mib: 5, max_gc_interval_when_soft_limited: 10s}",
     "'max_gc_interval_when_soft_limited' should be larger than or equal to "
     "'max_gc_interval_when_hard_limited' (when both are set)"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound = NULL;
        assert_int_equal(rig_bind(&r, &processor_memory_limiter, mistakes[i].yaml, &bound, &e),
                         -EINVAL);
        assert_string_equal(e.text, mistakes[i].error);
        config_free(r.config);
    }
}

static struct batch *spans(void)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {.text = ""};
    const char *json = "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{},{},{}]}]}]}";
    assert_int_equal(json_read(schema_request(SIGNAL_TRACES), bytes_str(json), wire, &e), 0);
    assert_int_equal(batch_from_wire(SIGNAL_TRACES, wire, &b, &e), 0);
    return b;
}

/* 4 TiB less 1: what is charged decides at once, without a check in between. */
static void test_refuses_above_the_soft_limit(void **state)
{
    (void)state;
    struct rig r = {0};
    struct outcome out;
    const char *labels = "processor=\"memory_limiter/a\"";
    rig_make(&r, &processor_memory_limiter, "memory_limiter/a", SIGNAL_TRACES, 1,
             "{check_interval: 1h, limit_mib: 4194304, spike_limit_mib: 1048576}");
    struct err e = {.text = ""};
    assert_int_equal(processor_memory_limiter.start(r.c, &e), 0);
    assert_true(processor_memory_limiter.memory_limit(r.c) == 3 * TIB);
    assert_int_equal(rig_offer(&r, spans(), &out), VERDICT_OK);
    mem_charge(3 * TIB);
    assert_int_equal(rig_offer(&r, spans(), &out), VERDICT_RETRY);
    assert_string_equal(out.message, "data refused due to high memory usage");
    assert_int_equal(out.status, 0);
    assert_int_equal(out.retry_after_ms, 0);
    mem_release(TIB);
    assert_int_equal(rig_offer(&r, spans(), &out), VERDICT_OK);
    mem_release(2 * TIB);
    assert_int_equal(r.sinks[0].records, 6);
    assert_int_equal(rig_metric(&r, "otelcol_processor_memory_limiter_accepted_spans", labels), 6);
    assert_int_equal(rig_metric(&r, "otelcol_processor_memory_limiter_refused_spans", labels), 3);
    processor_memory_limiter.stop(r.c, 0);
    processor_memory_limiter.stop(r.c, 0);
    rig_done(&r);
}

/* Without a spike limit a fifth of the limit. */
static void test_default_spike(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &processor_memory_limiter, "memory_limiter", SIGNAL_LOGS, 0,
             "{check_interval: 1s, limit_mib: 100, spike_limit_mib: 0}");
    assert_int_equal(processor_memory_limiter.memory_limit(r.c), 80 << 20);
    rig_done(&r);
}

/* A receiver in front of two pipelines, one with a limiter behind another processor. */
static void test_receivers_ask(void **state)
{
    (void)state;
    static const struct component_type receiver = {.kind = KIND_RECEIVER, .name = "r"};
    struct rig r = {0};
    rig_make(&r, &processor_memory_limiter, "memory_limiter", SIGNAL_TRACES, 1,
             "{check_interval: 1s, limit_mib: 4194304, spike_limit_mib: 1048576}");
    struct component c = {.type = &receiver, .id = "otlp", .host = r.host};
    struct memory_gate a;
    memory_gate_get(&c, SIGNAL_TRACES, "http", &a);
    assert_true(a.limit == MEM_NO_LIMIT);
    c.next[SIGNAL_TRACES] = fanout_new(2);
    fanout_set(c.next[SIGNAL_TRACES], 0, &r.sinks[0].base, NULL, 1);
    fanout_set(c.next[SIGNAL_TRACES], 1, r.c, NULL, 2);
    memory_gate_get(&c, SIGNAL_TRACES, "http", &a);
    assert_true(a.limit == 3 * TIB);
    assert_true(memory_gate_room(&a, TIB));
    assert_false(memory_gate_room(&a, 3 * TIB + 1));
    assert_int_equal(metric_value(a.refused), 1);
    fanout_free(c.next[SIGNAL_TRACES]);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_refuses_above_the_soft_limit),
        cmocka_unit_test(test_default_spike), cmocka_unit_test(test_receivers_ask)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
