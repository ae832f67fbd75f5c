/*
 * The batch processor: requests are concatenated and sent on when enough records are there or the
 * time is up. A client has its answer before a batch is sent, so a batch must not be lost when
 * downstream cannot take it: it is held and offered again, to the branches that refused it only,
 * while there is room; then new data is refused. When downstream is only slow, clients are slowed
 * down: their answers wait.
 *
 * With queues on disk behind it, it batches nothing: a client is to have its answer when the data
 * is on disk, and the queues batch what they send by the same limits.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"
#include "agent/pipeline/pending.h"
#include "agent/pipeline/throttle.h"
#include "proto/rewrite.h"

/* What may be under way in one processor: sent, and not taken by all branches downstream. From
 * SLOW_BYTES on clients wait for their answers; at the others they are refused, at HOLD_MAX_BYTES
 * only while downstream refuses. */
#define SLOW_BYTES (8u << 20)
#define HOLD_MAX_BYTES (32u << 20)
#define MAX_BYTES (64u << 20)
#define MAX_BATCHES 1024
#define SEND_BYTES (16u << 20) /* a batch of so many is sent, however few records it has */
/* Pauses before a refused batch is offered again; a longer one that downstream asks for counts. */
#define PAUSE_FIRST_NS (100 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_S)
#define PAUSE_AFTER_OK_NS (20 * NS_PER_MS)
#define PAUSE_STOPPING_NS (50 * NS_PER_MS)
#define NEVER UINT64_MAX

struct batch_config {
    int64_t timeout_ns, send_batch_size, send_batch_max_size, metadata_cardinality_limit;
};

struct batcher {
    struct component base;
    const struct batch_config *config;
    enum signal signal;
    bool through; /* every request is handed on at once; set before the start */
    struct metric *size_sends, *timeout_sends, *sizes, *dropped, *cardinality;
    struct timer *timer;
    struct throttle *clients; /* who waits until there is room */
    struct throttle *pausing; /* who waits because a queue is crowded */

    pthread_mutex_t lock; /* of all below; never held while something is offered */
    pthread_cond_t changed;
    struct pending pending;
    uint64_t flush_ns;     /* when what is pending has to go */
    uint64_t armed_ns;     /* what the timer is set to; 0 = it is not */
    uint64_t pause_ns;     /* until then clients wait */
    struct delivery *held; /* refused ones, in the order of refusal */
    uint64_t taken;        /* deliveries that downstream took */
    unsigned under_way;    /* deliveries that exist */
    size_t under_way_bytes;
    bool stopping, stopped;
};

/* A batch on its way downstream: being offered, answered later, or held. */
struct delivery {
    struct ack ack;
    struct batcher *owner;
    struct batch *batch;
    struct delivery *next;
    uint64_t due_ns, pause_ns; /* of a held one: when it is offered again */
    uint64_t not_before_ns;    /* what downstream asked for */
    uint64_t taken;            /* the owner's count at the last refusal */
    bool lost;                 /* for a branch that refused for good, which nobody counted */
};

extern const struct component_type processor_batch;

/* ---- deliveries ---- */

static void delivery_done(struct ack *ack, enum verdict v, const struct outcome *out);

/* With the lock; takes `b`. NULL when out of memory: then `b` is not taken. */
static struct delivery *delivery_new(struct batcher *p, struct batch *b)
{
    struct delivery *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->ack = (struct ack){.done = delivery_done, .owed = ACK_ALL};
    d->owner = p;
    d->taken = p->taken;
    d->batch = b;
    p->under_way++;
    p->under_way_bytes += b->bytes;
    return d;
}

static void delivery_free(struct delivery *d)
{
    struct batcher *p = d->owner;
    size_t bytes = d->batch->bytes;
    batch_unref(d->batch);
    free(d);
    pthread_mutex_lock(&p->lock);
    p->under_way--;
    p->under_way_bytes -= bytes;
    bool room = p->under_way_bytes < SLOW_BYTES;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (room)
        throttle_release(p->clients);
}

static void delivery_drop(struct delivery *d, const char *why, const char *error, bool counted)
{
    struct batcher *p = d->owner;
    log_warn(&p->base.logger, why, LOG_STR("error", error),
             LOG_INT("dropped_items", d->batch->records));
    metric_add(p->dropped, counted ? 0 : d->batch->records);
    delivery_free(d);
}

