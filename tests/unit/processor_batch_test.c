/* The batch processor: when it sends, how it cuts, and that nothing it took is lost while
 * downstream refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"

#include "proto/check.h"
#include "proto/wire.h"

extern const struct component_type processor_batch;

#define DROPPED "motel_processor_batch_dropped_items"
#define LABELS "otel_signal=\"traces\",processor=\"batch\""

static void put_span(struct buf *b, int i)
{
    size_t span;
    uint8_t id[16] = {1, [15] = (uint8_t)i};
    wire_begin(b, 2, &span);
    wire_put_bytes(b, 1, bytes_of(id, 16));
    wire_put_bytes(b, 2, bytes_of(id + 8, 8));
    wire_put_str(b, 5, "op");
    wire_end(b, span);
}

/* One request: `n` spans over `resources` resources, each with a scope and a schema URL. */
static struct batch *spans(int n, int resources)
{
    struct buf *b = buf_new(0);
    struct batch *ret = NULL;
    struct err e;
    for (int r = 0, done = 0; r < resources; r++) {
        size_t entry, head, kv, scopes, scope;
        char name[16];
        snprintf(name, sizeof(name), "r%d", r);
        wire_begin(b, 1, &entry);
        wire_begin(b, 1, &head);
        wire_begin(b, 1, &kv);
        wire_put_str(b, 1, name);
        wire_end(b, kv);
        wire_end(b, head);
        wire_begin(b, 2, &scopes);
        wire_begin(b, 1, &scope);
        wire_put_str(b, 1, "lib");
        wire_end(b, scope);
        for (int upto = n * (r + 1) / resources; done < upto; done++)
            put_span(b, done);
        wire_end(b, scopes);
        wire_put_str(b, 3, "https://schema");
        wire_end(b, entry);
    }
    assert_int_equal(batch_from_wire(SIGNAL_TRACES, b, &ret, &e), 0);
    assert_int_equal(ret->records, n);
    return ret;
}

static struct batch *sized(uint32_t records, size_t bytes)
{
    struct buf *b = buf_new(0);
    buf_reserve(b, bytes);
    memset(b->data, 'x', bytes);
    buf_commit(b, bytes);
    return batch_new(SIGNAL_TRACES, &b, 1, records);
}

static void make(struct rig *r, unsigned nsinks, const char *yaml)
{
    rig_make(r, &processor_batch, "batch", SIGNAL_TRACES, nsinks, yaml);
}

static void test_size(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 1h, send_batch_size: 10}");
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_offer(&r, spans(4, 1), NULL), VERDICT_OK);
    assert_int_equal(sink_offers(&r.sinks[0]), 0);
    assert_int_equal(rig_offer(&r, spans(4, 1), NULL), VERDICT_OK);
    assert_int_equal(r.sinks[0].ntaken, 1);
    assert_int_equal(r.sinks[0].taken[0]->records, 12);
    assert_int_equal(r.sinks[0].taken[0]->nsegs, 1); /* small requests are copied together */
    assert_int_equal(otlp_count(SIGNAL_TRACES, buf_bytes(r.sinks[0].taken[0]->segs[0])), 12);
    assert_int_equal(
        rig_metric(&r, "otelcol_processor_batch_batch_size_trigger_send", "processor=\"batch\""),
        1);
    rig_done(&r);
}

/* Records may be large: memory counts as well. */
static void test_bytes(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 1h, send_batch_size: 8192, send_batch_max_size: 8192}");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sink_offers(&r.sinks[0]), 0);
        assert_int_equal(rig_offer(&r, sized(10, 5 << 20), NULL), VERDICT_OK);
    }
    assert_int_equal(rig_offer(&r, sized(10, 2 << 20), NULL), VERDICT_OK);
    assert_int_equal(r.sinks[0].ntaken, 1);
    assert_int_equal(r.sinks[0].taken[0]->records, 40);
    assert_int_equal(rig_offer(&r, sized(10, 5 << 20), NULL), VERDICT_OK);
    assert_int_equal(r.sinks[0].ntaken, 1); /* counted anew */
    rig_done(&r);
}

static void test_large_is_referenced(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 1h, send_batch_size: 4}");
    struct batch *large = batch_ref(sized(1, 100000));
    rig_offer(&r, sized(1, 10), NULL);
    rig_offer(&r, large, NULL);
    rig_offer(&r, sized(1, 10), NULL);
    rig_offer(&r, sized(1, 10), NULL);
    const struct batch *b = r.sinks[0].taken[0];
    assert_int_equal(b->nsegs, 3);
    assert_int_equal(b->segs[0]->len, 10);
    assert_ptr_equal(b->segs[1], large->segs[0]);
    assert_int_equal(b->segs[2]->len, 20);
    batch_unref(large);
    rig_done(&r);
}

