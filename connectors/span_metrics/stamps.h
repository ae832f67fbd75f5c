/* Delta temporality: when a series was exported last, for a bounded number of series; the least recently used ones are forgotten. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_STAMPS_H
#define MOTEL_CONNECTORS_SPAN_METRICS_STAMPS_H

#include "connectors/span_metrics/hash.h"

struct stamp {
    uint64_t resource, series; /* their hashes */
    uint64_t time_ns;
    struct stamp *older, *newer;
};
struct stamps {
    size_t max;
    struct sm_table table;
    struct stamp *oldest, *newest;
};
/* The time of the last export; 0 = unknown. */
uint64_t stamps_get(struct stamps *s, uint64_t resource, uint64_t series);
/* Without memory it is not remembered. */
void stamps_set(struct stamps *s, uint64_t resource, uint64_t series, uint64_t time_ns);
void stamps_done(struct stamps *s);

#endif
