/* The exporter helper with a backend that answers as it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "queue_rig.h"

/* ---- queue ---- */

static void test_sends(void **state)
{
    struct fixture *f = *state;
    start(f);
    for (unsigned i = 0; i < 4; i++)
        offer_ok(f, 10);
    queue_stop(f->queue, clock_now_ns() + 10 * NS_PER_S);
    assert_int_equal(SINK(f, records), 40);
    assert_int_equal(metric_value(f->metrics.sent), 40);
    assert_int_equal(metric_value(f->metrics.send_failed), 0);
    assert_int_equal(gauge(f, "otelcol_exporter_queue_size"), 0);
    assert_int_equal(gauge(f, "otelcol_exporter_queue_capacity"), 4);
    assert_int_equal(gauge(f, "otelcol_exporter_in_flight_requests"), 0);
}

static void test_full_counts_what_is_under_way(void **state)
{
    struct fixture *f = *state;
    struct fake_ack ack;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    for (unsigned i = 0; i < 4; i++)
        offer_ok(f, 1);
    sink_wait(&f->sink, &f->sink.inside, 2);
    assert_int_equal(offer(f, 7, &ack), VERDICT_RETRY);
    assert_string_equal(ack.ack.now.message, "sending queue is full");
    assert_int_equal(ack.ack.owed, ACK_ALL);
    assert_int_equal(metric_value(f->metrics.enqueue_failed), 7);
    assert_int_equal(gauge(f, "otelcol_exporter_queue_size"), 4);
    assert_int_equal(gauge(f, "otelcol_exporter_in_flight_requests"), 2);
    sink_set(&f->sink, false, VERDICT_OK);
    assert_soon(metric_value(f->metrics.sent) == 4);
    assert_soon(gauge(f, "otelcol_exporter_queue_size") == 0);
    offer_ok(f, 1);
    assert_int_equal(SINK(f, most_inside), 2);
}

static uint32_t pause_after(struct fixture *f, size_t bytes)
{
    struct fake_ack ack;
    struct buf *b = buf_new(0);
    assert_int_equal(buf_reserve(b, bytes), 0);
    memset(b->data, 'x', bytes);
    buf_commit(b, bytes);
    fake_ack_init(&ack);
    assert_int_equal(queue_offer(f->queue, batch_new(SIGNAL_TRACES, &b, 1, 1), &ack.ack),
                     VERDICT_OK);
    return ack.ack.now.pause_ms;
}

/* Who sends is asked to pause when much waits for a backend that takes data, and only then. */
static void test_crowded(void **state)
{
    struct fixture *f = *state;
    const size_t much = (size_t)9 << 20;
    uint32_t asked = 0;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    assert_int_equal(pause_after(f, much), 0); /* it took nothing so far */
    sink_set(&f->sink, false, VERDICT_OK);
    /* a moment ago it did; where that is long ago for want of a processor, once more */
    for (int64_t sent = 1; sent < 100 && !asked; sent += 2) {
        assert_soon(metric_value(f->metrics.sent) == sent);
        assert_soon(gauge(f, "otelcol_exporter_queue_size") == 0);
        assert_int_equal(pause_after(f, 100), 0); /* little waits */
        assert_soon(metric_value(f->metrics.sent) == sent + 1);
        assert_soon(gauge(f, "otelcol_exporter_queue_size") == 0);
        sink_set(&f->sink, true, VERDICT_OK);
        asked = pause_after(f, much);
        sink_set(&f->sink, false, VERDICT_OK);
    }
    assert_true(asked > 0 && asked <= 250);
}

