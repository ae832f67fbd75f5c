/* Component ids agree with the reference collector's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/bind.h"
#include "tests/unit/tsv.h"

static void check_row(struct arena *a, const char *id, const char *want)
{
    struct err e = {0};
    bool taken = cfg_parse_id(id, &e) == 0;
    if (taken != (strcmp(want, "error") != 0))
        fail_msg("\"%s\": %s", id, taken ? "taken" : e.text);
    if (taken)
        assert_string_equal(cfg_trim_id(a, id), want);
    else
        assert_true(e.text[0] != 0);
}

static void test_ids(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/golden/config/ids.tsv", "r");
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    _cleanup_free_ char *line = NULL;
    size_t size = 0, cases = 0;
    assert_non_null(f);
    for (char *columns[TSV_COLUMNS]; getline(&line, &size, f) > 0; cases++) {
        assert_int_equal(tsv_split(line, columns), 2);
        check_row(a, tsv_unescape(columns[0]), tsv_unescape(columns[1]));
    }
    assert_true(cases > 300);
}

static void test_not_utf8(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "x/\xff", "x/\xc3", "x/\xc0\x80", "x/\xed\xa0\x80", "x/\xf4\x90\x80\x80", "x/\xe2\x82"};
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        assert_int_not_equal(cfg_parse_id(ids[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids), cmocka_unit_test(test_not_utf8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
