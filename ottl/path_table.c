/* The paths of every context. */
#include "ottl/path.h"
#include "proto/otlp_fields.h"

#define KIND_BIT(k) (1u << (k))
#define ALL(n)                                                                                     \
    {                                                                                              \
        n, n, n, n                                                                                 \
    }

/* The usual sorts of rows; `num` is a list in braces, one for each kind of data point, or one
 * alone. */
#define SCALAR(n, s, t, k, ...)                                                                    \
    {                                                                                              \
        .name = n, .sub = s, .ops = &ottl_scalar_ops, .type = SCALAR_##t,                          \
        .kinds = KIND_BIT(OTTL_##k), .number = __VA_ARGS__                                         \
    }
#define MAP(n, ...)                                                                                \
    {                                                                                              \
        .name = n, .ops = &ottl_map_ops, .keyed = true, .number = __VA_ARGS__                      \
    }
#define CACHE                                                                                      \
    {                                                                                              \
        .name = "cache", .ops = &ottl_cache_ops, .keyed = true                                     \
    }
#define ITEMS(n, t, null, ...)                                                                     \
    {                                                                                              \
        .name = n, .ops = &ottl_items_ops, .go_type = t, .nullable = null, .number = __VA_ARGS__   \
    }

static const struct ottl_path_row resource_rows[] = {
    MAP("attributes", {RESOURCE_ATTRIBUTES}),
    SCALAR("dropped_attributes_count", NULL, UINT32, INT, {RESOURCE_DROPPED_ATTRIBUTES}),
    {.name = "schema_url", .ops = &ottl_schema_url_ops, .kinds = KIND_BIT(OTTL_STRING)},
    CACHE,
    {0},
};

static const struct ottl_path_row scope_rows[] = {
    SCALAR("name", NULL, STRING, STRING, {SCOPE_NAME}),
    SCALAR("version", NULL, STRING, STRING, {SCOPE_VERSION}),
    MAP("attributes", {SCOPE_ATTRIBUTES}),
    SCALAR("dropped_attributes_count", NULL, UINT32, INT, {SCOPE_DROPPED_ATTRIBUTES}),
    {.name = "schema_url", .ops = &ottl_schema_url_ops, .kinds = KIND_BIT(OTTL_STRING)},
    CACHE,
    {0},
};

static const struct ottl_path_row span_rows[] = {
    SCALAR("trace_id", NULL, TRACE_ID, TRACE_ID, {SPAN_TRACE_ID}),
    SCALAR("trace_id", "string", TRACE_ID_HEX, STRING, {SPAN_TRACE_ID}),
    SCALAR("span_id", NULL, SPAN_ID, SPAN_ID, {SPAN_ID}),
    SCALAR("span_id", "string", SPAN_ID_HEX, STRING, {SPAN_ID}),
    SCALAR("parent_span_id", NULL, SPAN_ID, SPAN_ID, {SPAN_PARENT_ID}),
    SCALAR("parent_span_id", "string", SPAN_ID_HEX, STRING, {SPAN_PARENT_ID}),
    {.name = "trace_state",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_STRING,
     .keyed = true,
     .number = {SPAN_TRACE_STATE},
     .kinds = KIND_BIT(OTTL_STRING)},
    SCALAR("name", NULL, STRING, STRING, {SPAN_NAME}),
    SCALAR("kind", NULL, ENUM, INT, {SPAN_KIND}),
    SCALAR("kind", "string", KIND, STRING, {SPAN_KIND}),
    SCALAR("kind", "deprecated_string", OLD_KIND, STRING, {SPAN_KIND}),
    SCALAR("start_time_unix_nano", NULL, FIXED64, INT, {SPAN_START}),
    SCALAR("end_time_unix_nano", NULL, FIXED64, INT, {SPAN_END}),
    SCALAR("start_time", NULL, TIME, TIME, {SPAN_START}),
    SCALAR("end_time", NULL, TIME, TIME, {SPAN_END}),
    MAP("attributes", {SPAN_ATTRIBUTES}),
    SCALAR("dropped_attributes_count", NULL, UINT32, INT, {SPAN_DROPPED_ATTRIBUTES}),
    ITEMS("events", "ptrace.SpanEventSlice", true, {SPAN_EVENTS}),
    SCALAR("dropped_events_count", NULL, UINT32, INT, {SPAN_DROPPED_EVENTS}),
    ITEMS("links", "ptrace.SpanLinkSlice", true, {SPAN_LINKS}),
    SCALAR("dropped_links_count", NULL, UINT32, INT, {SPAN_DROPPED_LINKS}),
    ITEMS("status", "ptrace.Status", false, {SPAN_STATUS}),
    {.name = "status",
     .sub = "code",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_ENUM,
     .number = {STATUS_CODE},
     .inside = {SPAN_STATUS},
     .kinds = KIND_BIT(OTTL_INT)},
    {.name = "status",
     .sub = "message",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_STRING,
     .number = {STATUS_MESSAGE},
     .inside = {SPAN_STATUS},
     .kinds = KIND_BIT(OTTL_STRING)},
    SCALAR("flags", NULL, FLAGS, INT, {SPAN_FLAGS}),
    CACHE,
    {0},
};

static const struct ottl_path_row event_rows[] = {
    SCALAR("time_unix_nano", NULL, FIXED64, INT, {EVENT_TIME}),
    SCALAR("time", NULL, TIME, TIME, {EVENT_TIME}),
    SCALAR("name", NULL, STRING, STRING, {EVENT_NAME}),
    MAP("attributes", {EVENT_ATTRIBUTES}),
    SCALAR("dropped_attributes_count", NULL, UINT32, INT, {EVENT_DROPPED_ATTRIBUTES}),
    {.name = "event_index", .ops = &ottl_event_index_ops, .kinds = KIND_BIT(OTTL_INT)},
    CACHE,
    {0},
};

static const struct ottl_path_row metric_rows[] = {
    SCALAR("name", NULL, STRING, STRING, {METRIC_NAME}),
    SCALAR("description", NULL, STRING, STRING, {METRIC_DESCRIPTION}),
    SCALAR("unit", NULL, STRING, STRING, {METRIC_UNIT}),
    {.name = "type", .ops = &ottl_metric_type_ops, .kinds = KIND_BIT(OTTL_INT)},
    {.name = "aggregation_temporality", .ops = &ottl_temporality_ops},
    {.name = "is_monotonic", .ops = &ottl_monotonic_ops},
    {.name = "data_points", .ops = &ottl_data_points_ops},
    MAP("metadata", {METRIC_METADATA}),
    CACHE,
    {0},
};

static const struct ottl_path_row point_rows[] = {
    MAP("attributes",
        {NUMBER_ATTRIBUTES, HISTOGRAM_ATTRIBUTES, EXPONENTIAL_ATTRIBUTES, SUMMARY_ATTRIBUTES}),
    SCALAR("start_time_unix_nano", NULL, FIXED64, INT, ALL(POINT_START)),
    SCALAR("time_unix_nano", NULL, FIXED64, INT, ALL(POINT_TIME)),
    SCALAR("start_time", NULL, TIME, TIME, ALL(POINT_START)),
    SCALAR("time", NULL, TIME, TIME, ALL(POINT_TIME)),
    {.name = "value_double",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_VALUE_DOUBLE,
     .number = {NUMBER_AS_DOUBLE},
     .other = {NUMBER_AS_INT},
     .point_type = "pmetric.NumberDataPoint"},
    {.name = "value_int",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_VALUE_INT,
     .number = {NUMBER_AS_INT},
     .other = {NUMBER_AS_DOUBLE},
     .point_type = "pmetric.NumberDataPoint"},
    ITEMS("exemplars", "pmetric.ExemplarSlice", true,
          {NUMBER_EXEMPLARS, HISTOGRAM_EXEMPLARS, EXPONENTIAL_EXEMPLARS}),
    SCALAR("flags", NULL, UINT32, INT,
           {NUMBER_FLAGS, HISTOGRAM_FLAGS, EXPONENTIAL_FLAGS, SUMMARY_FLAGS}),
    SCALAR("count", NULL, FIXED64, INT, {0, HISTOGRAM_COUNT, EXPONENTIAL_COUNT, SUMMARY_COUNT}),
    SCALAR("sum", NULL, DOUBLE_SET, DOUBLE, {0, HISTOGRAM_SUM, EXPONENTIAL_SUM, SUMMARY_SUM}),
    {.name = "bucket_counts",
     .ops = &ottl_ints_ops,
     .number = {0, HISTOGRAM_BUCKETS},
     .point_type = "pmetric.HistogramDataPoint"},
    {.name = "explicit_bounds",
     .ops = &ottl_doubles_ops,
     .number = {0, HISTOGRAM_BOUNDS},
     .point_type = "pmetric.HistogramDataPoint"},
    {.name = "scale",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_SINT32,
     .number = {0, 0, EXPONENTIAL_SCALE},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "zero_count",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_FIXED64,
     .number = {0, 0, EXPONENTIAL_ZERO_COUNT},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "positive",
     .ops = &ottl_items_ops,
     .go_type = "pmetric.ExponentialHistogramDataPointBuckets",
     .point_type = "pmetric.ExponentialHistogramDataPoint",
     .number = {0, 0, EXPONENTIAL_POSITIVE},
     .other = {0, 0, EXPONENTIAL_NEGATIVE}},
    {.name = "positive",
     .sub = "offset",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_SINT32,
     .number = {0, 0, BUCKETS_OFFSET},
     .inside = {0, 0, EXPONENTIAL_POSITIVE},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "positive",
     .sub = "bucket_counts",
     .ops = &ottl_ints_ops,
     .number = {0, 0, BUCKETS_COUNTS},
     .inside = {0, 0, EXPONENTIAL_POSITIVE},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "negative",
     .ops = &ottl_items_ops,
     .go_type = "pmetric.ExponentialHistogramDataPointBuckets",
     .point_type = "pmetric.ExponentialHistogramDataPoint",
     .number = {0, 0, EXPONENTIAL_NEGATIVE},
     .other = {0, 0, EXPONENTIAL_POSITIVE}},
    {.name = "negative",
     .sub = "offset",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_SINT32,
     .number = {0, 0, BUCKETS_OFFSET},
     .inside = {0, 0, EXPONENTIAL_NEGATIVE},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "negative",
     .sub = "bucket_counts",
     .ops = &ottl_ints_ops,
     .number = {0, 0, BUCKETS_COUNTS},
     .inside = {0, 0, EXPONENTIAL_NEGATIVE},
     .point_type = "pmetric.ExponentialHistogramDataPoint"},
    {.name = "quantile_values",
     .ops = &ottl_items_ops,
     .nullable = true,
     .go_type = "pmetric.SummaryDataPointValueAtQuantileSlice",
     .point_type = "pmetric.SummaryDataPoint",
     .number = {0, 0, 0, SUMMARY_QUANTILES}},
    CACHE,
    {0},
};

static const struct ottl_path_row exemplar_rows[] = {
    SCALAR("time_unix_nano", NULL, FIXED64, INT, {EXEMPLAR_TIME}),
    SCALAR("time", NULL, TIME, TIME, {EXEMPLAR_TIME}),
    {.name = "double_value",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_VALUE_DOUBLE,
     .number = {EXEMPLAR_AS_DOUBLE},
     .other = {EXEMPLAR_AS_INT},
     .kinds = KIND_BIT(OTTL_DOUBLE)},
    {.name = "int_value",
     .ops = &ottl_scalar_ops,
     .type = SCALAR_VALUE_INT,
     .number = {EXEMPLAR_AS_INT},
     .other = {EXEMPLAR_AS_DOUBLE},
     .kinds = KIND_BIT(OTTL_INT)},
    SCALAR("trace_id", NULL, TRACE_ID, TRACE_ID, {EXEMPLAR_TRACE_ID}),
    SCALAR("trace_id", "string", TRACE_ID_HEX, STRING, {EXEMPLAR_TRACE_ID}),
    SCALAR("span_id", NULL, SPAN_ID, SPAN_ID, {EXEMPLAR_SPAN_ID}),
    SCALAR("span_id", "string", SPAN_ID_HEX, STRING, {EXEMPLAR_SPAN_ID}),
    MAP("filtered_attributes", {EXEMPLAR_ATTRIBUTES}),
    CACHE,
    {0},
};

static const struct ottl_path_row log_rows[] = {
    SCALAR("time_unix_nano", NULL, FIXED64, INT, {LOG_TIME}),
    SCALAR("observed_time_unix_nano", NULL, FIXED64, INT, {LOG_OBSERVED_TIME}),
    SCALAR("time", NULL, TIME, TIME, {LOG_TIME}),
    SCALAR("observed_time", NULL, TIME, TIME, {LOG_OBSERVED_TIME}),
    SCALAR("severity_number", NULL, ENUM, INT, {LOG_SEVERITY_NUMBER}),
    SCALAR("severity_text", NULL, STRING, STRING, {LOG_SEVERITY_TEXT}),
    {.name = "body", .ops = &ottl_body_ops, .keyed = true, .number = {LOG_BODY}},
    {.name = "body",
     .sub = "string",
     .ops = &ottl_body_string_ops,
     .number = {LOG_BODY},
     .kinds = KIND_BIT(OTTL_STRING)},
    MAP("attributes", {LOG_ATTRIBUTES}),
    SCALAR("dropped_attributes_count", NULL, UINT32, INT, {LOG_DROPPED_ATTRIBUTES}),
    SCALAR("flags", NULL, FIXED32, INT, {LOG_FLAGS}),
    SCALAR("trace_id", NULL, TRACE_ID, TRACE_ID, {LOG_TRACE_ID}),
    SCALAR("trace_id", "string", TRACE_ID_HEX, STRING, {LOG_TRACE_ID}),
    SCALAR("span_id", NULL, SPAN_ID, SPAN_ID, {LOG_SPAN_ID}),
    SCALAR("span_id", "string", SPAN_ID_HEX, STRING, {LOG_SPAN_ID}),
    SCALAR("event_name", NULL, STRING, STRING, {LOG_EVENT_NAME}),
    CACHE,
    {0},
};

const struct ottl_path_row *const ottl_path_rows[OTTL_CONTEXT_COUNT] = {
    [OTTL_RESOURCE] = resource_rows, [OTTL_SCOPE] = scope_rows,   [OTTL_SPAN] = span_rows,
    [OTTL_SPANEVENT] = event_rows,   [OTTL_METRIC] = metric_rows, [OTTL_DATAPOINT] = point_rows,
    [OTTL_EXEMPLAR] = exemplar_rows, [OTTL_LOG] = log_rows,
};
