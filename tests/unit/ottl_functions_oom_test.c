/* Every allocation of the functions fails once, at the start or at run time: -ENOMEM, no leak, no
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/oom.h"
#include "tests/unit/ottl_functions_rig.h"

/* With the n-th allocation failing. */
static int run_failing(const struct table_line *l, unsigned n)
{
    struct batch *b = batch_of(l), *after;
    struct err e = {0};
    bool started;
    buf_truncate(shown, 0);
    fail_in = n;
    int r = run_statement(l->text, b, &after, &started, &e);
    fail_in = 0;
    batch_unref(after);
    batch_unref(b);
    return r;
}

static void test_table(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/ottl/functions.tsv", "r");
    static char line[8192];
    static struct table_line l;
    assert_non_null(f);
    shown = buf_new(0);
    assert_int_equal(buf_reserve(shown, 65536), 0);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\t")] = 0;
        read_line(line, &l);
        int good = run_failing(&l, 0), r = -ENOMEM;
        for (unsigned n = 1; r == -ENOMEM; n++) {
            r = run_failing(&l, n);
            if (r != -ENOMEM && r != good)
                fail_msg("%s: %d instead of %d when allocation %u fails", line, r, good, n);
            assert_true(n < 10000);
        }
    }
    shown = buf_unref(shown);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    setenv("TZDIR", TEST_DATA "/golden/ottl/zoneinfo", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
