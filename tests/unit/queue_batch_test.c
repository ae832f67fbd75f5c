/* Batches on the way out of the queue: put together, cut, and what becomes of the requests they are
 * made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "agent/pipeline/queue_parts.h"
#include "disk_rig.h"

#define HOUR_NS (3600 * (int64_t)NS_PER_S)

static void init(struct disk_rig *d, bool use_storage, struct queue_batch limits)
{
    disk_rig_init(d, use_storage);
    d->motel.spill_directory = "";
    host_set_settings(d->rig.host, &d->motel);
    d->batch = limits;
    d->batch.sizer_given = CFG_GIVEN;
    d->queue_settings.batch = &d->batch;
}

/* ---- sizes ---- */

static const struct {
    int sizer;
    int64_t min, max, timeout_ns;
    uint32_t offered[8]; /* records of each request */
    uint32_t sent[8];    /* before the stop */
    uint32_t sent_at_stop[4];
} cases[] = {
    /* one request above the maximum: whole batches at once, the rest when its time is up */
    {SIZER_ITEMS, 10, 10, 5000000, {25}, {10, 10, 5}, {0}},
    {SIZER_ITEMS, 10, 10, HOUR_NS, {25}, {10, 10}, {5}},
    /* put together until there are enough */
    {SIZER_ITEMS, 10, 0, HOUR_NS, {4, 4, 4, 4}, {12}, {4}},
    {SIZER_ITEMS, 10, 10, HOUR_NS, {4, 4, 4, 4, 4}, {10, 10}, {0}},
    {SIZER_ITEMS, 10, 15, HOUR_NS, {9, 9}, {15}, {3}},
    {SIZER_ITEMS, 10, 12, HOUR_NS, {30}, {12, 12}, {6}},
    /* without a minimum every request goes as it comes */
    {SIZER_ITEMS, 0, 0, HOUR_NS, {3, 4, 5}, {3, 4, 5}, {0}},
    {SIZER_ITEMS, 0, 2, HOUR_NS, {3, 4}, {2, 1, 2, 2}, {0}},
    /* each record takes some thirty bytes */
    {SIZER_BYTES, 100, 0, HOUR_NS, {3, 3}, {0}, {6}},
};

static size_t count(const uint32_t *n, size_t max)
{
    size_t i = 0;
    while (i < max && n[i])
        i++;
    return i;
}

static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct disk_rig d;
        uint32_t first = 0;
        init(&d, i % 2,
             (struct queue_batch){.flush_timeout_ns = cases[i].timeout_ns,
                                  .min_size = cases[i].min,
                                  .max_size = cases[i].max,
                                  .sizer = cases[i].sizer});
        if (cases[i].sizer == SIZER_BYTES) /* both requests, but not one of them */
            d.batch.min_size = (int64_t)200;
        disk_rig_start(&d);
        for (const uint32_t *n = cases[i].offered; *n; first += *n++)
            assert_int_equal(offer_numbered(&d, first, *n, 1), VERDICT_OK);
        const size_t before = count(cases[i].sent, 8);
        const size_t after = count(cases[i].sent_at_stop, 4);
        uint32_t sent = 0;
        for (size_t k = 0; k < before; k++)
            sent += cases[i].sent[k];
        if (cases[i].sizer != SIZER_BYTES)
            assert_soon(backend_count(&d.backend) == sent);
        disk_rig_stop(&d, 60000);
        if (cases[i].sizer == SIZER_BYTES)
            assert_true(d.backend.calls <= 2);
        else
            assert_int_equal(d.backend.calls, before + after);
        for (size_t k = 0; k < before; k++)
            assert_int_equal(d.backend.sizes[k], cases[i].sent[k]);
        for (size_t k = 0; k < after && cases[i].sizer != SIZER_BYTES; k++)
            assert_int_equal(d.backend.sizes[before + k], cases[i].sent_at_stop[k]);
        assert_came(&d.backend, first, true);
        disk_rig_done(&d);
    }
}

/* One record above the limit is sent alone, and nothing around it is lost. */
static void test_record_above_the_limit(void **state)
{
    (void)state;
    struct disk_rig d;
    init(&d, true,
         (struct queue_batch){
             .flush_timeout_ns = (int64_t)NS_PER_MS, .max_size = 1000, .sizer = SIZER_BYTES});
    d.queue_settings.sizer = SIZER_BYTES;
    d.queue_settings.queue_size = 10000000;
    disk_rig_start(&d);
    struct batch *parts[4];
    struct buf *all = buf_new(0);
    for (uint32_t i = 0; i < 4; i++) {
        parts[i] = numbered(i, 1, i == 1 ? 5000 : 10);
        buf_append(all, parts[i]->segs[0]->data, parts[i]->segs[0]->len);
        batch_unref(parts[i]);
    }
    struct batch *b;
    struct fake_ack ack;
    assert_int_equal(batch_from_wire(SIGNAL_LOGS, all, &b, NULL), 0);
    fake_ack_init(&ack);
    assert_int_equal(fake_ack_verdict(&ack, queue_offer(d.queue, b, &ack.ack)), VERDICT_OK);
    assert_soon(backend_count(&d.backend) == 4);
    disk_rig_stop(&d, 60000);
    assert_came(&d.backend, 4, true);
    assert_int_equal(d.backend.calls, 3);
    assert_int_equal(d.backend.sizes[1], 1);
    assert_true(d.backend.bytes[0] < 1000 && d.backend.bytes[1] > 5000 &&
                d.backend.bytes[2] < 1000);
    disk_rig_done(&d);
}

