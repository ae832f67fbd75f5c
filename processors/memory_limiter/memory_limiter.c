/*
 * The memory limiter: refuses data, to be sent again later, while the process uses more memory than
 * it should. What is in use is known at every moment, so it answers at once; the check interval is
 * for what the allocator keeps, and for the log. Receivers ask for the limit (memory_limit()) and
 * refuse what there is no room for before they read it.
 */
#include <errno.h>
#include <string.h>

#include "agent/base/cgroup.h"
#include "agent/base/clock.h"
#include "agent/pipeline/memory_gate.h"

#define MIB ((uint64_t)1 << 20)

struct memory_limiter_config {
    int64_t check_interval_ns;
    int64_t min_gc_soft_ns, min_gc_hard_ns, max_gc_soft_ns, max_gc_hard_ns;
    int64_t limit_mib, spike_limit_mib, limit_percentage, spike_limit_percentage;
};

/* What all pipelines with the same configuration share. */
struct state {
    char *id;
    size_t hard, soft;
    uint64_t interval_ns;
    struct logger logger;
    struct timer *timer;
    atomic_bool refusing;
    atomic_uint running; /* started instances; the last one stops the timer */
};

struct memory_limiter {
    struct component base;
    struct shared *shared;
    struct state *state;
    struct metric *accepted, *refused;
    bool started;
};

extern const struct component_type processor_memory_limiter;

/* ---- configuration ---- */

static const char *gc_mistake(const struct memory_limiter_config *c)
{
    if (c->min_gc_soft_ns < c->min_gc_hard_ns)
        return "'min_gc_interval_when_soft_limited' should be larger than "
               "'min_gc_interval_when_hard_limited'";
    if (c->max_gc_soft_ns < 0)
        return "'max_gc_interval_when_soft_limited' must be non-negative";
    if (c->max_gc_hard_ns < 0)
        return "'max_gc_interval_when_hard_limited' must be non-negative";
    if (c->max_gc_soft_ns && c->max_gc_soft_ns < c->min_gc_soft_ns)
        return "'max_gc_interval_when_soft_limited' must be greater than or equal to "
               "'min_gc_interval_when_soft_limited' (or 0 to disable)";
    if (c->max_gc_hard_ns && c->max_gc_hard_ns < c->min_gc_hard_ns)
        return "'max_gc_interval_when_hard_limited' must be greater than or equal to "
               "'min_gc_interval_when_hard_limited' (or 0 to disable)";
    if (c->max_gc_soft_ns && c->max_gc_hard_ns && c->max_gc_soft_ns < c->max_gc_hard_ns)
        return "'max_gc_interval_when_soft_limited' should be larger than or equal to "
               "'max_gc_interval_when_hard_limited' (when both are set)";
    return NULL;
}

static const char *limit_mistake(const struct memory_limiter_config *c)
{
    if (!c->limit_mib && !c->limit_percentage)
        return "'limit_mib' or 'limit_percentage' must be greater than zero";
    if (c->limit_percentage > 100 || c->spike_limit_percentage > 100)
        return "'limit_percentage' and 'spike_limit_percentage' must be greater than zero and "
               "less than or equal to hundred";
    if (c->limit_mib && c->limit_mib <= c->spike_limit_mib)
        return "'spike_limit_mib' must be smaller than 'limit_mib'";
    if (c->limit_percentage && c->limit_percentage <= c->spike_limit_percentage)
        return "'spike_limit_percentage' must be smaller than 'limit_percentage'";
    return NULL;
}

static int memory_limiter_check(const void *config, struct err *reterr)
{
    const struct memory_limiter_config *c = config;
    const char *mistake =
        c->check_interval_ns <= 0 ? "'check_interval' must be greater than zero" : gc_mistake(c);
    if (!mistake)
        mistake = limit_mistake(c);
    return mistake ? err_set(reterr, -EINVAL, "%s", mistake) : 0;
}

