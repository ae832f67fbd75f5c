/* The span_metrics connector: what it makes of spans, when it sends it, what it forgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "span_metrics_rig.h"

extern const struct component_type connector_span_metrics;

#define MS 1000000ull
#define NAMES_ONLY                                                                                 \
    "exclude_dimensions: [service.name, span.kind, status.code, collector.instance.id]\n"
#define CALLS_ONLY NAMES_ONLY "histogram: {disable: true}\n"
#define DROPPED "motel_connector_dropped_metric_points"

static void make(struct rig *r, const char *yaml)
{
    rig_make(r, &connector_span_metrics, "span_metrics", SIGNAL_METRICS, 1, yaml);
}

static void start(struct rig *r)
{
    struct err e;
    assert_int_equal(r->c->type->start(r->c, &e), 0);
}

static void stop(struct rig *r)
{
    r->c->type->stop(r->c, clock_now_ns() + 60 * NS_PER_S);
}

static void give(struct rig *r, const char *resource, const struct a_span *s, size_t n)
{
    assert_int_equal(rig_offer(r, make_spans(resource, NULL, s, n), NULL), VERDICT_OK);
}

static void give_name(struct rig *r, const char *resource, const char *name)
{
    give(r, resource, &(struct a_span){.name = name}, 1);
}

/* The i-th batch that came out, as text. */
static void assert_out(struct rig *r, unsigned i, const char *want)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    assert_true(sink_taken(&r->sinks[0]) > i);
    assert_string_equal(show_spans_metrics(r->sinks[0].taken[i], text), want);
}

static void assert_last(struct rig *r, const char *want)
{
    assert_out(r, sink_taken(&r->sinks[0]) - 1, want);
}

/* Waits for the export after the ones that were there. */
static void next_flush(struct rig *r)
{
    const unsigned n = sink_taken(&r->sinks[0]);
    assert_soon(sink_taken(&r->sinks[0]) >
                n + 1); /* the one that began before may have been at work already */
}

/* ---- one export ---- */

