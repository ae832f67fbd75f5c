/*
 * JSON in, straight to protobuf bytes. Fields are written in the order of the text: scalars that
 * are zero are left out, the last of several counts (for messages: they are merged, as protobuf
 * does), null is an absent message or list and an empty string.
 */
#include <endian.h>
#include <errno.h>

#include "agent/base/encode.h"
#include "proto/check.h"
#include "proto/json.h"
#include "proto/json_number.h"
#include "proto/json_scan.h"

struct reader {
    struct json_scan scan;
    struct buf *out;
    int depth; /* of lists and maps in values */
};

static int read_message(struct reader *r, const struct schema_message *m);

/* Rounds the code of a failed number up to an error with its place. */
static int number_error(struct reader *r, const uint8_t *at, const struct schema_field *f, int code)
{
    static const char *const kinds[] = {
        [KIND_DOUBLE] = "a number that a double holds",
        [KIND_FIXED64] = "an unsigned 64-bit integer",
        [KIND_SFIXED64] = "a 64-bit integer",
        [KIND_FIXED32] = "an unsigned 32-bit integer",
        [KIND_INT32] = "a 32-bit integer",
        [KIND_INT64] = "a 64-bit integer",
        [KIND_SINT32] = "a 32-bit integer",
        [KIND_UINT32] = "an unsigned 32-bit integer",
        [KIND_UINT64] = "an unsigned 64-bit integer",
        [KIND_ENUM] = "a 32-bit integer",
    };
    return json_scan_fail(&r->scan, at, "%s: expected %s, got %s", f->json_name, kinds[f->kind],
                          code == -ERANGE ? "one out of range" : "something else");
}

/* The text of a number, bare or in quotes. */
static int number_token(struct reader *r, struct bytes *ret)
{
    bool quoted = json_scan_peek(&r->scan) == '"';
    return quoted ? json_scan_string(&r->scan, ret) : json_scan_number(&r->scan, ret);
}

static int parse_signed(struct bytes text, bool wide, uint64_t *ret)
{
    int64_t v = 0;
    int e = wide ? json_parse_int(text, INT64_MIN, INT64_MAX, &v)
                 : json_parse_int(text, INT32_MIN, INT32_MAX, &v);
    *ret = (uint64_t)v;
    return e;
}

static int parse_double(struct bytes text, uint64_t *ret)
{
    double v = 0;
    int e = json_parse_double(text, &v);
    memcpy(ret, &v, sizeof(v));
    return e;
}

/* The bits that go on the wire. */
static int read_number(struct reader *r, const struct schema_field *f, uint64_t *ret)
{
    struct bytes text;
    json_scan_peek(&r->scan);
    const uint8_t *at = r->scan.p;
    int e = number_token(r, &text);
    if (e < 0)
        return e;
    switch ((enum field_kind)f->kind) {
    case KIND_DOUBLE: e = parse_double(text, ret); break;
    case KIND_INT64:
    case KIND_SFIXED64: e = parse_signed(text, true, ret); break;
    case KIND_FIXED32:
    case KIND_UINT32: e = json_parse_uint(text, UINT32_MAX, ret); break;
    case KIND_FIXED64:
    case KIND_UINT64: e = json_parse_uint(text, UINT64_MAX, ret); break;
    default: e = parse_signed(text, false, ret); break;
    }
    if (e == 0 && f->kind == KIND_SINT32)
        *ret = (uint32_t)((uint32_t)*ret << 1 ^ (uint32_t) - (int32_t)((uint32_t)*ret >> 31));
    return e < 0 ? number_error(r, at, f, e) : 0;
}

static int read_enum(struct reader *r, const struct schema_field *f, uint64_t *ret)
{
    struct bytes name;
    if (json_scan_peek(&r->scan) != '"')
        return read_number(r, f, ret);
    const uint8_t *at = r->scan.p;
    int e = json_scan_string(&r->scan, &name);
    if (e < 0)
        return e;
    for (size_t i = 0; i < f->enumeration->nvalues; i++) {
        if (bytes_eq_str(name, f->enumeration->values[i].name)) {
            *ret = (uint64_t)(int64_t)f->enumeration->values[i].number;
            return 0;
        }
    }
    return json_scan_fail(&r->scan, at, "%s: expected a number or a name of %s, got another name",
                          f->json_name, f->enumeration->name);
}

