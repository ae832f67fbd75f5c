/* Every allocation of a queue on disk, of its writer and its workers, fails once: "not now" or
 * taken, one answer each, and what was taken arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "disk_rig.h"

/* The n-th allocation from now on, of whatever thread, gives NULL. */
static atomic_int fail_in;

static bool fails(void)
{
    return atomic_load(&fail_in) > 0 && atomic_fetch_sub(&fail_in, 1) == 1;
}

#include "oom_wrap.h"

#define OFFERS 6
#define RECORDS 3 /* of each */

/* Starts a queue, offers to it and stops it; the n-th allocation in between fails. Returns whether
 * it came to that. */
static bool run(bool use_storage, bool batching, bool wait, int n)
{
    struct disk_rig d;
    struct fake_ack acks[OFFERS];
    struct batch *batches[OFFERS];
    uint32_t taken = 0;
    struct err e = {0};
    disk_rig_init(&d, use_storage);
    d.batch = (struct queue_batch){.flush_timeout_ns = (int64_t)NS_PER_MS,
                                   .min_size = 4,
                                   .max_size = 5,
                                   .sizer_given = CFG_GIVEN,
                                   .sizer = SIZER_ITEMS};
    d.queue_settings.batch = batching ? &d.batch : NULL;
    d.queue_settings.wait_for_result = wait;
    d.queue_settings.queue_size = use_storage ? 100 : 2;
    for (uint32_t i = 0; i < OFFERS; i++) {
        batches[i] = numbered(i * RECORDS, RECORDS, 10);
        fake_ack_init(&acks[i]);
    }
    atomic_store(&fail_in, n);
    d.queue = queue_new(&d.backend.base, &d.settings, SIGNAL_LOGS, &e);
    const bool started = d.queue && queue_start(d.queue, &e) == 0;
    for (uint32_t i = 0; i < OFFERS; i++) {
        if (!started) {
            batch_unref(batches[i]);
            continue;
        }
        const enum verdict v = queue_offer(d.queue, batches[i], &acks[i].ack);
        const enum verdict last = fake_ack_verdict(&acks[i], v);
        assert_true(last == VERDICT_OK || last == VERDICT_RETRY);
        assert_int_equal(fake_ack_answers(&acks[i]), v == VERDICT_PENDING);
        taken += last == VERDICT_OK;
    }
    if (started)
        queue_stop(d.queue, clock_now_ns() + 60 * NS_PER_S);
    const bool failed = atomic_exchange(&fail_in, 0) <= 0;
    d.queue = queue_free(d.queue);
    assert_int_equal(d.backend.n, taken * RECORDS);
    disk_rig_done(&d);
    return failed;
}

static void run_all(bool use_storage, bool batching, bool wait)
{
    int n = 1;
    while (run(use_storage, batching, wait, n))
        n++;
    assert_true(n > 20);
}

static void test_storage(void **state)
{
    (void)state;
    run_all(true, false, false);
}

static void test_storage_batches(void **state)
{
    (void)state;
    run_all(true, true, false);
}

static void test_storage_waiting(void **state)
{
    (void)state;
    run_all(true, true, true);
}

static void test_spill(void **state)
{
    (void)state;
    run_all(false, true, false);
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_storage_batches),
        cmocka_unit_test(test_storage_waiting),
        cmocka_unit_test(test_spill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
