/* Scrapes that the pipeline does not take at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

#include "receivers/prometheus/outbox.h"

#define ID "prometheus"
#define LATER (UINT64_MAX - 1) /* whatever the pause */

struct world {
    struct motel_settings settings;
    struct component owner;
    struct sink sink;
    struct prom_outbox box;
    struct receiver_metrics metrics;
};

static void wake(void *ctx)
{
    (void)ctx;
}

static void open_world(struct world *w)
{
    static const struct component_type type = {.kind = KIND_RECEIVER, .name = ID};
    memset(w, 0, sizeof(*w));
    w->owner = (struct component){.type = &type, .id = ID, .host = host_new(&w->settings)};
    w->owner.logger.id = ID;
    w->sink.base = (struct component){.type = &sink_type, .id = "sink"};
    pthread_mutex_init(&w->sink.lock, NULL);
    cond_init_monotonic(&w->sink.offered);
    w->owner.next[SIGNAL_METRICS] = fanout_new(1);
    fanout_set(w->owner.next[SIGNAL_METRICS], 0, &w->sink.base, NULL, 1);
    prom_outbox_init(&w->box, &w->owner, wake, NULL);
    receiver_metrics_get(w->owner.host, ID, "http", SIGNAL_METRICS, &w->metrics);
}

static void close_world(struct world *w)
{
    prom_outbox_done(&w->box);
    fanout_free(w->owner.next[SIGNAL_METRICS]);
    for (unsigned i = 0; i < w->sink.ntaken; i++)
        batch_unref(w->sink.taken[i]);
    host_free(w->owner.host);
}

/* What becomes of a scrape that is refused `refusals` times and then answered `last`. */
static void test_answers(void **state)
{
    (void)state;
    static const struct {
        unsigned refusals;
        bool also_lost;
        enum verdict last;
        bool accepted;
    } cases[] = {
        {0, false, VERDICT_OK, true},      {2, false, VERDICT_OK, true},
        {1, true, VERDICT_OK, false},      {2, true, VERDICT_OK, false},
        {0, false, VERDICT_REJECT, false}, {1, false, VERDICT_REJECT, false},
        {1, true, VERDICT_REJECT, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        open_world(&w);
        w.sink.refusals = cases[i].refusals;
        w.sink.also_lost = cases[i].also_lost;
        w.sink.verdict = cases[i].last;
        struct batch *b = rig_all_fields(SIGNAL_METRICS);
        const unsigned points = b->records;
        prom_outbox_send(&w.box, b);
        assert_int_equal(prom_outbox_empty(&w.box), cases[i].refusals == 0);
        assert_int_equal(prom_outbox_offer(&w.box, LATER), UINT64_MAX);
        assert_true(prom_outbox_empty(&w.box));
        assert_int_equal(w.sink.offers, cases[i].refusals + 1);
        assert_int_equal(metric_value(w.metrics.accepted), cases[i].accepted ? points : 0);
        assert_int_equal(metric_value(w.metrics.refused), cases[i].accepted ? 0 : points);
        close_world(&w);
    }
}

/* One that is refused until the end is dropped and counted. */
static void test_until_the_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.sink.verdict = VERDICT_RETRY;
    struct batch *b = rig_all_fields(SIGNAL_METRICS);
    const unsigned points = b->records;
    prom_outbox_send(&w.box, b);
    assert_false(prom_outbox_empty(&w.box));
    prom_outbox_done(&w.box);
    assert_int_equal(metric_value(w.metrics.refused), points);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_until_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
