/* Editors of whole metrics: of the metric under the cursor, or making another one behind it. */
#include "agent/base/number.h"
#include "ottl/functions.h"
#include "ottl/item.h"
#include "proto/otlp_fields.h"

enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };

static const char *kind_name(uint32_t kind)
{
    switch (kind) {
    case METRIC_GAUGE: return "Gauge";
    case METRIC_SUM: return "Sum";
    case METRIC_HISTOGRAM: return "Histogram";
    case METRIC_EXPONENTIAL: return "ExponentialHistogram";
    case METRIC_SUMMARY: return "Summary";
    default: return "Empty";
    }
}

/* The encoded Gauge, Sum … of the metric under the cursor. */
static int read_data(struct ottl_env *env, uint32_t *ret_kind, struct bytes *ret)
{
    struct ottl_item *metric = env->items[OTTL_METRIC], *data;
    *ret_kind = ottl_metric_kind(metric);
    *ret = bytes_of("", 0);
    int r = ottl_metric_data(metric, &data);
    return r < 0 || !data ? r : ottl_item_bytes(data, ret);
}

static int copy_points(struct bytes data, struct buf *out)
{
    struct wire_reader r = wire_reader(data);
    struct bytes point;
    int e = 0;
    while (e == 0 && wire_each(&r, DATA_POINTS, &point))
        e = wire_put_bytes(out, DATA_POINTS, point);
    return e;
}

static int put_sum_fields(struct buf *out, uint64_t temporality, bool monotonic)
{
    int r = wire_put_uint(out, DATA_TEMPORALITY, temporality);
    return r < 0 || !monotonic ? r : wire_put_uint(out, DATA_MONOTONIC, 1);
}

/* ---- gauge and sum ---- */

static int convert_sum_to_gauge(const struct ottl_call *c, struct ottl_env *env,
                                struct ottl_value *ret)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct bytes data;
    uint32_t kind;
    (void)c;
    (void)ret;
    int r = out ? read_data(env, &kind, &data) : -ENOMEM;
    if (r < 0 || kind != METRIC_SUM)
        return r;
    r = copy_points(data, out);
    return r < 0 ? r : ottl_metric_set_data(env->items[OTTL_METRIC], METRIC_GAUGE, buf_bytes(out));
}

/* 0 when it is none. */
static uint64_t temporality_of(struct bytes name)
{
    return bytes_eq_str(name, "delta")        ? TEMPORALITY_DELTA
           : bytes_eq_str(name, "cumulative") ? TEMPORALITY_CUMULATIVE
                                              : 0;
}

static int prepare_gauge_to_sum(struct ottl_call *c, struct err *reterr)
{
    struct bytes name = ottl_fn_literal(c, 0, "");
    return temporality_of(name) ? 0
                                : err_set(reterr, -EINVAL, "unknown aggregation temporality: %.*s",
                                          (int)name.len, name.data);
}

static int convert_gauge_to_sum(const struct ottl_call *c, struct ottl_env *env,
                                struct ottl_value *ret)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct bytes data;
    uint32_t kind;
    (void)ret;
    int r = out ? read_data(env, &kind, &data) : -ENOMEM;
    if (r < 0 || kind != METRIC_GAUGE)
        return r;
    r = copy_points(data, out);
    if (r == 0)
        r = put_sum_fields(out, temporality_of(ottl_fn_literal(c, 0, "")),
                           ottl_fn_literal_bool(c, 1, false));
    return r < 0 ? r : ottl_metric_set_data(env->items[OTTL_METRIC], METRIC_SUM, buf_bytes(out));
}

/* ---- extract_count_metric, extract_sum_metric ---- */

/* The attributes of a histogram, exponential histogram or summary point. */
static uint32_t attributes_field(uint32_t kind)
{
    return kind == METRIC_HISTOGRAM     ? HISTOGRAM_ATTRIBUTES
           : kind == METRIC_EXPONENTIAL ? EXPONENTIAL_ATTRIBUTES
                                        : SUMMARY_ATTRIBUTES;
}

static int put_fixed(struct buf *out, uint32_t number, const struct wire_field *f)
{
    return f->number ? wire_put_fixed64(out, number, f->value) : 0;
}

