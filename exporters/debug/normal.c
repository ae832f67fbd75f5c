/* Verbosity `normal`: a line for each resource, scope and item. */
#include "exporters/debug/text.h"
#include "proto/json.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

/* KEY=VALUE pairs with `between` before each but the first. */
static void put_pairs(struct text *t, const char *between, struct bytes msg, uint32_t field)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes kv;
    for (bool first = true; wire_each(&r, field, &kv); first = false) {
        if (!first)
            text_bytes(t, bytes_str(between));
        text_bytes(t, wire_bytes(kv, 1));
        text_bytes(t, bytes_str("="));
        text_value(t, wire_bytes(kv, 2));
    }
}

/* The same with a blank before each, and the end of the line. */
static void end_with_pairs(struct text *t, struct bytes msg, uint32_t field)
{
    struct bytes kv;
    struct wire_reader r = wire_reader(msg);
    if (wire_each(&r, field, &kv))
        text_bytes(t, bytes_str(" "));
    put_pairs(t, " ", msg, field);
    text_bytes(t, bytes_str("\n"));
}

static void put_url(struct text *t, struct bytes url)
{
    if (url.len == 0)
        return;
    text_bytes(t, bytes_str(" ["));
    text_bytes(t, url);
    text_bytes(t, bytes_str("]"));
}

static void put_scope(struct text *t, struct bytes scope)
{
    struct bytes name = wire_bytes(scope, SCOPE_NAME), version = wire_bytes(scope, SCOPE_VERSION);
    if (name.len || version.len)
        text_bytes(t, bytes_str(" "));
    text_bytes(t, name);
    if (version.len)
        text_bytes(t, bytes_str("@"));
    text_bytes(t, version);
}

static void put_double(struct text *t, double v)
{
    char digits[DOUBLE_MAX_BYTES];
    text_bytes(t, bytes_of(digits, double_text(v, DOUBLE_GO, digits)));
}

static void put_span(struct text *t, struct bytes span)
{
    text_bytes(t, wire_bytes(span, SPAN_NAME));
    text_bytes(t, bytes_str(" "));
    text_id(t, wire_bytes(span, SPAN_TRACE_ID));
    text_bytes(t, bytes_str(" "));
    text_id(t, wire_bytes(span, SPAN_ID));
    end_with_pairs(t, span, SPAN_ATTRIBUTES);
}

static void put_log(struct text *t, struct bytes log)
{
    text_value(t, wire_bytes(log, LOG_BODY));
    text_bytes(t, bytes_str(" "));
    put_pairs(t, " ", log, LOG_ATTRIBUTES);
    text_bytes(t, bytes_str("\n"));
}

static void put_number(struct text *t, struct bytes point)
{
    struct wire_field f;
    if (wire_find(point, NUMBER_AS_INT, &f))
        text_printf(t, "%lld", (long long)f.value);
    else if (wire_find(point, NUMBER_AS_DOUBLE, &f))
        put_double(t, wire_double(f.value));
}

static void put_named(struct text *t, const char *name, struct bytes point, uint32_t field)
{
    struct wire_field f;
    if (!wire_find(point, field, &f))
        return;
    text_bytes(t, bytes_str(name));
    put_double(t, wire_double(f.value));
}

static void put_histogram(struct text *t, struct bytes point)
{
    struct wire_reader counts = wire_reader(wire_bytes(point, HISTOGRAM_BUCKETS));
    struct wire_reader bounds = wire_reader(wire_bytes(point, HISTOGRAM_BOUNDS));
    uint64_t count, bound;
    text_printf(t, "count=%llu", (unsigned long long)wire_uint(point, HISTOGRAM_COUNT));
    put_named(t, " sum=", point, HISTOGRAM_SUM);
    put_named(t, " min=", point, HISTOGRAM_MIN);
    put_named(t, " max=", point, HISTOGRAM_MAX);
    while (wire_next_packed(&counts, WIRE_I64, &count) > 0) {
        text_bytes(t, bytes_str(" "));
        if (wire_next_packed(&bounds, WIRE_I64, &bound) > 0) {
            text_bytes(t, bytes_str("le"));
            put_double(t, wire_double(bound));
            text_bytes(t, bytes_str("="));
        }
        text_printf(t, "%llu", (unsigned long long)count);
    }
}

static void put_bucket(struct text *t, double bound, uint64_t count)
{
    text_bytes(t, bytes_str(" le"));
    put_double(t, bound);
    text_printf(t, "=%llu", (unsigned long long)count);
}

