/* Numbers out of text: the answers are those of Go 1.26's strconv. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/cleanup.h"
#include "agent/base/number.h"

static const struct {
    const char *text;
    bool ok;
    double value;
} doubles[] = {
    {"1_000", true, 1000},
    {"1_0.5", true, 10.5},
    {"0x1p-2", true, 0.25},
    {"0x1", false, 0},
    {"0x_1p4", true, 16},
    {"0X1.8P1", true, 3},
    {"1e", false, 0},
    {"1.e3", true, 1000},
    {".5", true, 0.5},
    {"5.", true, 5},
    {".", false, 0},
    {"+.5e-3", true, 0.0005},
    {"+nan", false, 0},
    {"inf", true, INFINITY},
    {"-Inf", true, -INFINITY},
    {"infinity", true, INFINITY},
    {"+INFINITY", true, INFINITY},
    {"infin", false, 0},
    {"1e400", false, 0},
    {"-1e400", false, 0},
    {"1e-400", true, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"", false, 0},
    {"1f", false, 0},
    {"0b11", false, 0},
    {"1e1_0", true, 1e10},
    {"0x1_0p1_0", true, 16384},
    {"1__0", false, 0},
    {"0x.8p0", true, 0.5},
    {"0x.p0", false, 0},
    {"1e+", false, 0},
    {"-", false, 0},
    {"+", false, 0},
    {"--1", false, 0},
    {"1e-", false, 0},
    {"9007199254740993", true, 9007199254740992},
    {"4.9e-324", true, 5e-324},
    {"0x1p1024", false, 0},
    {"_1", false, 0},
    {"1_", false, 0},
    {"1_.5", false, 0},
    {"-12.25", true, -12.25},
    {"1e5", true, 1e5},
    {"1._5", false, 0},
    {"0.000000000000000000000000000000000000000000000000000000000000000000000001", true, 1e-72},
};

static void test_doubles(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(doubles); i++) {
        double v = 0;
        bool ok = number_parse_double(bytes_str(doubles[i].text), &v);
        if (ok != doubles[i].ok || (ok && v != doubles[i].value))
            fail_msg("\"%s\": %d %.17g", doubles[i].text, ok, v);
    }
    double v;
    assert_true(number_parse_double(bytes_str("NaN"), &v) && isnan(v));
    assert_true(number_parse_double(bytes_str("nan"), &v) && isnan(v));
    assert_false(number_parse_double(bytes_of("1\0", 2), &v));
}

static const struct {
    const char *text;
    bool ok;
    int64_t value;
} ints[] = {
    {"1_000", false, 0},
    {"+5", true, 5},
    {"-5", true, -5},
    {"0x1", false, 0},
    {"9223372036854775807", true, INT64_MAX},
    {"9223372036854775808", false, 0},
    {"-9223372036854775808", true, INT64_MIN},
    {"-9223372036854775809", false, 0},
    {"", false, 0},
    {"+", false, 0},
    {"-0", true, 0},
    {"00012", true, 12},
    {" 1", false, 0},
    {"1.0", false, 0},
    {"99999999999999999999999", false, 0},
};

static void test_ints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ints); i++) {
        int64_t v = 0;
        bool ok = number_parse_int(bytes_str(ints[i].text), &v);
        if (ok != ints[i].ok || (ok && v != ints[i].value))
            fail_msg("\"%s\": %d %lld", ints[i].text, ok, (long long)v);
    }
}

static void test_cut(void **state)
{
    (void)state;
    assert_true(number_double_to_int(-1.9) == -1);
    assert_true(number_double_to_int(9e18) == 9000000000000000000);
    assert_true(number_double_to_int(9.3e18) == INT64_MIN);
    assert_true(number_double_to_int(NAN) == INT64_MIN);
    assert_true(number_double_to_int(-INFINITY) == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubles), cmocka_unit_test(test_ints),
                                       cmocka_unit_test(test_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
