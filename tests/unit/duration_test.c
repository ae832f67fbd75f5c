/* Durations agree with Go's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/bind.h"
#include "tests/unit/tsv.h"

static void check_row(char **columns)
{
    int64_t ns = -1;
    char text[32];
    int r = cfg_parse_duration(columns[0], &ns);
    if (strcmp(columns[1], "error") == 0) {
        if (r == 0)
            fail_msg("\"%s\" was taken as %lld", columns[0], (long long)ns);
        return;
    }
    if (r < 0 || ns != strtoll(columns[1], NULL, 10))
        fail_msg("\"%s\": got %lld, want %s", columns[0], (long long)ns, columns[1]);
    cfg_format_duration(ns, text);
    assert_string_equal(text, columns[2]);
}

static void test_durations(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/config/durations.tsv", "r");
    _cleanup_free_ char *line = NULL;
    size_t size = 0, cases = 0;
    assert_non_null(f);
    for (char *columns[TSV_COLUMNS]; getline(&line, &size, f) > 0; cases++) {
        assert_int_equal(tsv_split(line, columns), 3);
        check_row(columns);
    }
    assert_true(cases > 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_durations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
