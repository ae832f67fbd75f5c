/* A view of memory that somebody else owns. */
#ifndef MOTEL_BASE_BYTES_H
#define MOTEL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Owns nothing; a parameter or a local only, never stored beyond the life of what it views. */
struct bytes {
    const uint8_t *data;
    size_t len;
};

static inline struct bytes bytes_of(const void *data, size_t len)
{
    return (struct bytes){(const uint8_t *)data, len};
}
static inline struct bytes bytes_str(const char *s) { return bytes_of(s, strlen(s)); }
static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
static inline bool bytes_eq_str(struct bytes a, const char *s) { return bytes_eq(a, bytes_str(s)); }

#endif
