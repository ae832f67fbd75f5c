/*
 * The series of one target: what a series of the page is called after relabelling, so that labels are read and rules run once for each,
 * and which of them get a stale point when they are gone. A series costs its text in the page, its labels (names, values, about two
 * bytes for each), 48 bytes, 16 to 32 bytes of table, and what malloc adds. All of it is charged.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_SERIES_H
#define MOTEL_RECEIVERS_PROMETHEUS_SERIES_H

#include "receivers/prometheus/labels.h"
#include "receivers/prometheus/table.h"

struct series {
    struct prom_node node;
    uint64_t labels_hash;
    uint32_t raw_len, labels_len;
    uint32_t nlabels;
    uint32_t seen;    /* the scrape in which it last stood in the page */
    uint32_t tracked; /* the scrape in which it last had a value and no time of its own */
    bool live;        /* its last point was a value: a stale one is owed when it is gone */
    bool dropped;     /* by the rules */
    uint8_t text[];   /* as in the page, then the labels, encoded */
};
struct series_table { /* all zero is an empty one */
    struct prom_table table;
    size_t good;     /* series after the last good scrape */
    uint32_t scrape; /* number of the present one, from 1 */
};
void prom_series_done(struct series_table *t);

/* A scrape begins. */
void prom_series_begin(struct series_table *t);
/* The series by its text in the page; NULL = not known. */
struct series *prom_series_find(const struct series_table *t, struct bytes raw);
/* Adds one that is not known. `dropped`: its labels do not matter. NULL when out of memory. */
struct series *prom_series_add(struct series_table *t, struct bytes raw, struct prom_labels labels, bool dropped, struct buf *scratch);
/* Its labels, as views into it; `items` has room for s->nlabels. */
struct prom_labels prom_series_labels(const struct series *s, struct prom_label *items);

/*
 * The scrape ends: calls gone() for every live series that was not tracked in it (all of them when it failed) and for which no
 * other series with the same labels was, and forgets series that are not in the page any more. 0, or the first
 * error of gone() (it goes on with the others).
 */
int prom_series_end(struct series_table *t, bool failed, int (*gone)(void *ctx, const struct series *s), void *ctx);

#endif
