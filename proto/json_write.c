/*
 * JSON out, straight from the bytes of a checked message. One pass notes where each field is, a
 * second writes them in the order of their declaration, which is the reference's. What it writes
 * when: repeated fields, strings, bytes and numbers    when not empty and not zero; ids when not
 * all zero members of a oneof (and `optional` fields)     when set single messages (resource,
 * scope, status, ...) always, {} when absent
 */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "proto/json.h"

struct writer {
    struct buf *out;
    unsigned flags;
    int error; /* the first one; nothing is written after it */
    const struct schema_message
        *any; /* AnyValue while numbers are looked at for secrets, else NULL */
};

/* What the message has of one field: of single ones the last value, of repeated ones the first
 * place and how often. */
struct slot {
    const uint8_t *from;
    const uint8_t *data;
    uint64_t value; /* the scalar, the length of `data`, or the number of elements */
};
#define ANY_STRING_VALUE 1 /* AnyValue.string_value */
#define SMALL_FIELDS 8
#define MAX_FIELDS 32

static void write_message(struct writer *w, const struct schema_message *m, struct bytes msg);

/* Room for `n` bytes; NULL after an error. */
static inline uint8_t *room(struct writer *w, size_t n)
{
    struct buf *b = w->out;
    if (w->error == 0 && (n > b->cap - b->len || n > b->max - b->len))
        w->error = buf_reserve(b, n);
    return w->error == 0 ? buf_tail(b) : NULL;
}

static inline void put_char(struct writer *w, char c)
{
    uint8_t *p = room(w, 1);
    if (p) {
        *p = (uint8_t)c;
        buf_commit(w->out, 1);
    }
}

static void put_text(struct writer *w, const void *text, size_t len)
{
    uint8_t *p = room(w, len);
    if (p) {
        memcpy(p, text, len);
        buf_commit(w->out, len);
    }
}

/* `"name":`, after a comma when *more, which becomes true. */
static void put_name(struct writer *w, const struct schema_field *f, bool *more)
{
    uint8_t *start = room(w, f->json_len + 4u), *p = start;
    if (!start)
        return;
    if (*more)
        *p++ = ',';
    *p++ = '"';
    memcpy(p, f->json_name, f->json_len);
    p += f->json_len;
    *p++ = '"';
    *p++ = ':';
    buf_commit(w->out, (size_t)(p - start));
    *more = true;
}

static void put_string(struct writer *w, struct bytes s)
{
    if (w->error == 0)
        w->error = json_put_string(s, w->flags, w->out);
}

