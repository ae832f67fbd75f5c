/* Totals of a metrics page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/summary.h"

static const char page[] =
    "# HELP otelcol_receiver_accepted_spans Number of spans.\n"
    "# TYPE otelcol_receiver_accepted_spans counter\n"
    "otelcol_receiver_accepted_spans{receiver=\"otlp\",transport=\"grpc\"} 12\n"
    "otelcol_receiver_accepted_spans{receiver=\"a b\",transport=\"http\"} 30\n"
    "otelcol_receiver_accepted_log_records{receiver=\"otlp\"} 1000000\n"
    "otelcol_exporter_sent_spans{exporter=\"file\"} 7";

static void test_totals(void **state)
{
    (void)state;
    const struct bytes text = bytes_str(page);
    assert_int_equal(summary_total(text, "otelcol_receiver_accepted_"), 1000042);
    assert_int_equal(summary_total(text, "otelcol_receiver_accepted_spans"), 42);
    assert_int_equal(summary_total(text, "otelcol_exporter_sent_"), 7); /* no newline at the end */
    assert_int_equal(summary_total(text, "otelcol_exporter_send_failed_"), 0);
    assert_int_equal(summary_total(bytes_str(""), "x"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
