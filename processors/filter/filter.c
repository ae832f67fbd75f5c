/* The filter processor: drops what conditions hold for, or, by its older keys, what include and
 * exclude leave out. */
#include <errno.h>
#include <stdlib.h>

#include "agent/pipeline/component.h"
#include "agent/pipeline/host.h"
#include "agent/pipeline/record_match.h"
#include "ottl/walk.h"
#include "processors/filter/conditions.h"
#include "proto/rewrite.h"
#include "proto/status.h"

struct filter_traces {
    struct cfg_list resource, span, spanevent; /* of const char * */
};
struct filter_metrics {
    struct cfg_list resource, metric, datapoint;
    struct match_config *include, *exclude;
    const struct cfg_value *regexp;
};
struct filter_logs {
    struct cfg_list resource, log_record;
    struct match_config *include, *exclude;
};
struct filter_spans {
    struct match_config *include, *exclude;
};
struct filter_config {
    int error_mode;
    struct cfg_list conditions[SIGNAL_COUNT]; /* of struct filter_item */
    struct filter_traces traces;
    struct filter_metrics metrics;
    struct filter_logs logs;
    struct filter_spans spans;
};

struct filter {
    struct component base;
    struct filter_groups groups;
    struct record_match *include, *excludes[2]; /* NULL = not asked; one of the two is enough */
    struct metric *filtered, *errors;
    struct ottl_walk_memory memory;
};

extern const struct component_type processor_filter;

static const char *const keys[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = "trace_conditions",
    [SIGNAL_METRICS] = "metric_conditions",
    [SIGNAL_LOGS] = "log_conditions",
};

/* ---- what the configuration asks of one signal ---- */

/* One list of the older style. */
struct old_list {
    const struct cfg_list *list;
    const char *key;
    enum ottl_context context;
};
struct old_style {
    struct old_list lists[3];
    const struct match_config *include, *exclude;
    const char *include_key, *exclude_key;
};

static struct old_style old_style(const struct filter_config *c, enum signal s)
{
    switch (s) {
    case SIGNAL_TRACES:
        return (struct old_style){
            .lists = {{&c->traces.resource, "traces::resource", OTTL_RESOURCE},
                      {&c->traces.span, "traces::span", OTTL_SPAN},
                      {&c->traces.spanevent, "traces::spanevent", OTTL_SPANEVENT}},
            .include = c->spans.include,
            .exclude = c->spans.exclude,
            .include_key = "spans::include",
            .exclude_key = "spans::exclude"};
    case SIGNAL_METRICS:
        return (struct old_style){
            .lists = {{&c->metrics.resource, "metrics::resource", OTTL_RESOURCE},
                      {&c->metrics.metric, "metrics::metric", OTTL_METRIC},
                      {&c->metrics.datapoint, "metrics::datapoint", OTTL_DATAPOINT}},
            .include = c->metrics.include,
            .exclude = c->metrics.exclude,
            .include_key = "metrics::include",
            .exclude_key = "metrics::exclude"};
    default:
        return (struct old_style){.lists = {{&c->logs.resource, "logs::resource", OTTL_RESOURCE},
                                            {&c->logs.log_record, "logs::log_record", OTTL_LOG},
                                            {NULL, NULL, OTTL_LOG}},
                                  .include = c->logs.include,
                                  .exclude = c->logs.exclude,
                                  .include_key = "logs::include",
                                  .exclude_key = "logs::exclude"};
    }
}

/* The three styles exclude each other within a signal. */
static int check_style(const struct filter_config *c, enum signal s, const struct old_style *old,
                       struct err *reterr)
{
    const char *first = NULL;
    const char *match = old->include ? old->include_key : old->exclude ? old->exclude_key : NULL;
    for (size_t i = 0; !first && i < ARRAY_SIZE(old->lists); i++)
        if (old->lists[i].list && old->lists[i].list->n)
            first = old->lists[i].key;
    if (c->conditions[s].n && (first || match))
        return err_at(reterr, keys[s], "%s and %s cannot be used at the same time", keys[s],
                      first ? first : match);
    if (first && match)
        return err_at(reterr, match, "%s and %s cannot be used at the same time", first, match);
    return 0;
}

