/* The transform processor: both styles of its configuration, groups, conditions, error modes,
 * caches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "proto/json.h"

extern const struct component_type processor_transform;

#define LOGS(...)                                                                                  \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":"             \
    "[" __VA_ARGS__ "]}]}]}"
#define LOG(text) "{\"severityText\":\"" text "\",\"body\":{}}"
#define LOGA(text, ...)                                                                            \
    "{\"severityText\":\"" text "\",\"body\":{},\"attributes\":[" __VA_ARGS__ "]}"
#define INT(k, v) "{\"key\":\"" k "\",\"value\":{\"intValue\":\"" v "\"}}"
#define STR(k, v) "{\"key\":\"" k "\",\"value\":{\"stringValue\":\"" v "\"}}"

static const struct {
    const char *yaml, *in, *want;
} cases[] = {
    /* statements alone: the context is inferred */
    {"log_statements: ['set(log.severity_text, \"x\")', 'set(log.attributes[\"a\"], 1)']",
     LOGS(LOG("a")), LOGS(LOGA("x", INT("a", "1")))},
    {"log_statements: ['set(resource.attributes[\"a\"], 1)']", LOGS(LOG("a")),
     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" INT(
         "a", "1") "]},\"scopeLogs\":[{\"scope\":{},\"logRecords\":[" LOG("a") "]}]}]}"},
    /* a group without a context */
    {"log_statements: [{statements: ['set(log.attributes[\"a\"], log.severity_text)'], conditions: "
     "['log.severity_text == \"a\"']}]",
     LOGS(LOG("a") "," LOG("b")), LOGS(LOGA("a", STR("a", "a")) "," LOG("b"))},
    /* groups come one after the other, each over all items; names in any case */
    {"log_statements: [{context: LOG, statements: ['set(attributes[\"n\"], scope.name)', "
     "'set(scope.name, \"s\")']}, {context: Log, "
     "statements: ['set(severity_text, attributes[\"n\"]) where attributes[\"n\"] == \"s\"']}]",
     LOGS(LOG("a") "," LOG("b")),
     "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},"
     "\"logRecords\":[" LOGA("a", STR("n", "")) "," LOGA("s", STR("n", "s")) "]}]}]}"},
    /* conditions are or-ed */
    {"log_statements: [{context: log, conditions: ['severity_text == \"a\"', 'severity_text == "
     "\"c\"'], statements: "
     "['set(severity_text, \"x\")']}]",
     LOGS(LOG("a") "," LOG("b") "," LOG("c")), LOGS(LOG("x") "," LOG("b") "," LOG("x"))},
    /* groups may be followed by statements alone */
    {"log_statements: [{context: log, statements: ['set(severity_text, \"x\")']}, "
     "'set(log.attributes[\"a\"], 1)']",
     LOGS(LOG("a")), LOGS(LOGA("x", INT("a", "1")))},
    /* an error leaves the rest to the next statement */
    {"log_statements: [{context: log, statements: ['set(severity_text, 5)', "
     "'set(attributes[\"a\"], 1)']}]",
     LOGS(LOG("a")), LOGS(LOGA("a", INT("a", "1")))},
    {"{error_mode: silent, log_statements: [{context: log, conditions: ['attributes[0] == 1', "
     "'severity_text == \"a\"'], statements: "
     "['set(severity_text, \"x\")']}]}",
     LOGS(LOG("a") "," LOG("b")), LOGS(LOG("x") "," LOG("b"))},
    /* the cache is of one item and one group, unless it is shared */
    {"log_statements: [{context: log, statements: ['set(cache[\"n\"], severity_text) where "
     "severity_text == \"a\"', "
     "'set(attributes[\"c\"], cache[\"n\"]) where cache[\"n\"] != nil']}]",
     LOGS(LOG("a") "," LOG("b")), LOGS(LOGA("a", STR("c", "a")) "," LOG("b"))},
    {"log_statements: [{context: log, shared_cache: true, statements: ['set(cache[\"n\"], "
     "severity_text) where cache[\"n\"] == nil', "
     "'set(attributes[\"c\"], cache[\"n\"])']}, {context: log, shared_cache: true, statements: "
     "['set(attributes[\"d\"], cache[\"n\"])']}]",
     LOGS(LOG("a") "," LOG("b")),
     LOGS(LOGA("a", STR("c", "a") "," STR("d", "a")) "," LOGA("b",
                                                              STR("c", "a") "," STR("d", "a")))},
    /* nothing to do */
    {"trace_statements: ['set(span.name, \"x\")']", LOGS(LOG("a")), LOGS(LOG("a"))},
    {"{}", LOGS(LOG("a")), LOGS(LOG("a"))},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *got = buf_new(0);
        struct rig r = {0};
        rig_make(&r, &processor_transform, "transform", SIGNAL_LOGS, 1, cases[i].yaml);
        assert_int_equal(rig_offer(&r, rig_batch(SIGNAL_LOGS, cases[i].in), NULL), VERDICT_OK);
        assert_int_equal(json_write_batch(r.sinks[0].taken[0], 0, got), 0);
        assert_string_equal(buf_str(got), cases[i].want);
        rig_done(&r);
    }
}

/* A shared cache outlives the request. */
static void test_shared_cache(void **state)
{
    (void)state;
    struct rig r = {0};
    _cleanup_buf_ struct buf *got = buf_new(0);
    rig_make(&r, &processor_transform, "transform", SIGNAL_LOGS, 1,
             "log_statements: [{context: log, shared_cache: true, statements: "
             "['set(attributes[\"was\"], cache[\"last\"]) where "
             "cache[\"last\"] != nil', 'set(cache[\"last\"], severity_text)']}]");
    rig_offer(&r, rig_batch(SIGNAL_LOGS, LOGS(LOG("a") "," LOG("b"))), NULL);
    rig_offer(&r, rig_batch(SIGNAL_LOGS, LOGS(LOG("c"))), NULL);
    json_write_batch(r.sinks[0].taken[1], 0, got);
    assert_string_equal(buf_str(got), LOGS(LOGA("c", STR("was", "b"))));
    rig_done(&r);
}

