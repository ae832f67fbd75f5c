#include "connectors/span_metrics/config.h"

#include <errno.h>

#define DELTA "AGGREGATION_TEMPORALITY_DELTA"

bool span_metrics_delta(const struct span_metrics_config *c)
{
    return strcmp(c->aggregation_temporality, DELTA) == 0;
}

/* ---- checking ---- */

static int check_list(const struct cfg_list *l, const char *key, const char *what,
                      struct err *reterr)
{
    struct err e = {.text = ""};
    if (dimensions_check(l, &e) == 0)
        return 0;
    return err_at(reterr, key, "failed validating %s: %s", what, e.text);
}

static int check_dimensions(const struct span_metrics_config *c, struct err *reterr)
{
    int r = check_list(&c->dimensions, "dimensions", "dimensions", reterr);
    if (r == 0)
        r = check_list(&c->calls_dimensions, "calls_dimensions", "calls dimensions", reterr);
    if (r == 0)
        r = check_list(&c->histogram.dimensions, "histogram::dimensions", "histogram dimensions",
                       reterr);
    if (r < 0 || !c->events.enabled)
        return r;
    if (!c->events.dimensions.n)
        return err_at(reterr, "events::dimensions",
                      "failed validating event dimensions: no dimensions configured for events");
    return check_list(&c->events.dimensions, "events::dimensions", "event dimensions", reterr);
}

static int check_positive(int64_t value, bool zero_too, const char *key, struct err *reterr)
{
    if (value > 0 || (value == 0 && zero_too))
        return 0;
    return err_at(reterr, key, "must be %s, got %lld", zero_too ? "0 or positive" : "positive",
                  (long long)value);
}

static int check_durations(const struct span_metrics_config *c, struct err *reterr)
{
    int r = check_positive(c->flush_interval_ns, false, "metrics_flush_interval", reterr);
    if (r == 0)
        r = check_positive(c->metrics_expiration_ns, true, "metrics_expiration", reterr);
    if (r == 0)
        r = check_positive(c->series_expiration_ns, true, "series_expiration", reterr);
    return r;
}

int span_metrics_check(const void *config, struct err *reterr)
{
    const struct span_metrics_config *c = config;
    int r = check_dimensions(c, reterr);
    if (r == 0 && c->histogram.explicit_buckets && c->histogram.exponential)
        return err_at(reterr, "histogram",
                      "use either `explicit` or `exponential` buckets histogram");
    if (r == 0)
        r = check_durations(c, reterr);
    if (r == 0 && span_metrics_delta(c))
        r = check_positive(c->timestamp_cache_size, false, "metric_timestamp_cache_size", reterr);
    if (r == 0)
        r = check_positive(c->resource_metrics_cache_size, false, "resource_metrics_cache_size",
                           reterr);
    if (r == 0)
        r = check_positive(c->cardinality_limit, true, "aggregation_cardinality_limit", reterr);
    if (r == 0 && c->exemplars.enabled)
        r = check_positive(c->exemplars.max_per_data_point, true, "exemplars::max_per_data_point",
                           reterr);
    return r;
}

/* ---- the table ---- */

static const struct cfg_field dimension_fields[] = {
    {.key = "name",
     .kind = BIND_STRING,
     CFG_AT(struct dimension_config, name),
     .help = "An attribute of the span, or else of the resource."},
    {.key = "default",
     .kind = BIND_STRING,
     .nullable = true,
     CFG_AT(struct dimension_config, def),
     .help = "Value where neither has it; without one the attribute is left out."},
    {.key = "glob",
     .kind = BIND_STRING,
     CFG_AT(struct dimension_config, glob),
     .help = "Instead of a name: all attributes whose names match (`*` does not cross a dot, `**` "
             "does)."},
    {0}};
static const struct cfg_field dimension_elem = {
    .kind = BIND_STRUCT, .fields = dimension_fields, CFG_NESTED(struct dimension_config)};
static const struct cfg_field duration_elem = {.kind = BIND_DURATION};