/* A full queue does not wait for a batch that has no room to grow. */
static void test_full_queue_is_sent(void **state)
{
    (void)state;
    for (unsigned block = 0; block < 2; block++) {
        struct disk_rig d;
        struct fake_ack ack;
        init(&d, true,
             (struct queue_batch){
                 .flush_timeout_ns = HOUR_NS, .min_size = 1000, .sizer = SIZER_ITEMS});
        d.queue_settings.queue_size = 3;
        d.queue_settings.block_on_overflow = block;
        disk_rig_start(&d);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(offer_numbered(&d, i, 1, 1), VERDICT_OK);
        fake_ack_init(&ack);
        const enum verdict v = queue_offer(d.queue, numbered(3, 1, 1), &ack.ack);
        assert_int_equal(v, block ? VERDICT_PENDING : VERDICT_RETRY);
        assert_soon(backend_count(&d.backend) == 3);
        if (block)
            assert_int_equal(fake_ack_verdict(&ack, v), VERDICT_OK);
        disk_rig_stop(&d, 60000);
        assert_came(&d.backend, block ? 4 : 3, true);
        disk_rig_done(&d);
    }
}

/* ---- what becomes of the requests ---- */

/* The answer is that of the worst part. */
static void test_worst_part_answers(void **state)
{
    (void)state;
    struct disk_rig d;
    struct fake_ack ack;
    init(&d, true,
         (struct queue_batch){.flush_timeout_ns = (int64_t)NS_PER_MS,
                              .min_size = 5,
                              .max_size = 5,
                              .sizer = SIZER_ITEMS});
    d.queue_settings.wait_for_result = true;
    d.backend.poison = 7;
    d.backend.poisoned = VERDICT_REJECT;
    disk_rig_start(&d);
    fake_ack_init(&ack);
    const enum verdict v = queue_offer(d.queue, numbered(0, 20, 1), &ack.ack);
    assert_int_equal(fake_ack_verdict(&ack, v), VERDICT_REJECT);
    assert_non_null(strstr(ack.outcome.message, "told so"));
    disk_rig_stop(&d, 60000);
    assert_int_equal(fake_ack_answers(&ack), 1);
    assert_int_equal(d.backend.n, 15);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_send_failed_log_records"), 5);
    assert_int_equal(disk_counter(&d, "otelcol_exporter_sent_log_records"), 15);
    disk_rig_done(&d);
}

/* A request is deleted when all of its parts are decided: what the stop leaves comes again as a
 * whole, others do not. */
static void test_parts_left_by_a_stop(void **state)
{
    (void)state;
    struct disk_rig d;
    init(&d, true,
         (struct queue_batch){.flush_timeout_ns = (int64_t)NS_PER_MS,
                              .min_size = 5,
                              .max_size = 5,
                              .sizer = SIZER_ITEMS});
    d.backend.poison = 12;
    d.backend.poisoned = VERDICT_RETRY;
    d.queue_settings.num_consumers = 3;
    disk_rig_start(&d);
    assert_int_equal(offer_numbered(&d, 0, 10, 1), VERDICT_OK);
    assert_int_equal(offer_numbered(&d, 10, 10, 1), VERDICT_OK); /* 10 … 14, 15 … 19 */
    assert_soon(backend_count(&d.backend) == 15);
    disk_rig_stop(&d, 50);
    assert_int_equal(disk_rig_stored(&d), 1);
    d.backend.poison = 0;
    d.backend.n = 0;
    d.queue_settings.num_consumers = 1;
    backend_set(&d.backend, true, VERDICT_OK);
    disk_rig_start(&d);
    assert_int_equal(disk_gauge(&d, "motel_exporter_disk_records"), 10);
    backend_set(&d.backend, false, VERDICT_OK);
    disk_rig_stop(&d, 60000);
    assert_int_equal(d.backend.n, 10);
    assert_int_equal(d.backend.numbers[0], 10);
    disk_rig_done(&d);
}

