/* UTF-8: what is well formed, and how many replacement characters stand for what is not (Unicode 15, 3.9). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/utf8.h"

#define R UTF8_REPLACEMENT

static const struct {
    const char *in, *out;
} cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"\x7f", "\x7f"},
    {"\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"},
    {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
    {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    {"a\xff"
     "b",
     "a" R "b"},
    {"\x80\xbf", R R},
    {"\xc0\x80", R R},
    {"\xc1\xbf", R R},
    {"\xc3", R},
    {"\xc3(", R "("},
    {"\xe2\x82", R},
    {"\xe2\x82"
     "a",
     R "a"},
    {"\xe0\x80\x80", R R R},
    {"\xed\xa0\x80", R R R},
    {"\xf0\x80\x80\x80", R R R R},
    {"\xf0\x9f\x98", R},
    {"\xf0\x9f\x98\xc3\xa9", R "\xc3\xa9"},
    {"\xf4\x90\x80\x80", R R R R},
    {"\xf5\x80", R R},
    /* the example of the standard, table 3-11 */
    {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a" R R R "b" R "c" R R "d"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_buf_ struct buf *b = buf_new(0);
        assert_int_equal(utf8_append(bytes_str(cases[i].in), b), 0);
        assert_string_equal(buf_str(b), cases[i].out);
        assert_int_equal(utf8_valid(bytes_str(cases[i].in)), strcmp(cases[i].in, cases[i].out) == 0);
    }
}

/* A bad byte is found at every place of texts of every length. */
static void test_every_place(void **state)
{
    (void)state;
    for (size_t len = 0; len < 70; len++) {
        _cleanup_free_ uint8_t *text = malloc(len + 1);
        memset(text, 'x', len);
        assert_true(utf8_ascii(text, len));
        assert_true(utf8_ascii_words(text, len));
        for (size_t at = 0; at < len; at++) {
            text[at] = 0x80;
            assert_false(utf8_ascii(text, len));
            assert_false(utf8_ascii_words(text, len));
            assert_false(utf8_valid(bytes_of(text, len)));
            text[at] = 'x';
        }
    }
}

static void test_limit(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf *b = buf_new(4);
    assert_true(utf8_append(bytes_str("abc\xff"), b) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
