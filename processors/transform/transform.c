/* The transform processor: statements of the OpenTelemetry Transformation Language on every
 * resource, span, metric, log record … */
#include <errno.h>
#include <pthread.h>

#include "agent/base/regex.h"
#include "agent/pipeline/component.h"
#include "agent/pipeline/host.h"
#include "ottl/walk.h"
#include "processors/transform/groups.h"
#include "proto/status.h"

struct transform_config {
    const char *error_mode;
    struct cfg_list statements[SIGNAL_COUNT]; /* of struct group_config */
    bool flatten_data;
};

struct transform {
    struct component base;
    struct transform_groups *groups;
    struct metric *errors;
    struct ottl_walk_memory memory;
    pthread_mutex_t lock; /* of what follows; held while a group with a shared cache runs */
    struct buf *shared[OTTL_CONTEXT_COUNT]; /* encoded caches; NULL = empty */
};

extern const struct component_type processor_transform;

static const char *const keys[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = "trace_statements",
    [SIGNAL_METRICS] = "metric_statements",
    [SIGNAL_LOGS] = "log_statements",
};

/* ---- life cycle ---- */

static int compile(const struct transform_config *c, enum signal s, struct transform_groups **ret,
                   struct err *reterr)
{
    enum error_mode mode;
    if (transform_error_mode(c->error_mode, ERRORS_IGNORE, &mode, reterr) < 0) {
        snprintf(reterr->path, sizeof(reterr->path), "error_mode");
        return -EINVAL;
    }
    return transform_groups_new(&c->statements[s], keys[s], s, mode, ret, reterr);
}

static int transform_check(const void *config, struct err *reterr)
{
    const struct transform_config *c = config;
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        _cleanup_(transform_groups_freep) struct transform_groups *groups = NULL;
        int r = compile(c, (enum signal)s, &groups, reterr);
        if (r < 0)
            return r;
    }
    if (c->flatten_data)
        return err_at(reterr, "flatten_data",
                      "'flatten_data' requires the 'transform.flatten.logs' feature gate to be "
                      "enabled, which motel does not have");
    return 0;
}

static void transform_destroy(struct component *c)
{
    struct transform *t = (struct transform *)c;
    if (!t)
        return;
    metric_unobserve(t->base.host, t);
    for (size_t i = 0; i < OTTL_CONTEXT_COUNT; i++)
        buf_unref(t->shared[i]);
    ottl_walk_memory_done(&t->memory);
    transform_groups_free(t->groups);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static int64_t read_cut_off(void *ctx)
{
    (void)ctx;
    return (int64_t)regex_cut_off();
}

static void make_metrics(struct transform *t, const struct component_args *args)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "otel_signal", signal_name(args->signal));
    metric_label(labels, "processor", args->id);
    t->errors = metric_counter(args->host, "motel_processor_transform_errors",
                               "Statements and conditions that failed on an item.", labels);
    metric_observe(args->host, "motel_regex_cut_off",
                   "Searches of regular expressions that were given up for taking too many steps "
                   "and counted as no match.",
                   "", read_cut_off, t);
}

static int transform_create(const struct component_args *args, struct component **ret,
                            struct err *reterr)
{
    struct transform *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&t->base, &processor_transform, args);
    pthread_mutex_init(&t->lock, NULL);
    make_metrics(t, args);
    int r = compile(args->config, args->signal, &t->groups, reterr);
    if (r < 0)
        transform_destroy(&t->base);
    else
        *ret = &t->base;
    return r;
}

/* ---- data path ---- */

/* One group on one batch. */
struct run {
    struct transform *t;
    const struct transform_group *group;
};

/* An error of a statement or condition. 0: go on. */
static int failed(struct run *run, struct ottl_env *env, bool statement, struct bytes text)
{
    const char *what = statement ? "failed to execute statement" : "failed to eval condition";
    ottl_hide_values(env->err, text);
    metric_add(run->t->errors, 1);
    if (run->group->error_mode == ERRORS_SILENT)
        return 0;
    char quoted[512];
    snprintf(quoted, sizeof(quoted), "%.*s", (int)text.len, (const char *)text.data);
    if (run->group->error_mode == ERRORS_PROPAGATE) {
        err_prefix(env->err, "%s: %s, ", what, quoted);
        return -EINVAL;
    }
    log_warn(&run->t->base.logger, what, LOG_STR("error", env->err->text),
             LOG_STR(statement ? "statement" : "condition", quoted));
    return 0;
}

