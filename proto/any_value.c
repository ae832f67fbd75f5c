#include "proto/any_value.h"

#include <errno.h>
#include <math.h>

#include "agent/base/encode.h"
#include "proto/json.h"
#include "proto/wire_skip.h"

enum {
    VALUE_STRING = 1,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_DOUBLE,
    VALUE_ARRAY,
    VALUE_KVLIST,
    VALUE_BYTES
};
enum { LIST_ITEMS = 1, KV_KEY = 1, KV_VALUE = 2 };

struct any_value any_value_read(struct bytes any)
{
    struct any_value v = {ANY_EMPTY};
    struct wire_reader r = wire_reader(any);
    struct wire_field f;
    while (wire_next(&r, &f) > 0)
        switch (f.number) {
        case VALUE_STRING: v = (struct any_value){ANY_STRING, .bytes = f.bytes}; break;
        case VALUE_BOOL: v = (struct any_value){ANY_BOOL, .b = f.value != 0}; break;
        case VALUE_INT: v = (struct any_value){ANY_INT, .i = (int64_t)f.value}; break;
        case VALUE_DOUBLE: v = (struct any_value){ANY_DOUBLE, .d = wire_double(f.value)}; break;
        case VALUE_ARRAY: v = (struct any_value){ANY_ARRAY, .bytes = f.bytes}; break;
        case VALUE_KVLIST: v = (struct any_value){ANY_KVLIST, .bytes = f.bytes}; break;
        case VALUE_BYTES: v = (struct any_value){ANY_BYTES, .bytes = f.bytes}; break;
        default: break;
        }
    return v;
}

int any_value_write(const struct any_value *v, struct buf *out)
{
    switch (v->kind) {
    case ANY_EMPTY: return 0;
    case ANY_STRING: return wire_put_bytes(out, VALUE_STRING, v->bytes);
    case ANY_BOOL: return wire_put_uint(out, VALUE_BOOL, v->b);
    case ANY_INT: return wire_put_uint(out, VALUE_INT, (uint64_t)v->i);
    case ANY_DOUBLE: return wire_put_double(out, VALUE_DOUBLE, v->d);
    case ANY_ARRAY: return wire_put_bytes(out, VALUE_ARRAY, v->bytes);
    case ANY_KVLIST: return wire_put_bytes(out, VALUE_KVLIST, v->bytes);
    case ANY_BYTES: return wire_put_bytes(out, VALUE_BYTES, v->bytes);
    }
    return -EINVAL;
}

struct key_value key_value_read(struct bytes kv)
{
    struct key_value ret = {bytes_of("", 0), bytes_of("", 0)};
    struct wire_reader r = wire_reader(kv);
    struct wire_field f;
    while (wire_next(&r, &f) > 0)
        if (f.number == KV_KEY)
            ret.key = f.bytes;
        else if (f.number == KV_VALUE)
            ret.value = f.bytes;
    return ret;
}

/* Whether the KeyValue at `p`, of `len` bytes, has another key. Most keys are short and stand
 * first, and are looked at in place; keys of one length often begin alike, so the last byte is
 * looked at before the others. */
static inline bool is_other(const uint8_t *p, size_t len, struct bytes key)
{
    if (len < 2 || p[0] != (KV_KEY << 3 | WIRE_LEN) || p[1] >= 0x80)
        return false;
    if (p[1] != key.len || len < key.len + 2)
        return true;
    return key.len &&
           (p[1 + key.len] != key.data[key.len - 1] || memcmp(p + 2, key.data, key.len) != 0);
}

bool key_value_seek(struct wire_reader *r, uint32_t number, struct bytes key, struct key_value *ret,
                    uint32_t *ret_passed)
{
    const uint8_t *const end = r->end, *next;
    const unsigned tag = number << 3 | WIRE_LEN;
    uint32_t passed = 0;
    for (const uint8_t *p = r->p; p != end && (next = wire_skip(p, end)); p = next, passed++) {
        if (*p != tag || (p[1] < 0x80 && is_other(p + 2, (size_t)(next - p) - 2, key)))
            continue;
        struct wire_field f;
        r->p = p;
        wire_next(r, &f);
        const struct key_value kv = key_value_read(f.bytes);
        if (!bytes_eq(kv.key, key))
            continue;
        *ret = kv;
        *ret_passed = passed;
        return true;
    }
    r->p = end;
    return false;
}

/* ---- text ---- */

static int put_base64(struct bytes b, struct buf *out)
{
    int r = buf_reserve(out, base64_size(b.len));
    if (r == 0 && b.len) {
        encode_base64(b, buf_tail(out));
        buf_commit(out, base64_size(b.len));
    }
    return r;
}

static int put_double(double d, struct buf *out)
{
    char text[DOUBLE_MAX_BYTES];
    return buf_append(out, text, double_text(d, DOUBLE_ECMA, text));
}

/* Length of what has to be escaped at the front of `s` in JSON as Go writes it; 0 = nothing. */
static size_t escape_length(struct bytes s)
{
    if (s.data[0] < 0x20 || s.data[0] == '"' || s.data[0] == '\\')
        return 1;
    /* U+2028 and U+2029 end a line in JavaScript */
    bool separator =
        s.len >= 3 && s.data[0] == 0xe2 && s.data[1] == 0x80 && (s.data[2] & 0xfe) == 0xa8;
    return separator ? 3 : 0;
}

