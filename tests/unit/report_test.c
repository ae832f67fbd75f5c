/* The verdict over traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>

#include "agent/gym/report.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

enum { I = 1, S, C, P, Q }; /* kinds of spans: internal, server, client, producer, consumer */

struct row {
    int trace, id, parent;
    const char *service; /* "name", or "name/type" of a server of NeMo Gym; NULL ends the table */
    int kind;
    const char *name, *url;
};
#define ENV "env/environment_servers"
#define AGENT "agent/responses_api_agents"
#define MODEL "model/responses_api_models"
#define RESOURCES "verifier/resources_servers"

static void put_string(struct buf *b, uint32_t field, const char *key, const char *value)
{
    size_t kv, any;
    wire_begin(b, field, &kv);
    wire_put_str(b, 1, key);
    wire_begin(b, 2, &any);
    any_value_write(&(struct any_value){ANY_STRING, .bytes = bytes_str(value)}, b);
    wire_end(b, any);
    wire_end(b, kv);
}

static void put_true(struct buf *b, uint32_t field, const char *key)
{
    size_t kv, any;
    wire_begin(b, field, &kv);
    wire_put_str(b, 1, key);
    wire_begin(b, 2, &any);
    any_value_write(&(struct any_value){ANY_BOOL, .b = true}, b);
    wire_end(b, any);
    wire_end(b, kv);
}

static void put_resource(struct buf *b, const char *service)
{
    size_t mark;
    const char *slash = strchr(service, '/');
    char name[64];
    wire_begin(b, ENTRY_HEAD, &mark);
    snprintf(name, sizeof(name), "%.*s", slash ? (int)(slash - service) : 63, service);
    put_string(b, RESOURCE_ATTRIBUTES, "service.name", name);
    if (slash)
        put_string(b, RESOURCE_ATTRIBUTES, "nemo.gym.server.type", slash + 1);
    wire_end(b, mark);
}

static void put_span(struct buf *b, const struct row *r)
{
    uint8_t trace[16] = {0}, id[8] = {0}, parent[8] = {0};
    size_t mark;
    trace[15] = (uint8_t)r->trace;
    trace[14] = (uint8_t)(r->trace >> 8);
    id[7] = (uint8_t)r->id;
    id[6] = (uint8_t)(r->id >> 8);
    parent[7] = (uint8_t)r->parent;
    parent[6] = (uint8_t)(r->parent >> 8);
    wire_begin(b, ENTRY_ITEMS, &mark);
    wire_put_bytes(b, SPAN_TRACE_ID, bytes_of(trace, 16));
    wire_put_bytes(b, SPAN_ID, bytes_of(id, 8));
    if (r->parent)
        wire_put_bytes(b, SPAN_PARENT_ID, bytes_of(parent, 8));
    wire_put_str(b, SPAN_NAME, r->name);
    wire_put_uint(b, SPAN_KIND, (uint64_t)r->kind);
    wire_put_fixed64(b, SPAN_START, 1000000000);
    wire_put_fixed64(b, SPAN_END, 1000000000 + (uint64_t)r->id * 1000000);
    if (r->url && strcmp(r->url, "truncated") == 0)
        put_true(b, SPAN_ATTRIBUTES, "nemo.span.truncated");
    else if (r->url)
        put_string(b, SPAN_ATTRIBUTES, r->kind == C ? "url.full" : "http.url", r->url);
    wire_end(b, mark);
}

static void add(struct report *report, const struct row *r)
{
    struct buf *b = buf_new(0);
    size_t entry, scope;
    struct batch *batch;
    wire_begin(b, OTLP_ENTRIES, &entry);
    put_resource(b, r->service);
    wire_begin(b, ENTRY_ITEMS, &scope);
    put_span(b, r);
    wire_end(b, scope);
    wire_end(b, entry);
    assert_int_equal(batch_from_wire(SIGNAL_TRACES, b, &batch, NULL), 0);
    assert_int_equal(report_add(report, batch), 0);
    batch_unref(batch);
}

