/*
 * The series of one target: what a series of the page is called after relabelling, so that labels are read and rules run once for each,
 * and which of them get a stale point when they are gone. A series costs its text in the page, its labels (names, values, about two
 * bytes for each), 56 bytes, 16 to 32 bytes of table, and what malloc adds. All of it is charged.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_SERIES_H
#define MOTEL_RECEIVERS_PROMETHEUS_SERIES_H

#include "receivers/prometheus/labels.h"
#include "receivers/prometheus/table.h"

struct series {
    struct prom_node node;
    struct series *next; /* the one behind it in the last page; NULL = none, or not known */
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
    struct series *first, *last; /* of the page */
    enum prom_format format;     /* of the last page */
    size_t good;                 /* series after the last good scrape */
    size_t nlive, ntracked, nkept; /* live ones; those tracked in the present scrape, and how many of them are live */
    uint32_t scrape, good_scrape; /* number of the present one, from 1, and of the last good one */
};
void prom_series_done(struct series_table *t);

/* A scrape begins. */
void prom_series_begin(struct series_table *t);
/* A page of it, which may give no hints to one of another format. */
void prom_series_page(struct series_table *t, enum prom_format format);
/* The text of the series that comes next if the page is in the order of the last one; empty = not known. */
struct bytes prom_series_expected(const struct series_table *t);
/* The series by its text in the page; NULL = not known. */
struct series *prom_series_find(const struct series_table *t, struct bytes raw);
/* Notes that it stands in the page, behind the one noted before. True when it did so already. */
bool prom_series_see(struct series_table *t, struct series *s);
/* It was in no page since the last good scrape: it counts as new. To be asked before prom_series_see(). */
static inline bool prom_series_is_back(const struct series_table *t, const struct series *s) { return s->seen < t->good_scrape; }
/* Notes that it has a value and no time of its own in this scrape. */
void prom_series_track(struct series_table *t, struct series *s);
/* Adds one that is not known. `dropped`: its labels do not matter. NULL when out of memory. */
struct series *prom_series_add(struct series_table *t, struct bytes raw, struct prom_labels labels, bool dropped, struct buf *scratch);
/* Its labels, as views into it; `items` has room for s->nlabels. */
struct prom_labels prom_series_labels(const struct series *s, struct prom_label *items);

/*
 * The scrape ends: calls gone() for every live series that was not tracked in it (all of them when it failed, or had nothing to say) and for which no
 * other series with the same labels was, and now and then forgets series that are not in the page any more. 0, or the first
 * error of gone() (it goes on with the others).
 */
int prom_series_end(struct series_table *t, bool failed, int (*gone)(void *ctx, const struct series *s), void *ctx);

#endif