/* A number point out of another one: its times, its attributes, and the field `from` as `to`. */
static int put_number_point(struct bytes point, uint32_t attributes, uint32_t from, uint32_t to,
                            struct buf *out)
{
    struct wire_field f[HISTOGRAM_SUM + 1];
    struct wire_reader r = wire_reader(point);
    struct bytes kv;
    size_t mark;
    wire_index(point, f, ARRAY_SIZE(f));
    int e = wire_begin(out, DATA_POINTS, &mark);
    if (e == 0)
        e = put_fixed(out, POINT_START, &f[POINT_START]);
    if (e == 0)
        e = put_fixed(out, POINT_TIME, &f[POINT_TIME]);
    if (e == 0)
        e = wire_put_fixed64(out, to, f[from].value);
    while (e == 0 && wire_each(&r, attributes, &kv))
        e = wire_put_bytes(out, NUMBER_ATTRIBUTES, kv);
    return e < 0 ? e : wire_end(out, mark);
}

/* What the two functions differ in. */
struct extraction {
    uint32_t from, to;         /* field of the point, and of the new one */
    bool only_present;         /* points without the field are left out, but for summaries */
    const char *suffix, *unit; /* unit NULL: the metric's own */
};

static int put_points(const struct extraction *x, struct bytes data, uint32_t kind, struct buf *out,
                      size_t *ret_n)
{
    struct wire_reader r = wire_reader(data);
    struct wire_field f;
    struct bytes point;
    int e = 0;
    *ret_n = 0;
    while (e == 0 && wire_each(&r, DATA_POINTS, &point)) {
        if (x->only_present && kind != METRIC_SUMMARY && !wire_find(point, x->from, &f))
            continue;
        e = put_number_point(point, attributes_field(kind), x->from, x->to, out);
        ++*ret_n;
    }
    return e;
}

static int put_text(struct ottl_env *env, uint32_t number, const char *more, const char *instead,
                    struct buf *out)
{
    struct wire_field f = {0};
    struct bytes text = bytes_of("", 0);
    if (ottl_item_find(env->items[OTTL_METRIC], number, &f))
        text = f.bytes;
    char *p = instead ? arena_strdup(env->arena, instead)
                      : arena_printf(env->arena, "%.*s%s", (int)text.len, text.data, more);
    return !p ? -ENOMEM : *p ? wire_put_str(out, number, p) : 0;
}

static int put_metric(const struct ottl_call *c, struct ottl_env *env, const struct extraction *x,
                      struct bytes data, uint32_t kind, uint64_t temporality, struct buf *out)
{
    struct bytes given = ottl_fn_literal(c, 1, x->suffix);
    char *suffix = arena_strndup(env->arena, (const char *)given.data, given.len);
    size_t mark, n;
    int r = suffix ? put_text(env, METRIC_NAME, suffix, NULL, out) : -ENOMEM;
    if (r == 0)
        r = put_text(env, METRIC_DESCRIPTION, "", NULL, out);
    if (r == 0)
        r = put_text(env, METRIC_UNIT, "", x->unit, out);
    if (r == 0)
        r = wire_begin(out, METRIC_SUM, &mark);
    if (r == 0)
        r = put_points(x, data, kind, out, &n);
    if (r == 0)
        r = put_sum_fields(out, temporality, ottl_fn_literal_bool(c, 0, false));
    if (r == 0)
        r = wire_end(out, mark);
    return r < 0 || n == 0 ? r : ottl_env_add_metric(env, buf_bytes(out));
}

static int extract(const struct ottl_call *c, struct ottl_env *env, const struct extraction *x)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct bytes data;
    uint32_t kind;
    int r = out ? read_data(env, &kind, &data) : -ENOMEM;
    if (r < 0)
        return r;
    uint64_t temporality = kind == METRIC_SUMMARY ? TEMPORALITY_CUMULATIVE : 0;
    if (kind == METRIC_HISTOGRAM || kind == METRIC_EXPONENTIAL)
        temporality = wire_uint(data, DATA_TEMPORALITY);
    if (temporality == 0)
        return err_set(env->err, -EINVAL,
                       "%s requires an input metric of type Histogram, ExponentialHistogram or "
                       "Summary, got %s",
                       c->function->name, kind_name(kind));
    return put_metric(c, env, x, data, kind, temporality, out);
}