static struct report *report_of(const struct row *rows, size_t max_traces)
{
    struct report *report = report_new(max_traces);
    for (; rows->service; rows++)
        add(report, rows);
    return report;
}

/* ---- sentences ---- */

struct verdict {
    const char *title;
    enum propagation propagation;
    const char *sentence;
    struct row rows[16];
};

static const struct verdict verdicts[] = {
    {"nothing", PROPAGATION_NOT_SHOWN, "No spans: nothing shows whether propagation works.", {{0}}},
    {"a rollout through all servers",
     PROPAGATION_WORKS,
     "2 traces: 1 spans the agent, model and resources servers; 1 stays in one service; none is "
     "broken. Propagation works.",
     {{1, 1, 0, AGENT, S, "POST /run"},
      {1, 2, 1, AGENT, C, "HTTP POST", "http://127.0.0.1:8001/v1/responses"},
      {1, 3, 2, MODEL, S, "POST /v1/responses", "http://localhost:8001/v1/responses"},
      {1, 4, 1, AGENT, C, "HTTP POST", "http://127.0.0.1:8002/verify"},
      {1, 5, 4, RESOURCES, S, "POST /verify", "http://127.0.0.1:8002/verify"},
      {2, 6, 0, MODEL, S, "GET /", "http://127.0.0.1:8001/"}}},
    {"several sets of services, the most frequent first",
     PROPAGATION_WORKS,
     "3 traces: 2 span a and b; 1 spans a, b and c; none is broken. Propagation works.",
     {{1, 1, 0, "a", S, "x"},
      {1, 2, 1, "b", S, "y"},
      {2, 3, 0, "a", S, "x"},
      {2, 4, 3, "b", S, "y"},
      {3, 5, 0, "a", S, "x"},
      {3, 6, 5, "b", S, "y"},
      {3, 7, 6, "c", S, "z"}}},
    {"a parent that was never seen",
     PROPAGATION_BROKEN,
     "2 traces: 1 spans the agent and model servers; 1 is broken: it has a span whose parent was "
     "never seen. Propagation is broken.",
     {{1, 1, 0, AGENT, S, "POST /run"},
      {1, 2, 1, MODEL, S, "POST /v1/responses"},
      {2, 3, 9, MODEL, S, "POST /v1/responses"}}},
    {"the context is lost on some calls, known by their URLs",
     PROPAGATION_BROKEN,
     "3 traces: 1 spans the agent and model servers; 1 stays in one service; 1 is broken: it "
     "begins "
     "anew in a service that a traced one had called. Propagation is broken.",
     {{1, 1, 0, AGENT, S, "POST /run"},
      {1, 2, 1, AGENT, C, "HTTP POST", "http://10.0.0.1:8001/v1/responses?x=1"},
      {1, 3, 2, MODEL, S, "POST /v1/responses", "http://gpu-1:8001/v1/responses"},
      {2, 4, 0, AGENT, S, "POST /run"},
      {2, 5, 4, AGENT, C, "HTTP POST", "http://10.0.0.1:8001/v1/responses"},
      {3, 6, 0, MODEL, S, "POST /v1/responses", "http://gpu-1:8001/v1/responses"}}},
    {"the same place called by programs that are not traced",
     PROPAGATION_WORKS,
     "2 traces: 1 spans the agent and model servers; 1 stays in one service; none is broken. "
     "Propagation works.",
     {{1, 1, 0, AGENT, S, "POST /run"},
      {1, 2, 1, AGENT, C, "HTTP POST", "https://gpu-1/v1/responses"},
      {1, 3, 2, MODEL, S, "POST /v1/responses", "http://gpu-1:443/v1/responses"},
      {3, 6, 0, MODEL, S, "POST /v1/responses", "https://gpu-1/v1/responses#top"}}},
    {"the context is lost on some calls, known by the span's name",
     PROPAGATION_BROKEN,
     "2 traces: 1 spans a and b; 1 is broken: it begins anew in a service that a traced one had "
     "called. Propagation is broken.",
     {{1, 1, 0, "a", C, "rpc"}, {1, 2, 1, "b", Q, "rpc"}, {2, 3, 0, "b", Q, "rpc"}}},
    {"no context is passed on at all",
     PROPAGATION_BROKEN,
     "3 traces: 1 stays in one service; 2 are broken: they stay in the service where they began. "
     "Propagation is broken.",
     {{1, 1, 0, AGENT, S, "POST /run"},
      {2, 2, 0, MODEL, S, "POST /v1/responses"},
      {3, 3, 0, MODEL, S, "GET /"}}},
    {"only health checks so far",
     PROPAGATION_NOT_SHOWN,
     "2 traces: 2 stay in one service, none goes from one service to another. Nothing shows "
     "whether "
     "propagation works.",
     {{1, 1, 0, AGENT, S, "GET /"}, {2, 2, 0, MODEL, S, "HEAD /health"}}},
    {"one service",
     PROPAGATION_WORKS,
     "2 traces of one service, with up to 2 spans each. Propagation works within it; what other "
     "services sent is not here.",
     {{1, 1, 0, "a", S, "x"}, {1, 2, 1, "a", I, "y"}, {2, 3, 0, "a", I, "y"}}},
    {"one service, one span a trace",
     PROPAGATION_NOT_SHOWN,
     "1 trace: 1 stays in one service, none goes from one service to another. Nothing shows "
     "whether "
     "propagation works.",
     {{1, 1, 0, "a", S, "x"}}},
    {"two roots, and none",
     PROPAGATION_BROKEN,
     "2 traces: 2 are broken: they have not exactly one root. Propagation is broken.",
     {{1, 1, 0, "a", I, "x"}, {1, 2, 0, "a", I, "y"}, {2, 3, 3, "a", I, "x"}}},
    {"different faults",
     PROPAGATION_BROKEN,
     "4 traces: 1 spans a and b; 3 are broken: 1 has a span whose parent was never seen, 1 has not "
     "exactly one root, 1 begins anew in a service that a traced one had called. Propagation is "
     "broken.",
     {{1, 1, 0, "a", C, "x"},
      {1, 2, 1, "b", S, "y"},
      {2, 3, 99, "a", I, "x"},
      {3, 4, 0, "a", I, "x"},
      {3, 5, 0, "a", I, "x"},
      {4, 6, 0, "b", S, "y"}}},
    {"many services",
     PROPAGATION_WORKS,
     "1 trace: 1 spans a, b, c, d, e and 2 others; none is broken. Propagation works.",
     {{1, 1, 0, "a", S, "x"},
      {1, 2, 1, "b", S, "x"},
      {1, 3, 1, "c", S, "x"},
      {1, 4, 1, "d", S, "x"},
      {1, 5, 1, "e", S, "x"},
      {1, 6, 1, "f", S, "x"},
      {1, 7, 1, "g", S, "x"}}},
    {"two servers of one type go by their names",
     PROPAGATION_WORKS,
     "1 trace: 1 spans m1 and m2; none is broken. Propagation works.",
     {{1, 1, 0, "m1/responses_api_models", S, "x"}, {1, 2, 1, "m2/responses_api_models", S, "x"}}},
};

