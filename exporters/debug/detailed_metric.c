/* Verbosity `detailed`: every field of a metric on a line of its own. */
#include "exporters/debug/text.h"
#include "proto/otlp_fields.h"

static void put_count(struct text *t, const char *before, uint64_t n)
{
    text_printf(t, "%s%llu\n", before, (unsigned long long)n);
}

static void put_double_line(struct text *t, const char *before, double v)
{
    text_bytes(t, bytes_str(before));
    text_fixed(t, v);
    text_bytes(t, bytes_str("\n"));
}

/* An optional double. */
static void put_field_line(struct text *t, const char *before, struct bytes point, uint32_t field)
{
    struct wire_field f;
    if (wire_find(point, field, &f))
        put_double_line(t, before, wire_double(f.value));
}

static void put_number_line(struct text *t, const char *before, struct bytes msg, uint32_t as_int,
                            uint32_t as_double)
{
    struct wire_field f;
    if (wire_find(msg, as_int, &f))
        text_printf(t, "%s%lld\n", before, (long long)f.value);
    else
        put_field_line(t, before, msg, as_double);
}

static void put_exemplars(struct text *t, struct bytes point, uint32_t field)
{
    struct wire_reader r = wire_reader(point);
    struct bytes e;
    for (unsigned i = 0; wire_each(&r, field, &e); i++) {
        text_printf(t, "%sExemplar #%u\n", i ? "" : "Exemplars:\n", i);
        text_id_line(t, "     -> Trace ID: ", e, EXEMPLAR_TRACE_ID);
        text_id_line(t, "     -> Span ID: ", e, EXEMPLAR_SPAN_ID);
        text_time_line(t, "     -> Timestamp: ", e, EXEMPLAR_TIME);
        put_number_line(t, "     -> Value: ", e, EXEMPLAR_AS_INT, EXEMPLAR_AS_DOUBLE);
        text_attributes(t, "     -> FilteredAttributes", "          ->", e, EXEMPLAR_ATTRIBUTES);
    }
}

static void put_number(struct text *t, struct bytes p)
{
    put_number_line(t, "Value: ", p, NUMBER_AS_INT, NUMBER_AS_DOUBLE);
    put_exemplars(t, p, NUMBER_EXEMPLARS);
}

static void put_histogram(struct text *t, struct bytes p)
{
    struct wire_reader bounds = wire_reader(wire_bytes(p, HISTOGRAM_BOUNDS));
    struct wire_reader counts = wire_reader(wire_bytes(p, HISTOGRAM_BUCKETS));
    uint64_t v;
    put_count(t, "Count: ", wire_uint(p, HISTOGRAM_COUNT));
    put_field_line(t, "Sum: ", p, HISTOGRAM_SUM);
    put_field_line(t, "Min: ", p, HISTOGRAM_MIN);
    put_field_line(t, "Max: ", p, HISTOGRAM_MAX);
    for (unsigned i = 0; wire_next_packed(&bounds, WIRE_I64, &v) > 0; i++) {
        text_printf(t, "ExplicitBounds #%u: ", i);
        put_double_line(t, "", wire_double(v));
    }
    for (unsigned i = 0; wire_next_packed(&counts, WIRE_I64, &v) > 0; i++)
        text_printf(t, "Buckets #%u, Count: %llu\n", i, (unsigned long long)v);
    put_exemplars(t, p, HISTOGRAM_EXEMPLARS);
}

static void put_bucket(struct text *t, char open, double low, double high, char close,
                       uint64_t count)
{
    text_printf(t, "Bucket %c", open);
    text_fixed(t, low);
    text_bytes(t, bytes_str(", "));
    text_fixed(t, high);
    text_printf(t, "%c, Count: %llu\n", close, (unsigned long long)count);
}

static void put_buckets(struct text *t, struct bytes p)
{
    _cleanup_buckets_ struct buckets negative =
        buckets_read(t, wire_bytes(p, EXPONENTIAL_NEGATIVE));
    _cleanup_buckets_ struct buckets positive =
        buckets_read(t, wire_bytes(p, EXPONENTIAL_POSITIVE));
    double factor = buckets_factor(p);
    uint64_t zeros = wire_uint(p, EXPONENTIAL_ZERO_COUNT);
    for (size_t i = negative.n; i-- > 0;) {
        double index = negative.offset + (double)i;
        put_bucket(t, '[', -bucket_bound(index + 1, factor), -bucket_bound(index, factor), ')',
                   negative.counts[i]);
    }
    if (zeros)
        put_count(t, "Bucket [0, 0], Count: ", zeros);
    for (size_t i = 0; i < positive.n; i++) {
        double index = positive.offset + (double)i;
        put_bucket(t, '(', bucket_bound(index, factor), bucket_bound(index + 1, factor), ']',
                   positive.counts[i]);
    }
}