static int extract_count_metric(const struct ottl_call *c, struct ottl_env *env,
                                struct ottl_value *ret)
{
    static const struct extraction count = {
        .from = HISTOGRAM_COUNT, .to = NUMBER_AS_INT, .suffix = "_count", .unit = "1"};
    (void)ret;
    return extract(c, env, &count);
}

static int extract_sum_metric(const struct ottl_call *c, struct ottl_env *env,
                              struct ottl_value *ret)
{
    static const struct extraction sum = {
        .from = HISTOGRAM_SUM, .to = NUMBER_AS_DOUBLE, .only_present = true, .suffix = "_sum"};
    (void)ret;
    return extract(c, env, &sum);
}

/* ---- scale_metric ---- */

/* What is scaled in a message. */
struct scaled {
    uint32_t number; /* 0 ends */
    enum { SCALE_DOUBLE, SCALE_INT, SCALE_PACKED, SCALE_INSIDE } how;
    const struct scaled *inside;
};
static const struct scaled scaled_exemplar[] = {
    {EXEMPLAR_AS_DOUBLE, SCALE_DOUBLE}, {EXEMPLAR_AS_INT, SCALE_INT}, {0}};
static const struct scaled scaled_number[] = {
    {NUMBER_AS_DOUBLE, SCALE_DOUBLE}, {NUMBER_AS_INT, SCALE_INT}, {0}};
static const struct scaled scaled_histogram[] = {
    {HISTOGRAM_SUM, SCALE_DOUBLE},
    {HISTOGRAM_MIN, SCALE_DOUBLE},
    {HISTOGRAM_MAX, SCALE_DOUBLE},
    {HISTOGRAM_BOUNDS, SCALE_PACKED},
    {HISTOGRAM_EXEMPLARS, SCALE_INSIDE, scaled_exemplar},
    {0}};
static const struct scaled scaled_quantile[] = {{QUANTILE_VALUE, SCALE_DOUBLE}, {0}};
static const struct scaled scaled_summary[] = {
    {SUMMARY_SUM, SCALE_DOUBLE}, {SUMMARY_QUANTILES, SCALE_INSIDE, scaled_quantile}, {0}};
static const struct scaled scaled_numbers[] = {{DATA_POINTS, SCALE_INSIDE, scaled_number}, {0}};
static const struct scaled scaled_histograms[] = {{DATA_POINTS, SCALE_INSIDE, scaled_histogram},
                                                  {0}};
static const struct scaled scaled_summaries[] = {{DATA_POINTS, SCALE_INSIDE, scaled_summary}, {0}};

static const struct scaled *find_scaled(const struct scaled *s, uint32_t number)
{
    for (; s->number; s++)
        if (s->number == number)
            return s;
    return NULL;
}

static int scale_message(struct bytes msg, const struct scaled *what, double by, struct buf *out);

static int scale_packed(const struct wire_field *f, double by, struct buf *out)
{
    struct wire_reader r = wire_reader(f->bytes);
    uint64_t bits;
    size_t mark;
    int e = wire_begin(out, f->number, &mark);
    while (e == 0 && wire_next_packed(&r, WIRE_I64, &bits) > 0) {
        double d = wire_double(bits) * by;
        e = buf_append(out, &d, sizeof(d));
    }
    return e < 0 ? e : wire_end(out, mark);
}

static int scale_inside(const struct wire_field *f, const struct scaled *what, double by,
                        struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, f->number, &mark);
    if (r == 0)
        r = scale_message(f->bytes, what, by, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int scale_field(const struct wire_field *f, const struct scaled *what, double by,
                       struct buf *out)
{
    switch (what->how) {
    case SCALE_DOUBLE: return wire_put_double(out, f->number, wire_double(f->value) * by);
    case SCALE_INT:
        return wire_put_fixed64(out, f->number,
                                (uint64_t)number_double_to_int((double)(int64_t)f->value * by));
    case SCALE_PACKED: return scale_packed(f, by, out);
    case SCALE_INSIDE: return scale_inside(f, what->inside, by, out);
    }
    return -EINVAL;
}

static int scale_message(struct bytes msg, const struct scaled *what, double by, struct buf *out)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    int e = 0;
    while (e == 0 && wire_next(&r, &f) > 0) {
        const struct scaled *s = find_scaled(what, f.number);
        e = s ? scale_field(&f, s, by, out) : buf_append(out, f.whole.data, f.whole.len);
    }
    return e;
}

