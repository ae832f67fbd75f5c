/* Lookup by key and by path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"

static void test_find(void **state)
{
    (void)state;
    static const struct {
        const char *path, *want; /* the text of the value; NULL = only its beginning is there */
    } cases[] = {
        {"a::b[1]::c", "x"}, {"a::b[1]::nope", NULL}, {"a::b[2]", NULL},    {"a::b[0]", "y"},
        {"a::d[0][1]", "q"}, {"a::d[0][2]", NULL},    {"a::e[0]", "exact"}, {"a::b[x]", NULL},
        {"a::b[1", NULL},    {"nope::b", NULL},       {"a::b[0]::c", NULL}, {"a::d[0]x", NULL},
    };
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("t.yaml",
                                        "a:\n"
                                        "  b:\n"
                                        "    - y\n"
                                        "    - c: x\n"
                                        "  e[0]: 'exact'\n"
                                        "  d: [  [p, q]]\n",
                                        &errs);
    assert_non_null(c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool exact;
        const struct cfg_value *v = cfg_find(c->root, cases[i].path, &exact);
        assert_non_null(v);
        if (exact != (cases[i].want != NULL))
            fail_msg("%s: exact is %d", cases[i].path, exact);
        if (exact)
            assert_string_equal(v->text, cases[i].want);
    }
    bool exact;
    assert_null(cfg_find(NULL, "a", &exact));
    assert_false(exact);
    assert_ptr_equal(cfg_find(c->root, "", &exact), c->root);
    assert_true(exact);
    config_free(c);
}

static void test_positions(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int line, column;
    } cases[] = {{"a", 2, 3},           {"a::b", 3, 5}, {"a::b[0]", 3, 7},
                 {"a::b[1]::c", 4, 10}, {"a::d", 5, 6}, {"a::n", 6, 5}};
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("t.yaml",
                                        "a:\n"
                                        "  b:\n"
                                        "    - y\n"
                                        "    - c: x\n"
                                        "  d: [ [p, q]]\n"
                                        "  n:\n",
                                        &errs);
    assert_non_null(c);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool exact;
        const struct cfg_value *v = cfg_find(c->root, cases[i].path, &exact);
        assert_true(exact);
        assert_string_equal(v->pos.file, "t.yaml");
        if (v->pos.line != cases[i].line || v->pos.column != cases[i].column)
            fail_msg("%s is at %d:%d", cases[i].path, v->pos.line, v->pos.column);
    }
    assert_int_equal(c->root->key_pos[0].line, 1);
    assert_int_equal(cfg_get(c->root, "a")->key_pos[1].line, 5);
    assert_int_equal(cfg_get(c->root, "a")->key_pos[1].column, 3);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find),
                                       cmocka_unit_test(test_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
