/* The walk by hand: who is visited, what is dropped, and what becomes of the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ottl_batches.h"
#include "tests/unit/wire_text.h"

/* What a visitor does. */
struct script {
    uint64_t drop;        /* bits: which visits drop */
    enum ottl_context of; /* the path that is set in each visit that is a bit of `set` */
    const char *path, *value;
    uint64_t set;
    const char *add; /* metric (JSON) that the first `adds` visits add */
    unsigned adds;
    const char *stop; /* the text of the error of the last visit */
    unsigned visits;
};

static void set_path(const struct script *s, struct ottl_env *env)
{
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_path p;
    struct ottl_value v = ottl_rig_value(a, s->value);
    assert_int_equal(ottl_rig_path(s->of, s->path, a, &p, NULL), 0);
    assert_int_equal(p.ops->set(&p, env, &v), 0);
}

static int add_metric(const struct script *s, struct ottl_env *env)
{
    _cleanup_buf_ struct buf *metric = buf_new(0);
    struct err e;
    assert_int_equal(json_read(schema_find("opentelemetry.proto.metrics.v1.Metric"),
                               bytes_str(s->add), metric, &e),
                     0);
    return ottl_env_add_metric(env, buf_bytes(metric));
}

static enum ottl_visit play(void *ctx, struct ottl_env *env)
{
    struct script *s = ctx;
    uint64_t bit = s->visits < 64 ? 1ull << s->visits : 0;
    s->visits++;
    if (s->set & bit)
        set_path(s, env);
    if (s->visits <= s->adds && add_metric(s, env) < 0)
        return OTTL_STOP;
    if (s->stop && !(s->drop >> s->visits)) {
        err_set(env->err, -EINVAL, "%s", s->stop);
        return OTTL_STOP;
    }
    return s->drop & bit ? OTTL_DROP : OTTL_KEEP;
}

/* Of all walks here, whatever they were about. */
static struct ottl_walk_memory memory;

static struct batch *walk(enum ottl_context c, struct script *s, struct batch *in)
{
    struct ottl_walk w = {.context = c, .visit = play, .ctx = s, .memory = &memory};
    struct batch *out = NULL;
    struct err e = {.text = ""};
    if (ottl_walk(&w, in, &out, &e) < 0)
        fail_msg("%s", e.text);
    return out;
}

/* ---- documents ---- */

#define S(name) "{\"name\":\"" name "\",\"status\":{}}"
#define SCOPE(...) "{\"scope\":{},\"spans\":[" __VA_ARGS__ "]}"
#define RES(...) "{\"resource\":{},\"scopeSpans\":[" __VA_ARGS__ "]}"
#define TRACES(...) "{\"resourceSpans\":[" __VA_ARGS__ "]}"
#define EV(...) "{\"name\":\"s\",\"events\":[" __VA_ARGS__ "],\"status\":{}}"
#define E(name) "{\"name\":\"" name "\"}"

#define P(n) "{\"timeUnixNano\":\"" n "\",\"asInt\":\"" n "\"}"
#define PX(n, x) "{\"timeUnixNano\":\"" n "\",\"asInt\":\"" n "\",\"exemplars\":[" x "]}"
#define X(n) "{\"timeUnixNano\":\"" n "\",\"asInt\":\"" n "\"}"
#define M(name, ...) "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[" __VA_ARGS__ "]}}"
#define METRICS(...)                                                                               \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":"          \
    "[" __VA_ARGS__ "]}]}]}"