static int read_bool(struct reader *r, uint64_t *ret)
{
    *ret = json_scan_peek(&r->scan) == 't';
    if (!*ret && json_scan_peek(&r->scan) != 'f')
        return json_scan_unexpected(&r->scan, "true or false");
    return json_scan_word(&r->scan, *ret ? "true" : "false");
}

static int put_scalar(struct reader *r, const struct schema_field *f, uint64_t v)
{
    switch (f->wire_type) {
    case WIRE_VARINT: return wire_put_uint(r->out, f->number, v);
    case WIRE_I64: return wire_put_fixed64(r->out, f->number, v);
    default: return wire_put_fixed32(r->out, f->number, (uint32_t)v);
    }
}

static int put_packed(struct reader *r, const struct schema_field *f, uint64_t v)
{
    uint32_t half = htole32((uint32_t)v);
    switch (f->wire_type) {
    case WIRE_VARINT: return wire_put_varint(r->out, v);
    case WIRE_I64: v = htole64(v); return buf_append(r->out, &v, sizeof(v));
    default: return buf_append(r->out, &half, sizeof(half));
    }
}

static int read_scalar(struct reader *r, const struct schema_field *f, uint64_t *ret)
{
    if (f->kind == KIND_BOOL)
        return read_bool(r, ret);
    return f->kind == KIND_ENUM ? read_enum(r, f, ret) : read_number(r, f, ret);
}

/* An id: hex digits of the right number, or none; all zeros are none. */
static int decode_id(struct reader *r, const struct schema_field *f, const uint8_t *at,
                     struct bytes text, uint8_t *ret, size_t *ret_len)
{
    static const uint8_t zeros[16];
    *ret_len = 0;
    if (text.len == 0)
        return 0;
    if (text.len != 2u * f->id_len)
        return json_scan_fail(&r->scan, at, "%s: expected %d hex digits, got %zu characters",
                              f->json_name, 2 * f->id_len, text.len);
    if (!decode_hex(text, ret))
        return json_scan_fail(&r->scan, at, "%s: expected %d hex digits, got other characters",
                              f->json_name, 2 * f->id_len);
    *ret_len = memcmp(ret, zeros, f->id_len) ? f->id_len : 0;
    return 0;
}

static int read_id(struct reader *r, const struct schema_field *f, bool again)
{
    uint8_t id[16];
    size_t len = 0;
    struct bytes text;
    json_scan_peek(&r->scan);
    const uint8_t *at = r->scan.p;
    int e = json_scan_string(&r->scan, &text);
    if (e == 0)
        e = decode_id(r, f, at, text, id, &len);
    if (e < 0 || (len == 0 && !again))
        return e;
    return wire_put_bytes(r->out, f->number, bytes_of(id, len));
}

static int put_base64(struct reader *r, const struct schema_field *f, const uint8_t *at,
                      struct bytes text)
{
    size_t mark, len;
    int e = wire_begin(r->out, f->number, &mark);
    if (e == 0)
        e = buf_reserve(r->out, text.len / 4 * 3 + 3);
    if (e < 0)
        return e;
    if (!decode_base64(text, buf_tail(r->out), &len))
        return json_scan_fail(&r->scan, at, "%s: expected base64 with padding, got something else",
                              f->json_name);
    buf_commit(r->out, len);
    return wire_end(r->out, mark);
}

/* A string or bytes; `always`: also when empty. */
static int read_text(struct reader *r, const struct schema_field *f, bool always)
{
    struct bytes text = {(const uint8_t *)"", 0};
    int e;
    json_scan_peek(&r->scan);
    const uint8_t *at = r->scan.p;
    if (f->kind == KIND_STRING && json_scan_peek(&r->scan) == 'n')
        e = json_scan_word(&r->scan, "null");
    else
        e = json_scan_string(&r->scan, &text);
    if (e < 0 || (text.len == 0 && !always))
        return e;
    return f->kind == KIND_BYTES ? put_base64(r, f, at, text)
                                 : wire_put_bytes(r->out, f->number, text);
}

static int read_submessage(struct reader *r, const struct schema_field *f)
{
    size_t mark;
    int e = wire_begin(r->out, f->number, &mark);
    if (e == 0)
        e = read_message(r, f->message);
    return e < 0 ? e : wire_end(r->out, mark);
}