static int compile_groups(const struct filter_config *c, enum signal s, const struct old_style *old,
                          struct filter_groups *g, struct err *reterr)
{
    const enum filter_errors errors = (enum filter_errors)c->error_mode;
    int r = filter_groups_add(g, &c->conditions[s], keys[s], s, errors, reterr);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(old->lists); i++)
        if (old->lists[i].list)
            r = filter_groups_add_list(g, old->lists[i].list, old->lists[i].key,
                                       old->lists[i].context, errors, reterr);
    return r;
}

/* Of metrics, names and resources each exclude for themselves. */
static int compile_exclude(const struct old_style *old, enum signal s, struct filter *f,
                           struct err *reterr)
{
    struct match_config names = *old->exclude, resources = *old->exclude;
    if (s != SIGNAL_METRICS || !names.metric_names.n || !names.resources.n)
        return record_match_new(old->exclude, old->exclude_key, s, &f->excludes[0], reterr);
    names.resources.n = 0;
    resources.metric_names.n = 0;
    int r = record_match_new(&names, old->exclude_key, s, &f->excludes[0], reterr);
    return r < 0 ? r : record_match_new(&resources, old->exclude_key, s, &f->excludes[1], reterr);
}

static int compile(const struct filter_config *c, enum signal s, struct filter *f,
                   struct err *reterr)
{
    const struct old_style old = old_style(c, s);
    int r = check_style(c, s, &old, reterr);
    if (r == 0)
        r = compile_groups(c, s, &old, &f->groups, reterr);
    if (r == 0 && old.include)
        r = record_match_new(old.include, old.include_key, s, &f->include, reterr);
    if (r == 0 && old.exclude)
        r = compile_exclude(&old, s, f, reterr);
    return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
}

static void compiled_done(struct filter *f)
{
    filter_groups_done(&f->groups);
    record_match_free(f->include);
    record_match_free(f->excludes[0]);
    record_match_free(f->excludes[1]);
}

/* ---- life cycle ---- */

static int filter_check(const void *config, struct err *reterr)
{
    int r = 0;
    for (int s = 0; r == 0 && s < SIGNAL_COUNT; s++) {
        struct filter f = {.groups = {0}};
        r = compile(config, (enum signal)s, &f, reterr);
        compiled_done(&f);
    }
    return r;
}

static void filter_destroy(struct component *c)
{
    struct filter *f = (struct filter *)c;
    if (!f)
        return;
    ottl_walk_memory_done(&f->memory);
    compiled_done(f);
    free(f);
}

static void make_metrics(struct filter *f, const struct component_args *args)
{
    static const char *const names[SIGNAL_COUNT] = {
        [SIGNAL_TRACES] = "otelcol_processor_filter_spans_filtered",
        [SIGNAL_METRICS] = "otelcol_processor_filter_datapoints_filtered",
        [SIGNAL_LOGS] = "otelcol_processor_filter_logs_filtered",
    };
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "filter", args->id);
    f->filtered = metric_counter(args->host, names[args->signal],
                                 "Records that the filter processor dropped.", labels);
    f->errors = metric_counter(args->host, "motel_processor_filter_errors",
                               "Conditions that failed on an item.", labels);
}

static int filter_create(const struct component_args *args, struct component **ret,
                         struct err *reterr)
{
    struct filter *f = calloc(1, sizeof(*f));
    if (!f)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&f->base, &processor_filter, args);
    int r = compile(args->config, args->signal, f, reterr);
    if (r < 0) {
        filter_destroy(&f->base);
        return r;
    }
    make_metrics(f, args);
    *ret = &f->base;
    return 0;
}

/* ---- data path ---- */

/* A run of one group over one batch. */
struct run {
    struct filter *filter;
    const struct filter_group *group;
    unsigned failures;
    struct err first; /* the first of them */
};

/* A condition that fails: whether the walk goes on. */
static bool note_failure(struct run *run, const struct ottl_condition *c, struct ottl_env *env)
{
    ottl_hide_values(env->err, ottl_condition_text(c));
    metric_add(run->filter->errors, 1);
    if (run->failures++ == 0)
        run->first = *env->err;
    return run->group->errors != FILTER_PROPAGATE;
}