static const struct {
    enum signal signal;
    enum ottl_context context;
    const char *in;
    struct script script;
    unsigned visits;
    const char *want; /* NULL: the same batch */
    uint32_t records;
} cases[] = {
    /* nobody is visited, or nothing changes */
    {SIGNAL_TRACES, OTTL_LOG, TRACES(RES(SCOPE(S("a")))), {.drop = ~0ull}, 0, NULL, 1},
    {SIGNAL_TRACES, OTTL_SPAN, TRACES(RES(SCOPE(S("a") "," S("b")))), {0}, 2, NULL, 2},
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a")))),
     {.set = 1, .of = OTTL_SPAN, .path = "name", .value = "s:a"},
     1,
     NULL,
     1},
    {SIGNAL_TRACES, OTTL_SPANEVENT, TRACES(RES(SCOPE(S("a")))), {.drop = 1}, 0, NULL, 1},
    /* drops, and what they leave empty */
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a") "," S("b") "," S("c")))),
     {.drop = 2},
     3,
     TRACES(RES(SCOPE(S("a") "," S("c")))),
     2},
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a")) "," SCOPE(S("b")))),
     {.drop = 1},
     2,
     TRACES(RES(SCOPE(S("b")))),
     1},
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a"))) "," RES(SCOPE(S("b")))),
     {.drop = 1},
     2,
     TRACES(RES(SCOPE(S("b")))),
     1},
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a"))) "," RES(SCOPE(S("b")))),
     {.drop = 3},
     2,
     "{}",
     0},
    {SIGNAL_TRACES,
     OTTL_SCOPE,
     TRACES(RES(SCOPE(S("a")) "," SCOPE(S("b") "," S("c")))),
     {.drop = 1},
     2,
     TRACES(RES(SCOPE(S("b") "," S("c")))),
     2},
    {SIGNAL_TRACES,
     OTTL_SCOPE,
     TRACES(RES(SCOPE(S("a"))) "," RES(SCOPE(S("b")))),
     {.drop = 2},
     2,
     TRACES(RES(SCOPE(S("a")))),
     1},
    {SIGNAL_TRACES,
     OTTL_RESOURCE,
     TRACES(RES(SCOPE(S("a"))) "," RES(SCOPE(S("b")))),
     {.drop = 1},
     2,
     TRACES(RES(SCOPE(S("b")))),
     1},
    {SIGNAL_TRACES, OTTL_RESOURCE, TRACES(RES(SCOPE(S("a")))), {.drop = 1}, 1, "{}", 0},
    {SIGNAL_TRACES,
     OTTL_SPANEVENT,
     TRACES(RES(SCOPE(EV(E("x") "," E("y")) "," EV(E("z"))))),
     {.drop = 5},
     3,
     TRACES(RES(SCOPE(EV(E("y")) "," S("s")))),
     2},
    {SIGNAL_METRICS,
     OTTL_METRIC,
     METRICS(M("a", P("1")) "," M("b", P("2"))),
     {.drop = 1},
     2,
     METRICS(M("b", P("2"))),
     1},
    {SIGNAL_METRICS,
     OTTL_DATAPOINT,
     METRICS(M("a", P("1") "," P("2")) "," M("b", P("3"))),
     {.drop = 5},
     3,
     METRICS(M("a", P("2"))),
     1},
    {SIGNAL_METRICS,
     OTTL_DATAPOINT,
     METRICS("{\"name\":\"none\"}," M("b", P("3"))),
     {.drop = 1},
     1,
     METRICS("{\"name\":\"none\"}"),
     0},
    {SIGNAL_METRICS, OTTL_DATAPOINT, METRICS(M("a", P("1"))), {.drop = 1}, 1, "{}", 0},
    {SIGNAL_METRICS,
     OTTL_EXEMPLAR,
     METRICS(M("a", PX("1", X("2") "," X("3")) "," P("4"))),
     {.drop = 1},
     2,
     METRICS(M("a", PX("1", X("3")) "," P("4"))),
     2},
    /* edits upwards are seen by all that come later, and are in the result once */
    {SIGNAL_TRACES,
     OTTL_SPAN,
     TRACES(RES(SCOPE(S("a") "," S("b")) "," SCOPE(S("c"))) "," RES(SCOPE(S("d")))),
     {.set = 3, .of = OTTL_RESOURCE, .path = "attributes[k]", .value = "i:1"},
     4,
     TRACES("{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"1\"}}]},"
            "\"scopeSpans\":[" SCOPE(S("a") "," S("b")) "," SCOPE(S("c")) "]}," RES(SCOPE(S("d")))),
     4},
    {SIGNAL_TRACES,
     OTTL_SPANEVENT,
     TRACES(RES(SCOPE(EV(E("x") "," E("y"))))),
     {.set = 3, .of = OTTL_SPAN, .path = "name", .value = "s:n", .drop = 1},
     2,
     TRACES(RES(SCOPE("{\"name\":\"n\",\"events\":[" E("y") "],\"status\":{}}"))),
     1},
    {SIGNAL_METRICS,
     OTTL_EXEMPLAR,
     METRICS(M("a", PX("1", X("2") "," X("3")))),
     {.set = 2, .of = OTTL_METRIC, .path = "name", .value = "s:n", .drop = 1},
     2,
     METRICS(M("n", PX("1", X("3")))),
     1},
    /* edits and drops side by side */
    {SIGNAL_METRICS,
     OTTL_DATAPOINT,
     METRICS(M("a", P("1") "," P("2") "," P("3"))),
     {.set = 6, .of = OTTL_DATAPOINT, .path = "value_int", .value = "i:9", .drop = 2},
     3,
     METRICS(M("a", P("1") ",{\"timeUnixNano\":\"3\",\"asInt\":\"9\"}")),
     2},
    /* metrics that are added are visited too */
    {SIGNAL_METRICS,
     OTTL_METRIC,
     METRICS(M("a", P("1"))),
     {.add = M("n", P("2")), .adds = 2},
     3,
     METRICS(M("a", P("1")) "," M("n", P("2")) "," M("n", P("2"))),
     3},
    {SIGNAL_METRICS,
     OTTL_METRIC,
     METRICS(M("a", P("1"))),
     {.add = M("n", P("2")),
      .adds = 1,
      .set = 2,
      .of = OTTL_METRIC,
      .path = "name",
      .value = "s:x"},
     2,
     METRICS(M("a", P("1")) "," M("x", P("2"))),
     2},
    {SIGNAL_METRICS,
     OTTL_METRIC,
     METRICS(M("a", P("1"))),
     {.add = M("n", P("2")), .adds = 1, .drop = 1},
     2,
     METRICS(M("n", P("2"))),
     1},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *got = buf_new(0);
        _cleanup_batch_ struct batch *in = ottl_rig_batch(cases[i].signal, cases[i].in);
        struct script s = cases[i].script;
        _cleanup_batch_ struct batch *out = walk(cases[i].context, &s, in);
        print_message("case %zu\n", i);
        assert_int_equal(s.visits, cases[i].visits);
        assert_int_equal(out->records, cases[i].records);
        if (!cases[i].want) {
            assert_ptr_equal(in, out);
            continue;
        }
        if (strcmp(cases[i].want, "{}") != 0)
            assert_string_equal(ottl_rig_json(out, got), cases[i].want);
        else
            assert_int_equal(out->nsegs, 0);
    }
}

