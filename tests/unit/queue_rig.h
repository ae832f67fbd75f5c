/* A queue in front of a backend that answers as it is told. Include after cmocka.h. */
#ifndef MOTEL_TESTS_QUEUE_RIG_H
#define MOTEL_TESTS_QUEUE_RIG_H

#include "agent/pipeline/queue.h"
#include "fake_pipeline.h"

#define MS(n) ((int64_t)(n) * (int64_t)NS_PER_MS)
#define HOUR_NS ((int64_t)3600 * (int64_t)NS_PER_S)

/* A backend: calls wait at a gate until they are let through, then answer. */
struct sink {
    struct component base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut; /* the gate */
    bool stopped;
    unsigned inside, most_inside, calls, passed;
    uint32_t records; /* of batches answered OK */
    uint32_t poison;  /* batches of this many records are refused for ever */
    enum verdict verdict;
    struct outcome outcome;
    uint64_t deadline_ns; /* of the last call */
};

static inline enum verdict sink_send(struct component *c, const struct batch *b, uint64_t deadline_ns,
                              struct outcome *out)
{
    struct sink *s = container_of(c, struct sink, base);
    pthread_mutex_lock(&s->lock);
    s->calls++;
    s->deadline_ns = deadline_ns;
    if (++s->inside > s->most_inside)
        s->most_inside = s->inside;
    pthread_cond_broadcast(&s->changed);
    while (s->shut && !s->stopped)
        pthread_cond_wait(&s->changed, &s->lock);
    enum verdict v =
        s->stopped || (s->poison && b->records == s->poison) ? VERDICT_RETRY : s->verdict;
    *out = s->outcome;
    s->inside--;
    s->passed++;
    if (v == VERDICT_OK)
        s->records += b->records;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return v;
}

static inline void sink_stop(struct component *c, uint64_t deadline_ns)
{
    struct sink *s = container_of(c, struct sink, base);
    (void)deadline_ns;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static const struct component_type sink_type = {
    .kind = KIND_EXPORTER, .name = "sink", .send = sink_send, .stop = sink_stop};

static inline void sink_set(struct sink *s, bool shut, enum verdict v)
{
    pthread_mutex_lock(&s->lock);
    s->shut = shut;
    s->verdict = v;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Waits until `*n` is at least `want`. */
static inline void sink_wait(struct sink *s, const unsigned *n, unsigned want)
{
    pthread_mutex_lock(&s->lock);
    while (*n < want)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static inline uint64_t sink_get(struct sink *s, const void *n, size_t size)
{
    uint64_t value = 0;
    pthread_mutex_lock(&s->lock);
    memcpy(&value, n, size);
    pthread_mutex_unlock(&s->lock);
    return value;
}
#define SINK(f, member) sink_get(&(f)->sink, &(f)->sink.member, sizeof((f)->sink.member))

struct fixture {
    struct host *host;
    struct sink sink;
    struct queue_settings queue_settings;
    struct exporter_settings settings;
    struct queue *queue;
    struct exporter_metrics metrics;
    size_t mem_before;
};

/* Two workers, room for four requests, pauses of an hour. */
static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->mem_before = mem_used();
    f->host = host_new(NULL);
    f->sink = (struct sink){.base = {.type = &sink_type, .id = "sink/x", .host = f->host}};
    pthread_mutex_init(&f->sink.lock, NULL);
    pthread_cond_init(&f->sink.changed, NULL);
    f->queue_settings = (struct queue_settings){.num_consumers = 2, .queue_size = 4};
    f->settings = (struct exporter_settings){.queue = &f->queue_settings,
                                             .retry = {.enabled = true,
                                                       .initial_interval_ns = HOUR_NS,
                                                       .max_interval_ns = HOUR_NS,
                                                       .multiplier = 1.5}};
    exporter_metrics_get(f->host, "sink/x", SIGNAL_TRACES, &f->metrics);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    sink_set(&f->sink, false, VERDICT_OK);
    f->queue = queue_free(f->queue);
    host_free(f->host);
    int leaked = mem_used() != f->mem_before;
    free(f);
    return leaked;
}

static inline void start(struct fixture *f)
{
    f->queue = queue_new(&f->sink.base, &f->settings, SIGNAL_TRACES, NULL);
    assert_non_null(f->queue);
}

static inline enum verdict offer(struct fixture *f, uint32_t records, struct fake_ack *ack)
{
    fake_ack_init(ack);
    return queue_offer(f->queue, fake_batch(SIGNAL_TRACES, records), &ack->ack);
}

static inline void offer_ok(struct fixture *f, uint32_t records)
{
    struct fake_ack ack;
    assert_int_equal(offer(f, records, &ack), VERDICT_OK);
}

static inline int64_t gauge(struct fixture *f, const char *name)
{
    return metric_value(
        metric_gauge(f->host, name, "", "data_type=\"traces\",exporter=\"sink/x\""));
}

#endif