/* ---- the timer and what is held (with the lock) ---- */

static void rearm(struct batcher *p)
{
    uint64_t at = p->pending.records ? p->flush_ns : NEVER;
    for (const struct delivery *d = p->held; d; d = d->next)
        at = d->due_ns < at ? d->due_ns : at;
    if (p->stopping || at == NEVER || at == p->armed_ns)
        return;
    p->armed_ns = at;
    timer_arm(p->timer, at);
}

static void append(struct delivery **list, struct delivery *d)
{
    while (*list)
        list = &(*list)->next;
    d->next = NULL;
    *list = d;
}

static uint64_t next_pause(const struct batcher *p, struct delivery *d, uint64_t wish_ns)
{
    const bool moves = d->taken != p->taken; /* others were taken since */
    d->taken = p->taken;
    if (p->stopping)
        return PAUSE_STOPPING_NS;
    if (moves) {
        d->pause_ns = 0;
        return wish_ns > PAUSE_AFTER_OK_NS ? wish_ns : PAUSE_AFTER_OK_NS;
    }
    d->pause_ns = d->pause_ns ? 2 * d->pause_ns : PAUSE_FIRST_NS;
    if (d->pause_ns > PAUSE_MAX_NS)
        d->pause_ns = PAUSE_MAX_NS;
    return d->pause_ns > wish_ns ? d->pause_ns : wish_ns;
}

/* Takes those that are due at `now` out of the held ones. */
static struct delivery *take_due(struct batcher *p, uint64_t now)
{
    struct delivery *due = NULL, **end = &due;
    for (struct delivery **at = &p->held; *at;) {
        struct delivery *d = *at;
        if (d->due_ns > now) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        d->next = NULL;
        *end = d;
        end = &d->next;
    }
    return due;
}

/* ---- offering (without the lock) ---- */

