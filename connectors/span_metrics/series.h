/*
 * The series of one metric of one resource: each a count and, for durations, a histogram, found by a key. The memory of a series is
 * one block of about 100 bytes + 8 for each bucket + its key and attributes, and what an exponential histogram and exemplars need;
 * all of it is charged.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_SERIES_H
#define MOTEL_CONNECTORS_SPAN_METRICS_SERIES_H

#include "connectors/span_metrics/exponential.h"
#include "connectors/span_metrics/hash.h"

enum histogram_kind { HISTOGRAM_NONE, HISTOGRAM_EXPLICIT, HISTOGRAM_EXPONENTIAL };

/* What all series of a connector have in common. */
struct series_shape {
    enum histogram_kind histogram;
    const double *bounds; /* explicit: ascending, in the unit of the metric */
    uint32_t nbounds;
    int64_t max_size;      /* exponential */
    uint32_t max_exemplars; /* of a series between two flushes; 0 = none */
    uint64_t limit;         /* series of one metric and resource; 0 = no limit. One more takes the rest. */
};

struct exemplar {
    uint8_t trace_id[16], span_id[8];
    double value;
};

struct series {
    struct series *next; /* in the order of their creation */
    uint64_t hash, start_ns /* wall clock */, seen_ns /* clock_now_ns() */;
    uint64_t count;
    double sum;
    struct exponential *exponential;
    struct exemplar *exemplars;
    uint32_t nexemplars, exemplars_cap;
    uint32_t nbuckets; /* explicit */
    uint32_t key_len, attributes_len;
    bool overflow; /* takes the spans of all that were one too many */
    uint8_t exports; /* 0, 1: its first count, a zero, 2: its real count, too */
    uint64_t buckets[]; /* then the key, then the attributes as fields 7 */
};
static inline struct bytes series_key(const struct series *s)
{
    return bytes_of(s->buckets + s->nbuckets, s->key_len);
}
static inline struct bytes series_attributes(const struct series *s)
{
    return bytes_of((const uint8_t *)(s->buckets + s->nbuckets) + s->key_len, s->attributes_len);
}

/* All zero is an empty set. */
struct series_set {
    struct sm_table table;
    struct series *first, *last, *overflow;
    size_t n; /* without the overflow */
    bool histogram; /* whether its series have one */
};

/* Those of that key; NULL = none. */
struct series *series_find(const struct series_set *s, uint64_t hash, struct bytes key);
static inline bool series_full(const struct series_set *s, const struct series_shape *shape)
{
    return shape->limit && s->n >= shape->limit;
}
/* Adds a series that is not there yet. NULL when out of memory. */
struct series *series_add(struct series_set *s, const struct series_shape *shape, uint64_t hash, struct bytes key,
                          struct bytes attributes, uint64_t start_ns);
/* The one of those that are too many, made when first asked for. NULL when out of memory. */
struct series *series_overflow(struct series_set *s, const struct series_shape *shape, uint64_t start_ns);
/* Counts a span of that duration `times` times. */
void series_observe(struct series *s, const struct series_shape *shape, double value, uint64_t times);
/* Remembers a span; the first ones of an interval stay. Without memory it is not. */
void series_exemplify(struct series *s, const struct series_shape *shape, struct bytes trace_id, struct bytes span_id, double value);

/* After an export: the next exemplars may come. */
void series_clear_exemplars(struct series_set *s);
/* Forgets those that were last seen at `before_ns` or earlier and exported `exports` times. */
void series_expire(struct series_set *s, uint64_t before_ns, uint8_t exports);
void series_set_done(struct series_set *s); /* leaves an empty one */

#endif
