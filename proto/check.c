/*
 * One pass over all bytes. Each message is a row of 32 cells, looked up by field number; a cell
 * says what to do with the field. Whatever is not plain (long tags and lengths, unknown fields,
 * unpacked numbers) leaves the fast path.
 */
#include "proto/check.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "proto/repair.h"
#include "proto/schema_tables.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline, cold))

#define LEAST_ATTRIBUTE_BYTES 2 /* a tag and a length */

enum { WIRE_GROUP_START = 3, WIRE_GROUP_END = 4 };

static atomic_uint limit_depth = OTLP_MAX_DEPTH, limit_attributes = OTLP_MAX_ATTRIBUTES;

struct checker {
    const uint8_t *start;
    uint32_t records;
    unsigned max_depth, max_attributes;
    bool odd; /* legal, but not canonical */
    struct time_range times, observed;
    struct err *err;
};

static const uint8_t *check_message(struct checker *c, const uint8_t *p, const uint8_t *end,
                                    unsigned m, unsigned containers);

/* Sets the error about message `m` at `at`; always NULL, the "bad" of all functions here. */
static NOINLINE _printf_(4, 5) const uint8_t *fail(struct checker *c, const uint8_t *at, unsigned m,
                                                   const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(c->err, -EBADMSG, "invalid protobuf at byte %zu in %s: %s", (size_t)(at - c->start),
            schema_messages[m].name, text);
    return NULL;
}

/* Varints end at the first byte below 0x80, the tenth at the latest. */
static inline const uint8_t *skip_varint(struct checker *c, const uint8_t *p, const uint8_t *end,
                                         unsigned m)
{
    const uint8_t *limit = end - p > 10 ? p + 10 : end;
    for (const uint8_t *q = p; q < limit; q++)
        if (*q < 0x80)
            return q + 1;
    return fail(c, p, m,
                limit == end ? "varint beyond the end of the message"
                             : "varint of more than 10 bytes");
}

/* Tags and lengths have 5 bytes at most and fit into 32 bits; `p` is behind the first byte, which
 * is in *value. */
static NOINLINE const uint8_t *long_varint(struct checker *c, const uint8_t *p, const uint8_t *end,
                                           unsigned m, size_t *value)
{
    uint64_t v = *value & 0x7f;
    for (unsigned shift = 7; p < end; shift += 7) {
        uint8_t byte = *p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (v > UINT32_MAX || (shift == 28 && byte >= 0x80))
            return fail(c, p, m, "tag or length of more than 32 bits");
        if (byte < 0x80) {
            *value = (size_t)v;
            return p;
        }
    }
    return fail(c, p, m, "tag or length beyond the end of the message");
}

static inline const uint8_t *read_length(struct checker *c, const uint8_t *p, const uint8_t *end,
                                         unsigned m, size_t *ret_len)
{
    if (UNLIKELY(p == end))
        return fail(c, p, m, "length expected, end of the message found");
    size_t len = *p++;
    if (UNLIKELY(len >= 0x80)) {
        p = long_varint(c, p, end, m, &len);
        if (!p)
            return NULL;
    }
    if (UNLIKELY(len > (size_t)(end - p)))
        return fail(c, p, m, "length %zu with %zu bytes left", len, (size_t)(end - p));
    *ret_len = len;
    return p;
}

static inline const uint8_t *skip_fixed(struct checker *c, const uint8_t *p, const uint8_t *end,
                                        unsigned m, size_t len)
{
    if (UNLIKELY((size_t)(end - p) < len))
        return fail(c, p, m, "%zu bytes of a fixed number expected, %zu left", len,
                    (size_t)(end - p));
    return p + len;
}

static const uint8_t *check_packed(struct checker *c, const uint8_t *p, size_t len, unsigned m,
                                   enum check_action action)
{
    const uint8_t *end = p + len;
    if (action == CHECK_PACKED_I64)
        return len % 8 == 0 ? end : fail(c, p, m, "packed 64-bit numbers in %zu bytes", len);
    while (p && p < end)
        p = skip_varint(c, p, end, m);
    return p;
}

