/*
 * Attributes (KeyValue) of a key and one scalar, all in the shortest form, as nearly all are: to put them in the byte order of
 * proto/wire_order.h at a glance.
 */
#ifndef MOTEL_PROTO_PLAIN_ATTRIBUTES_H
#define MOTEL_PROTO_PLAIN_ATTRIBUTES_H

#include "proto/wire.h"

/* memcpy() of the short pieces that messages are made of, without the call. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n > 64) {
        memcpy(to, from, n);
    } else if (n >= 16) {
        for (size_t i = 0; i + 16 < n; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* The same where 15 bytes more may be read and written. */
static inline void copy_wide(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n > 64) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i += 16)
        memcpy(to + i, from + i, 16);
}

/* How many bytes the length at `p` has, and the length, when it is one of one or two bytes in the shortest form; else 0. */
static inline size_t plain_length(const uint8_t *p, const uint8_t *end, size_t *ret)
{
    if (p < end && p[0] < 0x80) {
        *ret = p[0];
        return 1;
    }
    if (end - p < 2 || p[1] == 0 || p[1] >= 0x80)
        return 0;
    *ret = (size_t)p[1] << 7 | (p[0] & 0x7f);
    return 2;
}

/* The field at `p` with a length that is plain and stays below `end`: behind it. Else NULL. */
static inline const uint8_t *plain_field(const uint8_t *p, const uint8_t *end, uint8_t tag, const uint8_t **ret_payload)
{
    size_t len;
    const size_t n = p < end && *p == tag ? plain_length(p + 1, end, &len) : 0;
    if (n == 0 || len > (size_t)(end - p - 1) - n)
        return NULL;
    *ret_payload = p + 1 + n;
    return *ret_payload + len;
}

/* One varint of 64 bits at most, not padded. */
static inline bool is_plain_varint(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (i < len && p[i] >= 0x80)
        i++;
    return i + 1 == len && (len == 1 || p[i] != 0) && (len < 10 || (len == 10 && p[i] == 1));
}

/* Whether an AnyValue is nothing, or one scalar in the one form there is for it. */
static inline bool is_plain_value(const uint8_t *v, size_t len)
{
    const uint8_t *payload;
    switch (len ? v[0] : 0) {
    case 0: return len == 0;
    case 0x0a: /* string, bytes */
    case 0x3a: return plain_field(v, v + len, v[0], &payload) == v + len;
    case 0x10: return len == 2 && v[1] <= 1; /* bool */
    case 0x18: return is_plain_varint(v + 1, len - 1);
    case 0x21: return len == 9; /* double */
    default: return false;
    }
}

/*
 * Writes the plain attributes [from, end), fields of one repeated field with a tag of one byte, to `to`, each with its value before
 * its key; they are as long as they were. False when not all are plain; some bytes may have been written.
 */
bool swap_attributes(uint8_t *to, const uint8_t *from, const uint8_t *end);

#endif
