/*
 * The span_metrics connector: counts spans and measures how long they took. Spans come in, metrics
 * go out: at every interval, and what is left at the stop.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/base/clock.h"
#include "connectors/span_metrics/aggregate.h"
#include "connectors/span_metrics/encode.h"
#include "connectors/span_metrics/sender.h"

extern const struct component_type connector_span_metrics;

#define ASIDE_MAX 1000 /* more resources aside: they are exported before their time */

struct span_metrics {
    struct component base;
    const struct span_metrics_config *config;
    struct timer *timer;
    struct sender sender;
    struct metric *lost;

    pthread_mutex_t lock; /* of all below; not held while something is sent */
    struct aggregate aggregate;
    struct stamps stamps;
    uint64_t next_ns;   /* the next export; clock_now_ns() */
    uint64_t lost_told; /* lost spans of which the log knows */
    bool pending;       /* there is something that was not exported yet */
};

/* ---- exporting ---- */

static struct batch *encode(struct span_metrics *m, enum counts used, enum counts aside,
                            uint64_t time_ns)
{
    const struct encoding e = {
        .config = m->config,
        .delta = span_metrics_delta(m->config),
        .histogram_in_sums = m->aggregate.resources.histogram_in_sums,
        .used = used,
        .aside = aside,
        .time_ns = time_ns,
        .stamps = &m->stamps,
    };
    return encode_metrics(&e, &m->aggregate.resources, &m->aggregate.shape);
}

static void stamp(struct span_metrics *m, const struct resource *r, const struct series_set *set,
                  uint64_t time_ns)
{
    for (const struct series *s = set->first; s; s = s->next)
        stamps_set(&m->stamps, r->hash, s->hash, time_ns);
}

static void stamp_all(struct span_metrics *m, const struct resource_list *l, uint64_t time_ns)
{
    for (const struct resource *r = l->oldest; r; r = r->newer) {
        stamp(m, r, &r->sums, time_ns);
        stamp(m, r, &r->histograms, time_ns);
        stamp(m, r, &r->events, time_ns);
    }
}

/* True when any was exported for the first time, as zero. */
static bool mark_exported(struct series_set *set)
{
    bool any = false;
    for (struct series *s = set->first; s; s = s->next) {
        any |= s->exports == 0;
        s->exports += s->exports < 2;
    }
    return any;
}

/* `exports`: a series that has had fewer is not forgotten yet. */
static void age_set(const struct span_metrics *m, struct series_set *set, uint64_t now_ns,
                    uint8_t exports)
{
    const uint64_t age_ns = (uint64_t)m->config->series_expiration_ns;
    if (m->config->exemplars.enabled)
        series_clear_exemplars(set);
    if (age_ns && now_ns >= age_ns)
        series_expire(set, now_ns - age_ns, exports);
}

static void age_all(struct span_metrics *m, uint64_t now_ns)
{
    struct resources *all = &m->aggregate.resources;
    const uint64_t age_ns = (uint64_t)m->config->metrics_expiration_ns;
    for (struct resource *r = all->used.oldest; r; r = r->newer) {
        m->pending |= mark_exported(&r->sums);
        m->pending |= mark_exported(&r->events);
        age_set(m, &r->sums, now_ns, 2);
        age_set(m, &r->histograms, now_ns, 0);
        age_set(m, &r->events, now_ns, 2);
    }
    if (age_ns && now_ns >= age_ns)
        resources_expire(all, now_ns - age_ns);
}

/* What follows from an export. */
static void exported(struct span_metrics *m, uint64_t time_ns)
{
    struct resources *all = &m->aggregate.resources;
    m->pending = false;
    if (span_metrics_delta(m->config)) {
        stamp_all(m, &all->used, time_ns);
        stamp_all(m, &all->aside, time_ns);
        resources_drop_all(all);
        return;
    }
    resources_drop_aside(all);
    age_all(m, clock_now_ns());
}

static void tell_lost(struct span_metrics *m, uint64_t lost)
{
    if (lost == m->lost_told)
        return;
    log_error(&m->base.logger, "Out of memory. Spans are not counted.",
              LOG_INT("spans", lost - m->lost_told));
    metric_add(m->lost, (int64_t)(lost - m->lost_told));
    m->lost_told = lost;
}

/* The zeros, if there are any, and then the rest, so that they arrive in this order. */
static void send(struct span_metrics *m, struct batch *zeros, struct batch *b)
{
    if (zeros && zeros->records)
        sender_send(&m->sender, batch_ref(zeros));
    batch_unref(zeros);
    if (b)
        sender_send(&m->sender, b);
}

/*
 * Resources aside, and all of them at the stop, are exported for the last time. Who computes rates
 * needs a zero before the first count, and there is no next time: series that were never exported
 * get both, the zero at the time they began. Without memory everything stays.
 */
static bool export(struct span_metrics *m, bool last, struct batch **ret_zeros, struct batch **ret)
{
    const uint64_t time_ns = clock_wall_ns();
    const bool delta = span_metrics_delta(m->config);
    *ret_zeros = NULL;
    if (!delta && (last || m->aggregate.resources.aside.n))
        *ret_zeros = encode(m, last ? COUNTS_ZERO_ONLY : COUNTS_NONE, COUNTS_ZERO_ONLY, time_ns);
    *ret = encode(m, last ? COUNTS_REAL : COUNTS_ZERO_FIRST, COUNTS_REAL, time_ns);
    if (*ret)
        exported(m, time_ns);
    else
        *ret_zeros = batch_unref(*ret_zeros);
    return *ret;
}