/* Keeps a refused delivery for later; false when there is no later. */
static bool hold(struct delivery *d, uint32_t retry_after_ms)
{
    struct batcher *p = d->owner;
    pthread_mutex_lock(&p->lock);
    bool keep = !p->stopped;
    if (keep) {
        uint64_t now = clock_now_ns();
        d->not_before_ns = now + retry_after_ms * NS_PER_MS;
        d->due_ns = now + next_pause(p, d, retry_after_ms * NS_PER_MS);
        append(&p->held, d);
        rearm(p);
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    throttle_release(p->clients); /* it may take long now */
    return keep;
}

/* Downstream takes data again: who waits does not sit out a pause that grew meanwhile. */
static void hurry(struct batcher *p, uint32_t pause_ms)
{
    pthread_mutex_lock(&p->lock);
    p->taken++;
    p->pause_ns = pause_ms ? clock_now_ns() + pause_ms * NS_PER_MS : 0;
    uint64_t soon = p->held ? clock_now_ns() + PAUSE_AFTER_OK_NS : 0;
    for (struct delivery *d = p->held; d; d = d->next) {
        uint64_t at = d->not_before_ns > soon ? d->not_before_ns : soon;
        d->pause_ns = 0;
        d->due_ns = at < d->due_ns ? at : d->due_ns;
    }
    if (p->held)
        rearm(p);
    pthread_mutex_unlock(&p->lock);
}

static void answered(struct delivery *d, enum verdict v, const struct outcome *out)
{
    struct batcher *p = d->owner;
    d->lost = d->lost || out->also_lost;
    if (v == VERDICT_OK) {
        hurry(p, out->pause_ms); /* the owner lives at least as long as `d` */
        if (d->lost)
            delivery_drop(d, "Sender failed", "refused by one of several exporters", false);
        else
            delivery_free(d);
    } else if (v == VERDICT_REJECT) {
        delivery_drop(d, "Sender failed", out->message, out->counted && !d->lost);
    } else if (!hold(d, out->retry_after_ms)) {
        delivery_drop(d, "Downstream refused data until the end. Dropping data.", out->message,
                      false);
    }
}

static void delivery_done(struct ack *ack, enum verdict v, const struct outcome *out)
{
    static const struct outcome none;
    answered(container_of(ack, struct delivery, ack), v, out ? out : &none);
}

static void offer_all(struct delivery *list)
{
    while (list) {
        struct delivery *d = list;
        list = d->next;
        d->ack.now = (struct outcome){0};
        enum verdict v = component_emit(&d->owner->base, batch_ref(d->batch), &d->ack);
        if (v != VERDICT_PENDING) { /* else `d` may be gone already */
            struct outcome now = d->ack.now;
            answered(d, v, &now);
        }
    }
}

/* ---- cutting (with the lock) ---- */

static void give_back(struct batcher *p, struct batch *b)
{
    if (pending_add(&p->pending, b) < 0) {
        log_error(&p->base.logger, "Out of memory. Dropping data.",
                  LOG_INT("dropped_items", b->records));
        metric_add(p->dropped, b->records);
    }
    batch_unref(b);
}

/* All pieces are sent but the last one when it is too small for that. */
static struct delivery *deliver(struct batcher *p, struct batch **pieces, size_t n, bool flush,
                                struct metric *sends)
{
    struct delivery *list = NULL, **end = &list;
    for (size_t i = 0; i < n; i++) {
        bool enough = flush || i + 1 < n || pieces[i]->records >= p->config->send_batch_size;
        struct delivery *d = enough ? delivery_new(p, pieces[i]) : NULL;
        if (!d) {
            give_back(p, pieces[i]);
            continue;
        }
        metric_add(sends, 1);
        metric_record(p->sizes, d->batch->records);
        *end = d;
        end = &d->next;
    }
    return list;
}

/* What is pending, cut to the maximum size. Without `flush` less than the size that triggers stays.
 */
static struct delivery *cut(struct batcher *p, bool flush, struct metric *sends)
{
    struct batch *all = pending_take(&p->pending, p->signal), **pieces = NULL;
    struct delivery *list;
    size_t n;
    uint64_t now = clock_now_ns();
    p->flush_ns = now + (all ? (uint64_t)p->config->timeout_ns : PAUSE_FIRST_NS);
    if (!all)
        return NULL;
    uint32_t max = (uint32_t)p->config->send_batch_max_size;
    if (max && all->records > max && otlp_split_all(all, max, 0, &pieces, &n) == 0) {
        batch_unref(all);
        list = deliver(p, pieces, n, flush, sends);
        free(pieces);
        return list;
    }
    return deliver(p, &all, 1, true, sends); /* also when there is no memory to cut it */
}

/* ---- the component ---- */

static bool at_once(const struct batcher *p)
{
    return p->config->timeout_ns == 0 || p->config->send_batch_size == 0 || p->stopping;
}

static bool large(const struct batcher *p)
{
    return p->pending.records >= p->config->send_batch_size || p->pending.bytes >= SEND_BYTES;
}

static bool full(const struct batcher *p)
{
    size_t limit = p->held ? HOLD_MAX_BYTES : MAX_BYTES;
    return p->stopped || p->under_way >= MAX_BATCHES || p->under_way_bytes >= limit;
}

/* With the lock. */
static enum verdict hold_back(struct batcher *p, struct ack *ack)
{
    if (!p->pause_ns || p->held || p->stopping || clock_now_ns() >= p->pause_ns)
        return VERDICT_OK;
    return throttle_wait_until(p->pausing, ack, p->pause_ns) ? VERDICT_PENDING : VERDICT_OK;
}

/* With the lock. Takes the content of `b`; *ret: what is ready to be sent. */
static enum verdict take(struct batcher *p, const struct batch *b, struct ack *ack,
                         struct delivery **ret)
{
    ack->now = (struct outcome){0};
    if (!b->records)
        return VERDICT_OK;
    if (full(p))
        return ack_answer(ack, VERDICT_RETRY, 0,
                          "batch processor is full: downstream does not take its data");
    bool slow = !p->held && !p->stopping && p->under_way_bytes >= SLOW_BYTES;
    if (!p->pending.records)
        p->flush_ns = clock_now_ns() + (uint64_t)p->config->timeout_ns;
    if (pending_add(&p->pending, b) < 0)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    if (at_once(p) || large(p))
        *ret = cut(p, at_once(p) || p->pending.bytes >= SEND_BYTES, p->size_sends);
    rearm(p);
    return slow && throttle_wait(p->clients, ack) ? VERDICT_PENDING : hold_back(p, ack);
}

static void batch_hand_through(struct component *c, struct batch_limits *ret)
{
    struct batcher *p = (struct batcher *)c;
    p->through = true;
    *ret = (struct batch_limits){.timeout_ns = p->config->timeout_ns,
                                 .min_records = p->config->send_batch_size,
                                 .max_records = p->config->send_batch_max_size};
}

static enum verdict batch_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct batcher *p = (struct batcher *)c;
    if (p->through) {
        metric_record(p->sizes, b->records);
        return component_emit(c, b, ack);
    }
    struct delivery *ready = NULL;
    pthread_mutex_lock(&p->lock);
    enum verdict v = take(p, b, ack, &ready);
    pthread_mutex_unlock(&p->lock);
    batch_unref(b);
    offer_all(ready);
    return v;
}

