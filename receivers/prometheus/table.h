/* Hash tables of things that live elsewhere, for one scrape or one target. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_TABLE_H
#define MOTEL_RECEIVERS_PROMETHEUS_TABLE_H

#include "agent/base/bytes.h"

/* A quick hash of bytes, seeded once per process: a page cannot be made to collide. Continue with the result as `seed`. */
uint64_t prom_hash(uint64_t seed, struct bytes b);

/* First member of what is in a table. */
struct prom_node {
    uint64_t hash;
};
/* All zero is an empty table. Open addressing, at most half full. */
struct prom_table {
    struct prom_node **slots;
    size_t n, nslots;
};
/* The node of that hash for which `same` is true; NULL when there is none. */
struct prom_node *prom_table_find(const struct prom_table *t, uint64_t hash,
                                  bool (*same)(const struct prom_node *node, const void *key), const void *key);
/* Adds a node that is not in it. 0 or -ENOMEM. */
int prom_table_add(struct prom_table *t, struct prom_node *node);
/* Forgets all nodes. A table that had grown large gives its memory back. */
void prom_table_clear(struct prom_table *t);
void prom_table_done(struct prom_table *t);

#endif
