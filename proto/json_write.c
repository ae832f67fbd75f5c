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
#include "proto/json_out.h"

struct writer {
    struct jout o;
    const uint8_t *safe;    /* the end of the bytes that the message is a part of */
    const uint8_t *fetched; /* up to there they are in the cache */
    const struct schema_message
        *any;       /* AnyValue while numbers are looked at for secrets, else NULL */
    unsigned level; /* of messages that hold a secret */
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
#define FETCH_BYTES (64u << 10)
#define CACHE_LINE 64u
#define SCALAR_ROOM (2 * DOUBLE_MAX_BYTES) /* a number, a bool or a hex id */
#define ID_BYTES 16
#define REDACT_LEVELS 8 /* values nest deeper than what is worth a search each */

static uint8_t *write_message(struct writer *w, uint8_t *p, const struct schema_message *m,
                              struct bytes msg);

static inline uint8_t *put_char(struct writer *w, uint8_t *p, char c)
{
    p = jout_room(&w->o, p, 1);
    *p++ = (uint8_t)c;
    return p;
}

#define PUT_TEXT(p, text) ((uint8_t *)memcpy((p), (text), sizeof(text) - 1) + sizeof(text) - 1)

/* `{"name":` or `,"name":` as *lead says, which becomes the comma; then there is room for a scalar.
 */
static inline uint8_t *put_name(struct writer *w, uint8_t *p, const struct schema_field *f,
                                char *lead)
{
    p = jout_room(&w->o, p, JSON_START_BYTES + SCALAR_ROOM);
    memcpy(p, f->json_start, JSON_START_BYTES);
    *p = (uint8_t)*lead;
    *lead = ',';
    return p + f->json_start_len;
}

/* ---- reading ---- */

struct element {
    const uint8_t *from, *data; /* of the tag, of the payload */
    uint64_t value;             /* the scalar, or the length of `data` */
    uint32_t number;
    bool has_length;
};

static __attribute__((noinline)) bool next_any(struct wire_reader *r, struct element *e)
{
    struct wire_field f;
    if (wire_next(r, &f) <= 0)
        return false;
    e->from = f.whole.data;
    e->number = f.number;
    e->has_length = f.type == WIRE_LEN;
    e->data = e->has_length ? f.bytes.data : NULL;
    e->value = e->has_length ? f.bytes.len : f.value;
    return true;
}

/* wire_next(), with a short cut for what most fields are: one byte of tag, and one or two of
 * length, eight of number or one of varint. */
static inline bool next(struct wire_reader *r, struct element *e)
{
    const uint8_t *p = r->p;
    const ptrdiff_t left = r->end - p;
    if (left < 3 || p[0] >= 0x80)
        return next_any(r, e);
    e->from = p;
    e->number = p[0] >> 3;
    e->has_length = (p[0] & 7) == WIRE_LEN;
    e->value = p[1];
    if (e->has_length) {
        const bool wide = p[1] >= 0x80;
        if (wide)
            e->value = (p[1] & 0x7f) | (uint64_t)p[2] << 7;
        e->data = p + 2 + wide;
        if ((wide && p[2] >= 0x80) || e->value > (uint64_t)(r->end - e->data))
            return next_any(r, e);
        r->p = e->data + e->value;
        return true;
    }
    e->data = NULL;
    if ((p[0] & 7) == WIRE_VARINT && p[1] < 0x80) {
        r->p = p + 2;
        return true;
    }
    if ((p[0] & 7) != WIRE_I64 || left < 9)
        return next_any(r, e);
    memcpy(&e->value, p + 1, 8);
    e->value = le64toh(e->value);
    r->p = p + 9;
    return true;
}

/* ---- scalars ---- */

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint8_t *put_quoted_uint(uint8_t *p, uint64_t v)
{
    *p++ = '"';
    p += encode_uint(v, p);
    *p++ = '"';
    return p;
}

static inline uint8_t *put_quoted_int(uint8_t *p, int64_t v)
{
    *p++ = '"';
    p += encode_int(v, p);
    *p++ = '"';
    return p;
}

/* A number as it stands in JSON, quotes included; at most DOUBLE_MAX_BYTES. */
static uint8_t *put_number(uint8_t *p, enum field_kind kind, uint64_t v)
{
    switch (kind) {
    case KIND_DOUBLE: return p + json_double(wire_double(v), (char *)p);
    case KIND_FIXED32:
    case KIND_UINT32: return p + encode_uint((uint32_t)v, p);
    case KIND_INT32:
    case KIND_ENUM: return p + encode_int((int32_t)v, p);
    case KIND_SINT32: return p + encode_int(unzigzag(v), p);
    case KIND_INT64:
    case KIND_SFIXED64: return put_quoted_int(p, (int64_t)v);
    default: return put_quoted_uint(p, v);
    }
}

static inline uint8_t *put_bool(uint8_t *p, bool v)
{
    memcpy(p, v ? "true" : "false", 5);
    return p + (v ? 4 : 5);
}

#define PIECE_BYTES 768u /* of bytes; a multiple of 3 */

static uint8_t *put_hex(struct writer *w, uint8_t *p, struct bytes data)
{
    p = put_char(w, p, '"');
    for (size_t n; data.len > 0; data = bytes_of(data.data + n, data.len - n)) {
        n = data.len < PIECE_BYTES ? data.len : PIECE_BYTES;
        p = jout_room(&w->o, p, 2 * n);
        encode_hex(bytes_of(data.data, n), p);
        p += 2 * n;
    }
    return put_char(w, p, '"');
}

/* What base64 hides anybody can read. */
static uint8_t *put_base64(struct writer *w, uint8_t *p, struct bytes data)
{
    _cleanup_buf_ struct buf *clean = NULL;
    if ((w->o.flags & JSON_REDACT) && secrets_found(data)) {
        clean = buf_new(0);
        const int r = clean ? secrets_redact(data, clean) : -ENOMEM;
        if (r < 0 && !w->o.error)
            w->o.error = r;
        data = r < 0 ? (struct bytes){0} : buf_bytes(clean);
    }
    p = put_char(w, p, '"');
    for (size_t n; data.len > 0; data = bytes_of(data.data + n, data.len - n)) {
        n = data.len < PIECE_BYTES ? data.len : PIECE_BYTES;
        p = jout_room(&w->o, p, base64_size(n));
        encode_base64(bytes_of(data.data, n), p);
        p += base64_size(n);
    }
    return put_char(w, p, '"');
}

/* An id; there is room for a scalar. */
static uint8_t *put_id(struct writer *w, uint8_t *p, struct bytes id)
{
    if (id.len > ID_BYTES)
        return put_hex(w, p, id);
    *p++ = '"';
    encode_hex(id, p);
    p += 2 * id.len;
    *p++ = '"';
    return p;
}

/* ---- attributes and values ---- */

/* Texts that jout_run() takes, with what stands around them. */
#define SHORT_BYTES 127u
#define ATTRIBUTE_ROOM (2 * JOUT_RUN_ROOM(SHORT_BYTES) + 128u)

/*
 * The usual forms of an AnyValue, which is one field of one byte of tag: a short string, an
 * integer, a bool. There is ATTRIBUTE_ROOM less that of one text. NULL: another form.
 */
static inline uint8_t *put_short_value(const struct writer *w, uint8_t *p, struct bytes v)
{
    if (v.len < 2 || w->any || (w->o.flags & JSON_REDACT))
        return NULL;
    const uint8_t *data = v.data;
    if (data[0] == 0x0a && data[1] <= SHORT_BYTES && v.len == data[1] + 2u) {
        p = PUT_TEXT(p, "{\"stringValue\":\"");
        p = jout_run(p, bytes_of(data + 2, data[1]), w->safe);
        return PUT_TEXT(p, "\"}");
    }
    if (data[0] == 0x18) {
        uint64_t n = data[1] & 0x7f;
        size_t at = 1;
        while (data[at] >= 0x80 && ++at < v.len && at <= 10)
            n |= (uint64_t)(data[at] & 0x7f) << (7 * (at - 1));
        if (at + 1 != v.len)
            return NULL;
        p = PUT_TEXT(p, "{\"intValue\":");
        p = put_quoted_int(p, (int64_t)n);
        *p++ = '}';
        return p;
    }
    if (data[0] != 0x10 || data[1] > 1 || v.len != 2)
        return NULL;
    p = PUT_TEXT(p, "{\"boolValue\":");
    p = put_bool(p, data[1]);
    *p++ = '}';
    return p;
}

static uint8_t *put_value(struct writer *w, uint8_t *p, const struct schema_message *m,
                          struct bytes v)
{
    p = jout_room(&w->o, p, ATTRIBUTE_ROOM);
    uint8_t *end = put_short_value(w, p, v);
    return end ? end : write_message(w, p, m, v);
}

/* A short key and then a value, as everybody writes it. False: another form. */
static inline bool split_key_value(struct bytes kv, struct bytes *key, struct bytes *value)
{
    const uint8_t *p = kv.data, *end = p + kv.len;
    if (kv.len < 5 || p[0] != 0x0a || p[1] == 0 || p[1] > SHORT_BYTES || kv.len < p[1] + 4u)
        return false;
    *key = bytes_of(p + 2, p[1]);
    p += 2 + p[1];
    if (*p++ != 0x12)
        return false;
    size_t len = *p++;
    if (len >= 0x80) {
        if (p == end || *p >= 0x80)
            return false;
        len = (len & 0x7f) | (size_t)*p++ << 7;
    }
    *value = bytes_of(p, len);
    return (size_t)(end - p) == len;
}

static uint8_t *put_key_value(struct writer *w, uint8_t *p, const struct schema_field *f,
                              struct bytes kv)
{
    struct bytes key, value;
    if ((w->o.flags & JSON_REDACT) || !split_key_value(kv, &key, &value))
        return write_message(w, p, f->message, kv);
    p = jout_room(&w->o, p, ATTRIBUTE_ROOM);
    p = PUT_TEXT(p, "{\"key\":\"");
    p = jout_run(p, key, w->safe);
    p = PUT_TEXT(p, "\",\"value\":");
    uint8_t *end = put_short_value(w, p, value);
    p = end ? end : write_message(w, p, schema_field(f->message, 2)->message, value);
    return put_char(w, p, '}');
}

static inline uint8_t *put_part(struct writer *w, uint8_t *p, const struct schema_field *f,
                                struct bytes msg)
{
    switch ((enum json_shape)f->json_shape) {
    case SHAPE_KEY_VALUE: return put_key_value(w, p, f, msg);
    case SHAPE_VALUE: return put_value(w, p, f->message, msg);
    default: return write_message(w, p, f->message, msg);
    }
}

/* Most parts of a message with a secret have none: their strings need no look. */
static __attribute__((noinline)) uint8_t *
put_redacted(struct writer *w, uint8_t *p, const struct schema_field *f, struct bytes msg)
{
    const unsigned flags = w->o.flags;
    w->o.flags = secrets_found(msg) ? flags : 0;
    w->level++;
    p = put_part(w, p, f, msg);
    w->level--;
    w->o.flags = flags;
    return p;
}

static uint8_t *put_message(struct writer *w, uint8_t *p, const struct schema_field *f,
                            struct bytes msg)
{
    const bool look = (w->o.flags & JSON_REDACT) && w->level < REDACT_LEVELS;
    return look ? put_redacted(w, p, f, msg) : put_part(w, p, f, msg);
}

/* ---- fields ---- */

/* The value of a field, or an element; there is room for a scalar. */
static inline uint8_t *put_content(struct writer *w, uint8_t *p, const struct schema_field *f,
                                   const uint8_t *data, uint64_t v)
{
    switch ((enum field_kind)f->kind) {
    case KIND_MESSAGE: return put_message(w, p, f, bytes_of(data, v));
    case KIND_STRING: return jout_string(&w->o, p, bytes_of(data, v), w->safe);
    case KIND_BYTES:
        return f->id_len ? put_id(w, p, bytes_of(data, v)) : put_base64(w, p, bytes_of(data, v));
    case KIND_BOOL: return put_bool(p, v);
    default: return put_number(p, f->kind, v);
    }
}

/* The elements of one occurrence of a repeated number field, which may be packed. */
static uint8_t *put_packed(struct writer *w, uint8_t *p, const struct schema_field *f,
                           struct bytes data, char *lead)
{
    struct wire_reader r = wire_reader(data);
    uint64_t v;
    while (!w->o.error && wire_next_packed(&r, f->wire_type, &v) > 0) {
        p = jout_room(&w->o, p, 1 + SCALAR_ROOM);
        *p++ = (uint8_t)*lead;
        *lead = ',';
        p = put_content(w, p, f, NULL, v);
    }
    return p;
}

/* True when a repeated number field has no element: an empty packed one is nothing. */
static bool no_numbers(const struct schema_field *f, const struct slot *s, struct bytes msg)
{
    struct wire_reader r = {s->from, msg.data + msg.len};
    struct element e;
    while (next(&r, &e))
        if (e.number == f->number && !(e.has_length && e.value == 0))
            return false;
    return true;
}

/*
 * The bytes come from another thread, and the walk goes from length to length, each step a wait for
 * memory. In one go the processor gets them in a third of that time.
 */
static void fetch_ahead(struct writer *w, const uint8_t *from)
{
    const size_t left = (size_t)(w->safe - from), n = left < FETCH_BYTES ? left : FETCH_BYTES;
    for (size_t i = 0; i < n; i += CACHE_LINE)
        (void)*(const volatile uint8_t *)(from + i);
    w->fetched = n ? from + n : from;
}

static uint8_t *write_repeated(struct writer *w, uint8_t *p, const struct schema_field *f,
                               const struct slot *s, struct bytes msg)
{
    struct wire_reader r = {s->from, msg.data + msg.len};
    struct element e;
    char lead = '[';
    for (uint64_t left = s->value; left && !w->o.error && next(&r, &e);) {
        if (e.number != f->number)
            continue;
        left--;
        if (e.has_length && f->wire_type != WIRE_LEN) {
            p = put_packed(w, p, f, bytes_of(e.data, e.value), &lead);
            continue;
        }
        if (e.data >= w->fetched)
            fetch_ahead(w, e.data);
        p = jout_room(&w->o, p, 1 + SCALAR_ROOM);
        *p++ = (uint8_t)lead;
        lead = ',';
        p = put_content(w, p, f, e.data, e.value);
    }
    return put_char(w, p, ']');
}

static bool all_zero(const uint8_t *p, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= p[i];
    return any == 0;
}

static inline bool is_default(const struct schema_field *f, const struct slot *s)
{
    if (f->kind == KIND_DOUBLE)
        return wire_double(s->value) == 0;
    return f->id_len ? all_zero(s->data, s->value) : s->value == 0;
}

/* A number in an AnyValue whose whole text is a secret: written as the placeholder string instead.
 */
static bool is_secret_number(const struct schema_field *f, uint64_t v)
{
    return f->kind == KIND_INT64    ? secrets_int((int64_t)v)
           : f->kind == KIND_DOUBLE ? secrets_double(wire_double(v))
                                    : false;
}

static uint8_t *write_field(struct writer *w, uint8_t *p, const struct schema_message *m,
                            const struct schema_field *f, const struct slot *s, char *lead)
{
    if (f->kind != KIND_MESSAGE && f->oneof < 0 && is_default(f, s))
        return p;
    if (m == w->any && is_secret_number(f, s->value)) {
        const struct bytes text = bytes_str(SECRET_PLACEHOLDER);
        p = put_name(w, p, schema_field(m, ANY_STRING_VALUE), lead);
        return jout_string(&w->o, p, text, text.data + text.len);
    }
    p = put_name(w, p, f, lead);
    return put_content(w, p, f, s->data, s->value);
}

/* Goes past further elements of the field at `from`, as long as they are short; how many those are.
 */
static inline size_t skip_same(struct wire_reader *r, const uint8_t *from)
{
    const uint8_t *p = r->p, tag = *from;
    size_t n = 0;
    if ((tag & 0x87) != WIRE_LEN)
        return 0;
    for (; r->end - p >= 2 && p[0] == tag && p[1] < 0x80 && p[1] <= r->end - p - 2; n++)
        p += 2 + p[1];
    r->p = p;
    return n;
}

/* Fills the slots of the fields that are there; returns their bits. */
static inline uint32_t find_fields(const struct schema_message *m, struct bytes msg,
                                   struct slot *slots)
{
    struct wire_reader r = wire_reader(msg);
    struct element e;
    uint32_t seen = 0;
    while (next(&r, &e)) {
        const unsigned i = e.number < ARRAY_SIZE(m->by_number) ? m->by_number[e.number] : 0;
        if (i == 0)
            continue;
        struct slot *s = &slots[i - 1];
        const bool first = !(seen >> (i - 1) & 1);
        seen |= 1u << (i - 1);
        if (m->fields[i - 1].repeated) {
            s->from = first ? e.from : s->from;
            s->value = first ? 1 : s->value + 1;
            s->value += skip_same(&r, e.from);
        } else {
            s->data = e.data;
            s->value = e.value;
        }
    }
    return seen;
}

static inline uint8_t *write_fields(struct writer *w, uint8_t *p, const struct schema_message *m,
                                    struct bytes msg, struct slot *slots)
{
    static const struct slot absent;
    char lead = '{';
    const uint32_t seen = find_fields(m, msg, slots);
    for (uint32_t left = seen | m->json_always; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        const struct schema_field *f = &m->fields[i];
        const struct slot *s = seen >> i & 1 ? &slots[i] : &absent;
        if (!f->repeated) {
            p = write_field(w, p, m, f, s, &lead);
        } else if (f->wire_type == WIRE_LEN || !no_numbers(f, s, msg)) {
            p = put_name(w, p, f, &lead);
            p = write_repeated(w, p, f, s, msg);
        }
    }
    p = jout_room(&w->o, p, 2);
    *p = '{';
    p += lead == '{';
    *p++ = '}';
    return p;
}

/* Values nest deep, so what they consist of gets a small stack frame. */
static __attribute__((noinline)) uint8_t *
write_large(struct writer *w, uint8_t *p, const struct schema_message *m, struct bytes msg)
{
    struct slot slots[MAX_FIELDS];
    if (m->nfields <= MAX_FIELDS)
        return write_fields(w, p, m, msg, slots);
    w->o.error = -EINVAL;
    return p;
}

static __attribute__((noinline)) uint8_t *
write_message(struct writer *w, uint8_t *p, const struct schema_message *m, struct bytes msg)
{
    struct slot slots[SMALL_FIELDS];
    if (m->nfields <= SMALL_FIELDS)
        return write_fields(w, p, m, msg, slots);
    return write_large(w, p, m, msg);
}

/*
 * Redaction costs a look at every string, so first it is seen whether the bytes hold a secret at
 * all: strings lie in them as they are. Numbers do not; they are looked at one by one.
 */
static void begin_bytes(struct writer *w, unsigned flags, struct bytes msg)
{
    const bool look = flags & JSON_REDACT;
    w->any =
        look && secrets_numeric() ? schema_find("opentelemetry.proto.common.v1.AnyValue") : NULL;
    w->o.flags = look && secrets_found(msg) ? JSON_REDACT : 0;
    w->safe = msg.len ? msg.data + msg.len : msg.data;
    w->level = 0;
    fetch_ahead(w, msg.data);
}

int json_write(const struct schema_message *m, struct bytes msg, unsigned flags, struct buf *out)
{
    struct writer w;
    uint8_t *p = jout_begin(&w.o, 0, NULL, out);
    begin_bytes(&w, flags, msg);
    p = write_message(&w, p, m, msg);
    return jout_end(&w.o, p);
}

static uint8_t *write_entries(struct writer *w, uint8_t *p, const struct schema_field *f,
                              struct bytes msg, char *lead)
{
    struct wire_reader r = wire_reader(msg);
    struct element e;
    while (!w->o.error && next(&r, &e)) {
        if (e.number != OTLP_ENTRIES)
            continue;
        char object = '{';
        if (*lead == '[')
            p = put_name(w, p, f, &object);
        p = put_char(w, p, *lead);
        *lead = ',';
        p = put_message(w, p, f, bytes_of(e.data, e.value));
    }
    return p;
}

int json_write_batch_in_pieces(const struct batch *b, unsigned flags,
                               const struct json_spill *spill, struct buf *out)
{
    const struct schema_field *f = schema_field(schema_request(b->signal), OTLP_ENTRIES);
    struct writer w;
    char lead = '[';
    uint8_t *p = jout_begin(&w.o, 0, spill, out);
    for (unsigned i = 0; i < b->nsegs; i++) {
        begin_bytes(&w, flags, buf_bytes(b->segs[i]));
        p = write_entries(&w, p, f, buf_bytes(b->segs[i]), &lead);
    }
    p = jout_room(&w.o, p, 3);
    p = lead == '[' ? PUT_TEXT(p, "{}") : PUT_TEXT(p, "]}");
    *p = '\n';
    p += flags & JSON_LINE ? 1 : 0;
    return jout_end(&w.o, p);
}

int json_write_batch(const struct batch *b, unsigned flags, struct buf *out)
{
    return json_write_batch_in_pieces(b, flags, NULL, out);
}
