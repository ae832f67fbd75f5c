/* Queues on disk and spilling: nothing lost, nothing twice, in order, whatever ends the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "disk_rig.h"

static void offer_ok(struct disk_rig *d, uint32_t first, uint32_t n)
{
    assert_int_equal(offer_numbered(d, first, n, 10), VERDICT_OK);
}

/* Requests of one record each, numbered from `first` up to before `end`. */
static void offer_each(struct disk_rig *d, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        offer_ok(d, i, 1);
}

/* As a client that is refused for a while. */
static void offer_until_taken(struct disk_rig *d, uint32_t first, size_t size)
{
    const uint64_t end_ns = clock_now_ns() + 30 * NS_PER_S;
    enum verdict v;
    while ((v = offer_numbered(d, first, 1, size)) == VERDICT_RETRY && clock_now_ns() < end_ns)
        usleep(1000);
    assert_int_equal(v, VERDICT_OK);
}

/* Another start with a backend that works: the 20 requests on disk come, then 5 new ones. `queued`:
 * how many of those on disk count as in the queue. */
static void comes_after_restart(struct disk_rig *d, int64_t queued)
{
    backend_set(&d->backend, true, VERDICT_OK);
    disk_rig_start(d);
    assert_int_equal(disk_gauge(d, "motel_exporter_disk_records"), 20);
    assert_int_equal(disk_gauge(d, "otelcol_exporter_queue_size"), queued);
    offer_each(d, 20, 25);
    backend_set(&d->backend, false, VERDICT_OK);
    disk_rig_stop(d, 60000);
    assert_came(&d->backend, 25, true);
    disk_rig_done(d);
}

/* ---- storage ---- */

static void test_sends_and_deletes(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    disk_rig_start(&d);
    assert_true(queue_durable(d.queue));
    for (uint32_t i = 0; i < 50; i++)
        offer_ok(&d, 2 * i, 2);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 100, true);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 0);
    assert_int_equal(disk_gauge(&d, "otelcol_exporter_queue_size"), 0);
    assert_int_equal(disk_rig_stored(&d), 0);
    disk_rig_done(&d);
}

/* What the backend did not take is taken up at the next start, in order, before what is new. */
static void test_restart(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    backend_set(&d.backend, false, VERDICT_RETRY);
    disk_rig_start(&d);
    offer_each(&d, 0, 20);
    disk_rig_stop(&d, 100);
    assert_int_equal(d.backend.n, 0);
    assert_int_equal(disk_rig_stored(&d), 20);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_send_failed_log_records"), 0);
    assert_int_equal(disk_gauge(&d, "otelcol_exporter_queue_size"), 0);
    comes_after_restart(&d, 20);
}

/* What is just being written when the stop comes is sent, too. */
static void test_stop_right_after_offers(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        struct disk_rig d;
        struct fake_ack acks[10];
        disk_rig_init(&d, true);
        disk_rig_start(&d);
        for (uint32_t i = 0; i < 10; i++) {
            fake_ack_init(&acks[i]);
            assert_int_equal(queue_offer(d.queue, numbered(i, 1, 10), &acks[i].ack),
                             VERDICT_PENDING);
        }
        disk_rig_stop(&d, 60000);
        for (uint32_t i = 0; i < 10; i++)
            assert_int_equal(fake_ack_verdict(&acks[i], VERDICT_PENDING), VERDICT_OK);
        assert_came(&d.backend, 10, true);
        disk_rig_done(&d);
    }
}

static void test_full(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    d.queue_settings.queue_size = 3;
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    offer_each(&d, 0, 3);
    assert_int_equal(offer_numbered(&d, 3, 1, 10), VERDICT_RETRY);
    backend_set(&d.backend, false, VERDICT_OK);
    assert_soon(backend_count(&d.backend) == 3);
    offer_until_taken(&d, 3, 10);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 4, true);
    disk_rig_done(&d);
}

static void test_given_up_is_deleted(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    d.backend.poison = 1;
    d.backend.poisoned = VERDICT_REJECT;
    disk_rig_start(&d);
    offer_each(&d, 0, 3);
    disk_rig_stop(&d, 60000);
    assert_int_equal(d.backend.n, 2);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_send_failed_log_records"), 1);
    assert_int_equal(disk_rig_stored(&d), 0);
    disk_rig_done(&d);
}

