/* Every allocation of parsing, inferring and running fails once: -ENOMEM, and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include "tests/unit/ottl_rig.h"

static const char *const texts[] = {
    ("give(Pair([1, log.cache[\"a\"], -(2 + log.cache[\"b\"] * 3)], {\"k\": \"v\", \"l\": [nil, 0x01]})[0]) where not (log.cache[\"x\"] == nil "
    "and Any(true) or log.cache[\"y\"] != \"\\xff\" and Prepared(\"p\") == \"p\")"),
    "put(log.cache[\"a\"][Str(\"k\")], StrLikes([1, 2.5, true, StrLike({\"a\": 1})])) where true",
    "give(Strs([\"a\", \"b\"])) where Enum(SPAN_KIND_SERVER) > 1 or LitStrs([\"a\"]) == [\"a\"]",
    "give(Is Int(5))",
    "give(Nope(log.body))",
};

static int parse(const char *text, struct ottl_statement **ret, struct err *e)
{
    return ottl_statement_parse(bytes_str(text), &rig_log, ret, e);
}

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct ottl_statement *s = NULL;
        struct err e;
        int good = parse(texts[i], &s, &e), r = -ENOMEM;
        if (good == 0)
            ottl_statement_free(s);
        for (unsigned n = 1; r == -ENOMEM; n++) {
            fail_in = n;
            r = parse(texts[i], &s, &e);
            fail_in = 0;
            assert_true(r == -ENOMEM || r == good);
            if (r == 0)
                ottl_statement_free(s);
            assert_int_equal(prepared, released);
            assert_true(n < 10000);
        }
    }
}

static void test_infer(void **state)
{
    (void)state;
    const struct ottl_dialect d = {.context = -1, .allowed = OTTL_CONTEXT_BIT(OTTL_LOG), .functions = rig_tables};
    struct bytes statement = bytes_str(texts[0]), condition = bytes_str("log.body == \"x\"");
    enum ottl_context got;
    struct err e;
    int r = -ENOMEM;
    for (unsigned n = 1; r == -ENOMEM; n++) {
        fail_in = n;
        r = ottl_infer_context(&statement, 1, &condition, 1, &d, &got, &e);
        fail_in = 0;
        assert_true(n < 10000);
    }
    assert_int_equal(r, 0);
    assert_int_equal(got, OTTL_LOG);
}

static int run(const struct ottl_statement *s, unsigned n)
{
    struct err e;
    struct ottl_env env = {.arena = arena_new(64), .context = OTTL_LOG, .err = &e};
    assert_non_null(env.arena);
    fail_in = n;
    int r = ottl_statement_run(s, &env, NULL);
    fail_in = 0;
    arena_free(env.arena);
    return r;
}

static void test_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct ottl_statement *s = NULL;
        struct err e;
        if (parse(texts[i], &s, &e) < 0)
            continue;
        int good = run(s, 0), r = -ENOMEM;
        for (unsigned n = 1; r == -ENOMEM; n++) {
            r = run(s, n);
            assert_true(n < 10000);
        }
        assert_int_equal(r, good);
        ottl_statement_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_infer),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
