/*
 * Metrics of console JSON. An object does not say of which kind a metric is: its points and what
 * stands beside them tell.
 */
#include <errno.h>

#include "proto/console_map.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

/* ---- points ---- */

static const struct console_member exemplar_members[] = {
    {"filtered_attributes", WHAT_ATTRIBUTES, EXEMPLAR_ATTRIBUTES},
    {"value", WHAT_NUMBER, EXEMPLAR_AS_INT, EXEMPLAR_AS_DOUBLE},
    {"time_unix_nano", WHAT_TIME, EXEMPLAR_TIME},
    {"span_id", WHAT_ID, EXEMPLAR_SPAN_ID, .size = 8},
    {"trace_id", WHAT_ID, EXEMPLAR_TRACE_ID, .size = 16},
};
static const struct console_shape exemplar_shape = CONSOLE_SHAPE(exemplar_members, 0);

static const struct console_member number_members[] = {
    {"attributes", WHAT_ATTRIBUTES, NUMBER_ATTRIBUTES},
    {"start_time_unix_nano", WHAT_TIME, POINT_START},
    {"time_unix_nano", WHAT_TIME, POINT_TIME},
    {"value", WHAT_NUMBER, NUMBER_AS_INT, NUMBER_AS_DOUBLE},
    {"exemplars", WHAT_MESSAGES, NUMBER_EXEMPLARS, .shape = &exemplar_shape},
    {"flags", WHAT_UINT, NUMBER_FLAGS},
};
static const struct console_shape number_shape = CONSOLE_SHAPE(number_members, 1u << 3);

static const struct console_member histogram_members[] = {
    {"attributes", WHAT_ATTRIBUTES, HISTOGRAM_ATTRIBUTES},
    {"start_time_unix_nano", WHAT_TIME, POINT_START},
    {"time_unix_nano", WHAT_TIME, POINT_TIME},
    {"count", WHAT_FIXED64, HISTOGRAM_COUNT},
    {"sum", WHAT_DOUBLE, HISTOGRAM_SUM},
    {"bucket_counts", WHAT_FIXED64S, HISTOGRAM_BUCKETS},
    {"explicit_bounds", WHAT_DOUBLES, HISTOGRAM_BOUNDS},
    {"min", WHAT_DOUBLE, HISTOGRAM_MIN},
    {"max", WHAT_DOUBLE, HISTOGRAM_MAX},
    {"exemplars", WHAT_MESSAGES, HISTOGRAM_EXEMPLARS, .shape = &exemplar_shape},
    {"flags", WHAT_UINT, HISTOGRAM_FLAGS},
};
static const struct console_shape histogram_shape = CONSOLE_SHAPE(histogram_members, 1u << 3);

static const struct console_member bucket_members[] = {
    {"offset", WHAT_SINT, BUCKETS_OFFSET},
    {"bucket_counts", WHAT_UINTS, BUCKETS_COUNTS},
};
static const struct console_shape bucket_shape = CONSOLE_SHAPE(bucket_members, 0);

static const struct console_member exponential_members[] = {
    {"attributes", WHAT_ATTRIBUTES, EXPONENTIAL_ATTRIBUTES},
    {"start_time_unix_nano", WHAT_TIME, POINT_START},
    {"time_unix_nano", WHAT_TIME, POINT_TIME},
    {"count", WHAT_FIXED64, EXPONENTIAL_COUNT},
    {"sum", WHAT_DOUBLE, EXPONENTIAL_SUM},
    {"scale", WHAT_SINT, EXPONENTIAL_SCALE},
    {"zero_count", WHAT_FIXED64, EXPONENTIAL_ZERO_COUNT},
    {"positive", WHAT_MESSAGE, EXPONENTIAL_POSITIVE, .shape = &bucket_shape},
    {"negative", WHAT_MESSAGE, EXPONENTIAL_NEGATIVE, .shape = &bucket_shape},
    {"flags", WHAT_UINT, EXPONENTIAL_FLAGS},
    {"min", WHAT_DOUBLE, EXPONENTIAL_MIN},
    {"max", WHAT_DOUBLE, EXPONENTIAL_MAX},
    {"exemplars", WHAT_MESSAGES, EXPONENTIAL_EXEMPLARS, .shape = &exemplar_shape},
};
static const struct console_shape exponential_shape = CONSOLE_SHAPE(exponential_members, 1u << 3);