static void test_block_on_overflow(void **state)
{
    (void)state;
    struct disk_rig d;
    struct fake_ack acks[10];
    disk_rig_init(&d, true);
    d.queue_settings.queue_size = 1;
    d.queue_settings.block_on_overflow = true;
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    for (uint32_t i = 0; i < 10; i++) {
        fake_ack_init(&acks[i]);
        assert_int_equal(queue_offer(d.queue, numbered(i, 1, 10), &acks[i].ack), VERDICT_PENDING);
    }
    backend_set(&d.backend, false, VERDICT_OK);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(fake_ack_verdict(&acks[i], VERDICT_PENDING), VERDICT_OK);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 10, true);
    disk_rig_done(&d);
}

/* Who waits for the backend's answer is told when there will be none, and then it is not kept. */
static void test_wait_for_result(void **state)
{
    (void)state;
    struct disk_rig d;
    struct fake_ack first, second;
    disk_rig_init(&d, true);
    d.queue_settings.wait_for_result = true;
    disk_rig_start(&d);
    fake_ack_init(&first);
    fake_ack_init(&second);
    assert_int_equal(queue_offer(d.queue, numbered(0, 1, 10), &first.ack), VERDICT_PENDING);
    assert_int_equal(fake_ack_verdict(&first, VERDICT_PENDING), VERDICT_OK);
    assert_int_equal(backend_count(&d.backend), 1);
    backend_set(&d.backend, false, VERDICT_RETRY);
    assert_int_equal(queue_offer(d.queue, numbered(1, 1, 10), &second.ack), VERDICT_PENDING);
    disk_rig_stop(&d, 100);
    assert_int_equal(fake_ack_verdict(&second, VERDICT_PENDING), VERDICT_RETRY);
    assert_int_equal(fake_ack_answers(&second), 1);
    assert_int_equal(disk_rig_stored(&d), 0);
    disk_rig_done(&d);
}

/* Two queues on one store, as a reload makes them: what the old one could not deliver is the new
 * one's, and the new one sends nothing that the old one still holds. */
static void test_reload(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    backend_set(&d.backend, false, VERDICT_RETRY);
    struct queue *old = disk_rig_start(&d);
    offer_each(&d, 0, 20);
    disk_rig_start(&d);
    offer_each(&d, 20, 30);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 30);
    queue_stop(old, clock_now_ns() + 50 * NS_PER_MS);
    queue_free(old);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 30);
    assert_int_equal(disk_gauge(&d, "otelcol_exporter_queue_size"), 30);
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 30, false);
    disk_rig_done(&d);
}

/* The queue of a graph that did not start leaves what it got to the one that goes on. */
static void test_reload_undone(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    backend_set(&d.backend, false, VERDICT_RETRY);
    struct queue *old = disk_rig_start(&d);
    offer_ok(&d, 0, 1);
    disk_rig_start(&d);
    offer_ok(&d, 1, 1);
    disk_rig_stop(&d, 50);
    d.queue = old;
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 2, false);
    disk_rig_done(&d);
}

/* Changes a byte of the text of a record in the file. */
static void damage(const char *path, const char *text)
{
    const int fd = open(path, O_RDWR);
    char page[1 << 16];
    off_t at = 0;
    unsigned found = 0;
    for (ssize_t n; (n = pread(fd, page, sizeof(page), at)) > 0; at += n)
        for (char *p = page; (p = memmem(p, (size_t)(page + n - p), text, strlen(text))); p++) {
            found++;
            assert_int_equal(pwrite(fd, "X", 1, at + (p - page)), 1);
        }
    close(fd);
    assert_true(found > 0);
}

