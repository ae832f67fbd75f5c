/* The resource processor: only resources change, only those that have to, also when many threads
 * send the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "proto/json.h"

extern const struct component_type processor_resource;

static void make(struct rig *r, const char *yaml)
{
    rig_make(r, &processor_resource, "resource", SIGNAL_LOGS, 1, yaml);
}

#define BODY                                                                                       \
    "\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},\"logRecords\":[{\"body\":{\"stringValue\":"       \
    "\"hello\"}}]}]"

static const struct {
    const char *actions, *in, *want;
} cases[] = {
    {"[{key: a, action: upsert, value: 1}]",
     "{\"resourceLogs\":[{\"resource\":{\"droppedAttributesCount\":3}," BODY "},{" BODY
     ",\"schemaUrl\":\"u\"}]}",
     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":{\"intValue\":"
     "\"1\"}}],"
     "\"droppedAttributesCount\":3}," BODY
     "},{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":{\"intValue\":"
     "\"1\"}}]}," BODY ",\"schemaUrl\":\"u\"}]}"},
    {"[{pattern: ., action: delete}]",
     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":{}}]}," BODY "}]}",
     "{\"resourceLogs\":[{\"resource\":{}," BODY "}]}"},
    {"[{key: a, action: update, value: x}, {key: b, action: convert, converted_type: string}]",
     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"b\",\"value\":{\"intValue\":"
     "\"7\"}}]}," BODY "}]}",
     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"b\",\"value\":{\"stringValue\":"
     "\"7\"}}]}," BODY "}]}"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *yaml = buf_new(0), *got = buf_new(0);
        struct rig r = {0};
        buf_printf(yaml, "attributes: %s", cases[i].actions);
        make(&r, buf_str(yaml));
        for (int again = 0; again < 2; again++) { /* the second time from memory */
            buf_truncate(got, 0);
            assert_int_equal(rig_offer(&r, rig_batch(SIGNAL_LOGS, cases[i].in), NULL), VERDICT_OK);
            assert_int_equal(json_write_batch(r.sinks[0].taken[again], 0, got), 0);
            assert_string_equal(buf_str(got), cases[i].want);
        }
        rig_done(&r);
    }
}

/* What no action changes goes on as the same bytes in the same buffer. */
static void test_unchanged(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, "attributes: [{key: a, action: upsert, value: 1}, {key: b, action: delete}, {key: c, "
             "action: hash}]");
    struct batch *b = batch_ref(rig_batch(
        SIGNAL_LOGS, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"a\",\"value\":"
                     "{\"intValue\":\"1\"}}]}," BODY "}]}"));
    assert_int_equal(rig_offer(&r, b, NULL), VERDICT_OK);
    assert_ptr_equal(r.sinks[0].taken[0]->segs[0], b->segs[0]);
    batch_unref(b);
    rig_done(&r);
}

/* Verdicts come back from downstream, and more resources than are remembered are no problem. */
static void test_passes_on(void **state)
{
    (void)state;
    struct rig r = {0};
    struct outcome out;
    make(&r, "attributes: [{key: n, action: hash}]");
    sink_set(&r.sinks[0], VERDICT_REJECT);
    assert_int_equal(rig_offer(&r, rig_batch(SIGNAL_LOGS, "{\"resourceLogs\":[{" BODY "}]}"), &out),
                     VERDICT_REJECT);
    assert_string_equal(out.message, "sink refuses");
    sink_set(&r.sinks[0], VERDICT_OK);
    for (int i = 0; i < 40; i++) {
        _cleanup_buf_ struct buf *in = buf_new(0), *got = buf_new(0), *again = buf_new(0);
        buf_printf(in,
                   "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"n\",\"value\":{"
                   "\"intValue\":%d}}]}," BODY "}]}",
                   i % 7);
        rig_offer(&r, rig_batch(SIGNAL_LOGS, buf_str(in)), NULL);
        json_write_batch(r.sinks[0].taken[i], 0, got);
        json_write_batch(r.sinks[0].taken[i % 7], 0, again);
        assert_string_equal(buf_str(got), buf_str(again));
        assert_null(strstr(buf_str(got), "intValue"));
    }
    rig_done(&r);
}

static void *client(void *arg)
{
    struct rig *r = arg;
    for (int i = 0; i < 500; i++) {
        _cleanup_buf_ struct buf *in = buf_new(0);
        buf_printf(in,
                   "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"n\",\"value\":{"
                   "\"intValue\":%d}}]}," BODY "}]}",
                   i % 5);
        assert_int_equal(rig_offer(r, rig_batch(SIGNAL_LOGS, buf_str(in)), NULL), VERDICT_OK);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct rig r = {0};
    pthread_t threads[4];
    make(&r, "attributes: [{key: n, action: convert, converted_type: string}, {key: m, action: "
             "upsert, from_attribute: n}]");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, client, &r);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.sinks[0].ntaken, 2000);
    for (int i = 0; i < 2000; i++) {
        _cleanup_buf_ struct buf *got = buf_new(0);
        json_write_batch(r.sinks[0].taken[i], 0, got);
        const char *n = strstr(buf_str(got), "\"n\",\"value\":{\"stringValue\":\"");
        const char *m = strstr(buf_str(got), "\"m\",\"value\":{\"stringValue\":\"");
        assert_true(n && m && n[27] == m[27]);
    }
    rig_done(&r);
}

static void test_config(void **state)
{
    (void)state;
    static const char *const bad[] = {"{}", "{attributes: []}", "{attributes: [{key: a}]}",
                                      "{attribute: []}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct rig r = {0};
        void *bound;
        struct err e = {.text = ""};
        assert_true(rig_bind(&r, &processor_resource, bad[i], &bound, &e) < 0);
        assert_true(strstr(e.path, "attribute") || strstr(e.text, "attribute"));
        config_free(r.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_passes_on), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
