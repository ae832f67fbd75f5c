/*
 * Pages that have the series of the page before, in the same order, and the same comments: nearly all have. Such a page becomes a
 * request without being parsed and mapped: the request of the page before, with the values and the time of this one.
 *
 * It costs 8 bytes a series, 4 a point, 12 a histogram, the comments of the page, and the last request, which is written anew in its place once
 * nobody else has it. All of it is charged. Nothing in a request is changed but fixed64 values: it stays as good as the first one was
 * when it was checked.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_REPLAY_H
#define MOTEL_RECEIVERS_PROMETHEUS_REPLAY_H

#include "proto/batch.h"
#include "receivers/prometheus/exposition.h"
#include "receivers/prometheus/series.h"

#define PROM_MAX_REPORTS 8 /* of a scrape: `up`, scrape_* */

/* What is done with the value of a series. */
enum slot_kind {
    SLOT_NONE,     /* nothing: it is in no point of its own, or in one that is not told */
    SLOT_DOUBLE,   /* stored */
    SLOT_BITS,     /* stored; zero would be no field, and so another request */
    SLOT_NO_BITS,  /* there is no field, so it has to be zero */
    SLOT_COUNT,    /* stored as a count, above zero */
    SLOT_NO_COUNT, /* there is no field: zero, as a count */
    SLOT_START,    /* the start of a point, which has to be the same as before */
    SLOT_NO_START  /* no such start */
};
struct slot {
    uint32_t at;       /* in the request: the 8 bytes */
    uint32_t kind : 4; /* enum slot_kind */
    uint32_t gap : 28; /* bytes of the page before the line of this sample */
};
/* A point whose buckets are stored as they are in the page before they are made differences. */
struct slot_buckets {
    uint32_t count_at; /* 0 = the count is zero */
    uint32_t at, n;    /* the first one, and how many have a bound */
};

struct prom_replay {
    enum prom_format format;
    struct buf *request;
    struct buf *slots, *gaps;     /* struct slot, in the order of the page; text between the samples */
    struct buf *times, *buckets;  /* uint32_t, struct slot_buckets */
    uint32_t reports[PROM_MAX_REPORTS]; /* where their values are; 0 = nowhere */
    uint32_t records;
    uint64_t scraped, remaining;  /* samples; by the caller */
    struct time_range range;      /* of the request; all points have one time, the last one */
};
struct prom_replay *prom_replay_free(struct prom_replay *r); /* NULL ok; returns NULL */

/* Takes a page in. False: it is another one (or there is no memory), and the replay is of no use any more. */
bool prom_replay_page(struct prom_replay *r, const struct series_table *t, enum prom_format format, struct bytes page, int64_t time_ms);
/* The value of the report of that number. */
void prom_replay_report(struct prom_replay *r, size_t number, double value);
/* What was taken in; NULL when out of memory. */
struct batch *prom_replay_batch(const struct prom_replay *r);

#endif
