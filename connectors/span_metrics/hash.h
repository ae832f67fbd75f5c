/*
 * A keyed hash of short byte strings and an open-addressing table of pointers. Names of spans come from outside: the seed keeps
 * others from choosing names that collide.
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_HASH_H
#define MOTEL_CONNECTORS_SPAN_METRICS_HASH_H

#include "agent/base/bytes.h"

static inline uint64_t sm_hash_mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t sm_hash(uint64_t seed, struct bytes b)
{
    const uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd6e8feb86659fd93;
    uint64_t h = seed ^ sm_hash_mix(b.len ^ k0, k1), a, c;
    const uint8_t *p = b.data;
    size_t left = b.len;
    for (; left >= 16; left -= 16, p += 16) {
        memcpy(&a, p, 8);
        memcpy(&c, p + 8, 8);
        h = sm_hash_mix(a ^ h ^ k0, c ^ k1);
    }
    a = c = 0;
    if (left >= 8) {
        memcpy(&a, p, 8);
        memcpy(&c, p + left - 8, 8);
    } else if (left) {
        memcpy(&a, p, left);
    }
    return sm_hash_mix(a ^ h ^ k0, c ^ sm_hash_mix(h, k1));
}

struct sm_slot {
    uint64_t hash;
    void *item; /* NULL = free */
};
/* All zero is an empty table. Its memory is charged. */
struct sm_table {
    struct sm_slot *slots;
    size_t n, cap; /* cap: a power of two, or 0 */
};
int sm_table_reserve(struct sm_table *t); /* room for one more; -ENOMEM */
void sm_table_put(struct sm_table *t, uint64_t hash, void *item); /* after sm_table_reserve() */
void sm_table_remove(struct sm_table *t, uint64_t hash, const void *item); /* which is in it */
void sm_table_done(struct sm_table *t); /* leaves an empty one */

/* The first slot of those that may hold `hash`; the next ones follow up to a free slot. Only with cap > 0. */
static inline size_t sm_table_first(const struct sm_table *t, uint64_t hash)
{
    return (size_t)hash & (t->cap - 1);
}
static inline size_t sm_table_next(const struct sm_table *t, size_t i)
{
    return (i + 1) & (t->cap - 1);
}

#endif
