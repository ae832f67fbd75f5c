/* UTF-8: what is well formed, and how many replacement characters stand for what is not (Unicode
 * 15, 3.9). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/utf8.h"

#define R UTF8_REPLACEMENT

static const struct {
    const char *in, *out;
} cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"\x7f", "\x7f"},
    {"\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"},
    {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
     "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
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
        assert_int_equal(utf8_valid(bytes_str(cases[i].in)),
                         strcmp(cases[i].in, cases[i].out) == 0);
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

/* utf8_valid() and utf8_next() agree on all texts of three bytes, and of four that begin with a
 * few, wherever they stand. */
static void check_agree(const uint8_t *four, size_t len)
{
    for (size_t before = 0; before < 9; before++) {
        uint8_t text[24] = "xxxxxxxxxxxxxxxxxxxxxxx";
        memcpy(text + before, four, len);
        int n;
        struct bytes rest = bytes_of(text, before + len);
        while (rest.len && (n = utf8_next(rest)) > 0)
            rest = bytes_of(rest.data + n, rest.len - (size_t)n);
        if (utf8_valid(bytes_of(text, before + len)) != (rest.len == 0))
            fail_msg("%02x %02x %02x %02x after %zu", four[0], four[1], four[2], four[3], before);
    }
}

static void test_all_sequences(void **state)
{
    (void)state;
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                    0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xff};
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second++)
            for (size_t c = 0; c < ARRAY_SIZE(edges); c++)
                for (size_t d = 0; d < ARRAY_SIZE(edges); d++) {
                    const uint8_t four[] = {(uint8_t)first, (uint8_t)second, edges[c], edges[d]};
                    check_agree(four, 4);
                    if (d == 0)
                        check_agree(four, 3);
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
        cmocka_unit_test(test_all_sequences),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
