#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "receivers/prometheus/exposition.h"

enum { NONE = -1 };

static void test_types(void **state)
{
    static const struct {
        const char *type;
        int format; /* without a fallback */
    } types[] = {
        {"text/plain", PROM_TEXT},
        {"text/plain; version=0.0.4; charset=utf-8", PROM_TEXT},
        {"text/plain;version=1.0.0;escaping=allow-utf-8;", PROM_TEXT},
        {"TEXT/Plain ; charset=\"u;\\\"tf\"", PROM_TEXT},
        {"application/openmetrics-text; version=1.0.0; charset=utf-8", PROM_OPENMETRICS},
        {"application/openmetrics-text", PROM_OPENMETRICS},
        {NULL, NONE},
        {"", NONE},
        {"text/html; charset=utf-8", NONE},
        {"text/plain; version", NONE},
        {"text/plain; version=", NONE},
        {"text/plain; version=\"1", NONE},
        {"text/plain, text/html", NONE},
        {"text/", NONE},
        {"text/plainer", NONE},
        {"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily", NONE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        enum prom_format f;
        struct err err = {0};
        const bool known = prom_format_of(types[i].type, NULL, &f, &err);
        if (known != (types[i].format != NONE) || (known && (int)f != types[i].format))
            fail_msg("%s", types[i].type);
        assert_int_equal(known, !*err.text);
    }
}

static void test_fallback(void **state)
{
    const enum prom_format fallback = PROM_OPENMETRICS;
    enum prom_format f = PROM_TEXT;
    (void)state;
    assert_true(prom_format_of("text/html", &fallback, &f, NULL));
    assert_int_equal(f, PROM_OPENMETRICS);
    assert_true(prom_format_of("", &fallback, &f, NULL));
    assert_true(prom_format_of("text/plain; version=", &fallback, &f, NULL));
    assert_true(prom_format_of("text/plain", &fallback, &f, NULL));
    assert_int_equal(f, PROM_TEXT);
    assert_false(prom_format_of("application/vnd.google.protobuf", &fallback, &f, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_fallback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
