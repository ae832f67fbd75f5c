#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "receivers/prometheus/names.h"

static void test_trim(void **state)
{
    static const char *const names[][2] = {
        {"a", "a"},           {"a_bucket", "a"},        {"a_count", "a"},
        {"a_sum", "a"},       {"a_total", "a"},         {"a_info", "a"},
        {"a_created", "a"},   {"_count", "_count"},     {"a_gcount", "a_gcount"},
        {"acount", "acount"}, {"a_sum_count", "a_sum"}, {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_true(bytes_eq_str(name_trim(bytes_str(names[i][0])), names[i][1]));
}

static void test_trim_type_and_unit(void **state)
{
    static const struct {
        const char *name;
        bool counter;
        const char *unit, *trimmed;
    } names[] = {
        {"a_seconds_total", true, "seconds", "a"},
        {"a_seconds_total", false, "seconds", "a_seconds_total"},
        {"a_seconds", false, "seconds", "a"},
        {"a_seconds", false, "", "a_seconds"},
        {"seconds", false, "seconds", "seconds"},
        {"a_bytes_per_second_total", true, "bytes_per_second", "a"},
        {"_total", true, "", "_total"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_true(bytes_eq_str(name_trim_type_and_unit(bytes_str(names[i].name), names[i].counter,
                                                         bytes_str(names[i].unit)),
                                 names[i].trimmed));
}

static void test_units(void **state)
{
    static const char *const units[][2] = {
        {"seconds", "s"},
        {"bytes", "By"},
        {"bytes_per_second", "By/s"},
        {"ratio", "1"},
        {"percent", "%"},
        {"tokens", "tokens"},
        {"", ""},
        {"tokens_per_minute", "tokens/m"},
        {"x_per_y_per_z", "x/y_per_z"},
        {"bytes_per_", "By"},
        {"_per_second", "/s"},
        {"celsius", "Cel"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        struct buf *out = buf_new(0);
        assert_int_equal(unit_to_ucum(bytes_str(units[i][0]), out), 0);
        assert_string_equal(buf_str(out), units[i][1]);
        buf_unref(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trim),
                                       cmocka_unit_test(test_trim_type_and_unit),
                                       cmocka_unit_test(test_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