static const struct cfg_field explicit_fields[] = {
    {.key = "buckets",
     .kind = BIND_LIST,
     CFG_AT(struct explicit_config, buckets),
     .elem = &duration_elem,
     .help = "Upper bounds of the buckets, as durations; they belong to their bucket."},
    {0}};
static const struct cfg_field exponential_fields[] = {
    {.key = "max_size",
     .kind = BIND_INT,
     CFG_AT(struct exponential_config, max_size),
     .def = "0",
     CFG_MORE(.unit = "buckets", .min = INT32_MIN, .max = INT32_MAX),
     .help = "Most buckets of a data point, 2 to 16384; 0 means 160."},
    {0}};
static const struct cfg_field histogram_fields[] = {
    {.key = "disable",
     .kind = BIND_BOOL,
     CFG_AT(struct histogram_config, disable),
     .def = "false",
     .help = "No `duration` metric."},
    {.key = "unit",
     .kind = BIND_ENUM,
     CFG_AT(struct histogram_config, unit),
     .values = (const char *const[]){"ms|MS", "s|S", NULL},
     .def = "ms",
     .help = "Unit of the durations: milliseconds or seconds."},
    {.key = "explicit",
     .kind = BIND_BLOCK,
     CFG_AT(struct histogram_config, explicit_buckets),
     .fields = explicit_fields,
     CFG_NESTED(struct explicit_config),
     .null_absent = true,
     .help = "Buckets of one's own. Without it: 2ms, 4ms, 6ms, 8ms, 10ms, 50ms, 100ms, 200ms, "
             "400ms, 800ms, 1s, 1.4s, 2s, 5s, 10s, 15s."},
    {.key = "exponential",
     .kind = BIND_BLOCK,
     CFG_AT(struct histogram_config, exponential),
     .fields = exponential_fields,
     CFG_NESTED(struct exponential_config),
     .null_absent = true,
     .help = "Exponential histograms instead; not together with explicit."},
    {.key = "dimensions",
     .kind = BIND_LIST,
     CFG_AT(struct histogram_config, dimensions),
     .elem = &dimension_elem,
     .help = "Further dimensions of `duration` alone."},
    {0}};

static const struct cfg_field exemplar_fields[] = {
    {.key = "enabled",
     .kind = BIND_BOOL,
     CFG_AT(struct exemplars_config, enabled),
     .def = "false",
     .help = "Adds the ids of the first spans of each interval to the data points."},
    {.key = "max_per_data_point",
     .kind = BIND_INT,
     CFG_AT(struct exemplars_config, max_per_data_point),
     .def = "5",
     CFG_MORE(.min = INT32_MIN, .max = INT32_MAX),
     .help = "Most of them in one point."},
    {0}};
static const struct cfg_field event_fields[] = {
    {.key = "enabled",
     .kind = BIND_BOOL,
     CFG_AT(struct events_config, enabled),
     .def = "false",
     .help = "Counts span events as the metric `events`."},
    {.key = "dimensions",
     .kind = BIND_LIST,
     CFG_AT(struct events_config, dimensions),
     .elem = &dimension_elem,
     .help = "Dimensions of `events`, from the span, the event or the resource. At least one when "
             "enabled."},
    {0}};

