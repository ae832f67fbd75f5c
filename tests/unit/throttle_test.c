/* Answers that are held back: until there is room, until the time is up, until the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_pipeline.h"

#include "agent/pipeline/throttle.h"

static void test_release(void **state)
{
    (void)state;
    struct host *h = host_new(NULL);
    struct throttle *t = throttle_new(h);
    struct fake_ack acks[3];
    for (int i = 0; i < 3; i++)
        fake_ack_init(&acks[i]);
    throttle_release(t);
    assert_true(throttle_wait(t, &acks[0].ack));
    assert_true(throttle_wait(t, &acks[1].ack));
    assert_int_equal(fake_ack_answers(&acks[0]), 0);
    throttle_release(t);
    assert_true(throttle_wait(t, &acks[2].ack));
    for (int i = 0; i < 3; i++)
        assert_int_equal(fake_ack_answers(&acks[i]), i < 2);
    throttle_free(t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fake_ack_answers(&acks[i]), 1);
        assert_int_equal(acks[i].verdict, VERDICT_OK);
    }
    host_free(h);
}

static void test_time(void **state)
{
    (void)state;
    struct host *h = host_new(NULL);
    struct throttle *t = throttle_new(h);
    struct fake_ack a, b;
    fake_ack_init(&a);
    fake_ack_init(&b);
    uint64_t start = clock_now_ns();
    throttle_wait(t, &a.ack);
    throttle_wait(t, &b.ack);
    assert_int_equal(fake_ack_verdict(&a, VERDICT_PENDING), VERDICT_OK);
    assert_int_equal(fake_ack_verdict(&b, VERDICT_PENDING), VERDICT_OK);
    uint64_t took = clock_now_ns() - start;
    assert_true(took >= THROTTLE_MAX_NS && took < THROTTLE_MAX_NS + 5 * NS_PER_S);
    throttle_free(t);
    host_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_release), cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
