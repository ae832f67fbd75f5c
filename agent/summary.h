/*
 * What became of the telemetry of a run: collected from the counters at its end, told in the log in ten lines or fewer, and
 * written as JSON (docs/summary.md).
 */
#ifndef MOTEL_SUMMARY_H
#define MOTEL_SUMMARY_H

#include "agent/pipeline/host.h"
#include "agent/pipeline/settings.h"

/* The sum of the counters on a metrics page whose names begin with `prefix` ("otelcol_receiver_accepted_"). */
int64_t summary_total(struct bytes page, const char *prefix);

enum summary_part { SUMMARY_RECEIVERS, SUMMARY_PROCESSORS, SUMMARY_EXPORTERS, SUMMARY_TARGETS, SUMMARY_PARTS };

/* Columns; what is not given is 0. */
enum { RECEIVER_ACCEPTED, RECEIVER_REFUSED, RECEIVER_FAILED };
enum { PROCESSOR_DROPPED };
enum {
    EXPORTER_SENT,         /* requests that were taken, with what was left out of them */
    EXPORTER_GIVEN_UP,     /* refused for good or out of time */
    EXPORTER_REFUSED,      /* the queue was full: the sender was told so */
    EXPORTER_LEFT_OUT,     /* of SENT, by a partial success */
    EXPORTER_REJECTED,     /* of GIVEN_UP, those that were refused for good */
    EXPORTER_RETURNED,     /* of GIVEN_UP, those whose sender waited, and was told to bring them again */
    EXPORTER_RETRIES,      /* requests */
    EXPORTER_QUEUE_PEAK,   /* as the queue's sizer counts */
    EXPORTER_QUEUE_SIZE,   /* 0 = has no queue */
    EXPORTER_KEPT,         /* on disk at the end, for the next start */
    EXPORTER_DAMAGED,      /* of GIVEN_UP, those that could not be read from disk */
};
enum { TARGET_SUCCEEDED, TARGET_FAILED };
#define SUMMARY_COLUMNS 11

struct summary_row {
    char *id;             /* of the component */
    enum signal signal;   /* SIGNAL_COUNT: of none */
    char *job, *instance; /* targets only */
    int64_t n[SUMMARY_COLUMNS];
};
struct summary_table {
    struct summary_row *rows;
    size_t n;
};
struct summary {
    struct summary_table parts[SUMMARY_PARTS];
    struct time_range times[SIGNAL_COUNT]; /* of the telemetry */
    uint64_t start_ns, end_ns;             /* of the run, wall clock */
    size_t rss_peak, telemetry_peak;       /* bytes; rss_peak 0 = not known */
};
/* Reads the counters. 0 or -ENOMEM; summary_done() in any case. */
int summary_collect(struct host *h, struct summary *ret);
void summary_done(struct summary *s);

/* What came to an exporter in the end, and what became of it: in = delivered + rejected + dropped + damaged + kept on disk. */
static inline int64_t summary_in(const struct summary_row *r) { return r->n[EXPORTER_SENT] + r->n[EXPORTER_GIVEN_UP] + r->n[EXPORTER_KEPT] - r->n[EXPORTER_RETURNED]; }
static inline int64_t summary_delivered(const struct summary_row *r) { return r->n[EXPORTER_SENT] - r->n[EXPORTER_LEFT_OUT]; }
static inline int64_t summary_rejected(const struct summary_row *r) { return r->n[EXPORTER_LEFT_OUT] + r->n[EXPORTER_REJECTED]; }
static inline int64_t summary_dropped(const struct summary_row *r)
{
    return r->n[EXPORTER_GIVEN_UP] - r->n[EXPORTER_REJECTED] - r->n[EXPORTER_RETURNED] - r->n[EXPORTER_DAMAGED];
}
/* Records that were taken in and did not arrive: at each exporter, and in processors. */
int64_t summary_lost(const struct summary *s);
/* The sum of a column over all rows, or those of one signal (SIGNAL_COUNT: all). */
int64_t summary_sum(const struct summary *s, enum summary_part part, unsigned column, enum signal signal);

/* The lines, SUMMARY_LINES at most, each with a newline; those about a loss begin with '!', the others with ' '. `path`: where the file is,
 * NULL = nowhere. 0 or -ENOMEM. */
#define SUMMARY_LINES 10
int summary_text(const struct summary *s, const char *path, struct buf *out);
/* One JSON object and a newline. Strings without secrets. 0 or -ENOMEM. */
int summary_json(const struct summary *s, struct buf *out);

/* Where the file goes. */
struct summary_place {
    char *path;   /* NULL = nowhere */
    char *beside; /* not asked for: only beside this regular file, and not in place of something else than a summary; else NULL */
};
/* By `setting` (struct motel_settings). 0 or -ENOMEM; summary_place_done() in any case. Touches no disk. */
int summary_place_find(const struct service_settings *service, const char *setting, struct summary_place *ret);
void summary_place_done(struct summary_place *p);
/* Writes a file whole or not at all, by `deadline_ns` at the latest (a disk may hang). `mode` as in struct motel_settings. 0; 1 = nothing was
 * written, since p->beside is no file on disk; or a negative errno with reterr. */
int summary_write(const struct summary_place *p, struct bytes text, int64_t mode, uint64_t deadline_ns, struct err *reterr);

/* At the end of a run: all of it. Mistakes are logged. */
void summary_tell(struct host *h, const struct service_settings *service, const struct motel_settings *settings);

#endif