static void limits(const struct memory_limiter_config *c, size_t *ret_hard, size_t *ret_soft)
{
    const uint64_t percent = machine_memory() / 100;
    const uint64_t hard =
        c->limit_mib ? (uint64_t)c->limit_mib * MIB : (uint64_t)c->limit_percentage * percent;
    uint64_t spike = c->limit_mib ? (uint64_t)c->spike_limit_mib * MIB
                                  : (uint64_t)c->spike_limit_percentage * percent;
    if (!spike)
        spike = hard / 5;
    *ret_hard = (size_t)hard;
    *ret_soft = (size_t)(hard - spike);
}

/* ---- the shared state ---- */

static void note(struct state *s, bool refuse)
{
    if (atomic_exchange(&s->refusing, refuse) == refuse)
        return;
    const int64_t in_use_mib = (int64_t)(mem_in_use() / MIB);
    if (refuse)
        log_warn(&s->logger, "Memory usage is above soft limit. Refusing data.",
                 LOG_INT("cur_mem_mib", in_use_mib));
    else
        log_info(&s->logger, "Memory usage back within limits. Resuming normal operation.",
                 LOG_INT("cur_mem_mib", in_use_mib));
}

static void on_check(void *ctx)
{
    struct state *s = ctx;
    mem_look();
    note(s, !mem_room(s->soft, 0));
    if (atomic_load(&s->running))
        timer_arm(s->timer, clock_now_ns() + s->interval_ns);
}

static void state_close(void *thing)
{
    struct state *s = thing;
    if (!s)
        return;
    timer_free(s->timer);
    mem_limit_remove(s->hard);
    free(s->id);
    free(s);
}

static int state_open(void *ctx, void **ret, struct err *reterr)
{
    const struct component_args *args = ctx;
    const struct memory_limiter_config *c = args->config;
    struct state *s = calloc(1, sizeof(*s));
    if (s) {
        limits(c, &s->hard, &s->soft);
        mem_limit_add(s->hard);
        s->interval_ns = (uint64_t)c->check_interval_ns;
        s->id = strdup(args->id);
        s->logger = (struct logger){.id = s->id, .kind = "processor"};
        s->timer = timer_new(args->host, on_check, s);
    }
    if (!s || !s->id || !s->timer) {
        state_close(s);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    *ret = s;
    return 0;
}

/* ---- life cycle ---- */

static int memory_limiter_start(struct component *c, _unused_ struct err *reterr)
{
    struct memory_limiter *m = (struct memory_limiter *)c;
    struct state *s = m->state;
    m->started = true;
    if (atomic_fetch_add(&s->running, 1) > 0)
        return 0;
    log_info(&s->logger, "Memory limiter configured", LOG_INT("limit_mib", s->hard / MIB),
             LOG_INT("spike_limit_mib", (s->hard - s->soft) / MIB),
             LOG_DBL("check_interval", (double)s->interval_ns / (double)NS_PER_S));
    timer_arm(s->timer, clock_now_ns() + s->interval_ns);
    return 0;
}

static void memory_limiter_stop(struct component *c, _unused_ uint64_t deadline_ns)
{
    struct memory_limiter *m = (struct memory_limiter *)c;
    if (m->started)
        atomic_fetch_sub(&m->state->running, 1);
    m->started = false;
}

static void memory_limiter_destroy(struct component *c)
{
    struct memory_limiter *m = (struct memory_limiter *)c;
    if (!m)
        return;
    memory_limiter_stop(c, 0);
    host_unshare(c->host, m->shared);
    free(m);
}

static struct metric *records_metric(const struct component_args *args, const char *what,
                                     const char *help)
{
    char name[80], labels[METRIC_LABELS_MAX] = "";
    snprintf(name, sizeof(name), "otelcol_processor_memory_limiter_%s_%s", what,
             signal_records_name(args->signal));
    metric_label(labels, "processor", args->id);
    return metric_counter(args->host, name, help, labels);
}

static int memory_limiter_create(const struct component_args *args, struct component **ret,
                                 struct err *reterr)
{
    const struct memory_limiter_config *c = args->config;
    struct memory_limiter *m = calloc(1, sizeof(*m));
    char key[256];
    size_t hard, soft;
    if (!m)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&m->base, &processor_memory_limiter, args);
    limits(c, &hard, &soft);
    snprintf(key, sizeof(key), "memory_limiter:%zu:%zu:%lld:%s", hard, soft,
             (long long)c->check_interval_ns, args->id);
    m->shared = host_share(args->host, key, state_open, (void *)args, state_close, reterr);
    if (!m->shared) {
        memory_limiter_destroy(&m->base);
        return -ENOMEM;
    }
    m->state = m->shared->thing;
    m->accepted = records_metric(args, "accepted", "Records that went on.");
    m->refused = records_metric(args, "refused", "Records that were refused; senders try again.");
    *ret = &m->base;
    return 0;
}

