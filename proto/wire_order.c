/*
 * Writing backwards: what is declared first is written first, at the end of the buffer, so every
 * length is known when its prefix is written, and one pass does.
 */
#include "proto/wire_order.h"

#include <endian.h>
#include <errno.h>

#define MAX_FIELDS 63 /* field numbers are below 64 */
#define PREFETCH_BYTES (256u << 10)
#define PREFETCH_ELEMENT_BYTES 1024u

/* Bytes written so far are [p, end) of a block that starts at `start`. */
struct back {
    uint8_t *start, *p, *end;
};

/* One field of the message at hand; those of one declared field are chained from the last to the
 * first. */
struct item {
    const uint8_t *data; /* the payload; of unknown fields the whole field; of scalars not used */
    uint64_t value;      /* of a scalar; else the length of `data` */
    uint32_t prev;       /* index + 1 of the one before, 0 = none */
};

struct wire_order {
    struct back out;
    struct item *items; /* a stack: a message's items lie above those of the messages around it */
    uint32_t nitems, cap;
    const struct schema_message *attribute; /* KeyValue */
};

static int put_message(struct wire_order *o, const struct schema_message *m, struct bytes msg);

static int grow(struct back *b, size_t n)
{
    size_t used = (size_t)(b->end - b->p), cap = (size_t)(b->end - b->start);
    size_t grown = cap + cap / 2 + n + 256;
    uint8_t *start = malloc(grown);
    if (!start)
        return -ENOMEM;
    if (used)
        memcpy(start + grown - used, b->p, used);
    mem_charge(grown);
    mem_release(cap);
    free(b->start);
    *b = (struct back){start, start + grown - used, start + grown};
    return 0;
}

static inline int make_room(struct back *b, size_t n)
{
    return (size_t)(b->p - b->start) >= n ? 0 : grow(b, n);
}

/* memcpy() of the short pieces that messages are made of, without the call. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t n)
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

static inline int put_bytes(struct back *b, struct bytes v)
{
    int r = make_room(b, v.len);
    if (r < 0)
        return r;
    b->p -= v.len;
    copy(b->p, v.data, v.len);
    return 0;
}

/* Room was made for ten bytes. */
static inline void put_varint(struct back *b, uint64_t v)
{
    if (v < 0x80) {
        *--b->p = (uint8_t)v;
        return;
    }
    size_t n = wire_varint_size(v);
    b->p -= n;
    uint8_t *p = b->p;
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p = (uint8_t)v;
}

static int put_prefix(struct back *b, uint32_t number, size_t len)
{
    int r = make_room(b, 20);
    if (r < 0)
        return r;
    put_varint(b, len);
    put_varint(b, (uint64_t)number << 3 | WIRE_LEN);
    return 0;
}

static int put_len(struct back *b, uint32_t number, struct bytes v)
{
    int r = put_bytes(b, v);
    return r < 0 ? r : put_prefix(b, number, v.len);
}

static struct bytes payload(const struct item *i)
{
    return bytes_of(i->data, (size_t)i->value);
}

static int grow_items(struct wire_order *o)
{
    uint32_t cap = o->cap ? 2 * o->cap : 256;
    struct item *items = realloc(o->items, cap * sizeof(*items));
    if (!items)
        return -ENOMEM;
    o->items = items;
    o->cap = cap;
    return 0;
}

/* What the value is after protobuf's narrowing to the field's type. */
static uint64_t narrowed(const struct schema_field *f, uint64_t v)
{
    switch ((enum field_kind)f->kind) {
    case KIND_INT32:
    case KIND_ENUM: return (uint64_t)(int64_t)(int32_t)v;
    case KIND_UINT32:
    case KIND_SINT32: return (uint32_t)v;
    case KIND_BOOL: return v != 0;
    default: return v;
    }
}

static int put_scalar(struct back *b, const struct schema_field *f, uint64_t value)
{
    int r = make_room(b, 20);
    if (r < 0)
        return r;
    if (f->wire_type == WIRE_VARINT) {
        put_varint(b, narrowed(f, value));
    } else { /* little endian; a narrower one is the lower half */
        size_t n = f->wire_type == WIRE_I64 ? 8 : 4;
        uint64_t little = htole64(value);
        b->p -= n;
        memcpy(b->p, &little, n);
    }
    put_varint(b, (uint64_t)f->number << 3 | f->wire_type);
    return 0;
}

