/* Doubles: the same text as Go's library gives, and the styles derived from it. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/json.h"

static void assert_text(double v, enum double_style style, const char *want)
{
    char got[DOUBLE_MAX_BYTES + 1];
    size_t n = double_text(v, style, got);
    assert_true(n <= DOUBLE_MAX_BYTES);
    got[n] = 0;
    assert_string_equal(got, want);
}

static void test_like_go(void **state)
{
    (void)state;
    _cleanup_fclose_ FILE *f = fopen(TEST_DATA "/unit/data/doubles.tsv", "r");
    char line[256], json[80], text[80];
    int seen = 0;
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long long bits;
        assert_int_equal(sscanf(line, "%llx\t%79[^\t]\t%79[^\n]", &bits, json, text), 3);
        assert_text(wire_double(bits), DOUBLE_JSON, json);
        assert_text(wire_double(bits), DOUBLE_GO, text);
        seen++;
    }
    assert_true(seen > 2000);
}

static void test_styles(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *json, *ecma, *go, *python;
    } cases[] = {
        {0, "0", "0", "0", "0.0"},
        {-0.0, "-0", "-0", "-0", "-0.0"},
        {5, "5", "5", "5", "5.0"},
        {0.1, "0.1", "0.1", "0.1", "0.1"},
        {1e-7, "1e-07", "1e-7", "1e-07", "1e-07"},
        {1.5e-10, "1.5e-10", "1.5e-10", "1.5e-10", "1.5e-10"},
        {1e-6, "0.000001", "0.000001", "1e-06", "1e-06"},
        {0.0001, "0.0001", "0.0001", "0.0001", "0.0001"},
        {1e6, "1000000", "1000000", "1e+06", "1000000.0"},
        {1e16, "10000000000000000", "10000000000000000", "1e+16", "1e+16"},
        {123456789012345680, "123456789012345680", "123456789012345680", "1.2345678901234568e+17",
         "1.2345678901234568e+17"},
        {1e21, "1e+21", "1e+21", "1e+21", "1e+21"},
        {1e-300, "1e-300", "1e-300", "1e-300", "1e-300"},
        {-DBL_MAX, "-1.7976931348623157e+308", "-1.7976931348623157e+308",
         "-1.7976931348623157e+308", "-1.7976931348623157e+308"},
        {NAN, "\"NaN\"", "NaN", "NaN", "NaN"},
        {INFINITY, "\"Infinity\"", "Infinity", "+Inf", "Infinity"},
        {-INFINITY, "\"-Infinity\"", "-Infinity", "-Inf", "-Infinity"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_text(cases[i].v, DOUBLE_JSON, cases[i].json);
        assert_text(cases[i].v, DOUBLE_ECMA, cases[i].ecma);
        assert_text(cases[i].v, DOUBLE_GO, cases[i].go);
        assert_text(cases[i].v, DOUBLE_PYTHON, cases[i].python);
    }
}

/* Random bits read back, and one digit less does not. */
static void test_shortest(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252ull;
    for (int i = 0; i < 20000; i++) {
        char text[DOUBLE_MAX_BYTES + 1], shorter[64];
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double v = wire_double(x);
        if (!isfinite(v))
            continue;
        text[double_text(v, DOUBLE_GO, text)] = 0;
        assert_true(strtod(text, NULL) == v);
        int digits = 0;
        for (const char *p = text; *p && *p != 'e'; p++)
            digits += *p >= '0' && *p <= '9';
        if (digits > 1 && strchr(text, 'e')) {
            snprintf(shorter, sizeof(shorter), "%.*e", digits - 2, v);
            assert_true(strtod(shorter, NULL) != v);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_go),
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
