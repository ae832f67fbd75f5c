/*
 * Protobuf wire format, https://protobuf.dev/programming-guides/encoding/: reading fields out of bytes that were checked
 * before, and appending fields to a buffer. Readers never run past the end, but on unchecked bytes they only say "bad".
 */
#ifndef MOTEL_PROTO_WIRE_H
#define MOTEL_PROTO_WIRE_H

#include <endian.h>

#include "agent/base/buf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_I32 = 5 };

struct wire_reader {
    const uint8_t *p, *end;
};
struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;      /* varint, or the 32 or 64 bits */
    struct bytes bytes;  /* WIRE_LEN payload */
    struct bytes whole;  /* tag and all, for copying through */
};

static inline struct wire_reader wire_reader(struct bytes b)
{
    return (struct wire_reader){b.data, b.len ? b.data + b.len : b.data}; /* nothing may be NULL */
}
/* wire_next() of any field: for those that do not have tags of one byte, lengths of two at most and numbers of one or eight. */
int wire_next_any(struct wire_reader *r, struct wire_field *ret);
/* 1 = a field, 0 = the end, -EBADMSG = malformed. */
static inline int wire_next(struct wire_reader *r, struct wire_field *ret)
{
    const uint8_t *const p = r->p;
    const size_t left = (size_t)(r->end - p);
    size_t size = 0, head = 2; /* head: tag and length */
    if (left < 2 || p[0] < 8 || p[0] >= 0x80)
        return wire_next_any(r, ret);
    ret->type = (enum wire_type)(p[0] & 7);
    if (ret->type == WIRE_LEN) {
        size_t len = p[1];
        if (len >= 0x80) {
            if (left < 3 || p[2] >= 0x80)
                return wire_next_any(r, ret);
            len = (len & 0x7f) | (size_t)p[2] << 7;
            head = 3;
        }
        ret->bytes = bytes_of(p + head, len);
        size = head + len;
    } else if (ret->type == WIRE_I64 && left >= 9) {
        memcpy(&ret->value, p + 1, sizeof(ret->value));
        ret->value = le64toh(ret->value);
        size = 9;
    } else if (ret->type == WIRE_VARINT && p[1] < 0x80) {
        ret->value = p[1];
        size = 2;
    }
    if (size == 0 || size > left)
        return wire_next_any(r, ret);
    ret->number = p[0] >> 3;
    ret->whole = bytes_of(p, size);
    r->p = p + size;
    return 1;
}
/* The next element of a packed field's payload; `type` is the wire type of one element. Answers like wire_next(). */
int wire_next_packed(struct wire_reader *r, enum wire_type type, uint64_t *ret);
/* The next field `number`; *ret_passed: how many others stood before it. False at the end. */
bool wire_seek(struct wire_reader *r, uint32_t number, struct wire_field *ret, uint32_t *ret_passed);
/* The last field `number` of message `msg` (protobuf: the last one wins); false when there is none. */
bool wire_find(struct bytes msg, uint32_t number, struct wire_field *ret);

/* The value of a singular field; 0 or empty when there is none. */
uint64_t wire_uint(struct bytes msg, uint32_t number);
struct bytes wire_bytes(struct bytes msg, uint32_t number);
/* The last field of each number below `n` in one pass; what is not there is all zero (number 0). */
void wire_index(struct bytes msg, struct wire_field *ret_fields, size_t n);
/* The next field `number` of those behind `r` that have a length: for the elements of repeated fields. False at the end. */
bool wire_each(struct wire_reader *r, uint32_t number, struct bytes *ret);

static inline double wire_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}
static inline size_t wire_varint_size(uint64_t v)
{
    return (size_t)(64 - __builtin_clzll(v | 1) + 6) / 7;
}
/* Appending: 0, -ENOMEM or -EMSGSIZE. */
int wire_put_varint(struct buf *b, uint64_t v);
int wire_put_tag(struct buf *b, uint32_t number, enum wire_type type);
int wire_put_uint(struct buf *b, uint32_t number, uint64_t v);
int wire_put_fixed64(struct buf *b, uint32_t number, uint64_t v);
int wire_put_fixed32(struct buf *b, uint32_t number, uint32_t v);
int wire_put_double(struct buf *b, uint32_t number, double v);
int wire_put_bytes(struct buf *b, uint32_t number, struct bytes v);
int wire_put_str(struct buf *b, uint32_t number, const char *s);
/* A nested message: wire_begin() gives the place, wire_end() puts the length before what was appended since. */
int wire_begin(struct buf *b, uint32_t number, size_t *ret_mark);
int wire_end(struct buf *b, size_t mark);

#endif
