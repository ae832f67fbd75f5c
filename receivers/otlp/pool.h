/* Workers for large bodies. */
#ifndef MOTEL_RECEIVERS_OTLP_POOL_H
#define MOTEL_RECEIVERS_OTLP_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool;
struct pool_item {
    struct pool_item *next;
    void (*run)(struct pool_item *i);
    size_t bytes;
};
struct pool *pool_new(void);
/* False when too much waits already; then nothing was taken. */
bool pool_add(struct pool *p, struct pool_item *i);
void pool_stop(struct pool *p); /* runs what waits, joins the workers; later items are refused; legal twice */
struct pool *pool_free(struct pool *p);

#endif