/* sizer, room, sizes offered one after the other, how many of them get in */
static void test_sizers(void **state)
{
    struct fixture *f = *state;
    const struct {
        int sizer;
        int64_t room;
        uint32_t records[4];
        unsigned fit;
    } cases[] = {
        {SIZER_REQUESTS, 3, {500, 500, 500, 500}, 3},
        {SIZER_ITEMS, 10, {4, 6, 1, 1}, 2},
        {SIZER_ITEMS, 10, {4, 5, 1, 1}, 3},
        {SIZER_BYTES, 3, {9, 9, 9, 9}, 3},   /* each is one byte long */
        {SIZER_ITEMS, 10, {11, 1, 1, 1}, 1}, /* too large for the queue: alone it may pass */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        f->queue_settings.sizer = cases[i].sizer;
        f->queue_settings.queue_size = cases[i].room;
        sink_set(&f->sink, true, VERDICT_OK);
        f->sink.stopped = false;
        start(f);
        for (unsigned k = 0; k < 4; k++) {
            struct fake_ack ack;
            enum verdict v = offer(f, cases[i].records[k], &ack);
            assert_int_equal(v, k < cases[i].fit ? VERDICT_OK : VERDICT_RETRY);
        }
        sink_set(&f->sink, false, VERDICT_OK);
        queue_stop(f->queue, clock_now_ns() + 10 * NS_PER_S);
        f->queue = queue_free(f->queue);
    }
}

static void test_block_on_overflow(void **state)
{
    struct fixture *f = *state;
    struct fake_ack acks[6];
    f->queue_settings =
        (struct queue_settings){.num_consumers = 1, .queue_size = 1, .block_on_overflow = true};
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    offer_ok(f, 1);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(offer(f, 1, &acks[i]), VERDICT_PENDING);
    sink_wait(&f->sink, &f->sink.inside, 1);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(fake_ack_answers(&acks[i]), 0);
    sink_set(&f->sink, false, VERDICT_OK);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(fake_ack_verdict(&acks[i], VERDICT_PENDING), VERDICT_OK);
    assert_soon(SINK(f, records) == 7);
    assert_int_equal(metric_value(f->metrics.enqueue_failed), 0);
}

/* What gets room only because the one before it was given up must not be acknowledged. */
static void block_on_overflow_at_stop(struct fixture *f, bool inside)
{
    struct fake_ack ack;
    f->queue_settings =
        (struct queue_settings){.num_consumers = 1, .queue_size = 1, .block_on_overflow = true};
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    offer_ok(f, 1);
    assert_int_equal(offer(f, 5, &ack), VERDICT_PENDING);
    if (inside)
        sink_wait(&f->sink, &f->sink.inside, 1);
    queue_stop(f->queue, clock_now_ns());
    assert_int_equal(fake_ack_verdict(&ack, VERDICT_PENDING), VERDICT_RETRY);
    assert_int_equal(metric_value(f->metrics.send_failed), 1);
    assert_int_equal(metric_value(f->metrics.enqueue_failed), 5);
}

static void test_block_on_overflow_at_stop(void **state)
{
    block_on_overflow_at_stop(*state, false);
}

static void test_block_on_overflow_at_stop_under_way(void **state)
{
    block_on_overflow_at_stop(*state, true);
}

static void test_wait_for_result(void **state)
{
    struct fixture *f = *state;
    struct fake_ack good, bad;
    f->queue_settings.wait_for_result = true;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    assert_int_equal(offer(f, 1, &good), VERDICT_PENDING);
    sink_wait(&f->sink, &f->sink.inside, 1);
    assert_int_equal(fake_ack_answers(&good), 0);
    sink_set(&f->sink, false, VERDICT_OK);
    assert_int_equal(fake_ack_verdict(&good, VERDICT_PENDING), VERDICT_OK);
    sink_set(&f->sink, false, VERDICT_REJECT);
    f->sink.outcome = (struct outcome){.status = 3, .message = "no"};
    assert_int_equal(fake_ack_verdict(&bad, offer(f, 1, &bad)), VERDICT_REJECT);
    assert_int_equal(bad.outcome.status, 3);
    assert_string_equal(bad.outcome.message, "not retryable error: Permanent error: no");
}

/* ---- without a queue the backend's answer is the client's ---- */