/* The SDK has no summaries; motel's console exporter prints them so. */
static const struct console_member quantile_members[] = {
    {"quantile", WHAT_DOUBLE, QUANTILE_QUANTILE},
    {"value", WHAT_DOUBLE, QUANTILE_VALUE},
};
static const struct console_shape quantile_shape = CONSOLE_SHAPE(quantile_members, 0);

static const struct console_member summary_members[] = {
    {"attributes", WHAT_ATTRIBUTES, SUMMARY_ATTRIBUTES},
    {"start_time_unix_nano", WHAT_TIME, POINT_START},
    {"time_unix_nano", WHAT_TIME, POINT_TIME},
    {"count", WHAT_FIXED64, SUMMARY_COUNT},
    {"sum", WHAT_DOUBLE, SUMMARY_SUM},
    {"quantile_values", WHAT_MESSAGES, SUMMARY_QUANTILES, .shape = &quantile_shape},
    {"flags", WHAT_UINT, SUMMARY_FLAGS},
};
static const struct console_shape summary_shape = CONSOLE_SHAPE(summary_members, 1u << 3);

/* ---- kinds of metrics ---- */

enum { SEEN_POINTS = 1, SEEN_TEMPORALITY = 2, SEEN_MONOTONIC = 4 };

#define DATA_MEMBERS(point_shape)                                                                  \
    {                                                                                              \
        {"data_points", WHAT_MESSAGES, DATA_POINTS, .shape = &(point_shape)},                      \
            {"aggregation_temporality", WHAT_UINT, DATA_TEMPORALITY},                              \
            {"is_monotonic", WHAT_BOOL, DATA_MONOTONIC},                                           \
    }
static const struct console_member numbers[] = DATA_MEMBERS(number_shape);
static const struct console_member histograms[] = DATA_MEMBERS(histogram_shape);
static const struct console_member exponentials[] = DATA_MEMBERS(exponential_shape);
static const struct console_member summaries[] = DATA_MEMBERS(summary_shape);

/* `is_monotonic` is no field of histograms. */
static const struct console_shape numbers_shape = CONSOLE_SHAPE(numbers, SEEN_POINTS);
static const struct console_shape histograms_shape = {histograms, 2, SEEN_POINTS};
static const struct console_shape exponentials_shape = {exponentials, 2, SEEN_POINTS};
static const struct console_shape summaries_shape = {summaries, 1, SEEN_POINTS};

/* Which kind of point has a member of this name; NULL = any. */
static const struct console_shape *telling_member(struct bytes key)
{
    if (bytes_eq_str(key, "value"))
        return &numbers_shape;
    if (bytes_eq_str(key, "scale") || bytes_eq_str(key, "positive"))
        return &exponentials_shape;
    if (bytes_eq_str(key, "quantile_values"))
        return &summaries_shape;
    bool histogram = bytes_eq_str(key, "bucket_counts") || bytes_eq_str(key, "explicit_bounds");
    return histogram ? &histograms_shape : NULL;
}

/* Looks into the object of a point. */
static const struct console_shape *look_at_point(struct json_scan *s)
{
    const struct console_shape *shape = NULL;
    struct bytes key;
    bool first = true;
    int r = json_scan_char(s, '{');
    while (r == 0 && !shape && (r = json_scan_key(s, &first, &key)) > 0) {
        shape = telling_member(key);
        r = json_scan_skip(s);
    }
    return shape;
}

