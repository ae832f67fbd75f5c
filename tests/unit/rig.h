/* One component under test: made from YAML text as the program does it, with sinks behind it that answer as they are told. */
#ifndef RIG_H
#define RIG_H

#include <errno.h>

#include "fake_pipeline.h"

#include "agent/base/cond.h"
#include "agent/config/config.h"
#include "agent/pipeline/host.h"
#include "proto/json.h"

/* A branch behind the component. It keeps what it took. */
struct sink {
    struct component base;
    pthread_mutex_t lock;
    pthread_cond_t offered;
    enum verdict verdict;      /* of every offer */
    uint32_t retry_after_ms;
    unsigned refusals;         /* this many offers are refused with RETRY first */
    bool also_lost;            /* said with those */
    bool counted;              /* said with REJECT */
    unsigned offers;
    struct batch *taken[4096];
    unsigned ntaken;
    uint64_t records;
    struct ack *waiting[64];   /* of PENDING answers */
    unsigned nwaiting;
};

static inline enum verdict sink_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct sink *s = container_of(c, struct sink, base);
    pthread_mutex_lock(&s->lock);
    enum verdict v = s->refusals ? VERDICT_RETRY : s->verdict;
    s->refusals -= s->refusals > 0;
    if (v == VERDICT_OK && s->ntaken < ARRAY_SIZE(s->taken))
        s->taken[s->ntaken++] = batch_ref(b);
    s->records += v == VERDICT_OK ? b->records : 0;
    if (v == VERDICT_PENDING)
        s->waiting[s->nwaiting++] = ack;
    s->offers++;
    uint32_t retry_after_ms = s->retry_after_ms;
    bool also_lost = v == VERDICT_RETRY && s->also_lost, counted = v == VERDICT_REJECT && s->counted;
    pthread_cond_broadcast(&s->offered);
    pthread_mutex_unlock(&s->lock);
    batch_unref(b);
    if (v == VERDICT_RETRY || v == VERDICT_REJECT) {
        ack_answer(ack, v, 0, "sink refuses");
        ack->now.retry_after_ms = retry_after_ms;
        ack->now.also_lost = also_lost;
        ack->now.counted = counted;
    } else if (v == VERDICT_OK) {
        ack->now = (struct outcome){0};
    }
    return v;
}
static const struct component_type sink_type = {.kind = KIND_EXPORTER, .consume = sink_consume};

static inline void sink_set(struct sink *s, enum verdict v)
{
    pthread_mutex_lock(&s->lock);
    s->verdict = v;
    pthread_mutex_unlock(&s->lock);
}
static inline unsigned sink_offers(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = s->offers;
    pthread_mutex_unlock(&s->lock);
    return n;
}
static inline unsigned sink_taken(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = s->ntaken;
    pthread_mutex_unlock(&s->lock);
    return n;
}
/* Waits until `n` offers were made (10 s at most). */
static inline void sink_wait(struct sink *s, unsigned n)
{
    uint64_t end = clock_now_ns() + 10 * NS_PER_S;
    pthread_mutex_lock(&s->lock);
    while (s->offers < n && clock_now_ns() < end)
        cond_wait_until(&s->offered, &s->lock, end);
    unsigned got = s->offers;
    pthread_mutex_unlock(&s->lock);
    assert_true(got >= n);
}

struct rig {
    struct host *host;
    struct config *config;
    struct component *c;
    struct sink sinks[2];
    unsigned nsinks;
    struct motel_settings settings;
};

/* Binds `yaml` (the component's own keys) by the table of `type` and checks it. 0 or -EINVAL with the reason in `e`. */
static inline int rig_bind(struct rig *r, const struct component_type *type, const char *yaml, void **ret,
                           struct err *e)
{
    static const struct cfg_field no_keys[] = {{0}};
    struct cfg_errors errs = {0};
    r->config = config_load_text("test.yaml", yaml, &errs);
    int rc = r->config ? 0 : -EINVAL;
    if (rc == 0) {
        struct cfg_binder b = {.arena = r->config->arena, .errors = &errs};
        *ret = arena_calloc(r->config->arena, type->config_size + 1);
        rc = !*ret ? err_set(e, -ENOMEM, "out of memory") : cfg_bind(&b, type->fields ? type->fields : no_keys, r->config->root, "x", *ret);
    }
    if (errs.n)
        *e = errs.items[0];
    cfg_errors_done(&errs);
    return rc == 0 && type->check ? type->check(*ret, e) : rc;
}

