/* The byte order of exports, made field by field as its definition says, without haste. */
#include "proto/check.h"
#include "proto/schema.h"
#include "proto/wire_order.h"
#include "tests/laws/laws.h"

static void put_fields(const struct schema_message *m, struct bytes msg, struct buf *out);

static uint64_t narrowed(const struct schema_field *f, uint64_t v)
{
    switch (f->kind) {
    case KIND_INT32:
    case KIND_ENUM: return (uint64_t)(int64_t)(int32_t)v;
    case KIND_UINT32:
    case KIND_SINT32: return (uint32_t)v;
    case KIND_BOOL: return v != 0;
    default: return v;
    }
}

static void put_number(const struct schema_field *f, uint64_t value, struct buf *out)
{
    const uint64_t v = f->wire_type == WIRE_VARINT ? narrowed(f, value) : value;
    const bool zero = f->kind == KIND_DOUBLE ? wire_double(v) == 0 : v == 0;
    int r = 0;
    if (zero && f->oneof < 0)
        return;
    if (f->wire_type == WIRE_VARINT)
        r = wire_put_uint(out, f->number, v);
    else if (f->wire_type == WIRE_I64)
        r = wire_put_fixed64(out, f->number, v);
    else
        r = wire_put_fixed32(out, f->number, (uint32_t)v);
    LAW("memory", r == 0);
}

static struct bytes no_zeros(struct bytes id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i])
            return id;
    return bytes_str("");
}

static void put_message(const struct schema_field *f, struct bytes msg, struct buf *out)
{
    size_t mark;
    LAW("memory", wire_begin(out, f->number, &mark) == 0);
    put_fields(f->message, msg, out);
    LAW("memory", wire_end(out, mark) == 0);
}

static void put_field(const struct schema_field *f, const struct wire_field *w, struct buf *out)
{
    const bool packed = f->repeated && f->wire_type != WIRE_LEN;
    const bool keeps_empty = (f->oneof >= 0 || f->repeated) && !packed;
    if (f->kind == KIND_MESSAGE)
        put_message(f, w->bytes, out);
    else if (f->wire_type != WIRE_LEN && !packed)
        put_number(f, w->value, out);
    else if (f->id_len)
        LAW("memory", wire_put_bytes(out, f->number, no_zeros(w->bytes)) == 0);
    else if (w->bytes.len || keeps_empty)
        LAW("memory", wire_put_bytes(out, f->number, w->bytes) == 0);
}

static void put_absent(const struct schema_field *f, struct buf *out)
{
    if (f->id_len)
        LAW("memory", wire_put_bytes(out, f->number, bytes_str("")) == 0);
    else if (f->kind == KIND_MESSAGE && !f->repeated && f->oneof < 0)
        put_message(f, bytes_str(""), out);
}

static void put_fields(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    struct wire_field w;
    for (struct wire_reader r = wire_reader(msg); wire_next(&r, &w) > 0;)
        if (!schema_field(m, w.number))
            LAW("memory", buf_append(out, w.whole.data, w.whole.len) == 0);
    for (unsigned i = m->nfields; i-- > 0;) {
        bool there = false;
        for (struct wire_reader r = wire_reader(msg); wire_next(&r, &w) > 0;) {
            if (schema_field(m, w.number) != &m->fields[i])
                continue;
            put_field(&m->fields[i], &w, out);
            there = true;
        }
        if (!there)
            put_absent(&m->fields[i], out);
    }
}

static struct buf *ordered(enum signal s, struct bytes wire)
{
    struct buf *out = buf_new(0);
    LAW("memory", out && otlp_wire_order(schema_request(s), wire, out) == 0);
    return out;
}

void law_order(enum signal s, struct bytes wire)
{
    _cleanup_buf_ struct buf *got = ordered(s, wire), *want = buf_new(0);
    put_fields(schema_request(s), wire, want);
    LAW("fields are written as defined", bytes_eq(buf_bytes(got), buf_bytes(want)));
    _cleanup_buf_ struct buf *again = ordered(s, buf_bytes(got));
    LAW("what is in order stays as it is", bytes_eq(buf_bytes(again), buf_bytes(got)));
    struct otlp_checked before, after;
    LAW("it was valid", otlp_check(s, wire, &before, NULL) == 0 && before.canonical);
    LAW("it is valid", otlp_check(s, buf_bytes(got), &after, NULL) == 0 && after.canonical);
    LAW("no record is lost", after.records == before.records);
}