struct example {
    const char *yaml, *resource, *scope;
    struct a_span spans[4];
    const char *want; /* of the last batch */
};
static const struct example examples[] = {
    {"", "service.name=a", NULL, {{.name = "x", .kind = 2, .status = 2, .end_ns = 3 * MS}}, NULL},
    {"exclude_dimensions: [collector.instance.id]\nhistogram: {disable: true}",
     "k=#1,service.name=a",
     NULL,
     {{.name = "x", .kind = 2, .status = 2},
      {.name = "x", .kind = 2, .status = 2},
      {.name = "y", .kind = 9, .status = 9}},
     "{ k=1 service.name=a }\n"
     "calls service.name=a span.name=x span.kind=SPAN_KIND_SERVER status.code=STATUS_CODE_ERROR: "
     "2\n"
     "calls service.name=a span.name=y span.kind= status.code=: 1\n"},
    /* a service name that is no string */
    {"exclude_dimensions: [span.name, span.kind, status.code, collector.instance.id]\nhistogram: "
     "{disable: true}",
     "service.name=#5",
     NULL,
     {{.name = "x"}},
     "{ service.name=5 }\ncalls service.name=: 1\n"},
    {CALLS_ONLY "namespace: \"\"\ndimensions: [{name: a}, {name: b, default: B}, {name: c}, {name: "
                "d, default: \"\"}]",
     "service.name=s,a=r,c=r",
     NULL,
     {{.name = "x", .attributes = "c=s,c=second"},
      {.name = "x", .attributes = "a=#7"},
      {.name = "x", .attributes = "a=7"}},
     "{ service.name=s a=r c=r }\n"
     "calls span.name=x a=r b=B c=s d=: 1\n"
     "calls span.name=x a=7 b=B c=r d=: 2\n"},
    {NAMES_ONLY "histogram: {explicit: {buckets: [1s]}, dimensions: [{name: h}]}\n"
                "dimensions: [{name: d}]\ncalls_dimensions: [{name: c}]",
     "service.name=s",
     NULL,
     {{.name = "x", .attributes = "h=1,c=1,d=1"},
      {.name = "x", .attributes = "c=2,h=1,d=1", .end_ns = 2000 * MS}},
     "{ service.name=s }\n"
     "calls span.name=x d=1 c=1: 1\n"
     "calls span.name=x d=1 c=2: 1\n"
     "duration span.name=x d=1 h=1: 2 2000 [1,1] [1000]\n"},
    {CALLS_ONLY "dimensions: [{glob: \"http.*\"}, {name: z}, {glob: \"{a,b}.**\"}]",
     "service.name=s,http.r=R,a.b=A,z=Z",
     NULL,
     {{.name = "x", .attributes = "http.z=1,b.c.d=2,http.b=3,http.x.y=no,a.b=S"}},
     "{ service.name=s http.r=R a.b=A z=Z }\n"
     "calls span.name=x z=Z a.b=S b.c.d=2 http.b=3 http.z=1 http.r=R: 1\n"},
    {CALLS_ONLY "include_instrumentation_scope: [lib]",
     "service.name=s",
     "lib/1.0",
     {{.name = "x"}},
     "{ service.name=s }\n"
     "calls span.name=x span.instrumentation.scope.name=lib "
     "span.instrumentation.scope.version=1.0: 1\n"},
    {CALLS_ONLY "include_instrumentation_scope: [other]",
     "service.name=s",
     "lib/1.0",
     {{.name = "x"}},
     "{ service.name=s }\ncalls span.name=x: 1\n"},
    {CALLS_ONLY "enable_metrics_sampling_method: true",
     "service.name=s",
     NULL,
     {{.name = "x", .tracestate = "ot=th:c"},
      {.name = "x"},
      {.name = "x", .tracestate = "a=b,ot=th:8"}},
     "{ service.name=s }\n"
     "calls span.name=x sampling.method=extrapolated: 6\n"
     "calls span.name=x sampling.method=counted: 1\n"},
    {NAMES_ONLY "histogram: {explicit: {buckets: []}}",
     "service.name=s",
     NULL,
     {{.name = "x", .end_ns = 5 * MS}},
     "{ service.name=s }\ncalls span.name=x: 1\nduration span.name=x: 1 5 [1] []\n"},
    {NAMES_ONLY "histogram: {explicit: {buckets: [2s, 1s]}, unit: S}",
     "service.name=s",
     NULL,
     {{.name = "x", .end_ns = 1500 * MS}},
     "{ service.name=s }\ncalls span.name=x: 1\nduration span.name=x: 1 1.5 [0,1,0] [1,2]\n"},
    {NAMES_ONLY "histogram: {exponential: {max_size: 2}}",
     "service.name=s",
     NULL,
     {{.name = "x", .end_ns = 1 * MS}, {.name = "x", .end_ns = 4 * MS}, {.name = "x"}},
     "{ service.name=s }\ncalls span.name=x: 3\n"
     "duration span.name=x: 3 5 scale -1 zeros 1 0..4 -1 [1,1]\n"},
    {NAMES_ONLY
     "exemplars: {enabled: true, max_per_data_point: 2}\nhistogram: {explicit: {buckets: [1s]}}",
     "service.name=s",
     NULL,
     {{.name = "x"},
      {.name = "x", .id = 1, .end_ns = MS},
      {.name = "x", .id = 2},
      {.name = "x", .id = 3}},
     "{ service.name=s }\ncalls span.name=x: 4 !1:1 !2:0\n"
     "duration span.name=x: 4 1 [4,0] [1000] !1:1 !2:0\n"},
    {CALLS_ONLY
     "dimensions: [{name: d}]\nevents: {enabled: true, dimensions: [{name: e}, {name: r}]}",
     "service.name=s,r=R,e=R",
     NULL,
     {{.name = "x", .attributes = "d=1", .event = "e=E,d=no"},
      {.name = "y"},
      {.name = "x", .attributes = "d=1", .event = "e=E"}},
     "{ service.name=s r=R e=R }\n"
     "calls span.name=x d=1: 2\n"
     "calls span.name=y: 1\n"
     "events span.name=x d=1 e=E r=R: 2\n"},
    {CALLS_ONLY "aggregation_cardinality_limit: 1",
     "service.name=s",
     NULL,
     {{.name = "x"}, {.name = "y"}, {.name = "z"}, {.name = "x"}},
     "{ service.name=s }\ncalls span.name=x: 2\ncalls otel.metric.overflow=true: 2\n"},
};

