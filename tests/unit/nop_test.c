/* nop: takes everything, gives nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

extern const struct component_type exporter_nop, receiver_nop;

static void test_exporter(void **state)
{
    (void)state;
    struct rig r = {0};
    size_t before = mem_used();
    rig_make(&r, &exporter_nop, "nop", SIGNAL_LOGS, 0, "");
    assert_int_equal(rig_offer(&r, fake_batch(SIGNAL_LOGS, 5), NULL), VERDICT_OK);
    rig_done(&r);
    assert_int_equal(mem_used(), before);
}

static void test_receiver(void **state)
{
    (void)state;
    struct rig r = {0};
    rig_make(&r, &receiver_nop, "nop/x", SIGNAL_LOGS, 0, "");
    assert_string_equal(r.c->id, "nop/x");
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exporter),
                                       cmocka_unit_test(test_receiver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