static void test_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
        const struct verdict *v = &verdicts[i];
        struct report *r = report_of(v->rows, 0);
        struct buf *text = buf_new(0);
        const enum propagation p = report_judge(r);
        assert_int_equal(report_sentence(r, text), 0);
        if (strcmp(buf_str(text), v->sentence) != 0 || p != v->propagation)
            fail_msg("%s: %d, %s", v->title, p, buf_str(text));
        buf_unref(text);
        report_free(r);
    }
}

/* The order in which spans come does not count: children are often printed before their parents. */
static void test_order(void **state)
{
    (void)state;
    for (size_t i = 1; i < ARRAY_SIZE(verdicts); i++) {
        const struct verdict *v = &verdicts[i];
        struct report *r = report_new(0);
        size_t n = 0;
        while (v->rows[n].service)
            n++;
        for (size_t k = n; k-- > 0;)
            add(r, &v->rows[k]);
        assert_int_equal(report_judge(r), v->propagation);
        report_free(r);
    }
}

/* ---- the rest of a report ---- */

static json_t *json_of(struct report *r, bool all)
{
    struct buf *out = buf_new(0);
    report_judge(r);
    assert_int_equal(report_json(r, &(struct report_options){.all = all, .files = 1}, out), 0);
    json_t *j = json_loadb((const char *)out->data, out->len, 0, NULL);
    assert_non_null(j);
    buf_unref(out);
    return j;
}

