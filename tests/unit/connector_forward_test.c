/* The forward connector: the same batch, the same answer, of every signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

extern const struct component_type connector_forward;

static void test_passes_on(void **state)
{
    (void)state;
    for (enum signal s = 0; s < SIGNAL_COUNT; s++) {
        struct rig r = {0};
        rig_make(&r, &connector_forward, "forward", s, 2, "");
        struct batch *b = fake_batch(s, 3);
        assert_int_equal(rig_offer(&r, batch_ref(b), NULL), VERDICT_OK);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(r.sinks[i].ntaken, 1);
            assert_ptr_equal(r.sinks[i].taken[0], b);
        }
        batch_unref(b);
        rig_done(&r);
    }
}

static void test_answer(void **state)
{
    (void)state;
    struct rig r = {0};
    struct fake_ack ack;
    fake_ack_init(&ack);
    rig_make(&r, &connector_forward, "forward", SIGNAL_LOGS, 2, "");
    sink_set(&r.sinks[1], VERDICT_RETRY);
    assert_int_equal(r.c->type->consume(r.c, fake_batch(SIGNAL_LOGS, 1), &ack.ack), VERDICT_RETRY);
    assert_int_equal(ack.ack.owed, 2); /* only the one that refused is asked again */
    sink_set(&r.sinks[1], VERDICT_REJECT);
    assert_int_equal(r.c->type->consume(r.c, fake_batch(SIGNAL_LOGS, 1), &ack.ack), VERDICT_REJECT);
    assert_int_equal(r.sinks[0].ntaken, 1);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes_on),
                                       cmocka_unit_test(test_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
