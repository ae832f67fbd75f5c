/* Numbers of pages: the quick way gives what strtod() gives, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/base/cleanup.h"
#include "agent/base/number.h"
#include "receivers/prometheus/scan.h"

static uint64_t bits(double d)
{
    uint64_t b;
    memcpy(&b, &d, sizeof(b));
    return b;
}

/* Numbers that are to be read the quick way. */
static void test_quick(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "0.000000000000000000000000000000000000",
        "0e999999999999",
        "00000000000000000000012",
        "9007199254740992",
        "9007199254740993", /* half way between two doubles: to the even one */
        "9007199254740995",
        "9007199254740993.0",
        "9223372036854775807",
        "9999999999999999999",
        "2795.8301076950074",
        "0.00012345678901234567",
        "123456789012345678e-35",
        "1.7976931348623157e25",
        "8.98846567431158e21",
        "1e22",
        "1e23",
        "4.35e-17",
        "1234567890123456789e21",
        "7.2057594037927933e16", /* half way again, above 2^56 */
        "3.0000000000000004e-19",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        double v = 1;
        assert_true(prom_quick_double(bytes_str(texts[i]), &v));
        assert_true(bits(v) == bits(strtod(texts[i], NULL)));
    }
}

/* What is left to the long way, and what is no number at all. */
static void test_long(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool number;
    } texts[] = {
        {"12345678901234567890", true},
        {"1e300", true},
        {"5e-324", true},
        {"1e-400", true},
        {"+Inf", true},
        {"NaN", true},
        {"", false},
        {"-", false},
        {".", false},
        {"1e", false},
        {"1e+", false},
        {"1x", false},
        {"1_000", false},
        {"0x1p3", false},
        {"1 ", false},
        {" 1", false},
        {"1e400", false},
        {"--1", false},
        {"1..2", false},
        {"e5", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        double v;
        assert_false(prom_quick_double(bytes_str(texts[i].text), &v));
        assert_int_equal(prom_parse_double(bytes_str(texts[i].text), &v), texts[i].number);
        if (texts[i].number && v == v)
            assert_true(bits(v) == bits(strtod(texts[i].text, NULL)));
    }
}

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x * 2685821657736338717u;
}

static void print_random(uint64_t *x, char *out, size_t size)
{
    const unsigned long long a = next(x) >> next(x) % 64, b = next(x) >> next(x) % 64;
    double d;
    switch (next(x) % 4) {
    case 0:
        d = (double)a / (double)(b | 1);
        snprintf(out, size, "%.*g", (int)(next(x) % 18 + 1), d);
        break;
    case 1: snprintf(out, size, "%llu.%llu", a >> 32, b); break;
    case 2: snprintf(out, size, "%llue%d", a, (int)(next(x) % 90) - 45); break;
    default: /* an odd number of 54 bits, or near it: half way between two doubles */
        snprintf(out, size, "%llu", (a | 1ull << 53) & ((1ull << 54) - 1));
    }
}

static void test_random(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    unsigned quick = 0;
    for (unsigned i = 0; i < 200000; i++) {
        char text[100];
        double v;
        print_random(&x, text, sizeof(text));
        if (!prom_quick_double(bytes_str(text), &v))
            continue;
        quick++;
        if (bits(v) != bits(strtod(text, NULL)))
            fail_msg("%s: got %.17g", text, v);
    }
    assert_true(quick > 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quick), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
