/* A hash index over an array of the caller's: finds the number of an item by its hash and an equality. Not thread safe. */
#ifndef MOTEL_GYM_INDEX_H
#define MOTEL_GYM_INDEX_H

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"

#define INDEX_NONE UINT32_MAX

struct index {
    struct index_slot *slots; /* NULL while it is empty */
    size_t cap, n;
};
/* The item with this hash for which `same` is true; INDEX_NONE when there is none. */
uint32_t index_find(const struct index *x, uint64_t hash, bool (*same)(const void *ctx, uint32_t item), const void *ctx);
/* Adds an item that is not in it. 0 or -ENOMEM. */
int index_add(struct index *x, uint64_t hash, uint32_t item);
void index_done(struct index *x);

/* A hash of the bytes, mixed with `seed`; not for keys that somebody may choose to do harm. */
uint64_t hash_bytes(struct bytes b, uint64_t seed);
uint64_t hash_u64(uint64_t v, uint64_t seed);

#endif
