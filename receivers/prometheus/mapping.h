/*
 * Samples of one scrape of one target, as they are after relabelling, to OTLP metrics. The rules are those of the reference
 * collector: behaviour.md of its receiver and the OpenTelemetry specification "Prometheus and OpenMetrics compatibility".
 *
 * Samples are grouped by their job and instance labels (a resource), their otel_scope_* labels (a scope), their family (a metric) and
 * the labels that are left (a point). Where data of a broken page would be lost or wrong in the reference, it is not here:
 *  - bucket counts never wrap: cumulative counts are made to rise, capped at the count, whose difference is the last bucket;
 *  - two buckets with the same bound are one;
 *  - a series whose name extends that of a gauge family ("x_count" below "TYPE x gauge") is a metric of its own name.
 *
 * Memory between prom_mapper_begin() and prom_mapper_finish(): for every point 144 bytes and its encoded attributes (names and
 * values of its labels and about 10 bytes each), 32 bytes for every bucket or quantile, exemplars as they are encoded; charged.
 * finish() makes the request from that, in a buffer of its own.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_MAPPING_H
#define MOTEL_RECEIVERS_PROMETHEUS_MAPPING_H

#include "receivers/prometheus/metadata.h"

/* Where the samples come from. Everything has to live until prom_mapper_finish(). */
struct prom_origin {
    struct bytes job, instance; /* of the target, for samples without such labels of their own */
    struct bytes scheme;        /* "http": the resource's url.scheme */
    const struct prom_metadata *metadata;
    struct prom_labels resource; /* further resource attributes by their OTLP names (what discovery knows); may be empty */
    bool trim_suffixes;          /* metric names without unit and type: trim_metric_suffixes */
};

struct prom_sample {
    struct prom_labels labels; /* final, external labels among them: sorted, `__name__` included; empty values are as no label */
    double value;
    bool stale;          /* the series is gone: its point says so, `value` means nothing */
    int64_t time_ms;     /* since 1970 */
    int64_t created_ms;  /* when the series began, where the format says so besides its `_created` sample; 0 = unknown */
    const struct prom_exemplar *exemplar; /* NULL = none; without a time of its own it gets the sample's */
};

/* Samples that became no point, though the scrape is good. */
struct prom_left_out {
    uint64_t samples;
    char first[200]; /* why the first one was left out, for the log; "" = none was */
};

struct prom_mapper;
/* May be used again and again, for any target; keeps a little memory between scrapes. `version`: that of the receiver's own scope; has to
 * outlive it. NULL when out of memory. */
struct prom_mapper *prom_mapper_new(const char *version);
struct prom_mapper *prom_mapper_free(struct prom_mapper *m); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct prom_mapper *, prom_mapper_free)

/* Starts a scrape; forgets all samples of one that was not finished (so also after a bad page, to send stale points and `up` alone). */
void prom_mapper_begin(struct prom_mapper *m, const struct prom_origin *origin);
/* Notes in `r` what becomes of the samples of this scrape, until its end; after prom_mapper_begin(). See recorder.h. */
struct prom_recorder;
void prom_mapper_record(struct prom_mapper *m, struct prom_recorder *r);
/*
 * Adds a sample; nothing of it is needed after the call. `up` and scrape_* come the same way.
 * 1: it is (part of) a point; a series to mark stale when it is gone.
 * 0: taken, but nothing to mark stale: target_info, or left out.
 * -EINVAL: it makes the scrape a bad one (a label twice, no name, no job or instance); reterr says why. -ENOMEM.
 */
int prom_mapper_add(struct prom_mapper *m, const struct prom_sample *s, struct err *reterr);
/*
 * All points as one ExportMetricsServiceRequest that otlp_check() would leave as it is; *ret is NULL when there are none. Points without
 * their `_count` (histograms, summaries) are left out. Ends the scrape. `left_out` may be NULL. 0, -ENOMEM or -EMSGSIZE.
 */
int prom_mapper_finish(struct prom_mapper *m, struct buf **ret, uint32_t *ret_points, struct prom_left_out *left_out);

#endif
