/* RE2 expressions: what Go's engine answers, what is refused and where, and searches without end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "agent/base/regex.h"

/* "%xx" in place: one byte. Returns the length. */
static size_t decode(char *s)
{
    size_t n = 0;
    for (char *p = s; *p; p++) {
        unsigned byte = (unsigned char)*p;
        if (*p == '%') {
            assert_int_equal(sscanf(p + 1, "%2x", &byte), 1);
            p += 2;
        }
        s[n++] = (char)byte;
    }
    return n;
}

/* The answer in the words of the data file. */
static void answer(struct bytes pattern, struct bytes subject, struct buf *out)
{
    _cleanup_(regex_freep) struct regex *re = NULL;
    struct err e;
    struct regex_span spans[20];
    int r = regex_new(pattern, &re, &e);
    if (r < 0) {
        assert_int_equal(r, -EINVAL);
        buf_append_str(out, "E");
        return;
    }
    if (!regex_search(re, subject, 0, spans, ARRAY_SIZE(spans))) {
        buf_append_str(out, "N");
        return;
    }
    buf_append_str(out, "M");
    for (unsigned i = 0; i <= regex_groups(re); i++)
        if (spans[i].from == REGEX_UNSET)
            buf_append_str(out, " -1 -1");
        else
            buf_printf(out, " %zu %zu", spans[i].from, spans[i].to);
}

static void test_recorded(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/regex/go.tsv", "r");
    assert_non_null(f);
    char line[1024];
    int lines = 0;
    for (; fgets(line, sizeof(line), f); lines++) {
        char *subject = strchr(line, '\t'), *want = subject ? strchr(subject + 1, '\t') : NULL;
        assert_non_null(want);
        *subject++ = *want++ = 0;
        want[strcspn(want, "\n")] = 0;
        _cleanup_buf_ struct buf *got = buf_new(0);
        char *shown = strdup(line);
        size_t subject_len = decode(subject);
        answer(bytes_of(line, decode(line)), bytes_of(subject, subject_len), got);
        if (strcmp(buf_str(got), want) != 0)
            fail_msg("%s: got %s, want %s", shown, buf_str(got), want);
        free(shown);
    }
    assert_true(lines >= 300);
}

static const struct {
    const char *pattern, *error;
} refused[] = {
    {"a(?=b)", "unknown or unsupported group (RE2 has (?:…), (?P<name>…), (?imsU), no look-around) "
               "at character 2"},
    {"é(?<!b)", "unknown or unsupported group"},
    {"é(?<!b)", "at character 2 of"},
    {"(?>a)", "unsupported group"},
    {"(?R)", "unsupported group"},
    {"(?#x)", "unsupported group"},
    {"(a)\\1", "back-references are not supported at character 4"},
    {"a++", "invalid nested repetition operator at character 2"},
    {"(*UTF)a", "nothing to repeat at character 2"},
    {"\\Z", "invalid escape sequence"},
    {"a\\K", "invalid escape sequence at character 2"},
    {"(", "missing closing ) at character 1"},
    {"a)", "unexpected ) at character 2"},
    {"[a", "missing closing ] at character 1"},
    {"[z-a]", "upside down"},
    {"[[:foo:]]", "unknown character class name"},
    {"a{1001}", "invalid repeat count at character 2"},
    {"(a{100}){11}", "multiply"},
    {"\\", "trailing backslash"},
    {"\\x{110000}", "above 10FFFF"},
    {"\xff", "not valid UTF-8"},
    {"\\p{Foo}", "unknown"},
    {"(?P<>a)", "bad group name"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct regex *re = NULL;
        struct err e = {.text = ""};
        assert_int_equal(regex_new(bytes_str(refused[i].pattern), &re, &e), -EINVAL);
        assert_null(re);
        if (!strstr(e.text, refused[i].error))
            fail_msg("%s: %s", refused[i].pattern, e.text);
    }
}

static void test_names(void **state)
{
    (void)state;
    _cleanup_(regex_freep) struct regex *re = NULL;
    struct err e;
    assert_int_equal(regex_new(bytes_str("(?P<ns>a)(?:b)(c)(?<x_1>d)"), &re, &e), 0);
    assert_int_equal(regex_groups(re), 3);
    assert_string_equal(regex_group_name(re, 1), "ns");
    assert_string_equal(regex_group_name(re, 2), "");
    assert_string_equal(regex_group_name(re, 3), "x_1");
    assert_string_equal(regex_group_name(re, 4), "");
}

static void test_start(void **state)
{
    (void)state;
    _cleanup_(regex_freep) struct regex *re = NULL;
    struct err e;
    struct regex_span s[2];
    assert_int_equal(regex_new(bytes_str("^a|b"), &re, &e), 0);
    assert_true(regex_search(re, bytes_str("aab"), 1, s, 2));
    assert_int_equal(s[0].from, 2);
    assert_true(s[1].from == REGEX_UNSET);
    assert_false(regex_search(re, bytes_of(NULL, 0), 0, s, 2));
}

static void test_without_end(void **state)
{
    (void)state;
    _cleanup_(regex_freep) struct regex *re = NULL;
    struct err e;
    char long_text[64];
    memset(long_text, 'a', sizeof(long_text));
    long_text[63] = 'b';
    unsigned long before = regex_cut_off();
    assert_int_equal(regex_new(bytes_str("(a|aa)+$"), &re, &e), 0);
    assert_false(regex_match(re, bytes_of(long_text, sizeof(long_text))));
    assert_true(regex_cut_off() == before + 1);
    assert_true(regex_match(re, bytes_of(long_text, 63)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_start),
        cmocka_unit_test(test_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