static int read_packed(struct reader *r, const struct schema_field *f)
{
    size_t mark, before = r->out->len;
    bool first = true;
    int e = wire_begin(r->out, f->number, &mark);
    while (e == 0 && (e = json_scan_element(&r->scan, &first)) > 0) {
        uint64_t v;
        e = read_scalar(r, f, &v);
        if (e == 0)
            e = put_packed(r, f, v);
    }
    if (e == 0 && r->out->len == mark)
        buf_truncate(r->out, before);
    else if (e == 0)
        e = wire_end(r->out, mark);
    return e;
}

static int read_list(struct reader *r, const struct schema_field *f)
{
    bool first = true;
    int e;
    if (json_scan_peek(&r->scan) == 'n')
        return json_scan_word(&r->scan, "null");
    if (json_scan_peek(&r->scan) != '[')
        return json_scan_unexpected(&r->scan, "a list");
    r->scan.p++;
    if (f->wire_type != WIRE_LEN)
        return read_packed(r, f);
    while ((e = json_scan_element(&r->scan, &first)) > 0) {
        e = f->kind == KIND_MESSAGE ? read_submessage(r, f) : read_text(r, f, true);
        if (e < 0)
            return e;
    }
    return e;
}

/* A value of a field; `again`: the message had it before, so that a zero counts as well. */
static int read_field(struct reader *r, const struct schema_field *f, bool again)
{
    uint64_t v;
    if (f->repeated)
        return read_list(r, f);
    if (f->kind == KIND_MESSAGE) {
        if (f->oneof < 0 && json_scan_peek(&r->scan) == 'n')
            return json_scan_word(&r->scan, "null");
        return read_submessage(r, f);
    }
    if (f->id_len)
        return read_id(r, f, again);
    again |= f->oneof >= 0;
    if (f->wire_type == WIRE_LEN)
        return read_text(r, f, again);
    int e = read_scalar(r, f, &v);
    return e < 0 || (v == 0 && !again) ? e : put_scalar(r, f, v);
}

static bool field_named(const struct schema_field *f, struct bytes key)
{
    return (key.len == f->json_len && memcmp(key.data, f->json_name, key.len) == 0) ||
           (key.len == f->name_len && memcmp(key.data, f->name, key.len) == 0);
}

/* The index of the field `key`, or -1; fields come mostly in order, so the search starts behind the
 * last one. */
static int find_field(const struct schema_message *m, struct bytes key, int last)
{
    for (int i = last + 1; i < m->nfields; i++)
        if (field_named(&m->fields[i], key))
            return i;
    for (int i = 0; i <= last; i++)
        if (field_named(&m->fields[i], key))
            return i;
    return -1;
}

static int read_members(struct reader *r, const struct schema_message *m)
{
    struct bytes key;
    bool first = true;
    uint64_t seen = 0;
    int last = -1, e;
    r->scan.p++;
    while ((e = json_scan_key(&r->scan, &first, &key)) > 0) {
        int i = find_field(m, key, last);
        if (i >= 0) {
            e = read_field(r, &m->fields[i], seen >> i & 1);
            seen |= 1ull << i;
            last = i;
        } else {
            e = json_scan_skip(&r->scan);
        }
        if (e < 0)
            return e;
    }
    return e;
}

static int read_message(struct reader *r, const struct schema_message *m)
{
    if (json_scan_peek(&r->scan) == 'n')
        return json_scan_word(&r->scan, "null");
    if (json_scan_peek(&r->scan) != '{')
        return json_scan_unexpected(&r->scan, "an object");
    bool container = m->container;
    if (container && r->depth == OTLP_MAX_DEPTH)
        return json_scan_fail(&r->scan, r->scan.p, "values nested deeper than %d levels",
                              OTLP_MAX_DEPTH);
    r->depth += container;
    int e = read_members(r, m);
    r->depth -= container;
    return e;
}

int json_read(const struct schema_message *m, struct bytes text, struct buf *out,
              struct err *reterr)
{
    _cleanup_buf_ struct buf *scratch = buf_new(0);
    if (!scratch)
        return -ENOMEM;
    if (!text.len)
        text = bytes_str("");
    struct reader r = {
        .scan = {.start = text.data,
                 .p = text.data,
                 .end = text.data + text.len,
                 .scratch = scratch,
                 .err = reterr},
        .out = out,
    };
    return read_message(&r, m);
}