/* ---- data path ---- */

static enum verdict memory_limiter_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct memory_limiter *m = (struct memory_limiter *)c;
    if (mem_room(m->state->soft, 0)) {
        metric_add(m->accepted, b->records);
        return component_emit(c, b, ack);
    }
    note(m->state, true);
    metric_add(m->refused, b->records);
    batch_unref(b);
    return ack_answer(ack, VERDICT_RETRY, 0, "%s", MEMORY_REFUSED);
}

static size_t memory_limiter_limit(const struct component *c)
{
    return ((const struct memory_limiter *)c)->state->soft;
}

static const struct cfg_field fields[] = {
    {.key = "check_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct memory_limiter_config, check_interval_ns),
     .help = "How often resident memory is measured and changes are logged; must be given. What is "
             "live is known at every moment."},
    {.key = "limit_mib",
     .kind = BIND_INT,
     CFG_AT(struct memory_limiter_config, limit_mib),
     CFG_MORE(.unit = "MiB", .min = 0, .max = UINT32_MAX),
     .help = "Most memory that the process is meant to use."},
    {.key = "spike_limit_mib",
     .kind = BIND_INT,
     CFG_AT(struct memory_limiter_config, spike_limit_mib),
     CFG_MORE(.unit = "MiB", .min = 0, .max = UINT32_MAX),
     .help = "How far below the limit data is refused; 0 means 20 % of the limit."},
    {.key = "limit_percentage",
     .kind = BIND_INT,
     CFG_AT(struct memory_limiter_config, limit_percentage),
     CFG_MORE(.unit = "%", .min = 0, .max = UINT32_MAX),
     .help = "The limit as a share of the container's or machine's memory; limit_mib goes first. "
             "One of the two must be given."},
    {.key = "spike_limit_percentage",
     .kind = BIND_INT,
     CFG_AT(struct memory_limiter_config, spike_limit_percentage),
     CFG_MORE(.unit = "%", .min = 0, .max = UINT32_MAX),
     .help = "spike_limit_mib as such a share; used with limit_percentage."},
    {.key = "min_gc_interval_when_soft_limited",
     .kind = BIND_DURATION,
     CFG_AT(struct memory_limiter_config, min_gc_soft_ns),
     .def = "10s",
     .use = CFG_NO_EFFECT,
     .help = "Checked, without effect: there is no garbage collector."},
    {.key = "min_gc_interval_when_hard_limited",
     .kind = BIND_DURATION,
     CFG_AT(struct memory_limiter_config, min_gc_hard_ns),
     .def = "0s",
     .use = CFG_NO_EFFECT,
     .help = "Checked, without effect."},
    {.key = "max_gc_interval_when_soft_limited",
     .kind = BIND_DURATION,
     CFG_AT(struct memory_limiter_config, max_gc_soft_ns),
     .def = "30s",
     .use = CFG_NO_EFFECT,
     .help = "Checked, without effect."},
    {.key = "max_gc_interval_when_hard_limited",
     .kind = BIND_DURATION,
     CFG_AT(struct memory_limiter_config, max_gc_hard_ns),
     .def = "30s",
     .use = CFG_NO_EFFECT,
     .help = "Checked, without effect."},
    {0}};

const struct component_type processor_memory_limiter = {
    .kind = KIND_PROCESSOR,
    .name = "memory_limiter",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Refuses data, to be sent again later, while the process uses too much memory.",
    .fields = fields,
    .config_size = sizeof(struct memory_limiter_config),
    .check = memory_limiter_check,
    .create = memory_limiter_create,
    .start = memory_limiter_start,
    .stop = memory_limiter_stop,
    .destroy = memory_limiter_destroy,
    .consume = memory_limiter_consume,
    .memory_limit = memory_limiter_limit,
};
