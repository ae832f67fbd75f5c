/* Metrics as the SDK's console exporter prints them. */
#include "exporters/console/lines.h"
#include "proto/otlp_fields.h"

static void put_uint_or_null(struct lines *l, uint64_t v)
{
    if (v)
        line_uint(l, v);
    else
        line_text(l, "null");
}

/* A big-endian id as a decimal number, or null. */
static void put_decimal_id(struct lines *l, struct bytes id)
{
    unsigned __int128 v = 0;
    char digits[40], *p = digits + sizeof(digits);
    for (size_t i = 0; i < id.len; i++)
        v = v << 8 | id.data[i];
    for (; v; v /= 10)
        *--p = (char)('0' + (int)(v % 10));
    if (p == digits + sizeof(digits))
        line_text(l, "null");
    else
        line_bytes(l, bytes_of(p, (size_t)(digits + sizeof(digits) - p)));
}

static void put_number_value(struct lines *l, const struct wire_field *as_int,
                             const struct wire_field *as_double)
{
    if (as_int->number)
        line_int(l, (int64_t)as_int->value);
    else if (as_double->number)
        line_double(l, wire_double(as_double->value));
    else
        line_text(l, "null");
}

static void put_exemplar(struct lines *l, struct bytes exemplar)
{
    struct wire_field f[EXEMPLAR_ATTRIBUTES + 1];
    wire_index(exemplar, f, ARRAY_SIZE(f));
    line_text(l, "{\"filtered_attributes\": ");
    line_attributes(l, exemplar, EXEMPLAR_ATTRIBUTES, "{}");
    line_text(l, ", \"value\": ");
    put_number_value(l, &f[EXEMPLAR_AS_INT], &f[EXEMPLAR_AS_DOUBLE]);
    line_text(l, ", \"time_unix_nano\": ");
    line_uint(l, f[EXEMPLAR_TIME].value);
    line_text(l, ", \"span_id\": ");
    put_decimal_id(l, f[EXEMPLAR_SPAN_ID].bytes);
    line_text(l, ", \"trace_id\": ");
    put_decimal_id(l, f[EXEMPLAR_TRACE_ID].bytes);
    line_text(l, "}");
}

static void put_exemplars(struct lines *l, struct bytes point, uint32_t field)
{
    struct wire_reader r = wire_reader(point);
    struct bytes exemplar;
    line_text(l, ", \"exemplars\": [");
    for (bool first = true; wire_each(&r, field, &exemplar); first = false) {
        line_text(l, first ? "" : ", ");
        put_exemplar(l, exemplar);
    }
    line_text(l, "]");
}

static void put_packed(struct lines *l, struct bytes packed, enum wire_type type, bool doubles)
{
    struct wire_reader r = wire_reader(packed);
    uint64_t v;
    line_text(l, "[");
    for (bool first = true; wire_next_packed(&r, type, &v) > 0; first = false) {
        line_text(l, first ? "" : ", ");
        if (doubles)
            line_double(l, wire_double(v));
        else
            line_uint(l, v);
    }
    line_text(l, "]");
}