static const uint8_t *skip_unknown(struct checker *c, const uint8_t *p, const uint8_t *end,
                                   unsigned m, size_t tag)
{
    size_t len = 0;
    switch (tag & 7) {
    case WIRE_VARINT: return skip_varint(c, p, end, m);
    case WIRE_I64: return skip_fixed(c, p, end, m, 8);
    case WIRE_I32: return skip_fixed(c, p, end, m, 4);
    case WIRE_LEN: p = read_length(c, p, end, m, &len); return p ? p + len : NULL;
    case WIRE_GROUP_START:
    case WIRE_GROUP_END:
        return fail(c, p, m, "group in field %zu; groups are not part of OTLP", tag >> 3);
    default: return fail(c, p, m, "wire type %zu in field %zu", tag & 7, tag >> 3);
    }
}

/* The old place of scope entries in resource entries. */
static const uint8_t *check_old_scopes(struct checker *c, const uint8_t *p, const uint8_t *end,
                                       unsigned m, const struct schema_message *scopes)
{
    size_t len = 0;
    p = read_length(c, p, end, m, &len);
    if (!p)
        return NULL;
    c->odd = true;
    return check_message(c, p, p + len, (unsigned)schema_index(scopes), 0);
}

/* A field whose wire type is not the expected one, or that is not known. */
static NOINLINE const uint8_t *check_other(struct checker *c, const uint8_t *p, const uint8_t *end,
                                           unsigned m, size_t tag)
{
    const struct schema_message *message = &schema_messages[m];
    const struct schema_field *f = schema_field(message, (uint32_t)(tag >> 3));
    if (tag < 8)
        return fail(c, p, m, "field number 0");
    if (f) {
        if (!f->repeated || f->wire_type == WIRE_LEN || f->wire_type != (tag & 7))
            return fail(c, p, m, "wire type %zu in field %s, expected %u", tag & 7, f->name,
                        f->repeated ? WIRE_LEN : f->wire_type);
        c->odd = true; /* a number of a repeated field by itself */
    } else if (tag == (OTLP_OLD_SCOPES << 3 | WIRE_LEN) && otlp_old_scopes(message)) {
        return check_old_scopes(c, p, end, m, otlp_old_scopes(message));
    }
    return skip_unknown(c, p, end, m, tag);
}

static inline const uint8_t *check_id(struct checker *c, const uint8_t *p, size_t len, unsigned m,
                                      size_t expected)
{
    if (UNLIKELY(len != expected && len != 0))
        return fail(c, p, m, "id of %zu bytes, expected 0 or %zu", len, expected);
    return p + len;
}

/* The varint of `len` bytes at `p` fills them. */
static inline bool whole_varint(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (i < len - 1 && p[i] >= 0x80)
        i++;
    return i == len - 1 && p[i] < 0x80 && len <= 10;
}

/* A KeyValue of a key and a string, number or bool, in this order, short, in ASCII: canonical at a
 * glance. False says nothing. */
static inline bool plain_attribute(const uint8_t *p, size_t len)
{
    if (UNLIKELY(len < 6 || p[0] != 0x0a || p[1] + 6u > len))
        return false;
    const size_t key = p[1], rest = len - key - 4; /* `rest` are the AnyValue, two at least */
    const uint8_t *value = p + 2 + key;
    if (UNLIKELY(value[0] != 0x12 || value[1] != rest))
        return false;
    /* In ASCII, lengths included: below 0x80. */
    switch (value[2]) {
    case 0x0a: return value[3] == rest - 2 && utf8_ascii(p, len);
    case 0x10:
    case 0x18: return whole_varint(value + 3, rest - 1) && utf8_ascii(p, key + 4);
    case 0x21: return rest == 9 && utf8_ascii(p, key + 4);
    default: return false;
    }
}

/* The same of a value and a key, in this order: that of the reference's exporters. */
static inline bool turned_attribute(const uint8_t *p, size_t len)
{
    if (UNLIKELY(len < 6 || p[0] != 0x12 || p[1] < 2 || p[1] + 4u > len))
        return false;
    const size_t value = p[1], key = len - value - 4;
    const uint8_t *const at = p + 2 + value;
    if (UNLIKELY(at[0] != 0x0a || at[1] != key))
        return false;
    switch (p[2]) {
    case 0x0a: return p[3] == value - 2 && utf8_ascii(p, len);
    case 0x10:
    case 0x18: return whole_varint(p + 3, value - 1) && utf8_ascii(at, key + 2);
    case 0x21: return value == 9 && utf8_ascii(at, key + 2);
    default: return false;
    }
}