static void on_timer(void *ctx)
{
    struct batcher *p = ctx;
    struct delivery *due, *full = NULL;
    pthread_mutex_lock(&p->lock);
    uint64_t now = clock_now_ns();
    p->armed_ns = 0;
    due = p->stopping ? NULL : take_due(p, now);
    if (!p->stopping && p->pending.records && p->flush_ns <= now)
        full = cut(p, true, p->timeout_sends);
    rearm(p);
    pthread_mutex_unlock(&p->lock);
    offer_all(due);
    offer_all(full);
}

/* Offers what is held until all of it was taken or nothing was for half of the time that was left,
 * which is for others. What is still pending could not be cut for want of memory. With the lock. */
static void drain(struct batcher *p, uint64_t deadline_ns)
{
    uint64_t now = clock_now_ns(), taken = p->taken;
    uint64_t until_ns = deadline_ns > now ? now + (deadline_ns - now) / 2 : now;
    while ((p->under_way || p->pending.records) && (now = clock_now_ns()) < until_ns) {
        if (p->taken != taken)
            until_ns = now + (deadline_ns - now) / 2;
        taken = p->taken;
        struct delivery *due = p->pending.records ? cut(p, true, p->timeout_sends) : NULL;
        if (!due)
            due = take_due(p, now);
        uint64_t wake = p->pending.records ? now + PAUSE_STOPPING_NS : until_ns;
        for (const struct delivery *d = p->held; d; d = d->next)
            wake = d->due_ns < wake ? d->due_ns : wake;
        if (!due) {
            cond_wait_until(&p->changed, &p->lock, wake);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        offer_all(due);
        pthread_mutex_lock(&p->lock);
    }
}

static void give_up(struct batcher *p, struct delivery *held)
{
    uint64_t records = p->pending.records, batches = records > 0;
    while (held) {
        struct delivery *d = held;
        held = d->next;
        batches++;
        records += d->batch->records;
        delivery_free(d);
    }
    metric_add(p->dropped, (int64_t)records);
    if (batches)
        log_error(&p->base.logger, "Downstream refused data until the end. Dropping data.",
                  LOG_INT("dropped_items", records), LOG_INT("batches", batches));
}

static void batch_stop(struct component *c, uint64_t deadline_ns)
{
    struct batcher *p = (struct batcher *)c;
    timer_disarm(p->timer);
    pthread_mutex_lock(&p->lock);
    bool again = p->stopped;
    p->stopping = true;
    struct delivery *last = p->pending.records ? cut(p, true, p->timeout_sends) : NULL;
    struct delivery *held = take_due(p, NEVER);
    pthread_mutex_unlock(&p->lock);
    throttle_release(p->clients);
    throttle_release(p->pausing);
    offer_all(held);
    offer_all(last);
    if (again)
        return;
    pthread_mutex_lock(&p->lock);
    drain(p, deadline_ns);
    p->stopped = true;
    held = take_due(p, NEVER);
    pthread_mutex_unlock(&p->lock);
    give_up(p, held);
}

static void batch_destroy(struct component *c)
{
    struct batcher *p = (struct batcher *)c;
    if (!p)
        return;
    metric_add(p->cardinality, -1);
    timer_free(p->timer);
    throttle_free(p->clients);
    throttle_free(p->pausing);
    pending_done(&p->pending);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void get_metrics(struct batcher *p)
{
    static const int64_t sizes[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                    1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                    9000, 10000, 20000, 30000, 50000, 100000};
    struct host *h = p->base.host;
    char labels[METRIC_LABELS_MAX] = "", with_signal[METRIC_LABELS_MAX] = "";
    metric_label(labels, "processor", p->base.id);
    metric_label(with_signal, "otel_signal", signal_name(p->signal));
    metric_label(with_signal, "processor", p->base.id);
    p->size_sends = metric_counter(h, "otelcol_processor_batch_batch_size_trigger_send",
                                   "Batches that were sent because of their size.", labels);
    p->timeout_sends = metric_counter(h, "otelcol_processor_batch_timeout_trigger_send",
                                      "Batches that were sent because the time was up.", labels);
    p->sizes = metric_histogram(h, "otelcol_processor_batch_batch_send_size",
                                "Records in the batches that were sent.", labels, sizes,
                                ARRAY_SIZE(sizes));
    p->dropped =
        metric_counter(h, "motel_processor_batch_dropped_items",
                       "Records that downstream rejected or refused until the end.", with_signal);
    p->cardinality =
        metric_gauge(h, "otelcol_processor_batch_metadata_cardinality",
                     "Combinations of metadata values that have a batch of their own.", labels);
    metric_add(p->cardinality, 1);
}

static int batch_create(const struct component_args *args, struct component **ret,
                        struct err *reterr)
{
    struct batcher *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&p->base, &processor_batch, args);
    p->config = args->config;
    p->signal = args->signal;
    pthread_mutex_init(&p->lock, NULL);
    cond_init_monotonic(&p->changed);
    get_metrics(p);
    p->timer = timer_new(args->host, on_timer, p);
    p->clients = throttle_new(args->host);
    p->pausing = throttle_new(args->host);
    if (!p->timer || !p->clients || !p->pausing) {
        batch_destroy(&p->base);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    *ret = &p->base;
    return 0;
}

static int batch_check(const void *config, struct err *reterr)
{
    const struct batch_config *c = config;
    if (c->send_batch_max_size && c->send_batch_max_size < c->send_batch_size)
        return err_at(reterr, "send_batch_max_size",
                      "must be greater than or equal to send_batch_size (%lld), got %lld",
                      (long long)c->send_batch_size, (long long)c->send_batch_max_size);
    if (c->timeout_ns < 0)
        return err_at(reterr, "timeout", "must be greater than or equal to 0");
    return 0;
}

static const struct cfg_field fields[] = {
    {.key = "timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct batch_config, timeout_ns),
     .def = "200ms",
     .help = "Longest time that a record waits for others; 0 sends everything at once."},
    {.key = "send_batch_size",
     .kind = BIND_INT,
     CFG_AT(struct batch_config, send_batch_size),
     .def = "8192",
     CFG_MORE(.unit = "records", .min = 0, .max = UINT32_MAX),
     .help = "Spans, data points or log records that are sent without waiting for the time; 0 "
             "sends everything at once."},
    {.key = "send_batch_max_size",
     .kind = BIND_INT,
     CFG_AT(struct batch_config, send_batch_max_size),
     .def = "0",
     CFG_MORE(.unit = "records", .min = 0, .max = UINT32_MAX),
     .help = "Larger batches are cut to this size, which is not below send_batch_size; 0 means no "
             "limit."},
    {.key = "metadata_keys",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "client metadata is not kept with the data, so batches cannot be told apart by it"},
    {.key = "metadata_cardinality_limit",
     .kind = BIND_INT,
     CFG_AT(struct batch_config, metadata_cardinality_limit),
     .def = "1000",
     CFG_MORE(.min = 0, .max = UINT32_MAX),
     .help = "Only meaningful with metadata_keys."},
    {0}};

const struct component_type processor_batch = {
    .kind = KIND_PROCESSOR,
    .name = "batch",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Collects records and sends them on in batches.",
    .fields = fields,
    .config_size = sizeof(struct batch_config),
    .check = batch_check,
    .create = batch_create,
    .stop = batch_stop,
    .destroy = batch_destroy,
    .consume = batch_consume,
    .hand_through = batch_hand_through,
};