static enum ottl_visit visit(void *ctx, struct ottl_env *env)
{
    struct run *run = ctx;
    bool holds = false;
    for (size_t i = 0; !holds && i < run->group->n; i++) {
        int r = ottl_condition_eval(run->group->conditions[i], env, &holds);
        if (r == -ENOMEM)
            return OTTL_NO_MEMORY;
        if (r < 0 && !note_failure(run, run->group->conditions[i], env))
            return OTTL_STOP;
        holds = r == 0 && holds;
    }
    return holds ? OTTL_DROP : OTTL_KEEP;
}

/* Replaces *b. */
static int run_group(struct filter *f, const struct filter_group *g, struct batch **b,
                     struct err *reterr)
{
    struct run run = {.filter = f, .group = g};
    const struct ottl_walk walk = {.context = g->context,
                                   .visit = visit,
                                   .ctx = &run,
                                   .memory = &f->memory,
                                   .drop_empty = true};
    struct batch *out = NULL;
    int r = ottl_walk(&walk, *b, &out, reterr);
    if (run.failures && g->errors == FILTER_IGNORE)
        log_warn(&f->base.logger, "Conditions failed and count as not met",
                 LOG_STR("first_error", run.first.text), LOG_INT("failures", run.failures));
    if (r < 0)
        return r;
    batch_unref(*b);
    *b = out;
    return 0;
}

static enum edit match(void *ctx, struct bytes resource, struct bytes scope, struct bytes record,
                       struct buf *out)
{
    const struct filter *f = ctx;
    (void)out;
    if (f->include && !record_match_run(f->include, resource, scope, record))
        return EDIT_DROP;
    for (size_t i = 0; i < ARRAY_SIZE(f->excludes); i++)
        if (f->excludes[i] && record_match_run(f->excludes[i], resource, scope, record))
            return EDIT_DROP;
    return EDIT_KEEP;
}

static int run_match(struct filter *f, struct batch **b)
{
    const struct otlp_rewriter rw = {.record = match, .ctx = f, .drop_empty = true};
    struct batch *out = NULL;
    int r = otlp_rewrite(&rw, *b, &out);
    if (r < 0)
        return r;
    batch_unref(*b);
    *b = out;
    return 0;
}

static enum verdict refuse(struct filter *f, enum signal s, int r, const struct err *e,
                           struct ack *ack)
{
    if (r == -ENOMEM)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    log_error(&f->base.logger, "A condition failed. The request is refused",
              LOG_STR("signal", signal_name(s)), LOG_STR("error", e->text));
    /* The client is told what the reference tells it; for who holds the data, another try is no
     * use. */
    return ack_answer(ack, VERDICT_REJECT, RPC_UNAVAILABLE, "%s", e->text);
}

static enum verdict filter_consume(struct component *c, struct batch *b, struct ack *ack)
{
    struct filter *f = (struct filter *)c;
    const enum signal s = b->signal;
    const uint32_t before = b->records;
    struct err e = {.text = ""};
    int r = f->include || f->excludes[0] ? run_match(f, &b) : 0;
    for (size_t i = 0; r == 0 && i < f->groups.n; i++)
        r = run_group(f, &f->groups.items[i], &b, &e);
    if (r < 0) {
        batch_unref(b);
        return refuse(f, s, r, &e, ack);
    }
    metric_add(f->filtered, (int64_t)before - b->records);
    if (b->records > 0 || (before == 0 && b->nsegs > 0))
        return component_emit(c, b, ack);
    batch_unref(b);
    ack->now = (struct outcome){0};
    return VERDICT_OK;
}

/* ---- keys ---- */

#define CONDITIONS(name, signal_index, text)                                                       \
    {                                                                                              \
        .key = name, .kind = BIND_LIST, CFG_AT(struct filter_config, conditions[signal_index]),    \
        .elem = &filter_item_elem, .help = text                                                    \
    }