static void test_examples(void **state)
{
    (void)state;
    for (const struct example *x = examples; x < examples + ARRAY_SIZE(examples); x++) {
        struct rig r = {0};
        size_t n = 0;
        const size_t before = mem_used();
        make(&r, x->yaml);
        while (n < ARRAY_SIZE(x->spans) && x->spans[n].name)
            n++;
        assert_int_equal(rig_offer(&r, make_spans(x->resource, x->scope, x->spans, n), NULL),
                         VERDICT_OK);
        stop(&r);
        assert_int_equal(r.sinks[0].ntaken, 2); /* zeros, and the counts */
        if (x->want)
            assert_last(&r, x->want);
        rig_done(&r);
        assert_int_equal(mem_used(), before);
    }
}

/* Spans that end before they start, on the bounds, and long ago. */
static void test_durations(void **state)
{
    (void)state;
    const uint64_t now = 1790000000000000000;
    const struct a_span spans[] = {
        {.name = "x", .start_ns = now, .end_ns = now - 1},
        {.name = "x", .start_ns = now, .end_ns = now},
        {.name = "x", .start_ns = now, .end_ns = now + 2 * MS},
        {.name = "x", .start_ns = now, .end_ns = now + 250 * MS},
        {.name = "x", .start_ns = now, .end_ns = now + 250 * MS + 1},
        {.name = "x", .start_ns = now, .end_ns = now + 10000 * MS},
        {.name = "x", .start_ns = 0, .end_ns = now},
    };
    const char *const yaml[] = {NAMES_ONLY "histogram: {explicit: {buckets: [2ms, 250ms, 1s]}}",
                                NAMES_ONLY
                                "histogram: {unit: s, explicit: {buckets: [2ms, 250ms, 1s]}}"};
    const char *const want[] = {
        "{ service.name=s }\ncalls span.name=x: 7\n"
        "duration span.name=x: 7 1.79000001e+12 [3,1,1,2] [2,250,1000]\n",
        "{ service.name=s }\ncalls span.name=x: 7\n"
        "duration span.name=x: 7 1.79000001e+09 [3,1,1,2] [0.002,0.25,1]\n"};
    for (int i = 0; i < 2; i++) {
        struct rig r = {0};
        make(&r, yaml[i]);
        give(&r, "service.name=s", spans, ARRAY_SIZE(spans));
        stop(&r);
        assert_last(&r, want[i]);
        rig_done(&r);
    }
}

static void test_no_service(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, "");
    give_name(&r, "", "x");
    give_name(&r, "service=a", "x");
    stop(&r);
    assert_int_equal(r.sinks[0].ntaken, 0);
    rig_done(&r);
}

/* Name, kind and status and the instance, all there by default, in this order. */
static void test_defaults(void **state)
{
    (void)state;
    struct rig r = {0};
    _cleanup_buf_ struct buf *text = buf_new(0);
    make(&r, "");
    give(&r, "service.name=a", &(struct a_span){.name = "x", .kind = 1, .end_ns = 3 * MS}, 1);
    stop(&r);
    const char *got = show_spans_metrics(r.sinks[0].taken[1], text),
               *uuid = strstr(got, "instance.id=");
    assert_non_null(strstr(got, "calls service.name=a span.name=x span.kind=SPAN_KIND_INTERNAL "
                                "status.code=STATUS_CODE_UNSET collector.instance.id="));
    assert_int_equal(uuid[12 + 14], '4'); /* version */
    assert_int_equal(strcspn(uuid + 12, ":"), 36);
    assert_non_null(strstr(got,
                           ": 1 3 [0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0] "
                           "[2,4,6,8,10,50,100,200,400,800,1000,1400,2000,5000,10000,15000]\n"));
    rig_done(&r);
}