static void flush(struct span_metrics *m)
{
    struct batch *zeros, *b;
    pthread_mutex_lock(&m->lock);
    const bool good = export(m, false, &zeros, &b);
    tell_lost(m, m->aggregate.lost);
    pthread_mutex_unlock(&m->lock);
    if (!good)
        log_error(&m->base.logger, "Out of memory. Metrics are exported later.");
    send(m, zeros, b);
}

/* Only what was not exported yet. */
static void flush_last(struct span_metrics *m)
{
    struct batch *zeros = NULL, *b = NULL;
    pthread_mutex_lock(&m->lock);
    const bool good = !m->pending || export(m, true, &zeros, &b);
    m->pending = false;
    tell_lost(m, m->aggregate.lost);
    pthread_mutex_unlock(&m->lock);
    if (!good)
        log_error(&m->base.logger, "Out of memory. The last metrics are lost.");
    send(m, zeros, b);
}

static void on_timer(void *ctx)
{
    struct span_metrics *m = ctx;
    const uint64_t interval_ns = (uint64_t)m->config->flush_interval_ns;
    flush(m);
    const uint64_t now = clock_now_ns();
    pthread_mutex_lock(&m->lock);
    if (m->next_ns <= now)
        m->next_ns += interval_ns * ((now - m->next_ns) / interval_ns + 1);
    const uint64_t next_ns = m->next_ns;
    pthread_mutex_unlock(&m->lock);
    timer_arm(m->timer, next_ns);
}

/* ---- the component ---- */

static enum verdict span_metrics_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct span_metrics *m = (struct span_metrics *)c;
    const uint64_t wall_ns = clock_wall_ns(), now_ns = clock_now_ns();
    pthread_mutex_lock(&m->lock);
    m->pending |= aggregate_batch(&m->aggregate, b, wall_ns, now_ns);
    const bool early = m->aggregate.resources.aside.n > ASIDE_MAX && m->next_ns;
    pthread_mutex_unlock(&m->lock);
    if (early)
        timer_arm(m->timer, now_ns);
    batch_unref(b);
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}

static int span_metrics_start(struct component *c, struct err *reterr)
{
    struct span_metrics *m = (struct span_metrics *)c;
    (void)reterr;
    m->next_ns = clock_now_ns() + (uint64_t)m->config->flush_interval_ns;
    timer_arm(m->timer, m->next_ns);
    return 0;
}

/* Downstream needs time after us: half of what is left is for offering again. */
static void span_metrics_stop(struct component *c, uint64_t deadline_ns)
{
    struct span_metrics *m = (struct span_metrics *)c;
    const uint64_t now = clock_now_ns();
    m->timer = timer_free(m->timer); /* an export that runs now has ended after it */
    flush_last(m);
    sender_drain(&m->sender, deadline_ns > now ? now + (deadline_ns - now) / 2 : now);
}

static void span_metrics_destroy(struct component *c)
{
    struct span_metrics *m = (struct span_metrics *)c;
    if (!m)
        return;
    timer_free(m->timer);
    sender_done(&m->sender);
    aggregate_done(&m->aggregate);
    stamps_done(&m->stamps);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* What is taken, but not as it stands in the file. */
static void warn_about(const struct span_metrics *m)
{
    const struct span_metrics_config *c = m->config;
    const struct explicit_config *own = c->histogram.explicit_buckets;
    const int64_t *buckets = own ? own->buckets.items : NULL;
    bool ascend = true;
    for (size_t i = 1; own && i < own->buckets.n; i++)
        ascend &= buckets[i - 1] < buckets[i];
    if (!ascend)
        log_warn(&m->base.logger, "histogram::explicit::buckets do not ascend. They are sorted.");
    if (c->dimensions_cache_size)
        log_warn(&m->base.logger, "dimensions_cache_size is deprecated and has no effect; use "
                                  "aggregation_cardinality_limit instead.");
}

static int span_metrics_create(const struct component_args *args, struct component **ret,
                               struct err *reterr)
{
    struct span_metrics *m = calloc(1, sizeof(*m));
    char labels[METRIC_LABELS_MAX] = "";
    if (!m)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&m->base, &connector_span_metrics, args);
    m->config = args->config;
    m->stamps.max = (size_t)m->config->timestamp_cache_size;
    pthread_mutex_init(&m->lock, NULL);
    metric_label(labels, "connector", args->id);
    m->lost = metric_counter(args->host, "motel_connector_lost_spans",
                             "Spans that were not counted for want of memory.", labels);
    int r = aggregate_init(&m->aggregate, m->config, reterr);
    if (r == 0 && sender_init(&m->sender, &m->base) < 0)
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r == 0 && !(m->timer = timer_new(args->host, on_timer, m)))
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        span_metrics_destroy(&m->base);
        return r;
    }
    warn_about(m);
    *ret = &m->base;
    return 0;
}

const struct component_type connector_span_metrics = {
    .kind = KIND_CONNECTOR,
    .name = "span_metrics",
    .aliases = (const char *const[]){"spanmetrics", NULL},
    .accepts = SIGNAL_BIT(SIGNAL_TRACES),
    .emits = SIGNAL_BIT(SIGNAL_METRICS),
    .stability = {"alpha"},
    .help = "Counts spans and measures their durations.",
    .fields = span_metrics_fields,
    .config_size = sizeof(struct span_metrics_config),
    .check = span_metrics_check,
    .create = span_metrics_create,
    .start = span_metrics_start,
    .stop = span_metrics_stop,
    .destroy = span_metrics_destroy,
    .consume = span_metrics_consume,
};