static void test_unqueued_answers(void **state)
{
    struct fixture *f = *state;
    const struct {
        bool retry;
        enum verdict verdict;
        struct outcome from, to;
    } cases[] = {
        {false, VERDICT_OK, {.rejected = 2, .message = "two"}, {.message = ""}},
        {false,
         VERDICT_RETRY,
         {.status = 8, .retry_after_ms = 3000, .message = "slow"},
         {.status = 8, .retry_after_ms = 3000, .message = "slow"}},
        {false,
         VERDICT_RETRY,
         {.status = 8, .retry_after_ms = 3000, .retry_after_own = true, .message = "slow"},
         {.status = 8, .message = "slow"}},
        {false,
         VERDICT_REJECT,
         {.status = 16, .message = "who"},
         {.status = 16, .message = "Permanent error: who"}},
        {true,
         VERDICT_REJECT,
         {.status = 3, .message = "what"},
         {.status = 3, .message = "not retryable error: Permanent error: what"}},
        {true,
         VERDICT_RETRY,
         {.status = 14, .message = "gone"},
         {.status = 14, .message = "no more retries left: gone"}},
    };
    f->settings.queue = NULL;
    f->settings.retry.max_elapsed_time_ns = MS(1); /* no second attempt */
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fake_ack ack;
        f->settings.retry.enabled = cases[i].retry;
        f->sink.verdict = cases[i].verdict;
        f->sink.outcome = cases[i].from;
        start(f);
        enum verdict v = offer(f, 1, &ack);
        assert_int_equal(v, VERDICT_PENDING);
        assert_int_equal(fake_ack_verdict(&ack, v), cases[i].verdict);
        assert_int_equal(ack.outcome.status, cases[i].to.status);
        assert_int_equal(ack.outcome.rejected, cases[i].to.rejected);
        assert_int_equal(ack.outcome.retry_after_ms, cases[i].to.retry_after_ms);
        assert_string_equal(ack.outcome.message, cases[i].to.message);
        assert_int_equal(ack.outcome.counted, cases[i].verdict == VERDICT_REJECT);
        f->queue = queue_free(f->queue);
    }
    assert_int_equal(metric_value(f->metrics.sent), 1);
    assert_int_equal(metric_value(f->metrics.send_failed), 5);
    assert_int_equal(metric_value(f->metrics.rejected), 2);
    assert_int_equal(metric_value(f->metrics.returned), 3);
}

static void test_unqueued_requests_do_not_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    struct fake_ack acks[20];
    f->settings.queue = NULL;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(offer(f, 1, &acks[i]), VERDICT_PENDING);
    sink_wait(&f->sink, &f->sink.inside, 20);
    sink_set(&f->sink, false, VERDICT_OK);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(fake_ack_verdict(&acks[i], VERDICT_PENDING), VERDICT_OK);
}

/* ---- retry ---- */

static void test_retries_until_taken(void **state)
{
    struct fixture *f = *state;
    f->settings.retry.initial_interval_ns = f->settings.retry.max_interval_ns = MS(2);
    start(f);
    sink_set(&f->sink, false, VERDICT_RETRY);
    offer_ok(f, 5);
    sink_wait(&f->sink, &f->sink.passed, 4);
    assert_int_equal(metric_value(f->metrics.send_failed), 0);
    assert_int_equal(gauge(f, "otelcol_exporter_in_flight_requests"), 1);
    sink_set(&f->sink, false, VERDICT_OK);
    assert_soon(metric_value(f->metrics.sent) == 5);
    assert_int_equal(SINK(f, records), 5);
}

static void test_gives_up(void **state)
{
    struct fixture *f = *state;
    f->settings.retry.initial_interval_ns = f->settings.retry.max_interval_ns = MS(1);
    f->settings.retry.max_elapsed_time_ns = MS(20);
    start(f);
    sink_set(&f->sink, false, VERDICT_RETRY);
    offer_ok(f, 5);
    assert_soon(metric_value(f->metrics.send_failed) == 5);
    assert_true(SINK(f, calls) > 1);
    assert_soon(mem_used() == f->mem_before);
}

static void test_permanent_failure(void **state)
{
    struct fixture *f = *state;
    start(f);
    sink_set(&f->sink, false, VERDICT_REJECT);
    offer_ok(f, 3);
    assert_soon(metric_value(f->metrics.send_failed) == 3);
    assert_int_equal(SINK(f, calls), 1);
    assert_soon(mem_used() == f->mem_before);
}

static void test_attempt_deadline(void **state)
{
    struct fixture *f = *state;
    f->settings.timeout_ns = HOUR_NS;
    start(f);
    uint64_t before = clock_now_ns();
    offer_ok(f, 1);
    sink_wait(&f->sink, &f->sink.passed, 1);
    assert_in_range(SINK(f, deadline_ns), before + (uint64_t)HOUR_NS,
                    clock_now_ns() + (uint64_t)HOUR_NS);
}

/* ---- stop ---- */