/* ---- the course of time ---- */

static uint64_t point_time(const struct batch *b, uint32_t field)
{
    struct bytes msg = buf_bytes(b->segs[0]);
    const uint32_t path[] = {1, 2, 2, METRIC_SUM, DATA_POINTS};
    for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
        struct wire_reader r = wire_reader(msg);
        assert_true(wire_each(&r, path[i], &msg));
    }
    return wire_uint(msg, field);
}

static void test_stop_sends_zero_and_count(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY);
    start(&r);
    give_name(&r, "service.name=s", "x");
    stop(&r);
    assert_int_equal(r.sinks[0].ntaken, 2);
    assert_out(&r, 0, "{ service.name=s }\ncalls span.name=x: 0\n");
    assert_out(&r, 1, "{ service.name=s }\ncalls span.name=x: 1\n");
    const struct batch *zero = r.sinks[0].taken[0], *one = r.sinks[0].taken[1];
    assert_int_equal(point_time(zero, POINT_TIME), point_time(zero, POINT_START));
    assert_int_equal(point_time(one, POINT_START), point_time(zero, POINT_START));
    assert_true(point_time(one, POINT_TIME) >= point_time(zero, POINT_TIME) + MS);
    stop(&r); /* legal twice, and nothing is left */
    assert_int_equal(r.sinks[0].ntaken, 2);
    rig_done(&r);
}

static void test_interval(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "metrics_flush_interval: 20ms");
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) > 0);
    assert_out(&r, 0, ""); /* nothing to say is said, too */
    give_name(&r, "service.name=s", "x");
    next_flush(&r);
    next_flush(&r);
    assert_last(&r, "{ service.name=s }\ncalls span.name=x: 1\n");
    give_name(&r, "service.name=s", "x");
    give_name(&r, "service.name=s", "y");
    next_flush(&r);
    next_flush(&r);
    stop(&r);
    const unsigned n = r.sinks[0].ntaken;
    unsigned zeros = 0;
    for (unsigned i = 0; i < n; i++) {
        _cleanup_buf_ struct buf *text = buf_new(0);
        const char *got = show_spans_metrics(r.sinks[0].taken[i], text);
        zeros += strstr(got, "x: 0\n") != NULL;
        zeros += strstr(got, "y: 0\n") != NULL;
    }
    assert_int_equal(zeros, 2); /* each series begins with one */
    assert_last(&r, "{ service.name=s }\ncalls span.name=x: 2\ncalls span.name=y: 1\n");
    rig_done(&r);
}

static void test_delta(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY
         "metrics_flush_interval: 20ms\naggregation_temporality: AGGREGATION_TEMPORALITY_DELTA");
    give_name(&r, "service.name=s", "x");
    give_name(&r, "service.name=s", "x");
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 2);
    assert_out(&r, 0, "{ service.name=s }\ncalls span.name=x: 2\n");
    assert_out(&r, 1, "");
    give_name(&r, "service.name=s", "x");
    next_flush(&r);
    stop(&r);
    const struct batch *first = r.sinks[0].taken[0], *again = NULL;
    for (unsigned i = 1; i < r.sinks[0].ntaken; i++)
        again = r.sinks[0].taken[i]->records ? r.sinks[0].taken[i] : again;
    assert_non_null(again);
    assert_int_equal(point_time(again, POINT_START),
                     point_time(first, POINT_TIME)); /* without a gap */
    assert_int_equal(point_time(again, NUMBER_AS_INT), 1);
    rig_done(&r);
}

