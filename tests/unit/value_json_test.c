/* Config values as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "agent/config/value_json.h"

static void expect(const char *yaml, enum value_json_style style, const char *json)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("t", yaml, &errs);
    struct buf *b = buf_new(0);
    assert_non_null(c);
    assert_int_equal(cfg_value_json(b, c->root, style), 0);
    assert_string_equal(buf_str(b), json);
    buf_unref(b);
    config_free(c);
    cfg_errors_done(&errs);
}

static void test_compact(void **state)
{
    (void)state;
    expect("{a: 0x1F, b: [1.5, true, null, x], c: {}, d: [], e: 2026-01-01, f: .nan, g: -.inf}",
           VALUE_JSON_COMPACT,
           "{\"a\":31,\"b\":[1.5,true,null,\"x\"],\"c\":{},\"d\":[],\"e\":\"2026-01-01\",\"f\":"
           "\"NaN\",\"g\":\"-Infinity\"}");
    expect("{a: 18446744073709551615, b: 0.1, c: 1e300}", VALUE_JSON_COMPACT,
           "{\"a\":18446744073709551615,\"b\":0.1,\"c\":1e+300}");
}

static void test_escapes(void **state)
{
    (void)state;
    expect("{\"a\\\"b\": \"x\\n\\t\\\\\\u0001\\u007fé\"}", VALUE_JSON_COMPACT,
           "{\"a\\\"b\":\"x\\n\\t\\\\\\u0001\\u007fé\"}");
}

static void test_styles(void **state)
{
    (void)state;
    expect("{a: 1, b: [2, 3]}", VALUE_JSON_SPACED, "{\"a\": 1, \"b\": [2, 3]}");
    expect("{a: 1, b: [2, {}]}", VALUE_JSON_LINES,
           "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    {}\n  ]\n}");
}

static void test_no_room(void **state)
{
    (void)state;
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("t", "{a: xxxxxxxxxxxxxxxxxxxx, b: 1}", &errs);
    for (size_t max = 1; max < 34; max++) {
        struct buf *b = buf_new(max);
        assert_true(cfg_value_json(b, c->root, VALUE_JSON_COMPACT) < 0);
        buf_unref(b);
    }
    struct buf *b = buf_new(34);
    assert_int_equal(cfg_value_json(b, c->root, VALUE_JSON_COMPACT), 0);
    assert_int_equal(b->len, 34);
    buf_unref(b);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_styles), cmocka_unit_test(test_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
