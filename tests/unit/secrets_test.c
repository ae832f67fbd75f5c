/* Redaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/err.h"
#include "agent/base/secrets.h"

static void check(const char *in, const char *want)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    assert_int_equal(secrets_redact(bytes_str(in), b), 0);
    assert_string_equal(buf_str(b), want);
}

static void test_redact(void **state)
{
    (void)state;
    secrets_clear();
    assert_false(secrets_active());
    assert_false(secrets_add("short"));
    assert_true(secrets_add("Bearer tok-123"));
    assert_true(secrets_add("tok-123-longer"));
    assert_true(secrets_active());
    check("a tok-123 b tok-123-longer tok-12", "a [REDACTED] b [REDACTED] tok-12");
    assert_true(secrets_found(bytes_str("xtok-123x")));
    assert_false(secrets_found(bytes_str("tok")));
    secrets_enable(false);
    check("tok-123", "tok-123");
    secrets_enable(true);
    secrets_clear();
}

/* As it stands in a JSON string or a label. */
static void test_escapes(void **state)
{
    (void)state;
    assert_true(secrets_add("a\"b\\c\nd"));
    check("{\"error\": \"no a\\\"b\\\\c\\nd here\"}", "{\"error\": \"no [REDACTED] here\"}");
    check("plain a\"b\\c\nd", "plain [REDACTED]");
    secrets_clear();
}

static void test_numbers(void **state)
{
    (void)state;
    assert_true(secrets_add("tok-123"));
    assert_false(secrets_numeric());
    assert_true(secrets_add("1234567"));
    assert_true(secrets_add("0012345"));
    assert_true(secrets_add("infinity"));
    assert_true(secrets_add("12e4567"));
    assert_true(secrets_add("1.25e10"));
    assert_true(secrets_numeric());
    assert_true(secrets_int(1234567));
    assert_false(secrets_int(12345)); /* another number */
    assert_false(secrets_int(0));
    assert_true(secrets_double(1.25e10));
    assert_true(secrets_double(1234567));
    assert_false(secrets_double(1.0 / 0.0));
    assert_false(secrets_double(0));
    secrets_enable(false);
    assert_false(secrets_numeric());
    assert_false(secrets_int(1234567));
    secrets_enable(true);
    secrets_clear();
    assert_false(secrets_numeric());
}

/* A text that was cut in the middle of a secret. */
static void test_trim(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"no tok-", "no "},
        {"no tok-12", "no "},
        {"tok-", ""},
        {"no tok", "no tok"},
        {"", ""},
        {"no tok-13", "no tok-13"},
        {"no tok-123", "no tok-123"},
        {"tok-tok-", "tok-"},
    };
    char text[32];
    assert_true(secrets_add("tok-123"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        snprintf(text, sizeof(text), "%s", cases[i].text);
        secrets_trim(text);
        assert_string_equal(text, cases[i].want);
    }
    secrets_clear();
    struct err e;
    assert_true(secrets_add("abcdefghijklmnop"));
    err_set(&e, -1, "%1015s%s", "x", "abcdefghijklmnop");
    assert_int_equal(strlen(e.text), 1015);
    secrets_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