static const struct scaled *scaled_of(uint32_t kind)
{
    return kind == METRIC_GAUGE || kind == METRIC_SUM ? scaled_numbers
           : kind == METRIC_HISTOGRAM                 ? scaled_histograms
           : kind == METRIC_SUMMARY                   ? scaled_summaries
                                                      : NULL;
}

static int scale_metric(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    struct bytes unit = {0}, data;
    uint32_t kind;
    (void)ret;
    int r = out ? ottl_fn_string(c, 1, env, &unit) : -ENOMEM;
    if (r == 0)
        r = read_data(env, &kind, &data);
    if (r == 0 && !scaled_of(kind))
        r = err_set(env->err, -EINVAL, "scale_metric does not support metrics of type %s",
                    kind_name(kind));
    if (r == 0)
        r = scale_message(data, scaled_of(kind), c->args[0].literal.d, out);
    if (r == 0)
        r = ottl_metric_set_data(env->items[OTTL_METRIC], kind, buf_bytes(out));
    if (r < 0 || !c->args[1].given)
        return r;
    return ottl_item_set(env->items[OTTL_METRIC], METRIC_UNIT, WIRE_LEN, 0, unit);
}

/* ---- copy_metric ---- */

static int copy_metric(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    static const uint32_t numbers[] = {METRIC_NAME, METRIC_DESCRIPTION, METRIC_UNIT};
    struct ottl_item_memory mem = {env->arena, NULL};
    _cleanup_buf_ struct buf *scratch = mem.scratch = buf_new(0);
    struct ottl_item copy;
    struct bytes msg;
    (void)ret;
    int r = scratch ? ottl_item_bytes(env->items[OTTL_METRIC], &msg) : -ENOMEM;
    if (r < 0)
        return r;
    ottl_item_init(&copy, msg, &mem);
    for (unsigned i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
        struct bytes text = bytes_of("", 0);
        if (!c->args[i].given)
            continue;
        r = ottl_fn_string(c, i, env, &text);
        if (r == 0)
            r = ottl_item_set(&copy, numbers[i], WIRE_LEN, 0, text);
    }
    if (r == 0)
        r = ottl_item_bytes(&copy, &msg);
    return r < 0 ? r : ottl_env_add_metric(env, msg);
}

/* ---- the table ---- */

#define METRIC_ONLY OTTL_CONTEXT_BIT(OTTL_METRIC)

static const struct ottl_param gauge_to_sum_params[] = {
    {"aggregation_temporality", OTTL_P_LITERAL_STRING}, {"monotonic", OTTL_P_LITERAL_BOOL}, {0}};
static const struct ottl_param extract_params[] = {
    {"monotonic", OTTL_P_LITERAL_BOOL}, {"suffix", OTTL_P_LITERAL_STRING, true}, {0}};
static const struct ottl_param scale_params[] = {
    {"multiplier", OTTL_P_LITERAL_DOUBLE}, {"unit", OTTL_P_STRING, true}, {0}};
static const struct ottl_param copy_params[] = {{"name", OTTL_P_STRING, true},
                                                {"description", OTTL_P_STRING, true},
                                                {"unit", OTTL_P_STRING, true},
                                                {0}};

const struct ottl_function ottl_metric_editors[] = {
    {"convert_gauge_to_sum", gauge_to_sum_params, METRIC_ONLY, .prepare = prepare_gauge_to_sum,
     .call = convert_gauge_to_sum},
    {"convert_sum_to_gauge", NULL, METRIC_ONLY, .call = convert_sum_to_gauge},
    {"copy_metric", copy_params, METRIC_ONLY, .call = copy_metric},
    {"extract_count_metric", extract_params, METRIC_ONLY, .call = extract_count_metric},
    {"extract_sum_metric", extract_params, METRIC_ONLY, .call = extract_sum_metric},
    {"scale_metric", scale_params, METRIC_ONLY, .call = scale_metric},
    {0},
};