static void test_stop_cuts_pauses_and_sends_all(void **state)
{
    struct fixture *f = *state;
    start(f);
    sink_set(&f->sink, false, VERDICT_RETRY);
    for (unsigned i = 0; i < 4; i++)
        offer_ok(f, 1);
    sink_wait(&f->sink, &f->sink.passed, 2); /* both workers pause for an hour */
    sink_set(&f->sink, false, VERDICT_OK);
    queue_stop(f->queue, clock_now_ns() + 20 * NS_PER_S);
    assert_int_equal(SINK(f, records), 4);
    assert_int_equal(metric_value(f->metrics.sent), 4);
}

static void test_stop_tries_again_until_the_backend_is_there(void **state)
{
    struct fixture *f = *state;
    f->queue_settings.queue_size = 10;
    start(f);
    sink_set(&f->sink, false, VERDICT_RETRY);
    for (unsigned i = 0; i < 4; i++)
        offer_ok(f, 1);
    queue_drain(f->queue, clock_now_ns() + 60 * NS_PER_S);
    sink_wait(&f->sink, &f->sink.passed, 6);
    offer_ok(f, 3); /* what batches flush while stopping */
    sink_set(&f->sink, false, VERDICT_OK);
    queue_stop(f->queue, clock_now_ns() + 60 * NS_PER_S);
    assert_int_equal(SINK(f, records), 7);
}

/* One request that is never taken does not keep the others from being sent. */
static void test_stop_gives_all_a_try(void **state)
{
    struct fixture *f = *state;
    f->queue_settings.num_consumers = 1;
    f->sink.poison = 99;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    offer_ok(f, 99);
    for (unsigned i = 0; i < 3; i++)
        offer_ok(f, 1);
    queue_drain(f->queue, clock_now_ns() + 60 * NS_PER_S);
    sink_set(&f->sink, false, VERDICT_OK);
    assert_soon(SINK(f, records) == 3);
    queue_stop(f->queue, clock_now_ns());
    assert_int_equal(metric_value(f->metrics.sent), 3);
    assert_int_equal(metric_value(f->metrics.send_failed), 99);
}

static void test_stop_with_a_dead_backend_ends(void **state)
{
    struct fixture *f = *state;
    f->queue_settings.queue_size = 100;
    start(f);
    sink_set(&f->sink, false, VERDICT_RETRY);
    for (unsigned i = 0; i < 50; i++)
        offer_ok(f, 2);
    uint64_t before = clock_now_ns();
    queue_stop(f->queue, before + 300 * NS_PER_MS);
    uint64_t took_ns = clock_now_ns() - before;
    assert_in_range(took_ns, 290 * NS_PER_MS, 10 * NS_PER_S);
    assert_int_equal(metric_value(f->metrics.send_failed), 100);
    assert_int_equal(gauge(f, "otelcol_exporter_queue_size"), 0);
    assert_int_equal(mem_used(), f->mem_before);
}

static void test_stop_without_retry_tries_once(void **state)
{
    struct fixture *f = *state;
    f->settings.retry.enabled = false;
    start(f);
    sink_set(&f->sink, true, VERDICT_RETRY);
    for (unsigned i = 0; i < 4; i++)
        offer_ok(f, 1);
    sink_set(&f->sink, false, VERDICT_RETRY);
    queue_stop(f->queue, clock_now_ns() + 60 * NS_PER_S);
    assert_int_equal(SINK(f, calls), 4);
    assert_int_equal(metric_value(f->metrics.send_failed), 4);
}

/* An attempt that hangs is interrupted by the component's stop() when the time is over. */
static void test_stop_interrupts(void **state)
{
    struct fixture *f = *state;
    struct fake_ack ack;
    f->settings.queue = NULL;
    start(f);
    sink_set(&f->sink, true, VERDICT_OK);
    assert_int_equal(offer(f, 1, &ack), VERDICT_PENDING);
    sink_wait(&f->sink, &f->sink.inside, 1);
    queue_stop(f->queue, clock_now_ns() + 50 * NS_PER_MS);
    assert_true(SINK(f, stopped));
    assert_int_equal(fake_ack_verdict(&ack, VERDICT_PENDING), VERDICT_RETRY);
    assert_int_equal(metric_value(f->metrics.send_failed), 1);
}