static bool is_zero(const struct schema_field *f, uint64_t value)
{
    return f->kind == KIND_DOUBLE ? wire_double(value) == 0 : narrowed(f, value) == 0;
}

static bool all_zero(struct bytes id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i])
            return false;
    return true;
}

static int put_submessage(struct wire_order *o, const struct schema_field *f, struct bytes msg)
{
    size_t before = (size_t)(o->out.end - o->out.p);
    int r = put_message(o, f->message, msg);
    return r < 0 ? r : put_prefix(&o->out, f->number, (size_t)(o->out.end - o->out.p) - before);
}

static int put_present(struct wire_order *o, const struct schema_field *f, const struct item *i)
{
    bool presence = f->oneof >= 0 || f->repeated;
    if (f->kind == KIND_MESSAGE)
        return put_submessage(o, f, payload(i));
    if (f->id_len)
        return put_len(&o->out, f->number, all_zero(payload(i)) ? bytes_of(NULL, 0) : payload(i));
    if (f->kind == KIND_STRING || f->kind == KIND_BYTES)
        return i->value || presence ? put_len(&o->out, f->number, payload(i)) : 0;
    if (f->repeated) /* one packed field, since the check */
        return i->value ? put_len(&o->out, f->number, payload(i)) : 0;
    return presence || !is_zero(f, i->value) ? put_scalar(&o->out, f, i->value) : 0;
}

/* A field that is not there; the reference writes ids and singular messages all the same. */
static int put_absent(struct wire_order *o, const struct schema_field *f)
{
    bool always = f->id_len || (f->kind == KIND_MESSAGE && !f->repeated && f->oneof < 0);
    if (!always)
        return 0;
    return f->kind == KIND_MESSAGE ? put_submessage(o, f, bytes_of(NULL, 0))
                                   : put_len(&o->out, f->number, bytes_of(NULL, 0));
}

/*
 * Asks for cache lines before they are needed. The walk goes from length to length and the elements
 * backwards, each step a wait for memory that another core has written.
 */
static void prefetch(struct bytes b, size_t most)
{
    for (size_t i = 0; i < b.len && i < most; i += 64)
        __builtin_prefetch(b.data + i);
}

static int put_chain(struct wire_order *o, const struct schema_field *f, uint32_t last)
{
    int r = 0;
    for (uint32_t i = last, prev; i && r == 0; i = prev) {
        struct item item = o->items[i - 1]; /* a copy: the stack may move */
        prev = item.prev;
        if (prev && f->kind == KIND_MESSAGE && f->message != o->attribute)
            prefetch(payload(&o->items[prev - 1]), PREFETCH_ELEMENT_BYTES);
        r = put_present(o, f, &item);
    }
    return r;
}

static int put_unknown(struct wire_order *o, uint32_t last)
{
    int r = 0;
    for (; last && r == 0; last = o->items[last - 1].prev)
        r = put_bytes(&o->out, payload(&o->items[last - 1]));
    return r;
}

/* Reads one field, mostly of a tag and a length below 128; the bytes were checked. */
static inline int next_field(struct wire_reader *r, struct wire_field *f)
{
    size_t left = (size_t)(r->end - r->p);
    if (left < 2 || r->p[0] >= 0x80)
        return wire_next(r, f);
    f->number = r->p[0] >> 3;
    f->type = r->p[0] & 7;
    if (f->type == WIRE_LEN && r->p[1] < 0x80 && r->p[1] <= left - 2) {
        f->bytes = bytes_of(r->p + 2, r->p[1]);
        f->whole = bytes_of(r->p, f->bytes.len + 2);
    } else if (f->type == WIRE_I64 && left >= 9) {
        memcpy(&f->value, r->p + 1, 8);
        f->value = le64toh(f->value);
        f->whole = bytes_of(r->p, 9);
    } else if (f->type == WIRE_VARINT && r->p[1] < 0x80) {
        f->value = r->p[1];
        f->whole = bytes_of(r->p, 2);
    } else {
        return wire_next(r, f);
    }
    r->p += f->whole.len;
    return 1;
}

/* Puts the fields of `msg` on the stack: the last item of each declared field, and of the unknown
 * ones. */