/* Resources and spans of a batch in order, "r0:3 r1:7". */
static void outline(const struct batch *b, struct buf *out)
{
    struct wire_field entry, head, kv, scopes, key, f;
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct wire_reader entries = wire_reader(buf_bytes(b->segs[i]));
        while (wire_next(&entries, &entry) > 0) {
            assert_true(wire_find(entry.bytes, 1, &head) && wire_find(head.bytes, 1, &kv));
            assert_true(wire_find(kv.bytes, 1, &key) && wire_find(entry.bytes, 2, &scopes));
            assert_true(wire_find(entry.bytes, 3, &f) && wire_find(scopes.bytes, 1, &f));
            int n = 0;
            struct wire_reader items = wire_reader(scopes.bytes);
            while (wire_next(&items, &f) > 0)
                n += f.number == 2;
            buf_printf(out, "%.*s:%d ", (int)key.bytes.len, (const char *)key.bytes.data, n);
        }
    }
}

static const struct {
    const char *config;
    int spans, resources;
    const char *at_once[4], *at_stop;
} cuts[] = {
    {"{timeout: 1h, send_batch_size: 10, send_batch_max_size: 10}",
     25,
     3,
     {"r0:8 r1:2 ", "r1:6 r2:4 "},
     "r2:5 "},
    {"{timeout: 1h, send_batch_size: 10, send_batch_max_size: 20}", 25, 1, {"r0:20 "}, "r0:5 "},
    {"{timeout: 1h, send_batch_size: 4, send_batch_max_size: 20}",
     25,
     1,
     {"r0:20 ", "r0:5 "},
     NULL},
    {"{timeout: 1h, send_batch_size: 10}", 25, 1, {"r0:25 "}, NULL},
    {"{timeout: 0s, send_batch_size: 10, send_batch_max_size: 10}",
     25,
     1,
     {"r0:10 ", "r0:10 ", "r0:5 "},
     NULL},
    {"{timeout: 1h, send_batch_size: 0, send_batch_max_size: 10}",
     15,
     1,
     {"r0:10 ", "r0:5 "},
     NULL},
    {"{timeout: 0s}", 3, 1, {"r0:3 "}, NULL},
};

static void test_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
        struct rig r = {0};
        unsigned n = 0;
        make(&r, 1, cuts[i].config);
        assert_int_equal(rig_offer(&r, spans(cuts[i].spans, cuts[i].resources), NULL), VERDICT_OK);
        while (n < 4 && cuts[i].at_once[n])
            n++;
        assert_int_equal(r.sinks[0].ntaken, n);
        processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
        assert_int_equal(r.sinks[0].ntaken, n + (cuts[i].at_stop != NULL));
        for (unsigned k = 0; k < r.sinks[0].ntaken; k++) {
            _cleanup_buf_ struct buf *text = buf_new(0);
            outline(r.sinks[0].taken[k], text);
            assert_string_equal(buf_str(text), k < n ? cuts[i].at_once[k] : cuts[i].at_stop);
        }
        rig_done(&r);
    }
}

static void test_timeout(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 30ms}");
    uint64_t start = clock_now_ns();
    rig_offer(&r, spans(1, 1), NULL);
    rig_offer(&r, spans(2, 1), NULL);
    rig_offer(&r, batch_new(SIGNAL_TRACES, NULL, 0, 0), NULL);
    sink_wait(&r.sinks[0], 1);
    assert_true(clock_now_ns() - start >= 30 * NS_PER_MS);
    assert_int_equal(r.sinks[0].taken[0]->records, 3);
    rig_offer(&r, spans(5, 1), NULL);
    sink_wait(&r.sinks[0], 2);
    assert_int_equal(r.sinks[0].taken[1]->records, 5);
    assert_int_equal(
        rig_metric(&r, "otelcol_processor_batch_timeout_trigger_send", "processor=\"batch\""), 2);
    processor_batch.stop(r.c, clock_now_ns());
    processor_batch.stop(r.c, clock_now_ns());
    rig_done(&r);
}

/* A request without records is taken and leaves nothing behind. */
static void test_empty(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 0s}");
    assert_int_equal(rig_offer(&r, batch_new(SIGNAL_TRACES, NULL, 0, 0), NULL), VERDICT_OK);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(sink_offers(&r.sinks[0]), 0);
    rig_done(&r);
}