static json_int_t number(const json_t *j, const char *key)
{
    assert_true(json_is_integer(json_object_get(j, key)));
    return json_integer_value(json_object_get(j, key));
}

static void test_json(void **state)
{
    (void)state;
    static const struct row rows[] = {{1, 1, 0, AGENT, S, "POST /run \"x\""},
                                      {1, 2, 1, MODEL, S, "POST /v1", "truncated"},
                                      {1, 2, 1, MODEL, S, "POST /v1"} /* again */,
                                      {2, 3, 77, MODEL, S, "POST /v1"},
                                      {0}};
    struct report *r = report_of(rows, 0);
    json_t *j = json_of(r, true);
    assert_string_equal(json_string_value(json_object_get(j, "propagation")), "broken");
    assert_int_equal(number(j, "spans"), 3);
    assert_int_equal(number(j, "duplicate_spans"), 1);
    assert_int_equal(number(j, "truncated_spans"), 1);
    const json_t *traces = json_object_get(j, "traces");
    assert_int_equal(number(traces, "judged"), 2);
    assert_int_equal(number(traces, "joined"), 1);
    assert_int_equal(number(traces, "broken"), 1);
    const json_t *broken = json_object_get(j, "broken_traces"), *bad = json_array_get(broken, 0);
    assert_int_equal(json_array_size(broken), 1);
    assert_string_equal(json_string_value(json_object_get(bad, "trace_id")),
                        "00000000000000000000000000000002");
    assert_int_equal(number(bad, "orphans"), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(bad, "faults"), 0)),
                        "orphans");
    assert_int_equal(json_array_size(json_object_get(j, "all_traces")), 2);
    const json_t *slowest = json_array_get(json_object_get(j, "slowest_spans"), 0);
    assert_string_equal(json_string_value(json_object_get(slowest, "name")), "POST /v1");
    assert_true(json_real_value(json_object_get(slowest, "total_s")) > 0.0049);
    json_decref(j);
    report_free(r);
}

static void test_text(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {1, 1, 0, AGENT, S, "POST /run", "truncated"}, {1, 2, 9, MODEL, S, "POST /v1"}, {0}};
    static const char *const parts[] = {
        "1 trace: 1 is broken",
        ("00000000000000000000000000000001  2 spans of the agent and model servers, 1 cut off: the "
         "parent of 1 span was never seen: \"POST /v1\" of model"),
        "its service does not export",
        "2 spans, 0 data points, 0 log records in 3 files. 1 span was cut off"};
    struct report *r = report_of(rows, 0);
    struct buf *out = buf_new(0);
    report_judge(r);
    assert_int_equal(report_text(r, &(struct report_options){.files = 3}, out), 0);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (!strstr(buf_str(out), parts[i]))
            fail_msg("\"%s\" is not in\n%s", parts[i], buf_str(out));
    buf_unref(out);
    report_free(r);
}

