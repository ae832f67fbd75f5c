/* Every recorded configuration is read as the reference collector reads it, but for the listed
 * differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/secrets.h"
#include "agent/config/config.h"
#include "tests/unit/config_show.h"
#include "tests/unit/tsv.h"

static void set_variable(char *text)
{
    char *value = strchr(text, ' ');
    *value++ = 0;
    setenv(text + 1, tsv_unescape(value), 1);
}

static void check_row(const char *name, int line, char **columns, size_t n, const char *want)
{
    struct config_source sources[TSV_COLUMNS] = {0};
    struct cfg_errors errs = {0};
    _cleanup_buf_ struct buf *got = buf_new(0);
    for (size_t i = 0; i < n; i++)
        sources[i].uri = tsv_unescape(columns[i]);
    struct config *c = config_load(sources, n, &errs);
    assert_true((c == NULL) == (errs.n > 0));
    if (c)
        show_value(got, c->root);
    else
        buf_append_str(got, "error");
    if (strcmp(buf_str(got), want) != 0)
        fail_msg("%s:%d: %s: got %s, want %s", name, line, sources[0].uri, buf_str(got), want);
    config_free(c);
    cfg_errors_done(&errs);
}

/* `answers`: how many columns at the end are answers; the last is motel's. */
static void check_file(const char *name, size_t answers, int least)
{
    char path[300], *columns[TSV_COLUMNS];
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    int number = 0, cases = 0;
    snprintf(path, sizeof(path), TEST_DATA "/golden/config/%s", name);
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    assert_non_null(f);
    clearenv();
    while (getline(&line, &size, f) > 0) {
        number++;
        bool variable = *line == '#';
        size_t n = tsv_split(line, columns);
        if (variable)
            set_variable(columns[0]);
        if (n == 1)
            continue;
        check_row(name, number, columns + variable, n - variable - answers,
                  tsv_unescape(columns[n - 1]));
        cases++;
    }
    assert_true(cases >= least);
}

static void test_scalars(void **state)
{
    (void)state;
    check_file("scalars.tsv", 1, 800);
}

static void test_yaml(void **state)
{
    (void)state;
    check_file("yaml.tsv", 1, 140);
}

static void test_expand(void **state)
{
    (void)state;
    check_file("expand.tsv", 1, 500);
}

static void test_differences(void **state)
{
    (void)state;
    check_file("differences.tsv", 2, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
