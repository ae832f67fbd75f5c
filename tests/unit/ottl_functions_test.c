/*
 * The functions of the language on one log record: what each gives for usual values, for nil, for
 * wrong types and at the edges, against what the reference answered
 * (tests/golden/ottl/functions.tsv).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/ottl_functions_rig.h"

/* Runs the statement on the batch, which is replaced. "START" or "ERR" in `shown` when it fails. */
static bool run(const char *text, struct batch **b, struct err *e)
{
    struct batch *after = NULL;
    bool started;
    int r = run_statement(text, *b, &after, &started, e);
    if (r < 0) {
        assert_int_equal(r, -EINVAL);
        assert_true(strlen(e->text) > 0);
        buf_append_str(shown, started ? "ERR" : "START");
        return false;
    }
    batch_unref(*b);
    *b = after;
    return true;
}

static void answer(const char *line, struct err *e)
{
    struct table_line l;
    read_line(line, &l);
    struct batch *b = batch_of(&l);
    if (run(l.text, &b, e) && l.statement) {
        run("show(body)", &b, e);
        buf_putc(shown, ' ');
        run("show(attributes)", &b, e);
    }
    batch_unref(b);
}

/* Where the reference sends what is not UTF-8 (here "\\xc3"), we send U+FFFD. */
static char *sendable(const char *want)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    for (; *want; want++)
        if (want[0] == '\\' && want[1] == 'x' && strlen(want) >= 4) {
            buf_append_str(b, "\xef\xbf\xbd");
            want += 3;
        } else {
            buf_putc(b, *want);
        }
    return strdup(buf_str(b));
}

static void test_recorded(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/ottl/functions.tsv", "r");
    assert_non_null(f);
    char line[8192];
    int lines = 0, wrong = 0;
    for (; fgets(line, sizeof(line), f); lines++) {
        char *want = strchr(line, '\t');
        struct err e = {0};
        assert_non_null(want);
        *want++ = 0;
        want[strcspn(want, "\n")] = 0;
        shown = buf_new(0);
        answer(line, &e);
        _cleanup_free_ char *good = line[0] == '@' ? sendable(want) : strdup(want);
        if (strcmp(buf_str(shown), good) != 0) {
            print_error("%s\n  got  %s %s\n  want %s\n", line, buf_str(shown), e.text, want);
            wrong++;
        }
        shown = buf_unref(shown);
    }
    assert_true(lines >= 600);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    setenv("TZDIR", TEST_DATA "/golden/ottl/zoneinfo", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
