/* From series to metrics in protobuf, opentelemetry/proto/metrics/v1/metrics.proto. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_ENCODE_H
#define MOTEL_CONNECTORS_SPAN_METRICS_ENCODE_H

#include "connectors/span_metrics/config.h"
#include "connectors/span_metrics/resources.h"
#include "connectors/span_metrics/stamps.h"
#include "proto/batch.h"

/* Cumulative counts begin with an exported zero, so that who computes rates sees the first step. */
enum counts {
    COUNTS_ZERO_FIRST, /* zero where nothing was exported yet, else the count */
    COUNTS_ZERO_ONLY,  /* only series of which nothing was exported yet, with zero at their start; no durations */
    COUNTS_REAL,       /* the count; at least 1 ms after that zero */
    COUNTS_NONE,       /* these resources are left out */
};
struct encoding {
    const struct span_metrics_config *config;
    bool delta, histogram_in_sums;
    enum counts used, aside; /* of the resources in use and of those aside */
    uint64_t time_ns; /* wall clock */
    struct stamps *stamps; /* delta */
};
/* All resources as a batch of metrics, those in use from the oldest to the newest, then those aside. Changes nothing but the order of `stamps`.
 * NULL when out of memory. With no resources: a batch without records. */
struct batch *encode_metrics(const struct encoding *e, const struct resources *r, const struct series_shape *shape);

#endif
