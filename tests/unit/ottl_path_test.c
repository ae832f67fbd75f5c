/* Every path of every context: what it reads, what it takes, and what becomes of the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ottl_batches.h"

#define TRACE "0102030405060708090a0b0c0d0e0f10"

static const char traces[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"host\",\"value\":{"
    "\"stringValue\":"
    "\"h\"}},{\"key\":\"deep\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"l\",\"value\":{"
    "\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{\"stringValue\":\"two\"}]}}}]}}}],"
    "\"droppedAttributesCount\":3},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\",\"version\":\"1."
    "0\","
    "\"attributes\":[{\"key\":\"sa\",\"value\":{\"boolValue\":true}}],\"droppedAttributesCount\":4}"
    ","
    "\"spans\":[{\"traceId\":\"" TRACE "\",\"spanId\":\"0102030405060708\",\"traceState\":"
    "\"a=1,b=2\",\"parentSpanId\":\"1112131415161718\",\"flags\":257,\"name\":\"op\",\"kind\":2,"
    "\"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"3000\",\"attributes\":[{\"key\":\"k\","
    "\"value\":{\"stringValue\":\"v\"}},{\"key\":\"n\",\"value\":{\"intValue\":\"7\"}}],"
    "\"droppedAttributesCount\":5,\"events\":[{\"timeUnixNano\":\"2000\",\"name\":\"e0\","
    "\"attributes\":[{\"key\":\"ek\",\"value\":{\"doubleValue\":1.5}}],\"droppedAttributesCount\":"
    "8},"
    "{\"timeUnixNano\":\"2001\",\"name\":\"e1\"}],\"droppedEventsCount\":6,\"links\":[{\"traceId\":"
    "\"" TRACE
    "\",\"spanId\":\"0102030405060708\"}],\"droppedLinksCount\":7,\"status\":{\"message\":\"bad\","
    "\"code\":2}}],\"schemaUrl\":\"scope-url\"}],\"schemaUrl\":\"resource-url\"}]}";

#define METRICS(data)                                                                              \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":[{"        \
    "\"name\":\"m\",\"description\":\"d\",\"unit\":\"s\"," data                                    \
    ",\"metadata\":[{\"key\":\"mk\",\"value\":{\"stringValue\":\"mv\"}}]}]}]}]}"
#define EXEMPLAR                                                                                   \
    "\"exemplars\":[{\"filteredAttributes\":[{\"key\":\"f\",\"value\":{\"stringValue\":\"fv\"}}]," \
    "\"timeUnixNano\":\"9\",\"asInt\":\"5\",\"traceId\":\"" TRACE                                  \
    "\",\"spanId\":\"0102030405060708\"}]"
#define ATTRIBUTES                                                                                 \
    "\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"v\"}}],\"startTimeUnixNano\":"    \
    "\"1\","                                                                                       \
    "\"timeUnixNano\":\"2\""

static const char gauge[] =
    METRICS("\"gauge\":{\"dataPoints\":[{" ATTRIBUTES ",\"asDouble\":1.5,\"flags\":1}]}");
static const char sum[] =
    METRICS("\"sum\":{\"dataPoints\":[{" ATTRIBUTES ",\"asInt\":\"4\"," EXEMPLAR
            "}],\"aggregationTemporality\":2,\"isMonotonic\":true}");
static const char histogram[] = METRICS(
    "\"histogram\":{\"dataPoints\":[{" ATTRIBUTES
    ",\"count\":\"3\",\"sum\":4.5,\"bucketCounts\":[\"1\",\"2\"],\"explicitBounds\":[0.5]," EXEMPLAR
    ",\"flags\":1}],\"aggregationTemporality\":1}");
static const char exponential[] = METRICS(
    "\"exponentialHistogram\":{\"dataPoints\":[{" ATTRIBUTES
    ",\"count\":\"6\",\"sum\":2.5,\"scale\":-3,\"zeroCount\":\"1\",\"positive\":{\"offset\":-2,"
    "\"bucketCounts\":[\"1\",\"2\"]},\"negative\":{\"offset\":4,\"bucketCounts\":[\"2\"]},"
    "\"flags\":1}],"
    "\"aggregationTemporality\":2}");
static const char summary[] = METRICS("\"summary\":{\"dataPoints\":[{" ATTRIBUTES
                                      ",\"count\":\"2\",\"sum\":8,\"quantileValues\":[{"
                                      "\"quantile\":0.5,\"value\":4}],\"flags\":1}]}");

#define LOG(body)                                                                                  \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[{"           \
    "\"timeUnixNano\":\"11\",\"observedTimeUnixNano\":\"12\",\"severityNumber\":9,"                \
    "\"severityText\":"                                                                            \
    "\"INFO\",\"body\":{" body "},\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":"      \
                               "\"v\"}}],\"droppedAttributesCount\":2,"                            \
    "\"flags\":1,\"traceId\":\"" TRACE                                                             \
    "\",\"spanId\":\"0102030405060708\",\"eventName\":\"ev\"}]}]}]}"
static const char log_text[] = LOG("\"stringValue\":\"hi\"");
static const char log_map[] =
    LOG("\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"intValue\":\"1\"}}]}");
static const char log_list[] = LOG("\"arrayValue\":{\"values\":[{\"intValue\":\"1\"}]}");

struct path_case {
    enum ottl_context at; /* under the cursor */
    enum ottl_context of; /* the path's */
    const char *doc, *path, *got;
    const char *set;       /* NULL: only read */
    const char *error;     /* of set, and nothing changes */
    const char *again;     /* read after it */
    const char *from, *to; /* in the JSON */
};