static void put_exponential(struct text *t, struct bytes p)
{
    put_count(t, "Count: ", wire_uint(p, EXPONENTIAL_COUNT));
    put_field_line(t, "Sum: ", p, EXPONENTIAL_SUM);
    put_field_line(t, "Min: ", p, EXPONENTIAL_MIN);
    put_field_line(t, "Max: ", p, EXPONENTIAL_MAX);
    put_buckets(t, p);
    put_exemplars(t, p, EXPONENTIAL_EXEMPLARS);
}

static void put_summary(struct text *t, struct bytes p)
{
    struct wire_reader r = wire_reader(p);
    struct bytes q;
    put_count(t, "Count: ", wire_uint(p, SUMMARY_COUNT));
    put_double_line(t, "Sum: ", wire_double(wire_uint(p, SUMMARY_SUM)));
    for (unsigned i = 0; wire_each(&r, SUMMARY_QUANTILES, &q); i++) {
        text_printf(t, "QuantileValue #%u: Quantile ", i);
        text_fixed(t, wire_double(wire_uint(q, QUANTILE_QUANTILE)));
        put_double_line(t, ", Value ", wire_double(wire_uint(q, QUANTILE_VALUE)));
    }
}

static const struct kind {
    uint32_t field, attributes;
    const char *name, *points;
    bool monotonic, temporality;
    void (*put)(struct text *t, struct bytes point);
} kinds[] = {
    {METRIC_GAUGE, NUMBER_ATTRIBUTES, "Gauge", "Number", false, false, put_number},
    {METRIC_SUM, NUMBER_ATTRIBUTES, "Sum", "Number", true, true, put_number},
    {METRIC_HISTOGRAM, HISTOGRAM_ATTRIBUTES, "Histogram", "Histogram", false, true, put_histogram},
    {METRIC_EXPONENTIAL, EXPONENTIAL_ATTRIBUTES, "ExponentialHistogram", "ExponentialHistogram",
     false, true, put_exponential},
    {METRIC_SUMMARY, SUMMARY_ATTRIBUTES, "Summary", "Summary", false, false, put_summary},
};

static const struct kind *kind_of(struct bytes metric, struct bytes *ret_data)
{
    struct wire_field f;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (wire_find(metric, kinds[i].field, &f)) {
            *ret_data = f.bytes;
            return &kinds[i];
        }
    }
    return NULL;
}

static void put_points(struct text *t, const struct kind *k, struct bytes data)
{
    static const char *const temporalities[] = {"Unspecified", "Delta", "Cumulative"};
    struct wire_reader r = wire_reader(data);
    struct bytes p;
    if (k->monotonic)
        text_printf(t, "     -> IsMonotonic: %s\n",
                    wire_uint(data, DATA_MONOTONIC) ? "true" : "false");
    if (k->temporality)
        text_printf(
            t, "     -> AggregationTemporality: %s\n",
            text_name(temporalities, ARRAY_SIZE(temporalities), wire_uint(data, DATA_TEMPORALITY)));
    for (unsigned i = 0; wire_each(&r, DATA_POINTS, &p); i++) {
        text_printf(t, "%sDataPoints #%u\n", k->points, i);
        text_attributes(t, "Data point attributes", "     ->", p, k->attributes);
        text_time_line(t, "StartTimestamp: ", p, POINT_START);
        text_time_line(t, "Timestamp: ", p, POINT_TIME);
        k->put(t, p);
    }
}

void detailed_metric(struct text *t, struct bytes metric)
{
    struct bytes data;
    const struct kind *k = kind_of(metric, &data);
    text_printf(t, "Descriptor:\n");
    text_string_line(t, "     -> Name: ", metric, METRIC_NAME);
    text_string_line(t, "     -> Description: ", metric, METRIC_DESCRIPTION);
    text_string_line(t, "     -> Unit: ", metric, METRIC_UNIT);
    text_printf(t, "     -> DataType: %s\n", k ? k->name : "Empty");
    text_attributes(t, "     -> Metadata", "          ->", metric, METRIC_METADATA);
    if (k)
        put_points(t, k, data);
}
