/* The attributes processor: attribute actions on every span, log record or data point that include
 * and exclude leave. */
#include <errno.h>
#include <stdlib.h>

#include "agent/pipeline/attr_actions.h"
#include "agent/pipeline/component.h"
#include "agent/pipeline/record_match.h"
#include "proto/otlp_fields.h"
#include "proto/rewrite.h"

struct attributes_config {
    struct cfg_list actions; /* of struct attr_action_config */
    struct match_config *include, *exclude;
};

struct attributes {
    struct component base;
    enum signal signal;
    struct attr_actions *actions;
    struct record_match *include, *exclude; /* NULL = not asked */
};

extern const struct component_type processor_attributes;

/* ---- life cycle ---- */

static int attributes_check(const void *config, struct err *reterr)
{
    const struct attributes_config *c = config;
    _cleanup_(attr_actions_freep) struct attr_actions *actions = NULL;
    if (c->actions.n == 0)
        return err_at(reterr, "actions", "at least one action must be given");
    return attr_actions_new(&c->actions, "actions", NULL, &actions, reterr);
}

static void attributes_destroy(struct component *c)
{
    struct attributes *p = (struct attributes *)c;
    if (!p)
        return;
    attr_actions_free(p->actions);
    record_match_free(p->include);
    record_match_free(p->exclude);
    free(p);
}

static int attributes_create(const struct component_args *args, struct component **ret,
                             struct err *reterr)
{
    const struct attributes_config *c = args->config;
    struct attributes *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&p->base, &processor_attributes, args);
    p->signal = args->signal;
    int r = attr_actions_new(&c->actions, "actions", &p->base.logger, &p->actions, reterr);
    if (r == 0 && c->include)
        r = record_match_new(c->include, "include", p->signal, &p->include, reterr);
    if (r == 0 && c->exclude)
        r = record_match_new(c->exclude, "exclude", p->signal, &p->exclude, reterr);
    if (r < 0)
        attributes_destroy(&p->base);
    else
        *ret = &p->base;
    return r;
}

/* ---- data path ---- */

/* The message `msg` with its attributes, fields `number`, edited: EDIT_KEEP, or EDIT_REPLACE and it
 * was appended to `out`. */
static enum edit edit_attributes(const struct attributes *p, struct bytes msg, uint32_t number,
                                 struct buf *out)
{
    struct attr_list l;
    struct wire_reader reader = wire_reader(msg);
    struct wire_field f;
    bool written = false;
    int r = attr_list_read(&l, msg, number);
    if (r == 0)
        r = attr_actions_run(p->actions, &l);
    const bool changed = l.changed;
    while (r == 0 && changed && wire_next(&reader, &f) > 0) {
        if (f.number != number)
            r = buf_append(out, f.whole.data, f.whole.len);
        else if (!written) { /* all where the first one was */
            r = attr_list_write(&l, number, out);
            written = true;
        }
    }
    if (r == 0 && changed && !written)
        r = attr_list_write(&l, number, out);
    attr_list_done(&l);
    return r < 0 ? EDIT_ERROR : changed ? EDIT_REPLACE : EDIT_KEEP;
}

/* The field that holds the attributes of the data points of a kind of metric; 0 = no such kind. */
static uint32_t point_attributes(uint32_t data)
{
    switch (data) {
    case METRIC_GAUGE:
    case METRIC_SUM: return NUMBER_ATTRIBUTES;
    case METRIC_HISTOGRAM: return HISTOGRAM_ATTRIBUTES;
    case METRIC_EXPONENTIAL: return EXPONENTIAL_ATTRIBUTES;
    case METRIC_SUMMARY: return SUMMARY_ATTRIBUTES;
    default: return 0;
    }
}

