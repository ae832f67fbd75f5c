/* Redaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_redact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