/* The same of a key and a string that are not all ASCII. */
static NOINLINE bool text_attribute(const uint8_t *p, size_t len)
{
    if (len < 6 || p[0] != 0x0a || p[1] >= 0x80 || p[1] + 6u > len)
        return false;
    const size_t key = p[1], text = len - key - 6;
    const uint8_t *value = p + 2 + key;
    return text < 0x7e && value[0] == 0x12 && value[1] == text + 2 && value[2] == 0x0a &&
           value[3] == text && utf8_valid(bytes_of(p + 2, key)) &&
           utf8_valid(bytes_of(value + 4, text));
}

/* Passes over the plain attributes at `p`, fields with this tag. */
static inline const uint8_t *pass_attributes(const uint8_t *p, const uint8_t *end, size_t tag)
{
    while (end - p >= 8 && p[0] == tag && p[1] < 0x80 && p[1] <= end - p - 2 &&
           (LIKELY(p[2] == 0x0a) ? plain_attribute(p + 2, p[1]) : turned_attribute(p + 2, p[1])))
        p += 2 + p[1];
    return p;
}

/* The payload of a field with a length. */
static inline const uint8_t *check_payload(struct checker *c, const uint8_t *p, size_t len,
                                           unsigned m, const struct check_cell *cell,
                                           unsigned containers)
{
    switch (cell->action) {
    case CHECK_STRING:
        if (!utf8_ascii(p, len) && UNLIKELY(!utf8_valid(bytes_of(p, len))))
            c->odd = true;
        return p + len;
    case CHECK_BYTES: return p + len;
    case CHECK_ID16: return check_id(c, p, len, m, 16);
    case CHECK_ID8: return check_id(c, p, len, m, 8);
    case CHECK_PACKED_I64:
    case CHECK_PACKED_VARINT: return check_packed(c, p, len, m, (enum check_action)cell->action);
    case CHECK_CONTAINER:
        if (++containers > c->max_depth)
            return fail(c, p, m, "value nested deeper than %u lists and maps", c->max_depth);
        break;
    case CHECK_RECORD: c->records++; break;
    case CHECK_ATTRIBUTE:
        if (LIKELY(plain_attribute(p, len)) || turned_attribute(p, len) || text_attribute(p, len))
            return p + len;
        break;
    default: break;
    }
    return check_message(c, p, p + len, cell->sub, containers);
}

/* The time stamp at `p` belongs to a record. Zero, which is "none", is the largest after - 1. */
static inline void note_time(struct checker *c, const uint8_t *p, enum check_action action)
{
    struct time_range *range = action == CHECK_TIME ? &c->times : &c->observed;
    uint64_t t;
    memcpy(&t, p, sizeof(t));
    t = le64toh(t);
    if (t - 1 < range->first_ns - 1)
        range->first_ns = t;
    if (t > range->last_ns)
        range->last_ns = t;
}

/* The payload of a field of fixed size. */
static inline const uint8_t *check_fixed(struct checker *c, const uint8_t *p, const uint8_t *end,
                                         unsigned m, enum check_action action)
{
    const uint8_t *after = skip_fixed(c, p, end, m, action == CHECK_I32 ? 4 : 8);
    if (action >= CHECK_TIME && LIKELY(after != NULL))
        note_time(c, p, action);
    return after;
}

/* The attributes of a large message that was found to be sound: NULL when there are too many. */
static NOINLINE const uint8_t *count_attributes(struct checker *c, const uint8_t *p,
                                                const uint8_t *end, unsigned m)
{
    const uint8_t *const start = p;
    unsigned n = 0;
    while (p && p < end) {
        size_t tag = *p++;
        if (tag >= 0x80)
            p = long_varint(c, p, end, m, &tag);
        if (tag < CHECK_FIELDS << 3 && check_cells[m][tag >> 3].action == CHECK_ATTRIBUTE)
            n++;
        p = p ? skip_unknown(c, p, end, m, tag) : NULL;
    }
    if (n > c->max_attributes)
        return fail(c, start, m, "%u attributes, expected at most %u", n, c->max_attributes);
    return p;
}

