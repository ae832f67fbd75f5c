/* Notes while a page is parsed and mapped what a replay of it needs (replay.h). */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_RECORDER_H
#define MOTEL_RECEIVERS_PROMETHEUS_RECORDER_H

#include "receivers/prometheus/mapping.h"
#include "receivers/prometheus/replay.h"

struct prom_recorder {
    const uint8_t *at, *end;    /* what was not noted yet of the page */
    struct buf *samples, *gaps; /* struct recorded; the text between the lines of samples */
    struct buf *reports;        /* struct recorded, PROM_MAX_REPORTS of them */
    struct prom_replay *replay; /* in the making */
    bool unfit;                 /* the page can be no replay, or there is no memory for it */
};
void prom_recorder_init(struct prom_recorder *r, enum prom_format format, struct bytes page);
void prom_recorder_done(struct prom_recorder *r);
/* The next sample of the page, behind its prom_mapper_add(); `m` NULL: there was none. */
void prom_recorder_sample(struct prom_recorder *r, struct bytes raw, const struct prom_mapper *m);
/* The report of that number, the same way. */
void prom_recorder_report(struct prom_recorder *r, size_t number, const struct prom_mapper *m);
/* By the mapper, when `request` is made: finds the places of all values in it. */
void prom_recorder_settle(struct prom_recorder *r, struct prom_mapper *m, struct bytes request);
/* The replay, when `b` is the batch of that request, whose points have that time, and the series are those of the page; NULL when there
 * can be none. */
struct prom_replay *prom_recorder_replay(struct prom_recorder *r, const struct series_table *t, const struct batch *b, int64_t time_ms);

#endif
