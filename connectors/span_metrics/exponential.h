/*
 * Exponential histograms of durations (>= 0), as the OpenTelemetry metrics data model defines them
 * (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram): bucket i holds (base^i, base^(i+1)] with
 * base = 2^(2^-scale). The scale starts at 20 and falls as far as the values need to fit into `max` buckets.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_EXPONENTIAL_H
#define MOTEL_CONNECTORS_SPAN_METRICS_EXPONENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPONENTIAL_SCALE_MAX 20
#define EXPONENTIAL_SIZE_DEFAULT 160
#define EXPONENTIAL_SIZE_MIN 2
#define EXPONENTIAL_SIZE_MAX 16384

struct exponential {
    int32_t scale;
    int32_t first;     /* index of counts[0] */
    uint32_t n;        /* buckets in use, from the lowest to the highest value; 0 = none */
    uint32_t cap, max; /* allocated; at most */
    uint64_t zeros;
    double lowest, highest; /* values; once there are any */
    bool any;
    uint64_t *counts;
};

/* `max`: 0 = 160; others are brought into 2..16384. NULL when out of memory. */
struct exponential *exponential_new(int64_t max);
struct exponential *exponential_free(struct exponential *e); /* NULL ok; returns NULL */
/* Counts `value` (finite, >= 0) `times` times. Where memory for more buckets is missing the scale falls instead. */
void exponential_add(struct exponential *e, double value, uint64_t times);
/* The bucket of a value > 0 at a scale of -10..20. */
int32_t exponential_index(int32_t scale, double value);

#endif
