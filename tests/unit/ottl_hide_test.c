/* Values of attributes are not in error texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ottl/ottl.h"

static const struct {
    const char *statement, *error, *want;
} cases[] = {
    {"set(a, Int(b))", "parsing \"hush\": invalid syntax", "parsing \"…\": invalid syntax"},
    {"set(a, Int(\"x1\"))", "parsing \"x1\": invalid syntax", "parsing \"x1\": invalid syntax"},
    {"set(a, \"k\")", "the key \"k\" of \"hush\" is bad", "the key \"…\" is bad"},
    {"set(a, \"k\")", "\"k\" and \"a\"", "\"k\" and \"a\""},
    {"set(a, b)", "parsing \"h\"u\"sh\": invalid", "parsing \"…\": invalid"},
    {"set(a, b)", "parsing \"\": empty", "parsing \"\": empty"},
    {"set(a, b)", "one \" only", "one \" only"},
    {"set(a, b)", "nothing quoted", "nothing quoted"},
    {"set(a, b)", "", ""},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e;
        err_set(&e, -1, "%s", cases[i].error);
        ottl_hide_values(&e, bytes_str(cases[i].statement));
        assert_string_equal(e.text, cases[i].want);
    }
}

/* A text that fills the buffer. */
static void test_long(void **state)
{
    (void)state;
    struct err e;
    memset(e.text, 'x', sizeof(e.text));
    e.text[sizeof(e.text) - 4] = e.text[sizeof(e.text) - 2] = '"';
    e.text[sizeof(e.text) - 1] = 0;
    ottl_hide_values(&e, bytes_str("set(a, b)"));
    assert_null(strstr(e.text, "\"x\""));
    assert_true(strlen(e.text) < sizeof(e.text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