static int put_point(const struct attributes *p, const struct wire_field *f, uint32_t number,
                     struct buf *out, bool *changed)
{
    size_t mark;
    int r = wire_begin(out, DATA_POINTS, &mark);
    if (r < 0)
        return r;
    switch (edit_attributes(p, f->bytes, number, out)) {
    case EDIT_REPLACE: *changed = true; break;
    case EDIT_KEEP: r = buf_append(out, f->bytes.data, f->bytes.len); break;
    default: return -ENOMEM;
    }
    return r < 0 ? r : wire_end(out, mark);
}

/* A Gauge, Sum … field with the data points edited. */
static int put_data(const struct attributes *p, const struct wire_field *f, struct buf *out,
                    bool *changed)
{
    const uint32_t number = point_attributes(f->number);
    struct wire_reader reader = wire_reader(f->bytes);
    struct wire_field inner;
    size_t mark;
    int r = wire_begin(out, f->number, &mark);
    while (r == 0 && wire_next(&reader, &inner) > 0)
        r = inner.number == DATA_POINTS ? put_point(p, &inner, number, out, changed)
                                        : buf_append(out, inner.whole.data, inner.whole.len);
    return r < 0 ? r : wire_end(out, mark);
}

static enum edit edit_metric(const struct attributes *p, struct bytes metric, struct buf *out)
{
    struct wire_reader reader = wire_reader(metric);
    struct wire_field f;
    bool changed = false;
    int r = 0;
    while (r == 0 && wire_next(&reader, &f) > 0)
        r = point_attributes(f.number) ? put_data(p, &f, out, &changed)
                                       : buf_append(out, f.whole.data, f.whole.len);
    if (!changed)
        buf_truncate(out, 0);
    return r < 0 ? EDIT_ERROR : changed ? EDIT_REPLACE : EDIT_KEEP;
}

static enum edit edit_record(void *ctx, struct bytes resource, struct bytes scope,
                             struct bytes record, struct buf *out)
{
    const struct attributes *p = ctx;
    if ((p->include && !record_match_run(p->include, resource, scope, record)) ||
        (p->exclude && record_match_run(p->exclude, resource, scope, record)))
        return EDIT_KEEP;
    if (p->signal == SIGNAL_METRICS)
        return edit_metric(p, record, out);
    return edit_attributes(p, record, p->signal == SIGNAL_TRACES ? SPAN_ATTRIBUTES : LOG_ATTRIBUTES,
                           out);
}

static enum verdict attributes_consume(struct component *c, struct batch *b, struct ack *ack)
{
    const struct otlp_rewriter rw = {.record = edit_record, .ctx = c};
    struct batch *out = NULL;
    int r = otlp_rewrite(&rw, b, &out);
    batch_unref(b);
    if (r < 0)
        return ack_answer(ack, VERDICT_RETRY, 0, "out of memory");
    return component_emit(c, out, ack);
}

static const struct cfg_field fields[] = {
    {.key = "actions",
     .kind = BIND_LIST,
     CFG_AT(struct attributes_config, actions),
     .elem = &attr_action_elem,
     .required = true,
     .help = "Actions, run in this order on the attributes of every record."},
    {.key = "include",
     .kind = BIND_BLOCK,
     CFG_AT(struct attributes_config, include),
     .fields = match_fields,
     CFG_NESTED(struct match_config),
     .null_absent = true,
     .help = "Only the records that match."},
    {.key = "exclude",
     .kind = BIND_BLOCK,
     CFG_AT(struct attributes_config, exclude),
     .fields = match_fields,
     CFG_NESTED(struct match_config),
     .null_absent = true,
     .help = "Not the records that match."},
    {0}};

const struct component_type processor_attributes = {
    .kind = KIND_PROCESSOR,
    .name = "attributes",
    .accepts = SIGNALS_ALL,
    .emits = SIGNALS_ALL,
    .stability = {"beta", "beta", "beta"},
    .help = "Sets, changes and removes attributes of spans, log records and data points.",
    .fields = fields,
    .config_size = sizeof(struct attributes_config),
    .check = attributes_check,
    .create = attributes_create,
    .destroy = attributes_destroy,
    .consume = attributes_consume,
};