/* The kind of the points of the "data" object that comes next: that of the first one. */
static const struct console_shape *look_ahead(const struct console_mapper *m)
{
    struct json_scan s = m->scan;
    const struct console_shape *shape = NULL;
    struct bytes key;
    bool first = true;
    s.err = NULL;
    int r = json_scan_char(&s, '{');
    while (r == 0 && !shape && (r = json_scan_key(&s, &first, &key)) > 0) {
        if (bytes_eq_str(key, "data_points") && json_scan_peek(&s) == '[' && ++s.p &&
            json_scan_peek(&s) != ']')
            return look_at_point(&s);
        if (bytes_eq_str(key, "data_points"))
            break;
        r = json_scan_skip(&s);
    }
    return &numbers_shape; /* without points it does not matter */
}

static int read_data(struct console_mapper *m)
{
    const struct console_shape *shape = look_ahead(m);
    uint32_t seen = 0;
    size_t mark, tag = m->record->len;
    if (!shape)
        return json_scan_fail(&m->scan, m->scan.p,
                              "expected points with \"value\", \"bucket_counts\", \"scale\" or "
                              "\"quantile_values\"");
    int r = wire_begin(m->record, METRIC_GAUGE, &mark);
    if (r == 0)
        r = console_object(m, shape, &seen);
    if (r < 0)
        return r;
    unsigned number = shape == &histograms_shape     ? METRIC_HISTOGRAM
                      : shape == &exponentials_shape ? METRIC_EXPONENTIAL
                      : shape == &summaries_shape    ? METRIC_SUMMARY
                      : seen & ~SEEN_POINTS          ? METRIC_SUM
                                                     : METRIC_GAUGE;
    m->record->data[tag] = (uint8_t)(number << 3 | WIRE_LEN);
    return wire_end(m->record, mark);
}

/* ---- what holds metrics ---- */

static const struct console_member metric_members[] = {
    {"name", WHAT_STRING, METRIC_NAME},
    {"description", WHAT_STRING, METRIC_DESCRIPTION},
    {"unit", WHAT_STRING, METRIC_UNIT},
    {"data", WHAT_OWN, .read = read_data},
};
static const struct console_shape metric_shape = CONSOLE_SHAPE(metric_members, 1u << 3);

/* "schema_url" of a scope stands again beside it, where OTLP has it. */
static const struct console_member scope_members[] = {
    {"name", WHAT_STRING, SCOPE_NAME},
    {"version", WHAT_STRING, SCOPE_VERSION},
    {"attributes", WHAT_ATTRIBUTES, SCOPE_ATTRIBUTES},
};
static const struct console_shape scope_shape = CONSOLE_SHAPE(scope_members, 0);

static const struct console_member scope_entry_members[] = {
    {"scope", WHAT_MESSAGE, ENTRY_HEAD, .shape = &scope_shape},
    {"metrics", WHAT_MESSAGES, ENTRY_ITEMS, .shape = &metric_shape},
    {"schema_url", WHAT_STRING, ENTRY_SCHEMA_URL},
};
static const struct console_shape scope_entry_shape = CONSOLE_SHAPE(scope_entry_members, 0);

static int read_entry_resource(struct console_mapper *m)
{
    int r = console_resource(m);
    return r == 0 ? buf_append(m->record, m->resource->entry->data, m->resource->entry->len) : r;
}

static const struct console_member entry_members[] = {
    {"resource", WHAT_OWN, .read = read_entry_resource},
    {"scope_metrics", WHAT_MESSAGES, ENTRY_ITEMS, .shape = &scope_entry_shape},
    {"schema_url", WHAT_STRING, ENTRY_SCHEMA_URL},
};
static const struct console_shape entry_shape = CONSOLE_SHAPE(entry_members, 1);

int console_metrics(struct console_mapper *m)
{
    bool first = true;
    int r = json_scan_char(&m->scan, '[');
    while (r == 0 && (r = json_scan_element(&m->scan, &first)) > 0)
        r = console_message(m, &entry_shape, OTLP_ENTRIES);
    return r;
}