static const struct path_case cases[] = {
#include "tests/unit/ottl_path_cases.h"
};

struct play {
    const struct path_case *c;
    unsigned visits;
};

static enum ottl_visit play(void *ctx, struct ottl_env *env)
{
    struct play *p = ctx;
    const struct path_case *c = p->c;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_path path;
    struct err e = {.text = ""};
    struct ottl_value v;
    if (p->visits++)
        return OTTL_KEEP;
    if (ottl_rig_path(c->of, c->path, a, &path, &e) < 0)
        fail_msg("%s: %s", c->path, e.text);
    assert_int_equal(path.context, c->of);
    int r = path.ops->get(&path, env, &v);
    if (r < 0)
        assert_string_equal(env->err->text, c->got);
    else
        assert_string_equal(ottl_rig_text(a, &v), c->got);
    if (!c->set)
        return OTTL_KEEP;
    v = ottl_rig_value(a, c->set);
    r = path.ops->set(&path, env, &v);
    if (r < 0 || c->error)
        assert_string_equal(r < 0 ? env->err->text : "no error", c->error ? c->error : "");
    if (c->again) {
        assert_int_equal(path.ops->get(&path, env, &v), 0);
        assert_string_equal(ottl_rig_text(a, &v), c->again);
    }
    return OTTL_KEEP;
}

/* `doc` with the first `from` replaced; NULL when it is not in it. */
static char *replaced(const char *doc, const char *from, const char *to)
{
    const char *at = strstr(doc, from);
    size_t n = strlen(doc) + strlen(to) + 1;
    char *ret = at ? calloc(1, n) : NULL;
    if (ret)
        snprintf(ret, n, "%.*s%s%s", (int)(at - doc), doc, to, at + strlen(from));
    return ret;
}

static enum signal signal_of(const char *doc)
{
    return doc == traces                                          ? SIGNAL_TRACES
           : doc == log_text || doc == log_map || doc == log_list ? SIGNAL_LOGS
                                                                  : SIGNAL_METRICS;
}

static void test_case(const struct path_case *c)
{
    _cleanup_buf_ struct buf *got = buf_new(0), *before = buf_new(0);
    _cleanup_batch_ struct batch *in = ottl_rig_batch(signal_of(c->doc), c->doc), *out = NULL;
    struct play p = {c, 0};
    struct ottl_walk w = {.context = c->at, .visit = play, .ctx = &p};
    struct err e = {.text = ""};
    assert_int_equal(ottl_walk(&w, in, &out, &e), 0);
    assert_true(p.visits > 0);
    ottl_rig_json(in, before);
    ottl_rig_json(out, got);
    if (!c->from) {
        assert_ptr_equal(in, out);
        return;
    }
    _cleanup_free_ char *want = replaced(buf_str(before), c->from, c->to);
    if (!want)
        fail_msg("%s: no %s in %s", c->path, c->from, buf_str(before));
    assert_string_equal(buf_str(got), want);
    /* and the bytes are good */
    struct batch *checked = NULL;
    assert_int_equal(batch_from_wire(in->signal, batch_flatten(out), &checked, &e), 0);
    assert_int_equal(checked->records, out->records);
    batch_unref(checked);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        print_message("%s.%s %s\n", ottl_context_name(cases[i].of), cases[i].path,
                      cases[i].set ? cases[i].set : "");
        test_case(&cases[i]);
    }
}