static void test_propagate(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } modes[] = {
        {"{error_mode: Propagate, log_statements: [{context: log, statements: "
         "['set(attributes[\"a\"], 1)', 'set(severity_text, 5)']}]}",
         "failed to execute statement: set(severity_text, 5), expects string but got int64"},
        {"{log_statements: [{context: log, error_mode: propagate, conditions: ['body[\"a\"] == "
         "1'], statements: ['set(severity_text, \"x\")']}]}",
         "failed to eval condition: body[\"a\"] == 1, log bodies of type Empty cannot be indexed"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct rig r = {0};
        struct outcome out;
        rig_make(&r, &processor_transform, "transform", SIGNAL_LOGS, 1, modes[i].yaml);
        assert_int_equal(rig_offer(&r, rig_batch(SIGNAL_LOGS, LOGS(LOG("a"))), &out),
                         VERDICT_REJECT);
        assert_int_equal(out.status, 14); /* UNAVAILABLE */
        assert_string_equal(out.message, modes[i].message);
        assert_int_equal(r.sinks[0].ntaken, 0);
        rig_done(&r);
    }
}

/* What nothing changes goes on as the same buffer. */
static void test_unchanged(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &processor_transform, "transform", SIGNAL_LOGS, 1,
             "log_statements: [{context: log, statements: ['set(severity_text, \"a\")', "
             "'delete_key(attributes, \"x\")', 'set(body, nil)']}]");
    struct batch *b = batch_ref(rig_batch(SIGNAL_LOGS, LOGS(LOG("a") "," LOG("a"))));
    rig_offer(&r, b, NULL);
    assert_ptr_equal(r.sinks[0].taken[0]->segs[0], b->segs[0]);
    batch_unref(b);
    rig_done(&r);
}

static const struct {
    const char *yaml, *path, *text;
} bad[] = {
    {"error_mode: often", "error_mode",
     "unknown error mode often; one of ignore, silent, propagate"},
    {"flatten_data: true", "flatten_data", "requires the 'transform.flatten.logs' feature gate"},
    {"log_statements: ['set(log.nam, 1)']", "log_statements[0]",
     "segment \"nam\" from path \"log.nam\" is not a valid path"},
    {"log_statements: ['set(log.body, 1)', 'set(log.body, ']", "log_statements[0]",
     "invalid syntax"},
    {"log_statements: [{context: log, statements: ['set(body, 1)', 'frob(body)']}]",
     "log_statements[0]::statements[1]", "undefined function \"frob\""},
    {"log_statements: [{context: log, statements: ['set(body, 1)']}, {context: log, conditions: "
     "['body =='], statements: []}]",
     "log_statements[1]::conditions[0]", "at 1:8"},
    {"log_statements: [{context: span, statements: ['set(name, \"x\")']}]", "log_statements[0]",
     "unknown context \"span\""},
    {"log_statements: [{context: logs, statements: ['set(name, \"x\")']}]", "log_statements[0]",
     "unknown context logs"},
    {"log_statements: [{context: log, error_mode: x, statements: []}]", "log_statements[0]",
     "unknown error mode x"},
    {"log_statements: ['set(log.body, 1)', {context: log, statements: []}]", "log_statements[1]",
     "configuring multiple configuration styles is not supported"},
    {"log_statements: ['set(log.body, 1)', null]", "log_statements[1]",
     "invalid log_statements item: empty statement list items are not supported"},
    {"log_statements: ['set(body, 1)']", "log_statements[0]", ""},
    {"metric_statements: [{context: metric, statements: ['set(span.name, \"x\")']}]",
     "metric_statements[0]::statements[0]", "span"},
};

static void test_config(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rig r = {0};
        void *bound;
        struct err e = {.text = ""};
        print_message("%s\n", bad[i].yaml);
        assert_true(rig_bind(&r, &processor_transform, bad[i].yaml, &bound, &e) < 0);
        print_message("  %s: %s\n", e.path, e.text);
        assert_string_equal(e.path, bad[i].path);
        assert_non_null(strstr(e.text, bad[i].text));
        config_free(r.config);
    }
}

static void *client(void *arg)
{
    for (int i = 0; i < 300; i++)
        assert_int_equal(rig_offer(arg, rig_batch(SIGNAL_LOGS, LOGS(LOG("a") "," LOG("b"))), NULL),
                         VERDICT_OK);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct rig r = {0};
    pthread_t threads[4];
    rig_make(&r, &processor_transform, "transform", SIGNAL_LOGS, 1,
             "log_statements: [{context: log, statements: ['replace_pattern(severity_text, "
             "\"^(.)\", \"$$1$$1\")']}, {context: log, "
             "shared_cache: true, statements: ['set(cache[\"n\"], severity_text)', "
             "'set(attributes[\"n\"], cache[\"n\"])']}]");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, client, &r);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.sinks[0].ntaken, 1200);
    for (unsigned i = 0; i < 1200; i++) {
        _cleanup_buf_ struct buf *got = buf_new(0);
        json_write_batch(r.sinks[0].taken[i], 0, got);
        assert_string_equal(buf_str(got),
                            LOGS(LOGA("aa", STR("n", "aa")) "," LOGA("bb", STR("n", "bb"))));
    }
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_shared_cache),
        cmocka_unit_test(test_propagate), cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_config),    cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