static void put_exponential(struct text *t, struct bytes point)
{
    _cleanup_buckets_ struct buckets negative =
        buckets_read(t, wire_bytes(point, EXPONENTIAL_NEGATIVE));
    _cleanup_buckets_ struct buckets positive =
        buckets_read(t, wire_bytes(point, EXPONENTIAL_POSITIVE));
    double factor = buckets_factor(point);
    uint64_t zeros = wire_uint(point, EXPONENTIAL_ZERO_COUNT);
    text_printf(t, "count=%llu", (unsigned long long)wire_uint(point, EXPONENTIAL_COUNT));
    put_named(t, " sum=", point, EXPONENTIAL_SUM);
    put_named(t, " min=", point, EXPONENTIAL_MIN);
    put_named(t, " max=", point, EXPONENTIAL_MAX);
    for (size_t i = negative.n; i-- > 0;)
        put_bucket(t, -bucket_bound(negative.offset + (double)i, factor), negative.counts[i]);
    if (zeros)
        text_printf(t, " zero=%llu", (unsigned long long)zeros);
    for (size_t i = 0; i < positive.n; i++)
        put_bucket(t, bucket_bound(positive.offset + (double)i + 1, factor), positive.counts[i]);
}

static void put_summary(struct text *t, struct bytes point)
{
    struct wire_reader r = wire_reader(point);
    struct bytes quantile;
    text_printf(t, "count=%llu sum=", (unsigned long long)wire_uint(point, SUMMARY_COUNT));
    text_fixed(t, wire_double(wire_uint(point, SUMMARY_SUM)));
    while (wire_each(&r, SUMMARY_QUANTILES, &quantile)) {
        text_bytes(t, bytes_str(" q"));
        put_double(t, wire_double(wire_uint(quantile, QUANTILE_QUANTILE)));
        text_bytes(t, bytes_str("="));
        put_double(t, wire_double(wire_uint(quantile, QUANTILE_VALUE)));
    }
}

static void put_metric(struct text *t, struct bytes metric)
{
    static const struct {
        uint32_t field, attributes;
        void (*put)(struct text *t, struct bytes point);
    } kinds[] = {
        {METRIC_GAUGE, NUMBER_ATTRIBUTES, put_number},
        {METRIC_SUM, NUMBER_ATTRIBUTES, put_number},
        {METRIC_HISTOGRAM, HISTOGRAM_ATTRIBUTES, put_histogram},
        {METRIC_EXPONENTIAL, EXPONENTIAL_ATTRIBUTES, put_exponential},
        {METRIC_SUMMARY, SUMMARY_ATTRIBUTES, put_summary},
    };
    struct bytes name = wire_bytes(metric, METRIC_NAME), point;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct wire_reader r = wire_reader(wire_bytes(metric, kinds[i].field));
        while (wire_each(&r, DATA_POINTS, &point)) {
            text_bytes(t, name);
            text_bytes(t, bytes_str("{"));
            put_pairs(t, ",", point, kinds[i].attributes);
            text_bytes(t, bytes_str("} "));
            kinds[i].put(t, point);
            text_bytes(t, bytes_str("\n"));
        }
    }
}

static const struct {
    const char *resource, *scope;
    void (*put)(struct text *t, struct bytes item);
} signals[] = {
    [SIGNAL_TRACES] = {"ResourceTraces", "ScopeTraces", put_span},
    [SIGNAL_METRICS] = {"ResourceMetrics", "ScopeMetrics", put_metric},
    [SIGNAL_LOGS] = {"ResourceLog", "ScopeLog", put_log},
};

static void put_scope_entry(struct text *t, enum signal s, unsigned i, struct bytes entry)
{
    struct wire_reader r = wire_reader(entry);
    struct bytes scope = wire_bytes(entry, ENTRY_HEAD), item;
    text_printf(t, "%s #%u", signals[s].scope, i);
    put_scope(t, scope);
    put_url(t, wire_bytes(entry, ENTRY_SCHEMA_URL));
    end_with_pairs(t, scope, SCOPE_ATTRIBUTES);
    while (wire_each(&r, ENTRY_ITEMS, &item))
        signals[s].put(t, item);
}

static void put_resource_entry(struct text *t, enum signal s, unsigned i, struct bytes entry)
{
    struct wire_reader r = wire_reader(entry);
    struct bytes scope;
    text_printf(t, "%s #%u", signals[s].resource, i);
    put_url(t, wire_bytes(entry, ENTRY_SCHEMA_URL));
    end_with_pairs(t, wire_bytes(entry, ENTRY_HEAD), RESOURCE_ATTRIBUTES);
    for (unsigned k = 0; wire_each(&r, ENTRY_ITEMS, &scope); k++)
        put_scope_entry(t, s, k, scope);
}

void normal_text(struct text *t, const struct batch *b)
{
    text_resources(t, b, put_resource_entry);
}
