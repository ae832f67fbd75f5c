/* Numbers, hex and base64 to and from text, without a NUL. Output areas are the caller's and large
 * enough. */
#ifndef MOTEL_BASE_ENCODE_H
#define MOTEL_BASE_ENCODE_H

#include "agent/base/bytes.h"

/* Decimal digits; at most 20 bytes; returns the length. */
size_t encode_uint(uint64_t v, void *out);
size_t encode_int(int64_t v, void *out);
/* 2 * len lower-case digits. */
void encode_hex(struct bytes in, void *out);
/* Digits of either case to in.len / 2 bytes; false when the length is odd or another character is
 * there. */
bool decode_hex(struct bytes in, void *out);
/* RFC 4648 section 4, with padding. */
static inline size_t base64_size(size_t len)
{
    return (len + 2) / 3 * 4;
}
void encode_base64(struct bytes in, void *out); /* base64_size(in.len) bytes */
/* Standard alphabet, padding needed; false otherwise. At most in.len / 4 * 3 bytes are written,
 * *ret_len of them count. */
bool decode_base64(struct bytes in, void *out, size_t *ret_len);

#endif