static void test_refused_branch_only(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 2, "{timeout: 0s}");
    r.sinks[1].refusals = 2;
    assert_int_equal(rig_offer(&r, spans(3, 1), NULL), VERDICT_OK);
    sink_wait(&r.sinks[1], 3);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(sink_offers(&r.sinks[0]), 1);
    assert_int_equal(r.sinks[0].records, 3);
    assert_int_equal(sink_offers(&r.sinks[1]), 3);
    assert_int_equal(r.sinks[1].records, 3);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 0);
    rig_done(&r);
}

static void test_retry_after(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 0s}");
    r.sinks[0].refusals = 1;
    r.sinks[0].retry_after_ms = 350;
    uint64_t start = clock_now_ns();
    rig_offer(&r, spans(1, 1), NULL);
    sink_wait(&r.sinks[0], 2);
    assert_true(clock_now_ns() - start >= 350 * NS_PER_MS);
    assert_int_equal(r.sinks[0].records, 1);
    rig_done(&r);
}

static void test_reject(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_REJECT);
    assert_int_equal(rig_offer(&r, spans(3, 1), NULL), VERDICT_OK);
    assert_int_equal(sink_offers(&r.sinks[0]), 1);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 3);
    rig_done(&r);
}

static void test_pending(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_PENDING);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_offer(&r, spans(1, 1), NULL), VERDICT_OK);
    sink_set(&r.sinks[0], VERDICT_OK);
    ack_done(r.sinks[0].waiting[1], VERDICT_OK, NULL);
    ack_done(r.sinks[0].waiting[2], VERDICT_REJECT, &(struct outcome){.message = "no"});
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 1);
    ack_done(r.sinks[0].waiting[0], VERDICT_RETRY, &(struct outcome){.message = "later"});
    sink_wait(&r.sinks[0], 4);
    assert_int_equal(r.sinks[0].records, 1);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
    rig_done(&r);
}

/* Two branches that answer later: the one that refused is asked again, the other is not. */
static void test_late_refusal_of_one_branch(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 2, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_PENDING);
    sink_set(&r.sinks[1], VERDICT_PENDING);
    assert_int_equal(rig_offer(&r, spans(3, 1), NULL), VERDICT_OK);
    sink_set(&r.sinks[0], VERDICT_OK);
    sink_set(&r.sinks[1], VERDICT_OK);
    ack_done(r.sinks[0].waiting[0], VERDICT_RETRY, &(struct outcome){.message = "later"});
    ack_done(r.sinks[1].waiting[0], VERDICT_OK, NULL);
    sink_wait(&r.sinks[0], 2);
    processor_batch.stop(r.c, clock_now_ns() + 10 * NS_PER_S);
    assert_int_equal(r.sinks[0].records, 3);
    assert_int_equal(sink_offers(&r.sinks[1]), 1);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 0);
    rig_done(&r);
}

/* One branch refuses for good while another one may take it later: counted once, unless the branch
 * has done so. */
static void test_loss_beside_a_refusal(void **state)
{
    (void)state;
    for (int counted = 0; counted < 2; counted++) {
        struct rig r = {0};
        const struct outcome no = {.message = "no", .counted = counted};
        make(&r, 2, "{timeout: 0s}");
        sink_set(&r.sinks[0], VERDICT_PENDING);
        r.sinks[1].refusals = 3;
        assert_int_equal(rig_offer(&r, spans(5, 1), NULL), VERDICT_OK);
        ack_done(r.sinks[0].waiting[0], VERDICT_REJECT, &no);
        sink_wait(&r.sinks[1], 4);
        processor_batch.stop(r.c, clock_now_ns() + 10 * NS_PER_S);
        assert_int_equal(sink_offers(&r.sinks[0]), 1);
        assert_int_equal(r.sinks[1].records, 5);
        assert_int_equal(rig_metric(&r, DROPPED, LABELS), counted ? 0 : 5);
        rig_done(&r);
    }
}

/* Who refused for good has counted it. */
static void test_counted_rejection(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_PENDING);
    rig_offer(&r, spans(5, 1), NULL);
    ack_done(r.sinks[0].waiting[0], VERDICT_REJECT, &(struct outcome){.counted = true});
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 0);
    rig_done(&r);
}