#define OLD(name, type, member)                                                                    \
    {                                                                                              \
        .key = name, .kind = BIND_LIST, CFG_AT(type, member), .elem = &cfg_elem_string,            \
        .help = "Conditions in the " name " context."                                              \
    }
#define MATCH(name, type, member, table, text)                                                     \
    {                                                                                              \
        .key = name, .kind = BIND_BLOCK, CFG_AT(type, member), .fields = table,                    \
        CFG_NESTED(struct match_config), .null_absent = true, .help = text                         \
    }

static const struct cfg_field traces_fields[] = {OLD("resource", struct filter_traces, resource),
                                                 OLD("span", struct filter_traces, span),
                                                 OLD("spanevent", struct filter_traces, spanevent),
                                                 {0}};
static const struct cfg_field metrics_fields[] = {
    OLD("resource", struct filter_metrics, resource),
    OLD("metric", struct filter_metrics, metric),
    OLD("datapoint", struct filter_metrics, datapoint),
    MATCH("include", struct filter_metrics, include, match_metric_fields, "Only these metrics."),
    MATCH("exclude", struct filter_metrics, exclude, match_metric_fields, "Not these metrics."),
    {.key = "regexp",
     .kind = BIND_ANY,
     CFG_AT(struct filter_metrics, regexp),
     .use = CFG_NO_EFFECT,
     .help = "Accepted without effect."},
    {0}};
static const struct cfg_field logs_fields[] = {
    OLD("resource", struct filter_logs, resource),
    OLD("log_record", struct filter_logs, log_record),
    MATCH("include", struct filter_logs, include, match_log_fields, "Only these records."),
    MATCH("exclude", struct filter_logs, exclude, match_log_fields, "Not these records."),
    {0}};
static const struct cfg_field spans_fields[] = {
    MATCH("include", struct filter_spans, include, match_fields, "Only these spans."),
    MATCH("exclude", struct filter_spans, exclude, match_fields, "Not these spans."),
    {0}};

static const struct cfg_field fields[] = {
    {.key = "error_mode",
     .kind = BIND_ENUM,
     CFG_AT(struct filter_config, error_mode),
     .values = filter_error_modes,
     .def = "ignore",
     .help = "When a condition fails on an item: ignore logs it and takes it as not met, silent "
             "takes it as not met, propagate refuses the whole request."},
    CONDITIONS("trace_conditions", SIGNAL_TRACES, "For traces: conditions, or groups of them."),
    CONDITIONS("metric_conditions", SIGNAL_METRICS, "For metrics."),
    CONDITIONS("log_conditions", SIGNAL_LOGS, "For logs."),
    {.key = "traces",
     .kind = BIND_STRUCT,
     CFG_AT(struct filter_config, traces),
     .fields = traces_fields,
     CFG_NESTED(struct filter_traces),
     .help = "Older style; paths may leave out the name of their context."},
    {.key = "metrics",
     .kind = BIND_STRUCT,
     CFG_AT(struct filter_config, metrics),
     .fields = metrics_fields,
     CFG_NESTED(struct filter_metrics),
     .help = "Older style."},
    {.key = "logs",
     .kind = BIND_STRUCT,
     CFG_AT(struct filter_config, logs),
     .fields = logs_fields,
     CFG_NESTED(struct filter_logs),
     .help = "Older style."},
    {.key = "spans",
     .kind = BIND_STRUCT,
     CFG_AT(struct filter_config, spans),
     .fields = spans_fields,
     CFG_NESTED(struct filter_spans),
     .help = "Older style; see the attributes processor for what include and exclude may ask."},
    {.key = "profile_conditions",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "motel has no profiles"},
    {.key = "profiles", .kind = BIND_REFUSED, .def = "{}", .help = "motel has no profiles"},
    {0}};

const struct component_type processor_filter = {
    .kind = KIND_PROCESSOR,
    .name = "filter",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"alpha", "alpha", "alpha"},
    .help = "Drops spans, span events, metrics, data points and log records by conditions.",
    .fields = fields,
    .config_size = sizeof(struct filter_config),
    .check = filter_check,
    .create = filter_create,
    .destroy = filter_destroy,
    .consume = filter_consume,
};