static void test_damaged(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    backend_set(&d.backend, false, VERDICT_RETRY);
    disk_rig_start(&d);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(offer_numbered(&d, i, 1, 3000), VERDICT_OK);
    disk_rig_stop(&d, 50);
    assert_int_equal(disk_rig_stored(&d), 10);
    char path[200];
    snprintf(path, sizeof(path), "%s/exporter_backend_x_logs.mdb", d.rig.folder);
    damage(path, "#000003#");
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_start(&d);
    disk_rig_stop(&d, 60000);
    assert_int_equal(d.backend.n, 9);
    assert_int_equal(disk_counter(&d, "motel_exporter_damaged_log_records"), 1);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_send_failed_log_records"), 1);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 0);
    disk_rig_done(&d);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* A disk without room: refused, never half taken; room is found again without a new start. */
static void test_disk_full(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, true);
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    limit_files(3 << 20);
    uint32_t taken = 0, refused = 0;
    while (refused < 5 && taken < 900) {
        const enum verdict v = offer_numbered(&d, taken, 1, 50000);
        assert_true(v == VERDICT_OK || v == VERDICT_RETRY);
        taken += v == VERDICT_OK;
        refused += v == VERDICT_RETRY;
    }
    assert_true(taken > 5);
    assert_true(refused == 5);
    backend_set(&d.backend, false, VERDICT_OK);
    assert_soon(backend_count(&d.backend) == taken);
    offer_until_taken(&d, taken, 50000);
    disk_rig_stop(&d, 60000);
    limit_files(RLIM_INFINITY);
    assert_came(&d.backend, taken + 1, true);
    disk_rig_done(&d);
}

static void test_missing_extension(void **state)
{
    (void)state;
    struct disk_rig d;
    struct err e = {0};
    disk_rig_init(&d, true);
    d.queue_settings.storage.id = "nobody";
    assert_null(queue_new(&d.backend.base, &d.settings, SIGNAL_LOGS, &e));
    assert_string_equal(e.path, "sending_queue::storage");
    assert_non_null(strstr(e.text, "no storage client extension found: \"nobody\""));
    disk_rig_done(&d);
}

/* ---- spill ---- */

/* Memory first, then disk; and what comes while something is on disk goes there, too. */
static void test_spill_keeps_the_order(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, false);
    d.queue_settings.queue_size = 4;
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    assert_false(queue_durable(d.queue));
    offer_each(&d, 0, 40);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 36);
    assert_int_equal(disk_gauge(&d, "otelcol_exporter_queue_size"), 4);
    backend_set(&d.backend, false, VERDICT_OK);
    assert_soon(backend_count(&d.backend) == 40);
    assert_soon(disk_gauge(&d, "motel_exporter_disk_records") == 0);
    offer_each(&d, 40, 43);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 43, true);
    disk_rig_done(&d);
}

/* At the stop memory is written, too, and is older than what was spilled before. */
static void test_spill_at_the_stop(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, false);
    d.queue_settings.queue_size = 4;
    backend_set(&d.backend, false, VERDICT_RETRY);
    disk_rig_start(&d);
    offer_each(&d, 0, 20);
    disk_rig_stop(&d, 50);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_send_failed_log_records"), 0);
    comes_after_restart(&d, 0);
}

/* An attempt that hangs at the end of the time is kept with the others. */
static void test_spill_of_what_is_under_way(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, false);
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    offer_each(&d, 0, 3);
    assert_soon(backend_inside(&d.backend) == 1);
    disk_rig_stop(&d, 50);
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_start(&d);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 3, true);
    disk_rig_done(&d);
}

/* The disk is full: memory takes what it has room for, the rest is refused. */
static void test_spill_disk_full(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, false);
    d.queue_settings.queue_size = 2;
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    limit_files(2 << 20);
    uint32_t taken = 0, refused = 0;
    while (refused < 3 && taken < 900) {
        const enum verdict v = offer_numbered(&d, taken, 1, 50000);
        taken += v == VERDICT_OK;
        refused += v == VERDICT_RETRY;
    }
    assert_true(taken > 5);
    assert_int_equal(refused, 3);
    backend_set(&d.backend, false, VERDICT_OK);
    assert_soon(backend_count(&d.backend) == taken);
    offer_until_taken(&d, taken, 50000);
    disk_rig_stop(&d, 60000);
    limit_files(RLIM_INFINITY);
    assert_came(&d.backend, taken + 1, true);
    disk_rig_done(&d);
}