static void put_encoded(struct writer *w, struct bytes s, size_t size,
                        void (*encode)(struct bytes, void *))
{
    uint8_t *p = room(w, size + 2);
    if (!p)
        return;
    *p = '"';
    encode(s, p + 1);
    p[size + 1] = '"';
    buf_commit(w->out, size + 2);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* The text of a number as it stands in JSON, quotes included; at most DOUBLE_MAX_BYTES. */
static size_t number_text(enum field_kind kind, uint64_t v, uint8_t *out)
{
    size_t n;
    switch (kind) {
    case KIND_DOUBLE: return json_double(wire_double(v), (char *)out);
    case KIND_FIXED32:
    case KIND_UINT32: return encode_uint((uint32_t)v, out);
    case KIND_INT32:
    case KIND_ENUM: return encode_int((int32_t)v, out);
    case KIND_SINT32: return encode_int(unzigzag(v), out);
    case KIND_INT64:
    case KIND_SFIXED64: n = encode_int((int64_t)v, out + 1); break;
    default: n = encode_uint(v, out + 1); break;
    }
    out[0] = out[n + 1] = '"';
    return n + 2;
}

static void put_number(struct writer *w, enum field_kind kind, uint64_t v)
{
    uint8_t *p = room(w, DOUBLE_MAX_BYTES);
    if (p)
        buf_commit(w->out, number_text(kind, v, p));
}

/* What base64 hides anybody can read. */
static void put_base64(struct writer *w, struct bytes data)
{
    _cleanup_buf_ struct buf *clean = NULL;
    if ((w->flags & JSON_REDACT) && secrets_found(data)) {
        clean = buf_new(0);
        const int r = clean ? secrets_redact(data, clean) : -ENOMEM;
        if (r < 0 && w->error == 0)
            w->error = r;
        data = r < 0 ? (struct bytes){0} : buf_bytes(clean);
    }
    put_encoded(w, data, base64_size(data.len), encode_base64);
}

static void put_value(struct writer *w, const struct schema_field *f, struct bytes data, uint64_t v)
{
    switch ((enum field_kind)f->kind) {
    case KIND_MESSAGE: write_message(w, f->message, data); break;
    case KIND_STRING: put_string(w, data); break;
    case KIND_BYTES:
        if (f->id_len)
            put_encoded(w, data, 2 * data.len, encode_hex);
        else
            put_base64(w, data);
        break;
    case KIND_BOOL: put_text(w, v ? "true" : "false", v ? 4 : 5); break;
    default: put_number(w, f->kind, v); break;
    }
}

/* The elements of one occurrence of a repeated number field, which may be packed. */
static void put_packed(struct writer *w, const struct schema_field *f, struct bytes data,
                       bool *more)
{
    struct wire_reader r = wire_reader(data);
    uint64_t v;
    while (wire_next_packed(&r, f->wire_type, &v) > 0) {
        if (*more)
            put_char(w, ',');
        *more = true;
        put_value(w, f, (struct bytes){0}, v);
    }
}

/* wire_next(), with a short cut for what most fields are: one byte of tag, one byte of length. */
static inline int next_field(struct wire_reader *r, struct wire_field *ret)
{
    const uint8_t *p = r->p;
    if (r->end - p < 2 || p[0] >= 0x80 || (p[0] & 7) != WIRE_LEN || p[1] >= 0x80 ||
        r->end - p - 2 < p[1])
        return wire_next(r, ret);
    ret->number = p[0] >> 3;
    ret->type = WIRE_LEN;
    ret->bytes = bytes_of(p + 2, p[1]);
    ret->whole = bytes_of(p, 2u + p[1]);
    r->p = p + 2 + p[1];
    return 1;
}

static void put_elements(struct writer *w, const struct schema_field *f, const struct slot *s,
                         struct bytes msg)
{
    struct wire_reader r = {s->from, msg.data + msg.len};
    struct wire_field e;
    bool more = false;
    for (uint64_t left = s->value; left && w->error == 0 && next_field(&r, &e) > 0;) {
        if (e.number != f->number)
            continue;
        left--;
        if (e.type == WIRE_LEN && f->wire_type != WIRE_LEN) {
            put_packed(w, f, e.bytes, &more);
            continue;
        }
        if (more)
            put_char(w, ',');
        more = true;
        put_value(w, f, e.bytes, e.value);
    }
}

/* A repeated field; an empty packed one is nothing. */
static void write_repeated(struct writer *w, const struct schema_field *f, const struct slot *s,
                           struct bytes msg, bool *more)
{
    size_t before = w->out->len;
    bool more_before = *more;
    put_name(w, f, more);
    put_char(w, '[');
    size_t empty = w->out->len;
    put_elements(w, f, s, msg);
    if (w->error == 0 && w->out->len == empty) {
        buf_truncate(w->out, before);
        *more = more_before;
    } else {
        put_char(w, ']');
    }
}

static bool all_zero(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i])
            return false;
    return true;
}

static bool is_default(const struct schema_field *f, const struct slot *s)
{
    if (f->kind == KIND_DOUBLE)
        return wire_double(s->value) == 0;
    return f->id_len ? all_zero(bytes_of(s->data, s->value)) : s->value == 0;
}

/* A number in an AnyValue whose whole text is a secret: written as the placeholder string instead.
 */
static bool is_secret_number(const struct schema_field *f, uint64_t v)
{
    return f->kind == KIND_INT64    ? secrets_int((int64_t)v)
           : f->kind == KIND_DOUBLE ? secrets_double(wire_double(v))
                                    : false;
}