static int index_fields(struct wire_order *o, const struct schema_message *m, struct bytes msg,
                        uint32_t *last, uint32_t *ret_unknown)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    int e;
    while ((e = next_field(&r, &f)) > 0) {
        if (o->nitems == o->cap && grow_items(o) < 0)
            return -ENOMEM;
        unsigned at = f.number < 64 ? m->by_number[f.number] : 0;
        uint32_t *chain = at ? &last[at - 1] : ret_unknown;
        struct item *i = &o->items[o->nitems++];
        struct bytes data = at ? f.bytes : f.whole;
        i->data = data.data;
        i->value = at && f.type != WIRE_LEN ? f.value : data.len;
        i->prev = *chain;
        *chain = o->nitems;
    }
    return e;
}

/* Whether an AnyValue is one short scalar in the one form there is for it. */
static bool is_plain_value(const uint8_t *v, size_t len)
{
    switch (len ? v[0] : 0) {
    case 0x0a:
    case 0x3a: return len >= 2 && v[1] < 0x80 && v[1] == len - 2; /* string, bytes */
    case 0x10: return len == 2 && v[1] <= 1;                      /* bool */
    case 0x21: return len == 9;                                   /* double */
    case 0x18:                                                    /* int: one varint, not padded */
        for (size_t i = 1; i + 1 < len; i++)
            if (v[i] < 0x80)
                return false;
        return len >= 2 && (v[len - 1] != 0 || len == 2) && v[len - 1] < 0x80;
    default: return false;
    }
}

/* A key and a plain value in the usual order, at a glance: 1 = done. */
static int put_plain_attribute(struct back *b, struct bytes kv)
{
    const uint8_t *p = kv.data;
    if (kv.len < 4 || p[0] != 0x0a || p[1] == 0 || p[1] >= 0x80 || p[1] + 4u > kv.len)
        return 0;
    size_t key = p[1] + 2u, value = kv.len - key;
    const uint8_t *v = p + key;
    if (v[0] != 0x12 || v[1] != value - 2 || v[1] >= 0x80 || !is_plain_value(v + 2, value - 2))
        return 0;
    int r = make_room(b, kv.len);
    if (r < 0)
        return r;
    b->p -= kv.len;
    copy(b->p, v, value);
    copy(b->p + value, p, key);
    return 1;
}

static int put_message(struct wire_order *o, const struct schema_message *m, struct bytes msg)
{
    if (m == o->attribute) {
        int done = put_plain_attribute(&o->out, msg);
        if (done)
            return done < 0 ? done : 0;
    }
    uint32_t last[MAX_FIELDS], unknown = 0, mark = o->nitems;
    memset(last, 0, m->nfields * sizeof(*last));
    int r = index_fields(o, m, msg, last, &unknown);
    for (unsigned i = 0; i < m->nfields && r == 0; i++)
        r = last[i] ? put_chain(o, &m->fields[i], last[i]) : put_absent(o, &m->fields[i]);
    if (r == 0)
        r = put_unknown(o, unknown);
    o->nitems = mark;
    return r;
}

struct wire_order *wire_order_new(void)
{
    struct wire_order *o = calloc(1, sizeof(*o));
    if (o)
        o->attribute = schema_find("opentelemetry.proto.common.v1.KeyValue");
    return o;
}

struct wire_order *wire_order_free(struct wire_order *o)
{
    if (o) {
        mem_release((size_t)(o->out.end - o->out.start));
        free(o->out.start);
        free(o->items);
        free(o);
    }
    return NULL;
}

int wire_order_reserve(struct wire_order *o, size_t bytes)
{
    return make_room(&o->out, bytes);
}

int wire_order_put(struct wire_order *o, const struct schema_message *m, struct bytes msg)
{
    prefetch(msg, PREFETCH_BYTES);
    int r = make_room(&o->out, msg.len + msg.len / 8);
    return r < 0 ? r : put_message(o, m, msg);
}

struct bytes wire_order_bytes(const struct wire_order *o)
{
    return bytes_of(o->out.p, (size_t)(o->out.end - o->out.p));
}

void wire_order_reset(struct wire_order *o)
{
    o->out.p = o->out.end;
}

int otlp_wire_order(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    _cleanup_(wire_order_freep) struct wire_order *o = wire_order_new();
    int r = o ? wire_order_put(o, m, msg) : -ENOMEM;
    struct bytes made = o ? wire_order_bytes(o) : bytes_of(NULL, 0);
    return r < 0 ? r : buf_append(out, made.data, made.len);
}
