/*
 * Refcounted byte buffers, the carrier of all telemetry. A buffer is writable by its single owner and read-only once
 * it is shared. Every live byte of capacity is charged to mem_used(). All functions are thread safe in the sense that
 * refs may be taken and dropped anywhere; writing is for the single owner.
 */
#ifndef MOTEL_BASE_BUF_H
#define MOTEL_BASE_BUF_H

#include <stdarg.h>
#include <stdatomic.h>

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"
#include "agent/base/mem.h"

struct buf {
    atomic_uint refs; /* the fields are for reading; change them through the functions only */
    size_t len, cap, max;
    size_t memory_limit; /* buf_bound() */
    uint8_t *data; /* NULL while cap is 0 */
};

/* A new empty buffer that may grow to `max` bytes (0: no limit); NULL when out of memory. */
struct buf *buf_new(size_t max);
/* From now on it grows only while mem_room(memory_limit) has room for that; else growing fails with -ENOMEM. For what comes from outside.
 * MEM_NO_LIMIT: the limit of the process alone counts; 0: none, as at the beginning. */
void buf_bound(struct buf *b, size_t memory_limit);
struct buf *buf_ref(struct buf *b);
/* NULL ok; returns NULL. */
struct buf *buf_unref(struct buf *b);
DEFINE_CLEANUP(struct buf *, buf_unref)
#define _cleanup_buf_ _cleanup_(buf_unrefp)

/* Whether the caller, who has a reference, is the only one: then the content may be changed again. */
static inline bool buf_is_sole(const struct buf *b) { return atomic_load_explicit(&b->refs, memory_order_acquire) == 1; }

/* Makes room for `extra` more bytes: -ENOMEM, or -EMSGSIZE past the limit (then nothing changed). */
int buf_reserve(struct buf *b, size_t extra);
int buf_append(struct buf *b, const void *data, size_t len);
int buf_append_str(struct buf *b, const char *s);
/* Appends what comes from `fd` up to its end. Also -errno of read(2); after an error a part of it is there. */
int buf_append_fd(struct buf *b, int fd);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) _printf_(2, 0);
/* Opens a gap of `n` bytes at `at` (<= len) whose content is undefined. */
int buf_insert_gap(struct buf *b, size_t at, size_t n);
/* Adds a NUL behind the content (not counted in len) and returns it as a string; NULL when out of memory. */
const char *buf_str(struct buf *b);
/* Cuts to `len` (<= the present length); the capacity stays. */
static inline void buf_truncate(struct buf *b, size_t len) { b->len = len; }
/* Gives unused capacity back when that is worth a copy. */
void buf_shrink(struct buf *b);

static inline struct bytes buf_bytes(const struct buf *b) { return bytes_of(b->data, b->len); }
/* After buf_reserve(b, n): where to write, and how much was written. */
static inline uint8_t *buf_tail(struct buf *b) { return b->data + b->len; }
static inline void buf_commit(struct buf *b, size_t n) { b->len += n; }

#endif