/* Heads and URLs behind the items and between them, in entries with unknown fields. */
static void test_odd_order(void **state)
{
    static const char *const orders[] = {
        "0a{ 12{ 12{2a{'a'}} 0a{0a{'s'}} 1a{'v'} 12{2a{'b'}} } 0a{} 1a{'u'} 6a{'?'} }",
        "0a{ 1a{'u'} 12{ 1a{'v'} 12{2a{'a'}} 12{2a{'b'}} 0a{0a{'s'}} } 6a{'?'} 0a{} }",
        "0a{ 0a{} 6a{'?'} 12{ 0a{0a{'s'}} 12{2a{'a'}} 12{2a{'b'}} 1a{'v'} } 1a{'u'} }",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct buf *wire = buf_new(0), *got = buf_new(0);
        struct err e = {.text = ""};
        struct batch *in = NULL;
        wire_text_append(orders[i], wire);
        assert_int_equal(batch_from_wire(SIGNAL_TRACES, wire, &in, &e), 0);
        struct script s = {
            .set = 2, .of = OTTL_RESOURCE, .path = "schema_url", .value = "s:new", .drop = 1};
        struct batch *out = walk(OTTL_SPAN, &s, in);
        assert_string_equal(
            ottl_rig_json(out, got),
            "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{\"name\":\"s\"},"
            "\"spans\":[" S("b") "],\"schemaUrl\":\"v\"}],\"schemaUrl\":\"new\"}]}");
        assert_non_null(memchr(out->segs[0]->data, '?', out->segs[0]->len));
        batch_unref(in);
        batch_unref(out);
        buf_unref(got);
    }
}

