/* The keys of the span_metrics connector. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_CONFIG_H
#define MOTEL_CONNECTORS_SPAN_METRICS_CONFIG_H

#include "agent/config/bind.h"
#include "connectors/span_metrics/dimensions.h"

enum duration_unit { UNIT_MS, UNIT_S };

struct explicit_config {
    struct cfg_list buckets; /* of int64_t, ns */
};
struct exponential_config {
    int64_t max_size;
};
struct histogram_config {
    bool disable;
    int unit; /* enum duration_unit */
    const struct explicit_config *explicit_buckets;
    const struct exponential_config *exponential;
    struct cfg_list dimensions; /* of struct dimension_config, as all lists of that name */
};
struct exemplars_config {
    bool enabled;
    int64_t max_per_data_point;
};
struct events_config {
    bool enabled;
    struct cfg_list dimensions;
};
struct span_metrics_config {
    struct cfg_list dimensions, calls_dimensions;
    struct cfg_list exclude_dimensions; /* of const char * */
    int64_t dimensions_cache_size;
    int64_t resource_metrics_cache_size;
    struct cfg_list resource_metrics_key_attributes; /* of const char * */
    const char *aggregation_temporality;
    struct histogram_config histogram;
    int64_t flush_interval_ns, metrics_expiration_ns, series_expiration_ns;
    int64_t timestamp_cache_size;
    const char *name_space;
    struct exemplars_config exemplars;
    struct events_config events;
    struct cfg_list include_scopes; /* of const char * */
    int64_t cardinality_limit;
    bool add_resource_attributes, sampling_method;
};

extern const struct cfg_field span_metrics_fields[];
int span_metrics_check(const void *config, struct err *reterr);
bool span_metrics_delta(const struct span_metrics_config *c);

#endif