/* Whether the item is taken: one condition holds, or there are none. */
static int holds(struct run *run, struct ottl_env *env, bool *ret)
{
    const struct transform_group *g = run->group;
    *ret = g->nconditions == 0;
    for (size_t i = 0; !*ret && i < g->nconditions; i++) {
        int r = ottl_condition_eval(g->conditions[i], env, ret);
        if (r == -EINVAL) {
            *ret = false;
            r = failed(run, env, false, ottl_condition_text(g->conditions[i]));
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int run_statements(struct run *run, struct ottl_env *env)
{
    const struct transform_group *g = run->group;
    bool taken;
    int r = holds(run, env, &taken);
    for (size_t i = 0; r == 0 && taken && i < g->nstatements; i++) {
        r = ottl_statement_run(g->statements[i], env, NULL);
        if (r == -EINVAL)
            r = failed(run, env, true, ottl_statement_text(g->statements[i]));
    }
    return r;
}

static enum ottl_visit verdict_of(int r)
{
    return r == 0 ? OTTL_KEEP : r == -EINVAL ? OTTL_STOP : OTTL_NO_MEMORY;
}

static enum ottl_visit visit(void *ctx, struct ottl_env *env)
{
    return verdict_of(run_statements(ctx, env));
}

/* The same with the cache of the group read before and kept afterwards. */
static enum ottl_visit visit_shared(void *ctx, struct ottl_env *env)
{
    struct run *run = ctx;
    enum ottl_context c = run->group->context;
    struct buf **shared = &run->t->shared[c];
    if (*shared && ottl_map_decode(env->arena, buf_bytes(*shared), 1, &env->cache[c]) < 0)
        return OTTL_NO_MEMORY;
    int r = run_statements(run, env);
    struct buf *now = buf_new(0);
    if (!now || (env->cache[c] && ottl_map_encode(env->cache[c], 1, now) < 0)) {
        buf_unref(now);
        return OTTL_NO_MEMORY;
    }
    buf_unref(*shared);
    *shared = now;
    return verdict_of(r);
}

static int run_group(struct transform *t, const struct transform_group *g, struct batch **b,
                     struct err *reterr)
{
    struct run run = {.t = t, .group = g};
    struct ottl_walk w = {.context = g->context, .visit = visit, .ctx = &run, .memory = &t->memory};
    struct batch *out = NULL;
    if (g->shared_cache) {
        w.visit = visit_shared;
        pthread_mutex_lock(&t->lock);
    }
    int r = ottl_walk(&w, *b, &out, reterr);
    if (g->shared_cache)
        pthread_mutex_unlock(&t->lock);
    if (r == 0) {
        batch_unref(*b);
        *b = out;
    }
    return r;
}

static enum verdict transform_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct transform *t = (struct transform *)c;
    struct err e = {.text = ""};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->groups->n; i++)
        r = run_group(t, &t->groups->items[i], &b, &e);
    if (r == 0)
        return component_emit(c, b, ack);
    enum signal s = b->signal;
    batch_unref(b);
    if (r == -ENOMEM)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    char what[64];
    snprintf(what, sizeof(what), "failed processing %s", signal_name(s));
    log_error(&t->base.logger, what, LOG_STR("error", e.text));
    /* The client is told what the reference tells it; for who holds the data, another try is no
     * use. */
    return ack_answer(ack, VERDICT_REJECT, RPC_UNAVAILABLE, "%s", e.text);
}

static const struct cfg_field fields[] = {
    {.key = "error_mode",
     .kind = BIND_STRING,
     CFG_AT(struct transform_config, error_mode),
     .def = "ignore",
     .help = "When a statement or condition fails on an item: ignore logs it and goes on with the "
             "next statement, silent goes on, propagate refuses the whole request."},
    {.key = "trace_statements",
     .kind = BIND_LIST,
     CFG_AT(struct transform_config, statements[SIGNAL_TRACES]),
     .elem = &transform_group_elem,
     .help = "For traces: statements, or groups of them."},
    {.key = "metric_statements",
     .kind = BIND_LIST,
     CFG_AT(struct transform_config, statements[SIGNAL_METRICS]),
     .elem = &transform_group_elem,
     .help = "For metrics."},
    {.key = "log_statements",
     .kind = BIND_LIST,
     CFG_AT(struct transform_config, statements[SIGNAL_LOGS]),
     .elem = &transform_group_elem,
     .help = "For logs."},
    {.key = "profile_statements",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "motel has no profiles"},
    {.key = "flatten_data",
     .kind = BIND_BOOL,
     CFG_AT(struct transform_config, flatten_data),
     .help = "Only false: it needs a feature gate that motel does not have."},
    {0}};

const struct component_type processor_transform = {
    .kind = KIND_PROCESSOR,
    .name = "transform",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Changes telemetry by statements of the OpenTelemetry Transformation Language.",
    .fields = fields,
    .config_size = sizeof(struct transform_config),
    .check = transform_check,
    .create = transform_create,
    .destroy = transform_destroy,
    .consume = transform_consume,
};