static void test_stop_twice_then_refuses(void **state)
{
    struct fixture *f = *state;
    struct fake_ack ack;
    start(f);
    queue_stop(f->queue, clock_now_ns() + NS_PER_S);
    queue_stop(f->queue, clock_now_ns() + NS_PER_S);
    assert_int_equal(offer(f, 1, &ack), VERDICT_RETRY);
    assert_int_equal(SINK(f, calls), 0);
}

/* ---- all at once ---- */

#define OFFERERS 4
#define OFFERS 300

struct offerer {
    struct fixture *fixture;
    unsigned ok, refused;
};

static void *offer_many(void *arg)
{
    struct offerer *o = arg;
    for (unsigned i = 0; i < OFFERS; i++) {
        struct fake_ack ack;
        enum verdict v = fake_ack_verdict(&ack, offer(o->fixture, 1, &ack));
        o->ok += v == VERDICT_OK;
        o->refused += v == VERDICT_RETRY;
    }
    return NULL;
}

/* Whatever is answered OK is sent, once. */
static void run_offerers(struct fixture *f)
{
    pthread_t threads[OFFERERS];
    struct offerer offerers[OFFERERS];
    unsigned ok = 0, refused = 0;
    start(f);
    for (unsigned i = 0; i < OFFERERS; i++) {
        offerers[i] = (struct offerer){.fixture = f};
        pthread_create(&threads[i], NULL, offer_many, &offerers[i]);
    }
    for (unsigned i = 0; i < OFFERERS; i++) {
        pthread_join(threads[i], NULL);
        ok += offerers[i].ok;
        refused += offerers[i].refused;
    }
    queue_stop(f->queue, clock_now_ns() + 60 * NS_PER_S);
    assert_int_equal(ok + refused, OFFERERS * OFFERS);
    assert_int_equal(SINK(f, records), ok);
    assert_int_equal(metric_value(f->metrics.sent), ok);
    assert_int_equal(metric_value(f->metrics.enqueue_failed), refused);
}

static void test_many_threads(void **state)
{
    run_offerers(*state);
}

static void test_many_threads_blocking(void **state)
{
    struct fixture *f = *state;
    f->queue_settings.block_on_overflow = true;
    f->queue_settings.queue_size = 2;
    run_offerers(f);
    assert_int_equal(metric_value(f->metrics.enqueue_failed), 0);
}

static void test_many_threads_waiting(void **state)
{
    struct fixture *f = *state;
    f->queue_settings.block_on_overflow = f->queue_settings.wait_for_result = true;
    f->queue_settings.queue_size = 2;
    run_offerers(f);
}

static void test_many_threads_unqueued(void **state)
{
    struct fixture *f = *state;
    f->settings.queue = NULL;
    run_offerers(f);
}

#define QUEUE_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(test_sends),
        QUEUE_TEST(test_full_counts_what_is_under_way),
        QUEUE_TEST(test_crowded),
        QUEUE_TEST(test_sizers),
        QUEUE_TEST(test_block_on_overflow),
        QUEUE_TEST(test_block_on_overflow_at_stop),
        QUEUE_TEST(test_block_on_overflow_at_stop_under_way),
        QUEUE_TEST(test_wait_for_result),
        QUEUE_TEST(test_unqueued_answers),
        QUEUE_TEST(test_unqueued_requests_do_not_wait_for_each_other),
        QUEUE_TEST(test_retries_until_taken),
        QUEUE_TEST(test_gives_up),
        QUEUE_TEST(test_permanent_failure),
        QUEUE_TEST(test_attempt_deadline),
        QUEUE_TEST(test_stop_cuts_pauses_and_sends_all),
        QUEUE_TEST(test_stop_tries_again_until_the_backend_is_there),
        QUEUE_TEST(test_stop_gives_all_a_try),
        QUEUE_TEST(test_stop_with_a_dead_backend_ends),
        QUEUE_TEST(test_stop_without_retry_tries_once),
        QUEUE_TEST(test_stop_interrupts),
        QUEUE_TEST(test_stop_twice_then_refuses),
        QUEUE_TEST(test_many_threads),
        QUEUE_TEST(test_many_threads_blocking),
        QUEUE_TEST(test_many_threads_waiting),
        QUEUE_TEST(test_many_threads_unqueued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
