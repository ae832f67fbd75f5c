/* Text of others, made fit for a terminal and for JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/base/json_text.h"
#include "agent/base/plain_text.h"

struct text_case {
    const char *in, *plain, *json;
};

static const struct text_case cases[] = {
    {"", "", "\"\""},
    {"plain \"text\" \\", "plain \"text\" \\", "\"plain \\\"text\\\" \\\\\""},
    {"\x1b[2J\a\x7f", "?[2J??", "\"\\u001b[2J\\u0007\\u007f\""},
    {"a\r\nb\tc", "a?\nb?c", "\"a\\r\\nb\\tc\""},
    {"\xc2\x9b"
     "31m",
     "?31m", "\"\\u009b31m\""}, /* C1 as UTF-8 */
    {"\x9b"
     "31m",
     "?31m",
     "\"\xef\xbf\xbd"
     "31m\""},                                        /* C1 as a byte */
    {"\xe2\x80\xae.gpj", "?.gpj", "\"\\u202e.gpj\""}, /* from right to left */
    {"\xe2\x80\xa8", "?", "\"\\u2028\""},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
    {"\xff\xfe", "??", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xc0\x80", "??", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                  /* overlong */
    {"\xed\xa0\x80", "???", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
    {"\xf4\x90\x80\x80", "????", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"cut \xe2\x82", "cut ??", "\"cut \xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xe2\x82x", "??x", "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *plain = buf_new(0), *json = buf_new(0);
        assert_int_equal(plain_text(plain, bytes_str(cases[i].in), '?', "\n"), 0);
        assert_string_equal(buf_str(plain), cases[i].plain);
        assert_int_equal(json_text(json, bytes_str(cases[i].in)), 0);
        assert_string_equal(buf_str(json), cases[i].json);
    }
}

static void test_nul(void **state)
{
    _cleanup_buf_ struct buf *plain = buf_new(0), *json = buf_new(0);
    (void)state;
    assert_int_equal(plain_text(plain, bytes_of("a\0b", 3), '?', "\n"), 0);
    assert_string_equal(buf_str(plain), "a?b");
    assert_int_equal(json_text(json, bytes_of("a\0b", 3)), 0);
    assert_string_equal(buf_str(json), "\"a\\u0000b\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_nul)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