/* What Gym's collector wrote over service.name, and servers of one service.name. */
static void test_service_names(void **state)
{
    (void)state;
    static const struct {
        const char *service, *overridden, *server, *name;
    } cases[] = {{"nemo-gym/agent", NULL, "agent", "nemo-gym/agent"},
                 {"component", "nemo-gym/agent", "agent", "nemo-gym/agent"},
                 {"component", "nemo-gym", "agent", "nemo-gym/agent"},
                 {"nemo-gym", NULL, "agent", "nemo-gym/agent"},
                 {NULL, NULL, "agent", "agent"},
                 {NULL, NULL, NULL, "(no service.name)"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buf *b = buf_new(0);
        size_t entry, resource, scope;
        struct batch *batch;
        wire_begin(b, OTLP_ENTRIES, &entry);
        wire_begin(b, ENTRY_HEAD, &resource);
        if (cases[i].service)
            put_string(b, RESOURCE_ATTRIBUTES, "service.name", cases[i].service);
        if (cases[i].overridden)
            put_string(b, RESOURCE_ATTRIBUTES, "service.name.override", cases[i].overridden);
        if (cases[i].server)
            put_string(b, RESOURCE_ATTRIBUTES, "nemo.gym.server.name", cases[i].server);
        wire_end(b, resource);
        wire_begin(b, ENTRY_ITEMS, &scope);
        wire_begin(b, ENTRY_ITEMS, &resource);
        wire_put_fixed64(b, LOG_TIME, 5);
        wire_end(b, resource);
        wire_end(b, scope);
        wire_end(b, entry);
        assert_int_equal(batch_from_wire(SIGNAL_LOGS, b, &batch, NULL), 0);
        struct report *r = report_new(0);
        assert_int_equal(report_add(r, batch), 0);
        json_t *j = json_of(r, false);
        const json_t *s = json_array_get(json_object_get(j, "services"), 0);
        assert_string_equal(json_string_value(json_object_get(s, "name")), cases[i].name);
        assert_int_equal(number(s, "log_records"), 1);
        json_decref(j);
        batch_unref(batch);
        report_free(r);
    }
}

/* Beyond the limits spans are counted and nothing is judged by halves. */
static void test_limits(void **state)
{
    (void)state;
    struct report *r = report_new(2);
    const int kept = 2 * REPORT_SPANS_PER_TRACE;
    add(r, &(struct row){1, 1, 0, "a", S, "x"});
    for (int i = 2; i <= kept + 5;
         i++) /* five more than are kept, the last a child of a lost one */
        add(r, &(struct row){2, i, i == 2 ? 0 : i - 1, "a", I, "y"});
    add(r, &(struct row){3, 1000, 0, "a", S, "x"});
    json_t *j = json_of(r, false);
    const json_t *traces = json_object_get(j, "traces");
    assert_int_equal(number(j, "spans"), kept + 6);
    assert_int_equal(number(j, "spans_not_kept"), 6);
    assert_int_equal(number(traces, "judged"), 1);
    assert_int_equal(number(traces, "not_judged"), 1);
    assert_int_equal(number(traces, "broken"), 0);
    json_decref(j);
    report_free(r);
}

/* Judged, added to, judged again: as if it had come at once. */
static void test_judged_again(void **state)
{
    (void)state;
    struct report *r = report_new(0);
    add(r, &(struct row){1, 2, 1, MODEL, S, "POST /v1"});
    assert_int_equal(report_judge(r), PROPAGATION_BROKEN);
    add(r, &(struct row){1, 1, 0, AGENT, S, "POST /run"});
    assert_int_equal(report_judge(r), PROPAGATION_WORKS);
    report_free(r);
}

static void test_many(void **state)
{
    (void)state;
    struct report *r = report_new(0);
    for (int i = 1; i <= 3000; i++) {
        add(r, &(struct row){i, 1, 0, "a", S, "x"});
        add(r, &(struct row){i, 2, 1, i % 2 ? "b" : "c", S, "x"});
    }
    json_t *j = json_of(r, false);
    assert_int_equal(number(json_object_get(j, "traces"), "joined"), 3000);
    assert_int_equal(json_array_size(json_object_get(j, "groups")), 2);
    json_decref(j);
    report_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts), cmocka_unit_test(test_order),
        cmocka_unit_test(test_json),     cmocka_unit_test(test_text),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_service_names),
        cmocka_unit_test(test_many),     cmocka_unit_test(test_judged_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