/* Limits that processors hand over: the strictest of them, unless the exporter has its own. */
static void test_limits_of_processors(void **state)
{
    (void)state;
    struct disk_rig d;
    init(&d, true, (struct queue_batch){0});
    d.queue_settings.batch = NULL;
    d.queue = queue_new(&d.backend.base, &d.settings, SIGNAL_LOGS, NULL);
    const struct queue_batch one = {.flush_timeout_ns = HOUR_NS, .min_size = 8, .max_size = 0};
    const struct queue_batch two = {.flush_timeout_ns = 2 * HOUR_NS, .min_size = 4, .max_size = 6};
    queue_set_batch(d.queue, &one);
    queue_set_batch(d.queue, &two);
    assert_true(d.queue->batching);
    assert_int_equal(d.queue->batch.flush_timeout_ns, HOUR_NS);
    assert_int_equal(d.queue->batch.min_size, 6);
    assert_int_equal(d.queue->batch.max_size, 6);
    d.queue = queue_free(d.queue);
    d.queue_settings.batch = &d.batch;
    d.batch = (struct queue_batch){.min_size = 77, .sizer = SIZER_ITEMS};
    d.queue = queue_new(&d.backend.base, &d.settings, SIGNAL_LOGS, NULL);
    queue_set_batch(d.queue, &one);
    assert_int_equal(d.queue->batch.min_size, 77);
    disk_rig_done(&d);
}

/* ---- settings ---- */

static const struct {
    const char *yaml, *path, *text; /* path NULL: taken */
    int sizer;
} settings[] = {
    {"{queue_size: 9000, batch: {}}", NULL, NULL, SIZER_ITEMS},
    {"{batch: {}}", NULL, NULL, SIZER_ITEMS},
    {"{batch: {sizer: bytes}}", NULL, NULL, SIZER_BYTES},
    {"{sizer: bytes, queue_size: 10000, batch: {}}", NULL, NULL, SIZER_BYTES},
    {"{sizer: bytes, queue_size: 10, batch: {sizer: items}}", NULL, NULL, SIZER_ITEMS},
    {"{batch: {enabled: false, min_size: -1}}", NULL, NULL, -1},
    {"{batch: {partition: {metadata_keys: []}}}", NULL, NULL, SIZER_ITEMS},
    {"{sizer: requests, batch: {}}", "sending_queue::batch::min_size",
     "must be less than or equal to queue_size (1000), found 8192", 0},
    {"{sizer: items, batch: {min_size: 5000}}", "sending_queue::batch::min_size",
     "must be less than or equal to queue_size (1000), found 5000", 0},
    {"{batch: {sizer: requests, min_size: 1}}", "sending_queue::batch::sizer",
     "supports only items or bytes, found \"requests\"", 0},
    {"{batch: {min_size: 10, max_size: 5}}", "sending_queue::batch::max_size",
     "must be greater than or equal to min_size (10), found 5", 0},
    {"{batch: {flush_timeout: 0}}", "sending_queue::batch::flush_timeout",
     "must be positive, found 0s", 0},
    {"{batch: {min_size: -1}}", "sending_queue::batch::min_size", "must be non-negative, found -1",
     0},
    {"{batch: {max_size: -1}}", "sending_queue::batch::max_size", "must be non-negative, found -1",
     0},
    {"{batch: {partition: {metadata_keys: [a]}}}", "sending_queue::batch::partition::metadata_keys",
     "batches by client metadata", 0},
};

struct test_config {
    struct exporter_settings exporter;
};
static const struct cfg_field test_fields[] = {
    EXPORTER_FIELDS(struct test_config, exporter, "30s", "{}"), {0}};

static void test_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        struct test_config bound;
        struct cfg_errors errs = {0};
        struct err e = {0};
        char yaml[300];
        snprintf(yaml, sizeof(yaml), "{sending_queue: %s}", settings[i].yaml);
        struct config *c = config_load_text("test", yaml, &errs);
        struct cfg_binder b = {.arena = c->arena, .errors = &errs};
        assert_int_equal(cfg_bind(&b, test_fields, c->root, "x", &bound), 0);
        const int r = exporter_settings_check(&bound.exporter, &e);
        const struct queue_settings *q = bound.exporter.queue;
        if (settings[i].path) {
            assert_int_equal(r, -EINVAL);
            assert_string_equal(e.path, settings[i].path);
            assert_non_null(strstr(e.text, settings[i].text));
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(q->batch ? queue_batch_sizer(q) : -1, settings[i].sizer);
        }
        config_free(c);
    }
}

int main(void)
{
    log_configure(&(struct log_options){.level = LOG_OFF}, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_record_above_the_limit),
        cmocka_unit_test(test_full_queue_is_sent),
        cmocka_unit_test(test_worst_part_answers),
        cmocka_unit_test(test_parts_left_by_a_stop),
        cmocka_unit_test(test_limits_of_processors),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