/* The one that was not used for longest is exported once more, and then gone. */
static void test_least_recently_used(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "resource_metrics_cache_size: 2\nmetrics_flush_interval: 20ms");
    give_name(&r, "service.name=a", "x");
    give_name(&r, "service.name=b", "x");
    give_name(&r, "service.name=a", "x");
    give_name(&r, "service.name=c", "x");
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 3);
    stop(&r);
    assert_out(&r, 0, "{ service.name=b }\ncalls span.name=x: 0\n");
    assert_out(
        &r, 1,
        "{ service.name=a }\ncalls span.name=x: 0\n{ service.name=c }\ncalls span.name=x: 0\n"
        "{ service.name=b }\ncalls span.name=x: 1\n");
    assert_out(
        &r, 2,
        "{ service.name=a }\ncalls span.name=x: 2\n{ service.name=c }\ncalls span.name=x: 1\n");
    rig_done(&r);
}

static void test_comes_back(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "resource_metrics_cache_size: 1");
    give_name(&r, "service.name=a,k=1", "x");
    give_name(&r, "service.name=b", "x");
    give_name(&r, "k=1,service.name=a", "x"); /* in another order it is the same */
    stop(&r);
    assert_last(
        &r,
        "{ service.name=a k=1 }\ncalls span.name=x: 2\n{ service.name=b }\ncalls span.name=x: 1\n");
    rig_done(&r);
}

static void test_key_attributes(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, "exclude_dimensions: [span.kind, status.code, collector.instance.id]\nhistogram: "
             "{disable: true}\n"
             "resource_metrics_key_attributes: [k]");
    give_name(&r, "service.name=a,k=1,i=1", "x");
    give_name(&r, "service.name=a,k=1,i=2", "x");
    give_name(&r, "service.name=b,k=1", "x");
    give_name(&r, "service.name=a", "x");
    stop(&r);
    assert_last(&r, "{ service.name=a k=1 i=1 }\ncalls service.name=a span.name=x: 2\ncalls "
                    "service.name=b span.name=x: 1\n"
                    "{ service.name=a }\ncalls service.name=a span.name=x: 1\n");
    rig_done(&r);
}

/* More resources than there is room for lead to an export before its time. */
static void test_many_resources(void **state)
{
    (void)state;
    struct rig r = {0};
    char resource[32];
    make(&r, CALLS_ONLY "resource_metrics_cache_size: 1\nmetrics_flush_interval: 1h");
    start(&r);
    for (int i = 0; i < 1100; i++) {
        snprintf(resource, sizeof(resource), "service.name=s%d", i);
        give_name(&r, resource, "x");
    }
    assert_soon(sink_taken(&r.sinks[0]) > 0);
    stop(&r);
    rig_done(&r);
}

/* Not before its count was exported. */
static void test_series_expiration(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "metrics_flush_interval: 10ms\nseries_expiration: 1ns\n"
                        "events: {enabled: true, dimensions: [{name: e}]}");
    give(&r, "service.name=s", &(struct a_span){.name = "x", .event = "e=1"}, 1);
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 3);
    stop(&r);
    assert_out(&r, 0, "{ service.name=s }\ncalls span.name=x: 0\nevents span.name=x e=1: 0\n");
    assert_out(&r, 1, "{ service.name=s }\ncalls span.name=x: 1\nevents span.name=x e=1: 1\n");
    assert_out(&r, 2, "{ service.name=s }\n");
    rig_done(&r);
}

/* It begins anew when it is seen again. */
static void test_expired_comes_back(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "metrics_flush_interval: 10ms\nseries_expiration: 1ns");
    give_name(&r, "service.name=s", "x");
    give_name(&r, "service.name=s", "x");
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 3);
    give_name(&r, "service.name=s", "x");
    stop(&r);
    unsigned ones = 0;
    for (unsigned i = 3; i < r.sinks[0].ntaken; i++) {
        _cleanup_buf_ struct buf *text = buf_new(0);
        ones += strcmp(show_spans_metrics(r.sinks[0].taken[i], text),
                       "{ service.name=s }\ncalls span.name=x: 1\n") == 0;
    }
    assert_int_equal(ones, 1);
    rig_done(&r);
}

static void test_metrics_expiration(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "metrics_flush_interval: 10ms\nmetrics_expiration: 1ns");
    give_name(&r, "service.name=s", "x");
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 3);
    stop(&r);
    assert_out(&r, 1, "{ service.name=s }\ncalls span.name=x: 1\n"); /* it was put aside, and is
                                                                        exported once more */
    assert_out(&r, 2, "");
    rig_done(&r);
}