const struct cfg_field span_metrics_fields[] = {
    {.key = "dimensions",
     .kind = BIND_LIST,
     CFG_AT(struct span_metrics_config, dimensions),
     .elem = &dimension_elem,
     .help = "Attributes that tell series apart, besides service.name, span.name, span.kind and "
             "status.code."},
    {.key = "calls_dimensions",
     .kind = BIND_LIST,
     CFG_AT(struct span_metrics_config, calls_dimensions),
     .elem = &dimension_elem,
     .help = "Further dimensions of `calls` alone."},
    {.key = "exclude_dimensions",
     .kind = BIND_LIST,
     CFG_AT(struct span_metrics_config, exclude_dimensions),
     .elem = &cfg_elem_string,
     .help = "Of service.name, span.name, span.kind, status.code and collector.instance.id those "
             "that are left out."},
    {.key = "dimensions_cache_size",
     .kind = BIND_INT,
     CFG_AT(struct span_metrics_config, dimensions_cache_size),
     .def = "0",
     .use = CFG_NO_EFFECT,
     .help = "Deprecated and without effect; aggregation_cardinality_limit bounds the memory."},
    {.key = "resource_metrics_cache_size",
     .kind = BIND_INT,
     CFG_AT(struct span_metrics_config, resource_metrics_cache_size),
     .def = "1000",
     CFG_MORE(.unit = "resources"),
     .help = "Resources whose series are kept; the least recently used one goes."},
    {.key = "resource_metrics_key_attributes",
     .kind = BIND_LIST,
     CFG_AT(struct span_metrics_config, resource_metrics_key_attributes),
     .elem = &cfg_elem_string,
     .help = "Resource attributes that tell resources apart; none means all."},
    {.key = "aggregation_temporality",
     .kind = BIND_STRING,
     CFG_AT(struct span_metrics_config, aggregation_temporality),
     .def = "AGGREGATION_TEMPORALITY_CUMULATIVE",
     .help = "Or `AGGREGATION_TEMPORALITY_DELTA`; anything else is cumulative."},
    {.key = "histogram",
     .kind = BIND_STRUCT,
     CFG_AT(struct span_metrics_config, histogram),
     .fields = histogram_fields,
     CFG_NESTED(struct histogram_config),
     .help = "The metric `duration`."},
    {.key = "metrics_flush_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct span_metrics_config, flush_interval_ns),
     .def = "60s",
     .help = "Time between two exports."},
    {.key = "metrics_expiration",
     .kind = BIND_DURATION,
     CFG_AT(struct span_metrics_config, metrics_expiration_ns),
     .def = "0s",
     .help = "A resource that was not seen for so long is forgotten; 0 means never."},
    {.key = "series_expiration",
     .kind = BIND_DURATION,
     CFG_AT(struct span_metrics_config, series_expiration_ns),
     .def = "0s",
     .help = "A series that was not seen for so long is forgotten; 0 means never."},
    {.key = "metric_timestamp_cache_size",
     .kind = BIND_INT,
     CFG_AT(struct span_metrics_config, timestamp_cache_size),
     .def = "1000",
     CFG_MORE(.unit = "series"),
     .help = "Delta only: series whose last export is remembered, so that the next one starts "
             "there."},
    {.key = "namespace",
     .kind = BIND_STRING,
     CFG_AT(struct span_metrics_config, name_space),
     .def = "traces.span.metrics",
     .help = "What stands before `.calls`, `.duration` and `.events`; \"\" means nothing."},
    {.key = "exemplars",
     .kind = BIND_STRUCT,
     CFG_AT(struct span_metrics_config, exemplars),
     .fields = exemplar_fields,
     CFG_NESTED(struct exemplars_config),
     .help = "Spans as examples in the data points."},
    {.key = "events",
     .kind = BIND_STRUCT,
     CFG_AT(struct span_metrics_config, events),
     .fields = event_fields,
     CFG_NESTED(struct events_config),
     .help = "The metric `events`."},
    {.key = "include_instrumentation_scope",
     .kind = BIND_LIST,
     CFG_AT(struct span_metrics_config, include_scopes),
     .elem = &cfg_elem_string,
     .help = "Names of scopes whose spans' series get span.instrumentation.scope.name and "
             ".version."},
    {.key = "aggregation_cardinality_limit",
     .kind = BIND_INT,
     CFG_AT(struct span_metrics_config, cardinality_limit),
     .def = "0",
     CFG_MORE(.unit = "series"),
     .help = "Most series of one metric and resource; the rest is counted in one with "
             "otel.metric.overflow. 0 means no limit."},
    {.key = "add_resource_attributes",
     .kind = BIND_BOOL,
     CFG_AT(struct span_metrics_config, add_resource_attributes),
     .def = "false",
     .use = CFG_NO_EFFECT,
     .help = "Without effect: resource attributes are always kept."},
    {.key = "enable_metrics_sampling_method",
     .kind = BIND_BOOL,
     CFG_AT(struct span_metrics_config, sampling_method),
     .def = "false",
     .help = "Adds the dimension sampling.method: `extrapolated` for spans with a sampling "
             "threshold in their tracestate, else `counted`."},
    {0}};