static int put_escape(struct bytes s, struct buf *out)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    uint8_t c = s.data[0];
    if (c == 0xe2)
        return buf_printf(out, "\\u202%d", s.data[2] - 0xa0);
    const char *known = c ? strchr(from, c) : NULL;
    return known ? buf_printf(out, "\\%c", to[known - from]) : buf_printf(out, "\\u%04x", c);
}

static int put_string(struct bytes s, struct buf *out)
{
    int r = buf_putc(out, '"');
    size_t from = 0, i = 0;
    while (r == 0 && i < s.len) {
        struct bytes rest = bytes_of(s.data + i, s.len - i);
        size_t n = escape_length(rest);
        if (n) {
            r = buf_append(out, s.data + from, i - from);
            if (r == 0)
                r = put_escape(rest, out);
            from = i + n;
        }
        i += n ? n : 1;
    }
    if (r == 0)
        r = buf_append(out, s.data + from, s.len - from);
    return r < 0 ? r : buf_putc(out, '"');
}

static int put_json(struct bytes any, struct buf *out);

static int put_array(struct bytes list, struct buf *out)
{
    struct wire_reader r = wire_reader(list);
    struct bytes item;
    int e = buf_putc(out, '[');
    for (bool first = true; e == 0 && wire_each(&r, LIST_ITEMS, &item); first = false) {
        if (!first)
            e = buf_putc(out, ',');
        if (e == 0)
            e = put_json(item, out);
    }
    return e < 0 ? e : buf_putc(out, ']');
}

struct entry {
    struct key_value kv;
    size_t order;
};

/* By key; of equal keys the last one first. */
static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t n = x->kv.key.len < y->kv.key.len ? x->kv.key.len : y->kv.key.len;
    int d = n ? memcmp(x->kv.key.data, y->kv.key.data, n) : 0;
    if (d == 0 && x->kv.key.len != y->kv.key.len)
        d = x->kv.key.len < y->kv.key.len ? -1 : 1;
    return d ? d : x->order > y->order ? -1 : 1;
}

static int put_entries(struct entry *entries, size_t n, struct buf *out)
{
    int r = buf_putc(out, '{');
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (i > 0 && bytes_eq(entries[i].kv.key, entries[i - 1].kv.key))
            continue;
        if (i > 0)
            r = buf_putc(out, ',');
        if (r == 0)
            r = put_string(entries[i].kv.key, out);
        if (r == 0)
            r = buf_putc(out, ':');
        if (r == 0)
            r = put_json(entries[i].kv.value, out);
    }
    return r < 0 ? r : buf_putc(out, '}');
}

static int put_map(struct bytes list, struct buf *out)
{
    struct wire_reader r = wire_reader(list);
    struct bytes item;
    size_t n = 0;
    while (wire_each(&r, LIST_ITEMS, &item))
        n++;
    _cleanup_free_ struct entry *entries = malloc((n + 1) * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    r = wire_reader(list);
    for (size_t i = 0; i < n && wire_each(&r, LIST_ITEMS, &item); i++)
        entries[i] = (struct entry){key_value_read(item), i};
    qsort(entries, n, sizeof(*entries), by_key);
    return put_entries(entries, n, out);
}

static int put_quoted_base64(struct bytes b, struct buf *out)
{
    if (b.len == 0)
        return buf_append_str(out, "null");
    int r = buf_putc(out, '"');
    if (r == 0)
        r = put_base64(b, out);
    return r < 0 ? r : buf_putc(out, '"');
}

/* JSON of a value inside a map or list; -EDOM when a number has none. */
static int put_json(struct bytes any, struct buf *out)
{
    struct any_value v = any_value_read(any);
    switch (v.kind) {
    case ANY_EMPTY: return buf_append_str(out, "null");
    case ANY_STRING: return put_string(v.bytes, out);
    case ANY_BOOL: return buf_append_str(out, v.b ? "true" : "false");
    case ANY_INT: return buf_printf(out, "%lld", (long long)v.i);
    case ANY_DOUBLE: return isfinite(v.d) ? put_double(v.d, out) : -EDOM;
    case ANY_ARRAY: return put_array(v.bytes, out);
    case ANY_KVLIST: return put_map(v.bytes, out);
    case ANY_BYTES: return put_quoted_base64(v.bytes, out);
    }
    return -EINVAL;
}

int any_value_text(struct bytes any, struct buf *out)
{
    struct any_value v = any_value_read(any);
    size_t before = out->len;
    switch (v.kind) {
    case ANY_EMPTY: return 0;
    case ANY_STRING: return buf_append(out, v.bytes.data, v.bytes.len);
    case ANY_DOUBLE: return put_double(v.d, out);
    case ANY_BYTES: return put_base64(v.bytes, out);
    default: break;
    }
    int r = put_json(any, out);
    if (r == -EDOM) {
        buf_truncate(out, before);
        return 0;
    }
    return r;
}