static void test_exemplars_of_one_interval(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY "metrics_flush_interval: 20ms\nexemplars: {enabled: true}");
    give(&r, "service.name=s", &(struct a_span){.name = "x", .id = 1}, 1);
    start(&r);
    assert_soon(sink_taken(&r.sinks[0]) >= 2);
    stop(&r);
    assert_out(&r, 0, "{ service.name=s }\ncalls span.name=x: 0 !1:0\n");
    assert_out(&r, 1, "{ service.name=s }\ncalls span.name=x: 1\n");
    rig_done(&r);
}

/* ---- downstream ---- */

static void test_refused_is_kept(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY
         "metrics_flush_interval: 20ms\naggregation_temporality: AGGREGATION_TEMPORALITY_DELTA");
    sink_set(&r.sinks[0], VERDICT_RETRY);
    start(&r);
    give_name(&r, "service.name=s", "x");
    sink_wait(&r.sinks[0], 3);
    give_name(&r, "service.name=s", "y");
    sink_wait(&r.sinks[0], 4);
    sink_set(&r.sinks[0], VERDICT_OK);
    stop(&r);
    unsigned x = 0, y = 0;
    for (unsigned i = 0; i < r.sinks[0].ntaken; i++) {
        _cleanup_buf_ struct buf *text = buf_new(0);
        const char *got = show_spans_metrics(r.sinks[0].taken[i], text);
        x = strstr(got, "x: 1") ? i + 1 : x;
        y = strstr(got, "y: 1") ? i + 1 : y;
    }
    assert_true(x > 0);
    assert_true(y > x); /* in their order */
    assert_int_equal(rig_metric(&r, DROPPED, "connector=\"span_metrics\""), 0);
    rig_done(&r);
}

static void test_refused_until_the_end(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY);
    sink_set(&r.sinks[0], VERDICT_RETRY);
    give_name(&r, "service.name=s", "x");
    r.c->type->stop(r.c, clock_now_ns() + 100 * MS);
    assert_int_equal(rig_metric(&r, DROPPED, "connector=\"span_metrics\""), 2);
    rig_done(&r);
}

static void rejected(bool counted, int64_t expect)
{
    struct rig r = {0};
    make(&r, CALLS_ONLY);
    sink_set(&r.sinks[0], VERDICT_REJECT);
    r.sinks[0].counted = counted;
    give_name(&r, "service.name=s", "x");
    stop(&r);
    assert_int_equal(rig_metric(&r, DROPPED, "connector=\"span_metrics\""), expect);
    rig_done(&r);
}

static void test_rejected(void **state)
{
    (void)state;
    rejected(false, 2);
    rejected(true, 0); /* who refused has counted them */
}

/* One of several branches refused it for good, another one took it later. */
static void test_refused_by_one(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY);
    r.sinks[0].refusals = 1;
    r.sinks[0].also_lost = true;
    give_name(&r, "service.name=s", "x");
    stop(&r);
    assert_int_equal(sink_taken(&r.sinks[0]), 2);
    assert_int_equal(rig_metric(&r, DROPPED, "connector=\"span_metrics\""), 1);
    rig_done(&r);
}

static void test_answers_later(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, CALLS_ONLY);
    sink_set(&r.sinks[0], VERDICT_PENDING);
    give_name(&r, "service.name=s", "x");
    r.c->type->stop(r.c, clock_now_ns() + 20 * MS);
    assert_int_equal(r.sinks[0].nwaiting, 2);
    ack_done(r.sinks[0].waiting[0], VERDICT_OK, NULL);
    ack_done(r.sinks[0].waiting[1], VERDICT_RETRY, NULL); /* too late */
    assert_int_equal(rig_metric(&r, DROPPED, "connector=\"span_metrics\""), 1);
    rig_done(&r);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 200

