/*
 * Large blocks of memory that are used again. Telemetry comes and goes in pieces of some 50 KiB and batches of some MiB; memory that goes
 * back to the system in between costs a page fault for every 4 KiB of the next one. So blocks that were freed are kept, by size, up to a
 * limit, and go back when nobody wanted them for a while or memory is short. Small blocks (less than BLOCK_MIN_BYTES) are malloc()'s alone.
 * All functions are thread safe.
 */
#ifndef MOTEL_BASE_BLOCK_H
#define MOTEL_BASE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define BLOCK_MIN_BYTES ((size_t)16 << 10)

/* `bytes` (> 0) of memory, 16-byte aligned, not cleared; NULL when out of memory. */
void *block_alloc(size_t bytes);
/* `bytes` as it was asked for last. NULL ok (then it is not looked at); returns NULL. */
void *block_free(void *p, size_t bytes);
/* Changes the size of `p` (NULL: a new one) from `bytes` to `new_bytes` (> 0); the first `used` bytes stay. NULL when out of memory: then
 * `p` is as before. */
void *block_resize(void *p, size_t bytes, size_t used, size_t new_bytes);

/* How much may be kept; 0, as at the beginning, turns the keeping off and gives all back. */
void block_set_limit(size_t bytes);
/* What is kept at this moment. */
size_t block_kept(void);
/* Memory is short: gives back all that is kept (to malloc()), and nothing is kept until the next block_age(). True when there was something. */
bool block_drop(void);
/* Gives back what lay there unused since the last call; but the last 2 MiB only when nothing at all was used again since then. True while
 * something is left: then it is to be called again in a second or so. */
bool block_age(void);
/* `notify` is called when block_age() is to be called in a second or so, for the first time or after it said that nothing is left. On the
 * thread that freed, under a lock: it must be quick and free no block. NULL = none. */
void block_on_keep(void (*notify)(void));

#endif
