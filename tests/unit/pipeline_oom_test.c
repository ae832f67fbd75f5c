/* Every allocation of host, graph, fan-out and queue fails once: an error or a "not now", no loss,
 * no leak, no crash. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/pipeline/queue.h"
#include "fake_pipeline.h"
#include "tests/unit/oom.h"

/* ---- components ---- */

struct fake {
    struct component base;
    atomic_uint records;
};

static int fake_create(const struct component_type *type, const struct component_args *args,
                       struct component **ret, struct err *reterr)
{
    struct fake *f = calloc(1, sizeof(*f));
    if (!f)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&f->base, type, args);
    *ret = &f->base;
    return 0;
}

static void fake_destroy(struct component *c)
{
    free(c);
}

static enum verdict fake_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct fake *f = container_of(c, struct fake, base);
    if (c->type->kind == KIND_PROCESSOR)
        return component_emit(c, b, ack);
    atomic_fetch_add(&f->records, b->records);
    batch_unref(b);
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}

static enum verdict fake_send(struct component *c, const struct batch *b, uint64_t deadline_ns,
                              struct outcome *out)
{
    (void)deadline_ns, (void)out;
    atomic_fetch_add(&container_of(c, struct fake, base)->records, b->records);
    return VERDICT_OK;
}

static struct queue_settings queue_settings = {.num_consumers = 1, .queue_size = 4};
static const struct exporter_settings exporter_settings = {.queue = &queue_settings};

static const struct exporter_settings *fake_settings(const void *config)
{
    (void)config;
    return &exporter_settings;
}

static int create_receiver(const struct component_args *, struct component **, struct err *);
static int create_processor(const struct component_args *, struct component **, struct err *);
static int create_exporter(const struct component_args *, struct component **, struct err *);
static int create_queued(const struct component_args *, struct component **, struct err *);

static const struct component_type receiver = {.kind = KIND_RECEIVER,
                                               .name = "r",
                                               .emits = SIGNALS_ALL,
                                               .create = create_receiver,
                                               .destroy = fake_destroy};
static const struct component_type processor = {.kind = KIND_PROCESSOR,
                                                .name = "p",
                                                .accepts = SIGNALS_ALL,
                                                .create = create_processor,
                                                .destroy = fake_destroy,
                                                .consume = fake_consume};
static const struct component_type exporter = {.kind = KIND_EXPORTER,
                                               .name = "e",
                                               .accepts = SIGNALS_ALL,
                                               .create = create_exporter,
                                               .destroy = fake_destroy,
                                               .consume = fake_consume};
static const struct component_type queued = {.kind = KIND_EXPORTER,
                                             .name = "q",
                                             .accepts = SIGNALS_ALL,
                                             .create = create_queued,
                                             .destroy = fake_destroy,
                                             .send = fake_send,
                                             .settings = fake_settings};

static int create_receiver(const struct component_args *a, struct component **ret, struct err *e)
{
    return fake_create(&receiver, a, ret, e);
}
static int create_processor(const struct component_args *a, struct component **ret, struct err *e)
{
    return fake_create(&processor, a, ret, e);
}
static int create_exporter(const struct component_args *a, struct component **ret, struct err *e)
{
    return fake_create(&exporter, a, ret, e);
}
static int create_queued(const struct component_args *a, struct component **ret, struct err *e)
{
    return fake_create(&queued, a, ret, e);
}

/* ---- tests ---- */

static void test_host(void **state)
{
    (void)state;
    struct host *h = NULL;
    unsigned n = 0;
    while (!h) {
        fail_in = ++n;
        h = host_new(NULL);
        fail_in = 0;
    }
    assert_true(n > 3);
    for (unsigned i = 1; i < 4; i++) {
        fail_in = i;
        struct metric *m = metric_counter(h, "m", "help", "");
        fail_in = 0;
        metric_add(m, 1); /* whatever it is, it can be counted on */
    }
    fail_in = 1;
    assert_null(timer_new(h, NULL, NULL));
    fail_in = 0;
    host_free(h);
}

static void test_fanout(void **state)
{
    (void)state;
    struct fake leaves[3] = {
        {.base.type = &exporter}, {.base.type = &exporter}, {.base.type = &exporter}};
    struct fanout *f = fanout_new(3);
    for (unsigned i = 0; i < 3; i++)
        fanout_set(f, i, &leaves[i].base, NULL, 1u << i);
    struct batch *b = fake_batch(SIGNAL_TRACES, 1);
    struct ack ack = {.owed = ACK_ALL};
    fail_in = 1;
    assert_int_equal(fanout_offer(f, batch_ref(b), &ack), VERDICT_RETRY);
    assert_int_equal(fail_in, 0);
    assert_int_equal(ack.owed, ACK_ALL); /* nobody was asked */
    assert_int_equal(fanout_offer(f, b, &ack), VERDICT_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&leaves[i].records), 1);
    fanout_free(f);
}

/* What is refused for want of memory can be offered again; what was taken is sent, once. */
static void test_queue(void **state)
{
    (void)state;
    struct host *h = host_new(NULL);
    unsigned taken = 0;
    for (unsigned n = 1; n < 12; n++) {
        struct fake sink = {.base = {.type = &queued, .id = "q", .host = h}};
        fail_in = n;
        struct queue *q = queue_new(&sink.base, &exporter_settings, SIGNAL_LOGS, NULL);
        if (!q)
            continue;
        for (unsigned i = 0; i < 3; i++) {
            struct ack ack = {.owed = ACK_ALL};
            unsigned left = fail_in;
            fail_in = 0; /* the batch itself */
            struct batch *b = fake_batch(SIGNAL_LOGS, 1);
            fail_in = left;
            taken += queue_offer(q, b, &ack) == VERDICT_OK;
        }
        fail_in = 0;
        queue_stop(q, clock_now_ns() + 10 * NS_PER_S);
        assert_true(atomic_load(&sink.records) <= taken);
        taken -= atomic_load(&sink.records);
        assert_int_equal(taken, 0);
        queue_free(q);
    }
    host_free(h);
}

static void test_graph(void **state)
{
    (void)state;
    struct component_settings r = {.id = "r", .type = &receiver},
                              p = {.id = "p", .type = &processor};
    struct component_settings e = {.id = "e", .type = &exporter}, q = {.id = "q", .type = &queued};
    const struct component_settings *receivers[] = {&r}, *processors[] = {&p},
                                    *exporters[] = {&e, &q};
    struct pipeline_settings pipelines[2] = {
        {"traces", SIGNAL_TRACES, {0}, 1, 1, 2, receivers, processors, exporters},
        {"logs", SIGNAL_LOGS, {0}, 1, 0, 2, receivers, processors, exporters}};
    struct service_settings s = {.pipelines = pipelines, .npipelines = 2};
    struct host *h = host_new(NULL);
    unsigned n = 0, built = 0;
    for (bool failed = true; failed; built += failed ? 0 : 1) {
        struct cfg_errors errs = {0};
        struct graph *g = NULL;
        fail_in = ++n;
        int code = graph_build(h, &s, &errs, &g);
        failed = fail_in == 0;
        fail_in = 0;
        assert_int_equal(code, g ? 0 : -EINVAL); /* a counter less is no reason not to run */
        graph_free(g);
        cfg_errors_done(&errs);
    }
    assert_int_equal(built, 1);
    assert_true(n > 15);
    host_free(h);
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_fanout),
                                       cmocka_unit_test(test_queue), cmocka_unit_test(test_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
