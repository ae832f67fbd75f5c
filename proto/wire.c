#include "proto/wire_skip.h"

#include <errno.h>

#define VARINT_MAX 10 /* bytes of the longest varint */
#define LENGTH_ROOM                                                                                \
    1 /* what wire_begin() leaves for the length: most nested messages are below 128 bytes */

/* Reads a varint of up to 10 bytes; bits above 64 are dropped, as everywhere. */
static bool read_varint(struct wire_reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 7 * VARINT_MAX && r->p < r->end; shift += 7) {
        uint8_t byte = *r->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct wire_reader *r, size_t n, uint64_t *ret)
{
    uint64_t little = 0;
    if ((size_t)(r->end - r->p) < n)
        return false;
    memcpy(&little, r->p, n);
    r->p += n;
    *ret = le64toh(little);
    return true;
}

static bool read_bytes(struct wire_reader *r, struct bytes *ret)
{
    uint64_t len;
    if (!read_varint(r, &len) || len > (uint64_t)(r->end - r->p))
        return false;
    *ret = bytes_of(r->p, (size_t)len);
    r->p += len;
    return true;
}

static bool read_value(struct wire_reader *r, struct wire_field *f)
{
    switch (f->type) {
    case WIRE_VARINT: return read_varint(r, &f->value);
    case WIRE_I64: return read_fixed(r, 8, &f->value);
    case WIRE_LEN: return read_bytes(r, &f->bytes);
    case WIRE_I32: return read_fixed(r, 4, &f->value);
    }
    return false;
}

int wire_next_any(struct wire_reader *r, struct wire_field *ret)
{
    const uint8_t *start = r->p;
    uint64_t tag;
    if (r->p == r->end)
        return 0;
    if (*r->p < 0x80)
        tag = *r->p++;
    else if (!read_varint(r, &tag))
        return -EBADMSG;
    if (tag < 8 || tag > UINT32_MAX)
        return -EBADMSG;
    ret->number = (uint32_t)(tag >> 3);
    ret->type = (enum wire_type)(tag & 7);
    if (!read_value(r, ret))
        return -EBADMSG;
    ret->whole = bytes_of(start, (size_t)(r->p - start));
    return 1;
}

int wire_next_packed(struct wire_reader *r, enum wire_type type, uint64_t *ret)
{
    if (r->p == r->end)
        return 0;
    bool good =
        type == WIRE_VARINT ? read_varint(r, ret) : read_fixed(r, type == WIRE_I64 ? 8 : 4, ret);
    return good ? 1 : -EBADMSG;
}

const uint8_t *wire_skip_any(const uint8_t *p, const uint8_t *end)
{
    struct wire_reader r = {p, end};
    struct wire_field f;
    return wire_next_any(&r, &f) > 0 ? r.p : NULL;
}

/* Whether the field at `p` (< end) has that number; tags of several bytes are rare. */
static bool is_number(const uint8_t *p, const uint8_t *end, uint32_t number)
{
    struct wire_reader r = {p, end};
    uint64_t tag;
    if (*p < 0x80)
        return (uint32_t)*p >> 3 == number;
    return read_varint(&r, &tag) && tag >> 3 == number;
}

bool wire_seek(struct wire_reader *r, uint32_t number, struct wire_field *ret, uint32_t *ret_passed)
{
    const uint8_t *p = r->p, *const end = r->end;
    uint32_t passed = 0;
    for (; p && p != end && !is_number(p, end, number); passed++)
        p = wire_skip(p, end);
    *ret_passed = passed;
    r->p = p ? p : end;
    return wire_next(r, ret) > 0;
}

bool wire_find(struct bytes msg, uint32_t number, struct wire_field *ret)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    uint32_t passed;
    bool found = false;
    while (wire_seek(&r, number, &f, &passed)) {
        *ret = f;
        found = true;
    }
    return found;
}

uint64_t wire_uint(struct bytes msg, uint32_t number)
{
    struct wire_field f;
    return wire_find(msg, number, &f) ? f.value : 0;
}

struct bytes wire_bytes(struct bytes msg, uint32_t number)
{
    struct wire_field f;
    return wire_find(msg, number, &f) ? f.bytes : (struct bytes){0};
}

void wire_index(struct bytes msg, struct wire_field *ret_fields, size_t n)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f = {0};
    memset(ret_fields, 0, n * sizeof(*ret_fields));
    while (wire_next(&r, &f) > 0)
        if (f.number < n)
            ret_fields[f.number] = f;
}

bool wire_each(struct wire_reader *r, uint32_t number, struct bytes *ret)
{
    struct wire_field f;
    while (wire_next(r, &f) > 0) {
        if (f.number != number)
            continue;
        *ret = f.bytes;
        return true;
    }
    return false;
}

static size_t encode_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

int wire_put_varint(struct buf *b, uint64_t v)
{
    uint8_t out[VARINT_MAX];
    return buf_append(b, out, encode_varint(out, v));
}

int wire_put_tag(struct buf *b, uint32_t number, enum wire_type type)
{
    return wire_put_varint(b, (uint64_t)number << 3 | type);
}

int wire_put_uint(struct buf *b, uint32_t number, uint64_t v)
{
    uint8_t out[2 * VARINT_MAX];
    size_t n = encode_varint(out, (uint64_t)number << 3 | WIRE_VARINT);
    n += encode_varint(out + n, v);
    return buf_append(b, out, n);
}

static int put_fixed(struct buf *b, uint64_t tag, uint64_t v, size_t len)
{
    uint8_t out[VARINT_MAX + 8];
    size_t n = encode_varint(out, tag);
    for (size_t i = 0; i < len; i++)
        out[n + i] = (uint8_t)(v >> (8 * i));
    return buf_append(b, out, n + len);
}

int wire_put_fixed64(struct buf *b, uint32_t number, uint64_t v)
{
    return put_fixed(b, (uint64_t)number << 3 | WIRE_I64, v, 8);
}

int wire_put_fixed32(struct buf *b, uint32_t number, uint32_t v)
{
    return put_fixed(b, (uint64_t)number << 3 | WIRE_I32, v, 4);
}

int wire_put_double(struct buf *b, uint32_t number, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return wire_put_fixed64(b, number, bits);
}

int wire_put_bytes(struct buf *b, uint32_t number, struct bytes v)
{
    uint8_t head[2 * VARINT_MAX];
    size_t n = encode_varint(head, (uint64_t)number << 3 | WIRE_LEN);
    n += encode_varint(head + n, v.len);
    int r = buf_reserve(b, n + v.len);
    if (r < 0)
        return r;
    buf_append(b, head, n);
    buf_append(b, v.data, v.len);
    return 0;
}

int wire_put_str(struct buf *b, uint32_t number, const char *s)
{
    return wire_put_bytes(b, number, bytes_str(s));
}

int wire_begin(struct buf *b, uint32_t number, size_t *ret_mark)
{
    uint8_t head[VARINT_MAX + LENGTH_ROOM] = {0};
    size_t n = encode_varint(head, (uint64_t)number << 3 | WIRE_LEN);
    head[n] = 0;
    int r = buf_append(b, head, n + LENGTH_ROOM);
    if (r == 0)
        *ret_mark = b->len;
    return r;
}

int wire_end(struct buf *b, size_t mark)
{
    size_t len = b->len - mark, size = wire_varint_size(len);
    if (size > LENGTH_ROOM) {
        int r = buf_insert_gap(b, mark, size - LENGTH_ROOM);
        if (r < 0)
            return r;
    }
    encode_varint(b->data + mark - LENGTH_ROOM, len);
    return 0;
}