static void write_field(struct writer *w, const struct schema_message *m,
                        const struct schema_field *f, const struct slot *s, bool *more)
{
    if (f->kind == KIND_MESSAGE ? !s->from && f->oneof >= 0
                                : !s->from || (f->oneof < 0 && is_default(f, s)))
        return;
    if (m == w->any && is_secret_number(f, s->value)) {
        put_name(w, schema_field(m, ANY_STRING_VALUE), more);
        put_string(w, bytes_str(SECRET_PLACEHOLDER));
        return;
    }
    put_name(w, f, more);
    put_value(w, f, bytes_of(s->data, s->value), s->value);
}

static void find_fields(const struct schema_message *m, struct bytes msg, struct slot *slots)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field e;
    memset(slots, 0, m->nfields * sizeof(*slots));
    while (next_field(&r, &e) > 0) {
        unsigned i = e.number < ARRAY_SIZE(m->by_number) ? m->by_number[e.number] : 0;
        if (i == 0)
            continue;
        struct slot *s = &slots[i - 1];
        if (!s->from)
            s->from = e.whole.data;
        if (m->fields[i - 1].repeated) {
            s->value++;
        } else {
            s->data = e.type == WIRE_LEN ? e.bytes.data : NULL;
            s->value = e.type == WIRE_LEN ? e.bytes.len : e.value;
        }
    }
}

static void write_fields(struct writer *w, const struct schema_message *m, struct bytes msg,
                         struct slot *slots)
{
    bool more = false;
    find_fields(m, msg, slots);
    put_char(w, '{');
    for (unsigned i = 0; i < m->nfields; i++) {
        const struct schema_field *f = &m->fields[i];
        if (!f->repeated)
            write_field(w, m, f, &slots[i], &more);
        else if (slots[i].from)
            write_repeated(w, f, &slots[i], msg, &more);
    }
    put_char(w, '}');
}

/* Values nest deep, so what they consist of gets a small stack frame. */
static void __attribute__((noinline))
write_large(struct writer *w, const struct schema_message *m, struct bytes msg)
{
    struct slot slots[MAX_FIELDS];
    if (m->nfields <= MAX_FIELDS)
        write_fields(w, m, msg, slots);
    else
        w->error = -EINVAL;
}

static void write_message(struct writer *w, const struct schema_message *m, struct bytes msg)
{
    struct slot slots[SMALL_FIELDS];
    if (m->nfields <= SMALL_FIELDS)
        write_fields(w, m, msg, slots);
    else
        write_large(w, m, msg);
}

/*
 * Redaction costs a look at every string, so first it is seen whether the bytes hold a secret at
 * all: strings lie in them as they are. Numbers do not; they are looked at one by one.
 */
static void look_for_secrets(struct writer *w, unsigned flags, struct bytes msg)
{
    const bool look = flags & JSON_REDACT;
    w->any =
        look && secrets_numeric() ? schema_find("opentelemetry.proto.common.v1.AnyValue") : NULL;
    w->flags = look && secrets_found(msg) ? JSON_REDACT : 0;
}

int json_write(const struct schema_message *m, struct bytes msg, unsigned flags, struct buf *out)
{
    struct writer w = {.out = out};
    look_for_secrets(&w, flags, msg);
    write_message(&w, m, msg);
    return w.error;
}

static void write_entries(struct writer *w, const struct schema_field *f, struct bytes msg,
                          bool *more)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field e;
    while (w->error == 0 && wire_next(&r, &e) > 0) {
        if (e.number != OTLP_ENTRIES)
            continue;
        if (*more)
            put_char(w, ',');
        *more = true;
        write_message(w, f->message, e.bytes);
    }
}

int json_write_batch(const struct batch *b, unsigned flags, struct buf *out)
{
    const struct schema_field *f = schema_field(schema_request(b->signal), OTLP_ENTRIES);
    struct writer w = {.out = out};
    bool named = false, more = false;
    put_char(&w, '{');
    size_t before = out->len;
    put_name(&w, f, &named);
    put_char(&w, '[');
    for (unsigned i = 0; i < b->nsegs; i++) {
        look_for_secrets(&w, flags, buf_bytes(b->segs[i]));
        write_entries(&w, f, buf_bytes(b->segs[i]), &more);
    }
    if (w.error == 0 && !more)
        buf_truncate(out, before);
    else
        put_char(&w, ']');
    put_char(&w, '}');
    return w.error;
}