/* In front of queues on disk: at once and one by one, and the client's answer is theirs. */
static void test_hand_through(void **state)
{
    (void)state;
    struct rig r = {0};
    struct batch_limits limits = {0};
    struct fake_ack late;
    struct outcome out = {0};
    make(&r, 1, "{timeout: 3s, send_batch_size: 100, send_batch_max_size: 200}");
    processor_batch.hand_through(r.c, &limits);
    assert_true(limits.timeout_ns == 3 * NS_PER_S && limits.min_records == 100);
    assert_int_equal(limits.max_records, 200);
    for (uint32_t n = 1; n < 4; n++) {
        assert_int_equal(rig_offer(&r, spans((int)n, 1), NULL), VERDICT_OK);
        assert_int_equal(r.sinks[0].taken[n - 1]->records, n);
    }
    sink_set(&r.sinks[0], VERDICT_RETRY);
    r.sinks[0].retry_after_ms = 700;
    assert_int_equal(rig_offer(&r, spans(1, 1), &out), VERDICT_RETRY);
    assert_int_equal(out.retry_after_ms, 700);
    sink_set(&r.sinks[0], VERDICT_PENDING);
    fake_ack_init(&late);
    assert_int_equal(r.c->type->consume(r.c, spans(1, 1), &late.ack), VERDICT_PENDING);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S); /* waits for nobody: nothing is its own */
    assert_int_equal(fake_ack_answers(&late), 0);
    ack_done(r.sinks[0].waiting[0], VERDICT_OK, NULL);
    assert_int_equal(fake_ack_verdict(&late, VERDICT_PENDING), VERDICT_OK);
    assert_int_equal(sink_offers(&r.sinks[0]), 5);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 0);
    rig_done(&r);
}

/* Room is limited: then clients are refused, and served again when downstream takes data. */
static void test_full(void **state)
{
    (void)state;
    struct rig r = {0};
    struct outcome out = {0};
    uint64_t taken = 0;
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_RETRY);
    while (rig_offer(&r, sized(1, 1 << 20), &out) == VERDICT_OK)
        assert_true(++taken < 100);
    assert_int_equal(taken, 32);
    assert_non_null(strstr(out.message, "full"));
    sink_set(&r.sinks[0], VERDICT_OK);
    assert_soon(sink_taken(&r.sinks[0]) >= 8);
    assert_int_equal(rig_offer(&r, sized(1, 10), NULL), VERDICT_OK);
    processor_batch.stop(r.c, clock_now_ns() + 10 * NS_PER_S);
    assert_int_equal(r.sinks[0].records, taken + 1);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 0);
    rig_done(&r);
}

/* Downstream is slow: clients get their answers when there is room again, or after a while; what
 * they sent was taken. */
static void test_slow(void **state)
{
    (void)state;
    struct rig r = {0};
    struct fake_ack acks[12];
    unsigned now = 0;
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_PENDING);
    for (size_t i = 0; i < ARRAY_SIZE(acks); i++) {
        fake_ack_init(&acks[i]);
        enum verdict v = r.c->type->consume(r.c, sized(1, 1 << 20), &acks[i].ack);
        assert_int_equal(v, i < 8 ? VERDICT_OK : VERDICT_PENDING);
    }
    assert_int_equal(r.sinks[0].nwaiting, 12);
    for (; now < 5; now++) {
        assert_int_equal(fake_ack_answers(&acks[8]), 0);
        ack_done(r.sinks[0].waiting[now], VERDICT_OK, NULL);
    }
    for (size_t i = 8; i < ARRAY_SIZE(acks); i++)
        assert_int_equal(fake_ack_verdict(&acks[i], VERDICT_PENDING), VERDICT_OK);
    for (; now < 12; now++)
        ack_done(r.sinks[0].waiting[now], VERDICT_OK, NULL);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
    rig_done(&r);
}

/* A queue downstream is crowded: answers wait until its pause is over, it has room again, or the
 * stop; what came with them was taken. */
static void test_pause(void **state)
{
    (void)state;
    struct rig r = {0};
    struct fake_ack acks[3];
    const struct outcome crowded = {.pause_ms = 600000}, short_pause = {.pause_ms = 1};
    make(&r, 1, "{timeout: 0s}");
    sink_set(&r.sinks[0], VERDICT_PENDING);
    for (size_t i = 0; i < ARRAY_SIZE(acks); i++)
        fake_ack_init(&acks[i]);
    assert_int_equal(rig_offer(&r, sized(1, 10), NULL), VERDICT_OK);
    ack_done(r.sinks[0].waiting[0], VERDICT_OK, &crowded);
    assert_int_equal(r.c->type->consume(r.c, sized(1, 10), &acks[0].ack), VERDICT_PENDING);
    assert_int_equal(r.sinks[0].nwaiting, 2);
    ack_done(r.sinks[0].waiting[1], VERDICT_OK, NULL);
    assert_int_equal(rig_offer(&r, sized(1, 10), NULL), VERDICT_OK);
    ack_done(r.sinks[0].waiting[2], VERDICT_OK, &short_pause);
    enum verdict v = r.c->type->consume(r.c, sized(1, 10), &acks[1].ack);
    assert_true(v == VERDICT_OK || v == VERDICT_PENDING);
    ack_done(r.sinks[0].waiting[3], VERDICT_OK, &crowded);
    assert_int_equal(r.c->type->consume(r.c, sized(1, 10), &acks[2].ack), VERDICT_PENDING);
    ack_done(r.sinks[0].waiting[4], VERDICT_OK, &crowded);
    assert_int_equal(fake_ack_answers(&acks[0]), 0);
    assert_int_equal(fake_ack_answers(&acks[2]), 0);
    processor_batch.stop(r.c, clock_now_ns() + NS_PER_S);
    assert_int_equal(fake_ack_verdict(&acks[1], v), VERDICT_OK);
    assert_int_equal(fake_ack_verdict(&acks[0], VERDICT_PENDING), VERDICT_OK);
    assert_int_equal(fake_ack_verdict(&acks[2], VERDICT_PENDING), VERDICT_OK);
    rig_done(&r);
}

