/* The end of files that are continued: what is cut, what is ended, what is left alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "exporters/file/repair.h"

static const struct {
    bool framed;
    const char *before;
    size_t before_len;
    int result;
    enum repair what;
    const char *after;
    size_t after_len;
} cases[] = {
#define TEXT(s) s, sizeof(s) - 1
    {false, TEXT(""), 0, REPAIR_NONE, TEXT("")},
    {false, TEXT("{\"a\":1}\n"), 0, REPAIR_NONE, TEXT("{\"a\":1}\n")},
    {false, TEXT("{\"a\":1}\n{\"resourceSpans\":[{\"x"), 0, REPAIR_CUT, TEXT("{\"a\":1}\n")},
    {false, TEXT("{\"a\":1}\n{\"reso"), 0, REPAIR_CUT, TEXT("{\"a\":1}\n")},
    {false, TEXT("{\"resourceLogs\":[]"), 0, REPAIR_CUT, TEXT("")},
    {false, TEXT("{\"resourceLogs\":[{}]}"), 0, REPAIR_ENDED, TEXT("{\"resourceLogs\":[{}]}\n")},
    {false, TEXT("{\"resourceLogs\":\"}\\\"}\"}"), 0, REPAIR_ENDED,
     TEXT("{\"resourceLogs\":\"}\\\"}\"}\n")},
    {false, TEXT("{\"resourceLogs\":\"}\\\"}"), 0, REPAIR_CUT, TEXT("")},
    {false, TEXT("{\"resourceLogs\":[{}]}{"), 0, REPAIR_CUT, TEXT("")},
    {false, TEXT("somebody's text"), 0, REPAIR_ENDED, TEXT("somebody's text\n")},
    {false, TEXT("{\"other\": 1"), 0, REPAIR_ENDED, TEXT("{\"other\": 1\n")},
    {true, TEXT(""), 0, REPAIR_NONE, TEXT("")},
    {true, TEXT("\0\0\0\2\x0a\0"), 0, REPAIR_NONE, TEXT("\0\0\0\2\x0a\0")},
    {true, TEXT("\0\0\0\2\x0a\0\0\0\0\0"), 0, REPAIR_NONE, TEXT("\0\0\0\2\x0a\0\0\0\0\0")},
    {true, TEXT("\0\0\0\2\x0a\0\0\0"), 0, REPAIR_CUT, TEXT("\0\0\0\2\x0a\0")},
    {true, TEXT("\0\0\0\2\x0a\0\0\0\0\7\x0a\1\2"), 0, REPAIR_CUT, TEXT("\0\0\0\2\x0a\0")},
    {true, TEXT("\0\0\0\7\x28\xb5"), 0, REPAIR_CUT, TEXT("")},
    {true, TEXT("{\"resourceSpans\":[]}\n"), -EBADMSG, REPAIR_NONE,
     TEXT("{\"resourceSpans\":[]}\n")},
#undef TEXT
};

static int temporary(void)
{
    char path[] = "/tmp/motel-repair-XXXXXX";
    int fd = mkostemp(path, O_APPEND);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void check(int fd, const void *want, size_t len)
{
    _cleanup_free_ char *got = malloc(len + 2);
    assert_int_equal(pread(fd, got, len + 2, 0), len);
    assert_memory_equal(got, want, len);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_close_ int fd = temporary();
        enum repair what;
        off_t cut;
        assert_int_equal(write(fd, cases[i].before, cases[i].before_len), cases[i].before_len);
        int r = file_repair(fd, cases[i].framed, &what, &cut);
        if (r != cases[i].result || what != cases[i].what)
            fail_msg("case %zu: %d, %d", i, r, (int)what);
        check(fd, cases[i].after, cases[i].after_len);
        assert_int_equal(cut, what == REPAIR_CUT ? cases[i].before_len - cases[i].after_len : 0);
    }
}

/* Lines and frames longer than what is read at a time. */
static void test_long(void **state)
{
    (void)state;
    _cleanup_free_ char *text = malloc(400000);
    enum repair what;
    off_t cut;
    memset(text, 'x', 400000);
    for (int framed = 0; framed < 2; framed++) {
        _cleanup_close_ int fd = temporary();
        const char *first = framed ? "\0\2\0\0" : "{\"resourceSpans\":\"";
        size_t first_len = framed ? 4 : strlen(first);
        assert_int_equal(write(fd, first, first_len), first_len);
        assert_int_equal(write(fd, text, 0x20000), 0x20000);
        assert_int_equal(write(fd, "\"}\n", framed ? 0 : 3), framed ? 0 : 3);
        off_t whole = lseek(fd, 0, SEEK_END);
        const char *second = framed ? "\0\x10\0\0\x0a" : "{\"resourceLogs\":\"";
        size_t second_len = framed ? 5 : strlen(second);
        assert_int_equal(write(fd, second, second_len), second_len);
        assert_int_equal(write(fd, text, 300000), 300000);
        assert_int_equal(file_repair(fd, framed, &what, &cut), 0);
        assert_int_equal(what, REPAIR_CUT);
        assert_int_equal(cut, second_len + 300000);
        assert_int_equal(lseek(fd, 0, SEEK_END), whole);
        assert_int_equal(file_repair(fd, framed, &what, &cut), 0);
        assert_int_equal(what, REPAIR_NONE);
    }
}

/* A file cut at any byte is whole again afterwards, and no whole record is lost. */
static void test_every_cut(void **state)
{
    (void)state;
    static const char text[] = "{\"resourceLogs\":[{\"a\":\"\\\"}\"}]}\n{\"resourceSpans\":[]}\n{"
                               "\"resourceMetrics\":[{}]}\n";
    for (size_t n = 0; n < sizeof(text); n++) {
        _cleanup_close_ int fd = temporary();
        enum repair what;
        off_t cut;
        assert_int_equal(write(fd, text, n), n);
        assert_int_equal(file_repair(fd, false, &what, &cut), 0);
        size_t whole = n;
        while (whole > 0 && text[whole - 1] != '\n')
            whole--;
        bool object = n < sizeof(text) - 1 && text[n] == '\n'; /* only the newline was missing */
        assert_int_equal(lseek(fd, 0, SEEK_END), object ? n + 1 : whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_every_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
