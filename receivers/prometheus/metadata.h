/*
 * What the pages of one target said about its metric families: type, help, unit. It outlives a scrape, as in the reference
 * collector: a series that went away is still marked stale as what it was. Not thread safe.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_METADATA_H
#define MOTEL_RECEIVERS_PROMETHEUS_METADATA_H

#include "receivers/prometheus/exposition.h"

struct prom_family_info {
    struct bytes name, help, unit;
    enum prom_type type;
};

struct prom_metadata;
struct prom_metadata *prom_metadata_new(void); /* NULL when out of memory */
struct prom_metadata *prom_metadata_free(struct prom_metadata *m); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct prom_metadata *, prom_metadata_free)

/* Takes in a TYPE, HELP or UNIT entry. 0 or -ENOMEM. */
int prom_metadata_note(struct prom_metadata *m, const struct prom_entry *e);
/* What is known of `family`; NULL = nothing (and so when `m` is NULL). Its fields may change with the next prom_metadata_note(), it
 * goes at the earliest with prom_metadata_end_scrape(). */
const struct prom_family_info *prom_metadata_find(const struct prom_metadata *m, struct bytes family);
/* Grows whenever something changes of what is known. */
uint64_t prom_metadata_changes(const struct prom_metadata *m);
/* The present page has mentioned all families that are known. */
bool prom_metadata_is_complete(const struct prom_metadata *m);
/* Once after each scrape, good or bad, when its mapper has finished: forgets what none of the last 10 pages mentioned. */
void prom_metadata_end_scrape(struct prom_metadata *m);

#endif
