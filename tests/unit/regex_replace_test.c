/* Replacing with regular expressions: what Go's ReplaceAllString answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/regex_replace.h"

/* pattern, subject, template, result: recorded from Go 1.26 */
static const struct {
    const char *pattern, *subject, *text, *want;
} cases[] = {
    {"a", "banana", "o", "bonono"},
    {"a*", "baaac", "x", "xbxcx"},
    {"", "abc", "-", "-a-b-c-"},
    {"b*", "abc", "<$0>", "<>a<b>c<>"},
    {"x*", "éa", "-", "-é-a-"},
    {"(a)(b)?", "ab-a", "[$2|$1]", "[b|a]-[|a]"},
    {"(?P<first>\\w+)@(?P<last>\\w+)", "joe@home", "${last} $first", "home joe"},
    {"(\\d+)", "/user/42", "<$1>", "/user/<42>"},
    {"(\\d+)", "x42", "$1_x", "x"},
    {"(\\d+)", "x42", "${1}_x", "x42_x"},
    {"(\\d+)", "x42", "$$1", "x$1"},
    {"(\\d+)", "x42", "$", "x$"},
    {"(\\d+)", "x42", "a$-b", "xa$-b"},
    {"(\\d+)", "x42", "${1", "x${1"},
    {"(\\d+)", "x42", "${}", "x${}"},
    {"(\\d+)", "x42", "$01", "x"},
    {"(\\d+)", "x42", "$2$9$name", "x"},
    {"(\\d+)", "x42", "$$$1$$", "x$42$"},
    {"^", "ab", ">", ">ab"},
    {"$", "ab", "<", "ab<"},
    {"\\b", "ab cd", "|", "|ab| |cd|"},
    {"(?P<a>x)|(?P<b>y)", "xyz", "$a$b.", "x.y.z"},
    {"^([^:]+):(.+)$", "k:v", "$2", "v"},
    {"a|ab", "abab", "-", "-b-b"},
    {"(?i)B", "abB", "$0$0", "abbBB"},
    {"", "€😀", ".", ".€.😀."},
    {"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)(m)(n)(o)(p)(q)", "abcdefghijklmnopq", "$17$16$1", "qpa"},
    {"(?P<a>x)(?P<aa>y)", "xy", "$aa,$a", "y,x"},
    {"z", "abc", "$1", "abc"},
    {"(\\d+)", "x42", "${ 1}", "x${ 1}"},
    {"(\\d)", "x42", "$1é", "x"},
};

static void test_recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(regex_freep) struct regex *re = NULL;
        _cleanup_buf_ struct buf *out = buf_new(0);
        assert_int_equal(regex_new(bytes_str(cases[i].pattern), &re, NULL), 0);
        assert_int_equal(
            regex_replace_text(re, bytes_str(cases[i].subject), bytes_str(cases[i].text), out), 0);
        if (!bytes_eq_str(buf_bytes(out), cases[i].want))
            fail_msg("%s in %s by %s: got %s, want %s", cases[i].pattern, cases[i].subject,
                     cases[i].text, buf_str(out), cases[i].want);
    }
}

static int refuse(void *ctx, const struct regex_found *m, struct buf *out)
{
    (void)m;
    (void)out;
    return --*(int *)ctx > 0 ? 0 : -EINVAL;
}

static void test_refused(void **state)
{
    (void)state;
    int left = 2;
    _cleanup_(regex_freep) struct regex *re = NULL;
    _cleanup_buf_ struct buf *out = buf_new(0), *small = buf_new(3);
    assert_int_equal(regex_new(bytes_str("a"), &re, NULL), 0);
    assert_int_equal(regex_replace(re, bytes_str("aXaaa"), refuse, &left, out), -EINVAL);
    assert_int_equal(left, 0);
    assert_string_equal(buf_str(out), "X");
    assert_int_equal(regex_replace_text(re, bytes_str("aa"), bytes_str("xx"), small), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