/* At the stop with a full disk what is left is counted as lost. */
static void test_stop_with_a_full_disk(void **state)
{
    (void)state;
    struct disk_rig d;
    disk_rig_init(&d, false);
    backend_set(&d.backend, false, VERDICT_RETRY);
    disk_rig_start(&d);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(offer_numbered(&d, i, 1, 50000), VERDICT_OK);
    limit_files(2 << 20);
    disk_rig_stop(&d, 50);
    limit_files(RLIM_INFINITY);
    const int64_t lost = disk_counter(&d, "otelcol_exporter_send_failed_log_records");
    assert_in_range(lost, 1, 99);
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_start(&d);
    disk_rig_stop(&d, 60000);
    assert_int_equal((int64_t)d.backend.n + lost, 100);
    disk_rig_done(&d);
}

/* ---- all at once ---- */

#define OFFERERS 4
#define OFFERS 200

struct offerer {
    struct disk_rig *rig;
    uint32_t first, ok;
};

static void *offer_many(void *arg)
{
    struct offerer *o = arg;
    for (uint32_t i = 0; i < OFFERS; i++) {
        enum verdict v = VERDICT_RETRY;
        while (v == VERDICT_RETRY) /* as a client does */
            v = offer_numbered(o->rig, o->first + i, 1, 10);
        o->ok += v == VERDICT_OK;
    }
    return NULL;
}

static void run_offerers(struct disk_rig *d)
{
    pthread_t threads[OFFERERS];
    struct offerer offerers[OFFERERS];
    disk_rig_start(d);
    for (uint32_t i = 0; i < OFFERERS; i++) {
        offerers[i] = (struct offerer){.rig = d, .first = i * OFFERS};
        pthread_create(&threads[i], NULL, offer_many, &offerers[i]);
    }
    for (unsigned i = 0; i < OFFERERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(offerers[i].ok, OFFERS);
    }
    disk_rig_stop(d, 60000);
    assert_came(&d->backend, OFFERERS * OFFERS, false);
    assert_int_equal(disk_gauge(d, "motel_exporter_disk_records"), 0);
    assert_int_equal(disk_gauge(d, "otelcol_exporter_queue_size"), 0);
}

static void test_many_threads(void **state)
{
    (void)state;
    static const struct {
        bool storage, block, wait, batch;
        int64_t consumers, size;
    } cases[] = {
        {true, false, false, false, 4, 1000}, {true, true, false, false, 2, 3},
        {true, true, true, false, 2, 3},      {true, false, false, true, 4, 1000},
        {true, true, true, true, 2, 10},      {false, false, false, false, 4, 3},
        {false, false, true, false, 2, 3},    {false, false, false, true, 3, 5},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct disk_rig d;
        disk_rig_init(&d, cases[i].storage);
        d.batch = (struct queue_batch){.flush_timeout_ns = 5 * NS_PER_MS,
                                       .min_size = 20,
                                       .max_size = 25,
                                       .sizer = SIZER_ITEMS,
                                       .sizer_given = CFG_GIVEN};
        d.queue_settings.num_consumers = cases[i].consumers;
        d.queue_settings.queue_size = cases[i].size;
        d.queue_settings.block_on_overflow = cases[i].block;
        d.queue_settings.wait_for_result = cases[i].wait;
        d.queue_settings.batch = cases[i].batch ? &d.batch : NULL;
        run_offerers(&d);
        disk_rig_done(&d);
    }
}

int main(void)
{
    log_configure(&(struct log_options){.level = getenv("QLOG") ? LOG_INFO : LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sends_and_deletes),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_stop_right_after_offers),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_given_up_is_deleted),
        cmocka_unit_test(test_block_on_overflow),
        cmocka_unit_test(test_wait_for_result),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_reload_undone),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_missing_extension),
        cmocka_unit_test(test_spill_keeps_the_order),
        cmocka_unit_test(test_spill_at_the_stop),
        cmocka_unit_test(test_spill_of_what_is_under_way),
        cmocka_unit_test(test_spill_disk_full),
        cmocka_unit_test(test_stop_with_a_full_disk),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