static void test_stop(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 1h, send_batch_size: 10}");
    sink_set(&r.sinks[0], VERDICT_RETRY);
    rig_offer(&r, spans(10, 1), NULL);
    rig_offer(&r, spans(4, 1), NULL);
    uint64_t start = clock_now_ns();
    processor_batch.stop(r.c, start + 4 * NS_PER_S);
    uint64_t took = clock_now_ns() - start;
    assert_true(took >= 1500 * NS_PER_MS && took < 4 * NS_PER_S);
    assert_true(sink_offers(&r.sinks[0]) >= 5);
    assert_int_equal(rig_metric(&r, DROPPED, LABELS), 14);
    assert_int_equal(rig_offer(&r, spans(1, 1), NULL), VERDICT_RETRY);
    rig_done(&r);
}

/* A refusal that ends during the stop loses nothing. */
static void test_stop_delivers(void **state)
{
    (void)state;
    struct rig r = {0};
    make(&r, 1, "{timeout: 1h}");
    r.sinks[0].refusals = 4;
    rig_offer(&r, spans(7, 1), NULL);
    processor_batch.stop(r.c, clock_now_ns() + 20 * NS_PER_S);
    assert_int_equal(r.sinks[0].records, 7);
    rig_done(&r);
}

#define THREADS 4
#define REQUESTS 2000
static void *client(void *arg)
{
    struct rig *r = arg;
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(rig_offer(r, sized(3, i % 50 ? 60 : 6000), NULL), VERDICT_OK);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct rig r = {0};
    pthread_t threads[THREADS];
    make(&r, 1, "{timeout: 1ms, send_batch_size: 50}");
    r.sinks[0].refusals = 20;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, client, &r);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    processor_batch.stop(r.c, clock_now_ns() + 20 * NS_PER_S);
    assert_int_equal(r.sinks[0].records, THREADS * REQUESTS * 3);
    size_t bytes = 0;
    for (unsigned i = 0; i < r.sinks[0].ntaken; i++)
        bytes += r.sinks[0].taken[i]->bytes;
    assert_int_equal(bytes, THREADS * (REQUESTS / 50 * 6000 + REQUESTS / 50 * 49 * 60));
    rig_done(&r);
}

static const struct {
    const char *yaml, *path, *text;
} refused[] = {
    {"{send_batch_size: 10, send_batch_max_size: 5}", "send_batch_max_size",
     "send_batch_size (10), got 5"},
    {"{timeout: -1s}", "timeout", "greater than or equal to 0"},
    {"{metadata_keys: [a]}", "metadata_keys", "not supported"},
    {"{send_batch_size: -1}", "send_batch_size", ""},
    {"{send_batch: 1}", "", "send_batch"},
};

static void test_config(void **state)
{
    (void)state;
    void *bound;
    struct err e;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct rig r = {0};
        e = (struct err){.text = ""};
        assert_true(rig_bind(&r, &processor_batch, refused[i].yaml, &bound, &e) < 0);
        if (!strstr(e.path, refused[i].path) || !strstr(e.text, refused[i].text))
            fail_msg("%s: %s: %s", refused[i].yaml, e.path, e.text);
        config_free(r.config);
    }
    struct rig r = {0};
    assert_int_equal(rig_bind(&r, &processor_batch,
                              "{metadata_keys: [], metadata_cardinality_limit: 5}", &bound, &e),
                     0);
    config_free(r.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_large_is_referenced),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused_branch_only),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_reject),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_delivers),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_late_refusal_of_one_branch),
        cmocka_unit_test(test_loss_beside_a_refusal),
        cmocka_unit_test(test_counted_rejection),
        cmocka_unit_test(test_hand_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
