/* The hint that a burst is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/buf.h"

#define MIB ((size_t)1 << 20)

static int drops;
static void count_drop(void)
{
    drops++;
}

static void test_drop_after_a_peak(void **state)
{
    (void)state;
    mem_on_drop(count_drop);
    mem_charge(100 * MIB);
    mem_release(70 * MIB);
    assert_int_equal(drops, 0); /* 30 of 100 are left */
    mem_release(10 * MIB);
    assert_int_equal(drops, 1); /* 20 */
    mem_release(10 * MIB);
    assert_int_equal(drops, 1); /* 10 of the new peak of 20 */
    mem_release(6 * MIB);
    assert_int_equal(drops, 2); /* 4 */
    mem_release(4 * MIB);
    assert_int_equal(drops, 3);
    assert_int_equal(mem_used(), 0);
    mem_on_drop(NULL);
}

static void test_small_peaks_do_not_count(void **state)
{
    (void)state;
    drops = 0;
    mem_on_drop(count_drop);
    for (int i = 0; i < 100; i++) {
        mem_charge(3 * MIB);
        mem_release(3 * MIB);
    }
    assert_int_equal(drops, 0);
    mem_on_drop(NULL);
    mem_charge(8 * MIB);
    mem_release(8 * MIB); /* nobody listens */
    assert_int_equal(drops, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drop_after_a_peak),
                                       cmocka_unit_test(test_small_peaks_do_not_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