/* `name` and a double that may be absent. */
static void put_optional(struct lines *l, const char *name, const struct wire_field *f)
{
    line_text(l, name);
    if (f->number)
        line_double(l, wire_double(f->value));
    else
        line_text(l, "null");
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void put_number(struct lines *l, struct bytes point)
{
    struct wire_field f[NUMBER_FLAGS + 1];
    wire_index(point, f, ARRAY_SIZE(f));
    line_text(l, ", \"value\": ");
    put_number_value(l, &f[NUMBER_AS_INT], &f[NUMBER_AS_DOUBLE]);
    put_exemplars(l, point, NUMBER_EXEMPLARS);
}

static void put_histogram(struct lines *l, struct bytes point)
{
    struct wire_field f[HISTOGRAM_MAX + 1];
    wire_index(point, f, ARRAY_SIZE(f));
    line_text(l, ", \"count\": ");
    line_uint(l, f[HISTOGRAM_COUNT].value);
    put_optional(l, ", \"sum\": ", &f[HISTOGRAM_SUM]);
    line_text(l, ", \"bucket_counts\": ");
    put_packed(l, f[HISTOGRAM_BUCKETS].bytes, WIRE_I64, false);
    line_text(l, ", \"explicit_bounds\": ");
    put_packed(l, f[HISTOGRAM_BOUNDS].bytes, WIRE_I64, true);
    put_optional(l, ", \"min\": ", &f[HISTOGRAM_MIN]);
    put_optional(l, ", \"max\": ", &f[HISTOGRAM_MAX]);
    put_exemplars(l, point, HISTOGRAM_EXEMPLARS);
}

static void put_buckets(struct lines *l, const char *name, struct bytes buckets)
{
    line_text(l, name);
    line_text(l, "{\"offset\": ");
    line_int(l, unzigzag(wire_uint(buckets, BUCKETS_OFFSET)));
    line_text(l, ", \"bucket_counts\": ");
    put_packed(l, wire_bytes(buckets, BUCKETS_COUNTS), WIRE_VARINT, false);
    line_text(l, "}");
}

static void put_exponential(struct lines *l, struct bytes point)
{
    struct wire_field f[EXPONENTIAL_ZERO_THRESHOLD + 1];
    wire_index(point, f, ARRAY_SIZE(f));
    line_text(l, ", \"count\": ");
    line_uint(l, f[EXPONENTIAL_COUNT].value);
    put_optional(l, ", \"sum\": ", &f[EXPONENTIAL_SUM]);
    line_text(l, ", \"scale\": ");
    line_int(l, unzigzag(f[EXPONENTIAL_SCALE].value));
    line_text(l, ", \"zero_count\": ");
    line_uint(l, f[EXPONENTIAL_ZERO_COUNT].value);
    put_buckets(l, ", \"positive\": ", f[EXPONENTIAL_POSITIVE].bytes);
    put_buckets(l, ", \"negative\": ", f[EXPONENTIAL_NEGATIVE].bytes);
    line_text(l, ", \"flags\": ");
    line_uint(l, f[EXPONENTIAL_FLAGS].value);
    put_optional(l, ", \"min\": ", &f[EXPONENTIAL_MIN]);
    put_optional(l, ", \"max\": ", &f[EXPONENTIAL_MAX]);
    put_exemplars(l, point, EXPONENTIAL_EXEMPLARS);
}

/* The SDK has no summaries; this follows its style. */
static void put_summary(struct lines *l, struct bytes point)
{
    struct wire_reader r = wire_reader(point);
    struct bytes quantile;
    line_text(l, ", \"count\": ");
    line_uint(l, wire_uint(point, SUMMARY_COUNT));
    line_text(l, ", \"sum\": ");
    line_double(l, wire_double(wire_uint(point, SUMMARY_SUM)));
    line_text(l, ", \"quantile_values\": [");
    for (bool first = true; wire_each(&r, SUMMARY_QUANTILES, &quantile); first = false) {
        line_text(l, first ? "{\"quantile\": " : ", {\"quantile\": ");
        line_double(l, wire_double(wire_uint(quantile, QUANTILE_QUANTILE)));
        line_text(l, ", \"value\": ");
        line_double(l, wire_double(wire_uint(quantile, QUANTILE_VALUE)));
        line_text(l, "}");
    }
    line_text(l, "]");
}

static const struct kind {
    uint32_t field, attributes;
    bool temporality, monotonic;
    void (*put)(struct lines *l, struct bytes point);
} kinds[] = {
    {METRIC_GAUGE, NUMBER_ATTRIBUTES, false, false, put_number},
    {METRIC_SUM, NUMBER_ATTRIBUTES, true, true, put_number},
    {METRIC_HISTOGRAM, HISTOGRAM_ATTRIBUTES, true, false, put_histogram},
    {METRIC_EXPONENTIAL, EXPONENTIAL_ATTRIBUTES, true, false, put_exponential},
    {METRIC_SUMMARY, SUMMARY_ATTRIBUTES, false, false, put_summary},
};

static void put_points(struct lines *l, const struct kind *k, struct bytes data)
{
    struct wire_reader r = wire_reader(data);
    struct bytes point;
    for (bool first = true; wire_each(&r, DATA_POINTS, &point); first = false) {
        line_text(l, first ? "{\"attributes\": " : ", {\"attributes\": ");
        line_attributes(l, point, k->attributes, "{}");
        line_text(l, ", \"start_time_unix_nano\": ");
        put_uint_or_null(l, wire_uint(point, POINT_START));
        line_text(l, ", \"time_unix_nano\": ");
        line_uint(l, wire_uint(point, POINT_TIME));
        k->put(l, point);
        line_text(l, "}");
    }
}

static void put_data(struct lines *l, struct bytes metric)
{
    struct wire_field f = {0};
    const struct kind *k = kinds;
    while (k < kinds + ARRAY_SIZE(kinds) && !wire_find(metric, k->field, &f))
        k++;
    line_text(l, "{\"data_points\": [");
    if (f.number)
        put_points(l, k, f.bytes);
    line_text(l, "]");
    if (f.number && k->temporality) {
        line_text(l, ", \"aggregation_temporality\": ");
        line_uint(l, wire_uint(f.bytes, DATA_TEMPORALITY));
    }
    if (f.number && k->monotonic)
        line_text(l, wire_uint(f.bytes, DATA_MONOTONIC) ? ", \"is_monotonic\": true"
                                                        : ", \"is_monotonic\": false");
    line_text(l, "}");
}

static void put_metric(struct lines *l, struct bytes metric)
{
    line_text(l, "{\"name\": ");
    line_string(l, wire_bytes(metric, METRIC_NAME));
    line_text(l, ", \"description\": ");
    line_string(l, wire_bytes(metric, METRIC_DESCRIPTION));
    line_text(l, ", \"unit\": ");
    line_string(l, wire_bytes(metric, METRIC_UNIT));
    line_text(l, ", \"data\": ");
    put_data(l, metric);
    line_text(l, "}");
}

static void put_scope_metrics(struct lines *l, struct bytes entry)
{
    struct bytes scope = wire_bytes(entry, ENTRY_HEAD), url = wire_bytes(entry, ENTRY_SCHEMA_URL),
                 metric;
    struct wire_reader r = wire_reader(entry);
    line_text(l, "{\"scope\": {\"name\": ");
    line_string(l, wire_bytes(scope, SCOPE_NAME));
    line_text(l, ", \"version\": ");
    line_string(l, wire_bytes(scope, SCOPE_VERSION));
    line_text(l, ", \"schema_url\": ");
    line_string(l, url);
    line_text(l, ", \"attributes\": ");
    line_attributes(l, scope, SCOPE_ATTRIBUTES, "null");
    line_text(l, "}, \"metrics\": [");
    for (bool first = true; wire_each(&r, ENTRY_ITEMS, &metric); first = false) {
        line_text(l, first ? "" : ", ");
        put_metric(l, metric);
    }
    line_text(l, "], \"schema_url\": ");
    line_string(l, url);
    line_text(l, "}");
}

void line_resource_metrics(struct lines *l, struct bytes entry)
{
    struct wire_reader r = wire_reader(entry);
    struct bytes scope;
    line_text(l, "{\"resource\": ");
    line_resource(l, entry);
    line_text(l, ", \"scope_metrics\": [");
    for (bool first = true; wire_each(&r, ENTRY_ITEMS, &scope); first = false) {
        line_text(l, first ? "" : ", ");
        put_scope_metrics(l, scope);
    }
    line_text(l, "], \"schema_url\": ");
    line_string(l, wire_bytes(entry, ENTRY_SCHEMA_URL));
    line_text(l, "}");
}