/* ---- paths that are none ---- */

static const struct {
    enum ottl_context c;
    const char *path, *error;
    int column;
} bad[] = {
    {OTTL_SPAN, "nope",
     "segment \"nope\" from path \"nope\" is not a valid path nor a valid OTTL keyword for the "
     "span context - review "
     "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/"
     "contexts/ottlspan to see all valid "
     "paths",
     1},
    {OTTL_LOG, "severty_text",
     "segment \"severty_text\" from path \"severty_text\" is not a valid path nor a valid OTTL "
     "keyword for the log context - "
     "review "
     "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/"
     "contexts/ottllog to see all "
     "valid paths; did you mean \"severity_text\"?",
     1},
    {OTTL_SPAN, "status.coed",
     "segment \"coed\" from path \"status.coed\" is not a valid path nor a valid OTTL keyword for "
     "the span context - review "
     "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/"
     "contexts/ottlspan to see all valid "
     "paths; did you mean \"code\"?",
     8},
    {OTTL_METRIC, "xyzzy",
     "segment \"xyzzy\" from path \"xyzzy\" is not a valid path nor a valid OTTL keyword for the "
     "metric context - review "
     "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/"
     "contexts/ottlmetric to see all valid "
     "paths",
     1},
    {OTTL_SPAN, "name.first",
     "the path section \"first\" was not used by the context - this likely means you are using "
     "extra path sections",
     6},
    {OTTL_SPAN, "name[a]",
     "the keys indexing \"name\" were not used by the context - this likely means you are trying "
     "to index a path that does not "
     "support indexing",
     1},
    {OTTL_LOG, "body[a].string",
     "the keys indexing \"body\" were not used by the context - this likely means you are trying "
     "to index a path that does not "
     "support indexing",
     1},
    {OTTL_SPAN, "trace_state[a][b]", "must provide exactly 1 key when accessing trace_state", 1},
};

static void test_bad_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_(arena_freep) struct arena *a = arena_new(0);
        struct ottl_path path;
        struct err e = {.text = ""};
        assert_int_equal(ottl_rig_path(bad[i].c, bad[i].path, a, &path, &e), -EINVAL);
        assert_string_equal(e.text, bad[i].error);
        assert_int_equal(e.column, bad[i].column);
    }
}

/* ---- names and enums ---- */

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        assert_int_equal(ottl_context_find(bytes_str(ottl_context_name((enum ottl_context)i))), i);
    assert_int_equal(ottl_context_find(bytes_str("SpanEvent")), OTTL_SPANEVENT);
    assert_int_equal(ottl_context_find(bytes_str("instrumentation_scope")), OTTL_SCOPE);
    assert_int_equal(ottl_context_find(bytes_str("")), -1);
    assert_int_equal(ottl_context_find(bytes_str("spans")), -1);
    assert_int_equal(ottl_context_reach(OTTL_EXEMPLAR),
                     OTTL_CONTEXT_BIT(OTTL_EXEMPLAR) | OTTL_CONTEXT_BIT(OTTL_DATAPOINT) |
                         OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |
                         OTTL_CONTEXT_BIT(OTTL_RESOURCE));
    assert_int_equal(ottl_context_reach(OTTL_RESOURCE), OTTL_CONTEXT_BIT(OTTL_RESOURCE));
}

static void test_enums(void **state)
{
    static const struct {
        const char *name;
        int64_t number;
    } known[] = {
        {"SPAN_KIND_CONSUMER", 5},      {"STATUS_CODE_ERROR", 2},
        {"SEVERITY_NUMBER_FATAL4", 24}, {"AGGREGATION_TEMPORALITY_DELTA", 1},
        {"METRIC_DATA_TYPE_NONE", 0},   {"METRIC_DATA_TYPE_SUMMARY", 5},
        {"FLAG_NO_RECORDED_VALUE", 1},
    };
    int64_t n;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        assert_true(ottl_enum_find(bytes_str(known[i].name), &n));
        assert_int_equal(n, known[i].number);
    }
    assert_false(ottl_enum_find(bytes_str("SPAN_KIND_NONE"), &n));
    assert_false(ottl_enum_find(bytes_str("LOG_RECORD_FLAGS_TRACE_FLAGS_MASK"), &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_bad_paths),
                                       cmocka_unit_test(test_names), cmocka_unit_test(test_enums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