/* A segment that does not change is shared. */
static void test_segments(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *a = ottl_rig_batch(SIGNAL_TRACES, TRACES(RES(SCOPE(S("a")))));
    _cleanup_batch_ struct batch *b = ottl_rig_batch(SIGNAL_TRACES, TRACES(RES(SCOPE(S("b")))));
    struct buf *segs[] = {buf_ref(a->segs[0]), buf_ref(b->segs[0])};
    _cleanup_batch_ struct batch *in = batch_new(SIGNAL_TRACES, segs, 2, 2);
    struct script s = {.set = 2, .of = OTTL_SPAN, .path = "name", .value = "s:x"};
    _cleanup_batch_ struct batch *out = walk(OTTL_SPAN, &s, in);
    assert_int_equal(out->nsegs, 2);
    assert_ptr_equal(out->segs[0], a->segs[0]);
    assert_ptr_not_equal(out->segs[1], b->segs[0]);
    struct script drop = {.drop = 1};
    _cleanup_batch_ struct batch *rest = walk(OTTL_SPAN, &drop, in);
    assert_int_equal(rest->nsegs, 1);
    assert_ptr_equal(rest->segs[0], b->segs[0]);
    assert_int_equal(rest->records, 1);
}

static void test_errors(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *in = ottl_rig_batch(SIGNAL_METRICS, METRICS(M("a", P("1"))));
    struct batch *out = NULL;
    struct err e = {.text = ""};
    struct script stop = {.stop = "enough"}, endless = {.add = M("n", P("2")), .adds = UINT32_MAX};
    struct ottl_walk w = {.context = OTTL_METRIC, .visit = play, .ctx = &stop, .memory = &memory};
    assert_int_equal(ottl_walk(&w, in, &out, &e), -EINVAL);
    assert_string_equal(e.text, "enough");
    assert_null(memory.spare); /* what was left in the middle is not used again */
    assert_int_equal(ottl_walk(&w, in, &out, NULL), -EINVAL);
    w.ctx = &endless;
    assert_int_equal(ottl_walk(&w, in, &out, &e), -EINVAL);
    assert_non_null(strstr(e.text, "metrics were added to one scope"));
    assert_null(out);
}

/* No metric can be added where no metric is under the cursor. */
static void test_no_place_for_metrics(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *in = ottl_rig_batch(SIGNAL_METRICS, METRICS(M("a", P("1"))));
    struct batch *out = NULL;
    struct err e = {.text = ""};
    struct script add = {.add = M("n", P("2")), .adds = 1};
    struct ottl_walk w = {.context = OTTL_DATAPOINT, .visit = play, .ctx = &add};
    assert_int_equal(ottl_walk(&w, in, &out, &e), -EINVAL);
    assert_string_equal(e.text, "no metric can be added here");
}

/* What a walk works in is kept for the next one, unless it is large. */
static void test_memory(void **state)
{
    (void)state;
    _cleanup_batch_ struct batch *small = ottl_rig_batch(SIGNAL_TRACES, TRACES(RES(SCOPE(S("a")))));
    _cleanup_buf_ struct buf *json = buf_new(0);
    buf_append_str(json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (int i = 0; i < 5000; i++)
        buf_append_str(json, i ? "," S("a") : S("a"));
    buf_append_str(json, "]}]}]}");
    _cleanup_batch_ struct batch *large = ottl_rig_batch(SIGNAL_TRACES, buf_str(json));
    struct script rename = {.set = 1, .of = OTTL_SPAN, .path = "name", .value = "s:b"};
    ottl_walk_memory_done(&memory);
    const size_t before = mem_used();
    void *kept = NULL;
    for (int i = 0; i < 3; i++) {
        rename.visits = 0;
        batch_unref(walk(OTTL_SPAN, &rename, small));
        assert_non_null(memory.spare);
        assert_true(i == 0 || memory.spare == kept);
        kept = memory.spare;
    }
    rename.visits = 0;
    batch_unref(walk(OTTL_SPAN, &rename, large));
    assert_null(memory.spare);
    assert_int_equal(mem_used(), before);
    batch_unref(walk(OTTL_SPAN, &(struct script){0}, small));
    ottl_walk_memory_done(&memory);
    ottl_walk_memory_done(&memory);
    assert_int_equal(mem_used(), before);
}

static int end(void **state)
{
    (void)state;
    ottl_walk_memory_done(&memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_odd_order),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_place_for_metrics),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