static const uint8_t *check_message(struct checker *c, const uint8_t *p, const uint8_t *end,
                                    unsigned m, unsigned containers)
{
    const struct check_cell *cells = check_cells[m];
    const uint8_t *const start = p;
    uint64_t seen = 0, again = 0;
    while (p < end) {
        size_t tag = *p++, len = 0;
        if (UNLIKELY(tag >= 0x80) && !(p = long_varint(c, p, end, m, &tag)))
            return NULL;
        const struct check_cell *cell = &cells[tag >> 3 & (CHECK_FIELDS - 1)];
        if (UNLIKELY(cell->wire != (tag & 7) || tag >= CHECK_FIELDS << 3)) {
            if (!(p = check_other(c, p, end, m, tag)))
                return NULL;
            continue;
        }
        const uint64_t slot = 1ull << cell->slot;
        again |= seen & slot;
        seen |= slot;
        if (LIKELY(cell->wire == WIRE_LEN)) {
            p = read_length(c, p, end, m, &len);
            if (LIKELY(p != NULL))
                p = check_payload(c, p, len, m, cell, containers);
            if (cell->action == CHECK_ATTRIBUTE && LIKELY(p != NULL))
                p = pass_attributes(p, end, tag);
        } else if (cell->action == CHECK_VARINT) {
            p = skip_varint(c, p, end, m);
        } else {
            p = check_fixed(c, p, end, m, (enum check_action)cell->action);
        }
        if (UNLIKELY(!p))
            return NULL;
    }
    if (UNLIKELY(again & ~(1ull << CHECK_REPEATED)))
        c->odd = true;
    if (UNLIKELY((size_t)(end - start) / LEAST_ATTRIBUTE_BYTES > c->max_attributes))
        return count_attributes(c, start, end, m);
    return p;
}

void otlp_limits_set(unsigned max_depth, unsigned max_attributes)
{
    const bool usual = !max_depth || max_depth > OTLP_MAX_DEPTH;
    atomic_store(&limit_depth, usual ? OTLP_MAX_DEPTH : max_depth);
    atomic_store(&limit_attributes, max_attributes ? max_attributes : OTLP_MAX_ATTRIBUTES);
}

static int check_all(struct checker *c, const struct schema_message *m, struct bytes wire)
{
    c->max_depth = atomic_load_explicit(&limit_depth, memory_order_relaxed);
    c->max_attributes = atomic_load_explicit(&limit_attributes, memory_order_relaxed);
    if (wire.len > INT32_MAX)
        return err_set(c->err, -EBADMSG, "invalid protobuf: %zu bytes, at most 2 GiB expected",
                       wire.len);
    unsigned index = (unsigned)schema_index(m);
    if (wire.len && !check_message(c, wire.data, wire.data + wire.len, index, 0))
        return -EBADMSG;
    return 0;
}

int otlp_check_message(const struct schema_message *m, struct bytes wire, struct err *reterr)
{
    struct checker c = {.start = wire.data, .err = reterr};
    return check_all(&c, m, wire);
}

int otlp_check(enum signal s, struct bytes wire, struct otlp_checked *ret, struct err *reterr)
{
    const struct schema_message *request = schema_request(s);
    struct checker c = {.start = wire.data, .err = reterr};
    *ret = (struct otlp_checked){.canonical = true};
    int r = check_all(&c, request, wire);
    if (r < 0)
        return r;
    ret->records = c.records;
    ret->times = c.times.last_ns ? c.times : c.observed;
    if (!c.odd)
        return 0;
    _cleanup_buf_ struct buf *fixed = buf_new(0);
    if (!fixed || otlp_repair(request, wire, fixed) < 0)
        return err_set(reterr, -ENOMEM, "out of memory for a request of %zu bytes", wire.len);
    ret->canonical = false;
    ret->records = otlp_count(s, buf_bytes(fixed));
    ret->fixed = TAKE_PTR(fixed);
    return 0;
}

int batch_from_wire(enum signal s, struct buf *wire, struct batch **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *in = wire;
    struct otlp_checked checked;
    int r = otlp_check(s, buf_bytes(in), &checked, reterr);
    if (r < 0)
        return r;
    struct buf *seg = checked.canonical ? TAKE_PTR(in) : checked.fixed;
    *ret = batch_new(s, &seg, 1, checked.records);
    if (!*ret)
        return err_set(reterr, -ENOMEM, "out of memory for a batch");
    (*ret)->times = checked.times;
    return 0;
}
