/* Values from and to the bytes of AnyValue and KeyValue messages. */
#include <errno.h>

#include "agent/base/utf8.h"
#include "ottl/value.h"
#include "proto/any_value.h"
#include "proto/check.h"

enum {
    LIST_ITEMS = 1,
    KV_KEY = 1,
    KV_VALUE = 2,
    ANY_FIELD_STRING = 1,
    ANY_FIELD_ARRAY = 5,
    ANY_FIELD_KVLIST = 6
};

/* ---- reading ---- */

static int decode_list(struct arena *a, struct bytes msg, struct ottl_value *ret)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes item;
    struct ottl_list *l = ottl_list_new(a);
    int e = l ? 0 : -ENOMEM;
    while (e == 0 && wire_each(&r, LIST_ITEMS, &item)) {
        struct ottl_value v = ottl_nil();
        e = ottl_value_decode(a, item, &v);
        if (e == 0)
            e = ottl_list_append(a, l, v);
    }
    *ret = (struct ottl_value){.kind = OTTL_LIST, .list = l};
    return e;
}

static int decode_map(struct arena *a, struct bytes msg, struct ottl_value *ret)
{
    *ret = (struct ottl_value){.kind = OTTL_MAP};
    return ottl_map_decode(a, msg, LIST_ITEMS, &ret->map);
}

int ottl_value_decode(struct arena *a, struct bytes any, struct ottl_value *ret)
{
    struct any_value v = any_value_read(any);
    switch (v.kind) {
    case ANY_EMPTY: *ret = ottl_nil(); return 0;
    case ANY_STRING: *ret = ottl_string(v.bytes); return 0;
    case ANY_BOOL: *ret = ottl_bool(v.b); return 0;
    case ANY_INT: *ret = ottl_int(v.i); return 0;
    case ANY_DOUBLE: *ret = ottl_double(v.d); return 0;
    case ANY_BYTES: *ret = (struct ottl_value){.kind = OTTL_BYTES, .bytes = v.bytes}; return 0;
    case ANY_ARRAY: return decode_list(a, v.bytes, ret);
    case ANY_KVLIST: return decode_map(a, v.bytes, ret);
    }
    return -EINVAL;
}

int ottl_map_decode(struct arena *a, struct bytes msg, uint32_t number, struct ottl_map **ret)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes field;
    struct ottl_map *m = ottl_map_new(a);
    int e = m ? 0 : -ENOMEM;
    while (e == 0 && wire_each(&r, number, &field)) {
        struct key_value kv = key_value_read(field);
        struct ottl_value v = ottl_nil();
        e = ottl_value_decode(a, kv.value, &v);
        if (e == 0)
            e = ottl_map_append(a, m, kv.key, v);
    }
    *ret = m;
    return e;
}

/* ---- writing ---- */

static int encode_value(const struct ottl_value *v, int depth, struct buf *out);

int ottl_string_encode(struct bytes s, uint32_t number, struct buf *out)
{
    size_t mark;
    if (utf8_valid(s))
        return wire_put_bytes(out, number, s);
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = utf8_append(s, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int encode_list(const struct ottl_list *l, int depth, struct buf *out)
{
    size_t mark, item;
    int r = wire_begin(out, ANY_FIELD_ARRAY, &mark);
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        r = wire_begin(out, LIST_ITEMS, &item);
        if (r == 0)
            r = encode_value(&l->items[i], depth, out);
        if (r == 0)
            r = wire_end(out, item);
    }
    return r < 0 ? r : wire_end(out, mark);
}

static int encode_entry(const struct ottl_entry *e, uint32_t number, int depth, struct buf *out)
{
    size_t entry, value;
    int r = wire_begin(out, number, &entry);
    if (r == 0 && e->key.len)
        r = ottl_string_encode(e->key, KV_KEY, out);
    if (r == 0)
        r = wire_begin(out, KV_VALUE, &value);
    if (r == 0)
        r = encode_value(&e->value, depth, out);
    if (r == 0)
        r = wire_end(out, value);
    return r < 0 ? r : wire_end(out, entry);
}

static int encode_entries(const struct ottl_map *m, uint32_t number, int depth, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n; i++)
        r = encode_entry(&m->items[i], number, depth, out);
    return r;
}

static int encode_map(const struct ottl_map *m, int depth, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, ANY_FIELD_KVLIST, &mark);
    if (r == 0)
        r = encode_entries(m, LIST_ITEMS, depth, out);
    return r < 0 ? r : wire_end(out, mark);
}

/* `depth`: lists and maps around the value. */
static int encode_value(const struct ottl_value *v, int depth, struct buf *out)
{
    struct any_value any = {ANY_EMPTY};
    if ((v->kind == OTTL_LIST || v->kind == OTTL_MAP) && depth == OTLP_MAX_DEPTH)
        return -EINVAL;
    switch (v->kind) {
    case OTTL_NIL: return 0;
    case OTTL_LIST: return encode_list(v->list, depth + 1, out);
    case OTTL_MAP: return encode_map(v->map, depth + 1, out);
    case OTTL_BOOL: any = (struct any_value){ANY_BOOL, .b = v->b}; break;
    case OTTL_INT: any = (struct any_value){ANY_INT, .i = v->i}; break;
    case OTTL_DOUBLE: any = (struct any_value){ANY_DOUBLE, .d = v->d}; break;
    case OTTL_STRING: return ottl_string_encode(v->bytes, ANY_FIELD_STRING, out);
    case OTTL_BYTES: any = (struct any_value){ANY_BYTES, .bytes = v->bytes}; break;
    default: return -EINVAL;
    }
    return any_value_write(&any, out);
}

int ottl_value_encode(const struct ottl_value *v, struct buf *out)
{
    return encode_value(v, 0, out);
}

int ottl_map_encode(const struct ottl_map *m, uint32_t number, struct buf *out)
{
    return encode_entries(m, number, 0, out);
}
