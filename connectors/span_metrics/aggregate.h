/* From spans to series. Not thread safe: the owner holds a lock. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_AGGREGATE_H
#define MOTEL_CONNECTORS_SPAN_METRICS_AGGREGATE_H

#include "connectors/span_metrics/identity.h"
#include "connectors/span_metrics/resources.h"
#include "proto/batch.h"

struct aggregate {
    const struct span_metrics_config *config;
    struct series_shape shape;
    double *bounds; /* of the shape */
    double ns_per_unit;
    struct dimensions common, calls, duration, events;
    uint64_t name_lengths; /* of the attributes of spans that are needed; 0 = none are */
    struct identity identity;
    struct resources resources;
    uint64_t lost; /* spans without the memory for their series, since the start */

    /* Of the present batch. */
    uint64_t wall_ns, now_ns;
    uint64_t rng;
    struct bytes tracestate; /* of the span before, and what follows from it */
    uint64_t times;
    bool adjusted;
    struct attributes resource_attributes, span_attributes, event_attributes, matches, more;
    struct buf *key, *attributes;
};

/* 0, or a negative errno with reterr; aggregate_done() is due in any case. */
int aggregate_init(struct aggregate *a, const struct span_metrics_config *config, struct err *reterr);
void aggregate_done(struct aggregate *a);
/* Counts the spans of a batch. Series that begin with it start at `wall_ns`; `now_ns` is clock_now_ns(). True when any was counted. */
bool aggregate_batch(struct aggregate *a, const struct batch *b, uint64_t wall_ns, uint64_t now_ns);

#endif
