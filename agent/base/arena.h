/* Bump allocator: many small allocations, one free. Not thread safe. */
#ifndef MOTEL_BASE_ARENA_H
#define MOTEL_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/cleanup.h"

struct arena;

struct arena *arena_new(size_t block_bytes); /* size of one block, 0 = 4096; NULL when out of memory */
struct arena *arena_free(struct arena *a);   /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct arena *, arena_free)
void *arena_alloc(struct arena *a, size_t n);  /* 16-byte aligned, not cleared; NULL when out of memory */
void *arena_calloc(struct arena *a, size_t n); /* cleared */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n); /* adds a NUL; copies exactly n bytes */
char *arena_printf(struct arena *a, const char *fmt, ...) _printf_(2, 3);
/* From now on arena_alloc() gives NULL rather than let the blocks grow beyond `bytes` in all; 0 = no limit, as at the beginning. */
void arena_set_limit(struct arena *a, size_t bytes);
/* What can still be had at the limit, roughly; SIZE_MAX without one. */
size_t arena_room(const struct arena *a);
/* Whether the limit refused anything since the last arena_reset(). */
bool arena_refused(const struct arena *a);
void arena_reset(struct arena *a); /* forgets all allocations, keeps one block */
size_t arena_held(const struct arena *a); /* bytes of its blocks */

#endif