struct rig_config {
    const char *yaml, *text; /* what the error says; NULL = good */
};
/* Binds and checks each of them; no error may hold the word SEKRET. */
static inline void rig_check_configs(const struct component_type *type, const struct rig_config *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound;
        int rc = rig_bind(&r, type, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].text || (rows[i].text && !strstr(e.text, rows[i].text)))
            fail_msg("%s: %s", rows[i].yaml, e.text);
        assert_null(strstr(e.text, "SEKRET"));
        config_free(r.config);
    }
}

/* Makes the component with `nsinks` branches behind it for `s`. It is not started. */
static inline void rig_make(struct rig *r, const struct component_type *type, const char *id, enum signal s,
                            unsigned nsinks, const char *yaml)
{
    void *bound = NULL;
    struct err e = {.text = ""};
    if (rig_bind(r, type, yaml, &bound, &e) < 0)
        fail_msg("%s: %s", e.path, e.text);
    if (!r->host)
        r->host = host_new(&r->settings);
    struct component_args args = {.id = id, .signal = s, .pipeline = signal_name(s), .config = bound, .host = r->host};
    if (type->create(&args, &r->c, &e) < 0)
        fail_msg("%s", e.text);
    r->nsinks = nsinks;
    if (!nsinks)
        return;
    r->c->next[s] = fanout_new(nsinks);
    for (unsigned i = 0; i < nsinks; i++) {
        r->sinks[i] = (struct sink){.base = {.type = &sink_type, .id = "sink"}};
        pthread_mutex_init(&r->sinks[i].lock, NULL);
        cond_init_monotonic(&r->sinks[i].offered);
        fanout_set(r->c->next[s], i, &r->sinks[i].base, NULL, 1u << i);
    }
}

/* A batch of OTLP/JSON, and one of the recorded requests that have every field ("traces", "metrics", "logs"). */
static inline struct batch *rig_batch(enum signal s, const char *json)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    struct err e = {.text = ""};
    if (json_read(schema_request(s), bytes_str(json), wire, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(batch_from_wire(s, wire, &b, &e), 0);
    return b;
}
static inline struct batch *rig_all_fields(enum signal s)
{
    static uint8_t data[65536];
    char path[512];
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    snprintf(path, sizeof(path), TEST_DATA "/golden/otlp/all-fields-%s.pb", signal_name(s));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(buf_append(wire, data, fread(data, 1, sizeof(data), f)), 0);
    fclose(f);
    assert_int_equal(batch_from_wire(s, wire, &b, NULL), 0);
    return b;
}

static inline void rig_done(struct rig *r)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        fanout_free(r->c->next[s]);
    r->c->type->destroy(r->c);
    for (unsigned i = 0; i < r->nsinks; i++)
        for (unsigned k = 0; k < r->sinks[i].ntaken; k++)
            batch_unref(r->sinks[i].taken[k]);
    host_free(r->host);
    config_free(r->config);
}

/* Offers `b` and returns the verdict, which has to come at once. */
static inline enum verdict rig_offer(struct rig *r, struct batch *b, struct outcome *ret)
{
    struct fake_ack a;
    fake_ack_init(&a);
    enum verdict v = r->c->type->consume(r->c, b, &a.ack);
    assert_int_not_equal(v, VERDICT_PENDING);
    if (ret)
        *ret = a.ack.now;
    return v;
}

static inline int64_t rig_metric(struct rig *r, const char *name, const char *labels)
{
    return metric_value(metric_counter(r->host, name, "", labels));
}

#endif