static void *give_many(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        give_name(arg, i % 2 ? "service.name=a" : "service.name=b", "x");
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct rig r = {0};
    pthread_t threads[THREADS];
    make(&r, CALLS_ONLY "metrics_flush_interval: 1ms\nresource_metrics_cache_size: 2");
    start(&r);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, give_many, &r);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    give_name(&r, "service.name=a", "x");
    give_name(&r, "service.name=b", "x");
    stop(&r);
    assert_last(
        &r,
        "{ service.name=a }\ncalls span.name=x: 401\n{ service.name=b }\ncalls span.name=x: 401\n");
    rig_done(&r);
}

/* ---- configuration ---- */

static void test_bad_configs(void **state)
{
    static const char *const bad[][3] = {
        {"dimensions: [{name: service.name}]", "dimensions",
         "failed validating dimensions: duplicate dimension name \"service.name\""},
        {"dimensions: [{name: a}, {name: a}]", "dimensions",
         "failed validating dimensions: duplicate dimension name \"a\""},
        {"dimensions: [{}]", "dimensions",
         "failed validating dimensions: dimension entry must set one of `name` or `glob`"},
        {"dimensions: [{name: a, glob: b}]", "dimensions",
         "failed validating dimensions: dimension entry must set only one of `name` or `glob`, got "
         "both: name=\"a\" glob=\"b\""},
        {"dimensions: [{glob: a, default: x}]", "dimensions",
         "failed validating dimensions: `default` is not supported on `glob` dimension \"a\""},
        {"dimensions: [{glob: \"[a\"}]", "dimensions",
         "failed validating dimensions: invalid dimension glob \"[a\": a class [...] is empty or "
         "not closed"},
        {"calls_dimensions: [{glob: \"**\"}]", "calls_dimensions",
         "failed validating calls dimensions: duplicate dimension name \"service.name\" "
         "conflicting with glob \"**\""},
        {"histogram: {dimensions: [{name: ab}, {glob: \"a*\"}]}", "histogram::dimensions",
         "failed validating histogram dimensions: duplicate dimension name \"ab\" conflicting with "
         "glob \"a*\""},
        {"events: {enabled: true}", "events::dimensions",
         "failed validating event dimensions: no dimensions configured for events"},
        {"histogram: {explicit: {}, exponential: {}}", "histogram",
         "use either `explicit` or `exponential` buckets histogram"},
        {"metrics_flush_interval: -1s", "metrics_flush_interval",
         "must be positive, got -1000000000"},
        {"metrics_flush_interval: 0", "metrics_flush_interval", "must be positive, got 0"},
        {"metrics_expiration: -1s", "metrics_expiration", "must be 0 or positive, got -1000000000"},
        {"series_expiration: -1s", "series_expiration", "must be 0 or positive, got -1000000000"},
        {"{aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA, metric_timestamp_cache_size: 0}",
         "metric_timestamp_cache_size", "must be positive, got 0"},
        {"resource_metrics_cache_size: 0", "resource_metrics_cache_size",
         "must be positive, got 0"},
        {"aggregation_cardinality_limit: -1", "aggregation_cardinality_limit",
         "must be 0 or positive, got -1"},
        {"exemplars: {enabled: true, max_per_data_point: -1}", "exemplars::max_per_data_point",
         "must be 0 or positive, got -1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rig r = {0};
        void *bound = NULL;
        struct err e = {.text = ""};
        assert_int_equal(rig_bind(&r, &connector_span_metrics, bad[i][0], &bound, &e), -EINVAL);
        assert_string_equal(e.path, bad[i][1]);
        assert_string_equal(e.text, bad[i][2]);
        config_free(r.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_no_service),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_stop_sends_zero_and_count),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_least_recently_used),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_key_attributes),
        cmocka_unit_test(test_many_resources),
        cmocka_unit_test(test_series_expiration),
        cmocka_unit_test(test_expired_comes_back),
        cmocka_unit_test(test_metrics_expiration),
        cmocka_unit_test(test_exemplars_of_one_interval),
        cmocka_unit_test(test_refused_is_kept),
        cmocka_unit_test(test_refused_until_the_end),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_refused_by_one),
        cmocka_unit_test(test_answers_later),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bad_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
