/* A point of a scrape in the making, and its parts. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_POINT_H
#define MOTEL_RECEIVERS_PROMETHEUS_POINT_H

#include "receivers/prometheus/table.h"

enum point_kind { KIND_GAUGE, KIND_SUM, KIND_HISTOGRAM, KIND_SUMMARY };

/* A bucket or a quantile. */
struct part {
    struct part *next;
    double bound, value;
    uint32_t index; /* in the request; PART_UNWRITTEN = not in it */
    bool stale;
};
#define PART_UNWRITTEN UINT32_MAX

/* An Exemplar message. */
struct kept_exemplar {
    struct kept_exemplar *next;
    struct bytes message;
};

/* A point in the making. */
struct point {
    struct prom_node node; /* by family and attributes */
    struct point *next;    /* of the family, in the order of the page */
    struct family *family;
    struct bytes attributes; /* as fields of the point; what tells it from others of its family */
    int64_t time_ms;
    double created; /* seconds since 1970; 0 = unknown */
    double value;   /* of numbers; the count of histograms and summaries */
    double sum;
    struct part *parts; /* newest first */
    struct kept_exemplar *exemplars, **exemplars_end;
    uint32_t nparts;
    uint32_t at, len; /* of the message in the request, while that is recorded; 0 = not in it */
    bool has_value, has_sum, stale;
};

/* What a sample's value is of its point. */
enum role { ROLE_NONE, ROLE_VALUE, ROLE_SUM, ROLE_PART, ROLE_START };
struct place {
    struct point *point;
    struct part *part;
    enum role role;
};

#endif
