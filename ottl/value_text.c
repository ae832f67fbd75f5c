/* The text of values: strings as they are, everything else as Go's JSON encoder writes it. */
#include <errno.h>
#include <math.h>

#include "agent/base/encode.h"
#include "agent/base/utf8.h"
#include "ottl/civil.h"
#include "ottl/value.h"
#include "proto/json.h"

static int put_json(const struct ottl_value *v, struct arena *a, struct buf *out);

/* ---- strings ---- */

static int put_escaped(struct bytes s, int len, struct buf *out)
{
    switch (s.data[0]) {
    case '"':
    case '\\': return buf_printf(out, "\\%c", s.data[0]);
    case '\n': return buf_append_str(out, "\\n");
    case '\r': return buf_append_str(out, "\\r");
    case '\t': return buf_append_str(out, "\\t");
    default: break;
    }
    if (len < 0)
        return buf_append_str(out, "\\ufffd");
    if (len == 3)
        return buf_printf(out, "\\u202%d", s.data[2] - 0xa0);
    return buf_printf(out, "\\u%04x", s.data[0]);
}

/* What has to be escaped: also what HTML and JavaScript (U+2028, U+2029) would trip over. */
static bool needs_escape(struct bytes s, int len)
{
    uint8_t c = s.data[0];
    if (len == 1)
        return c < 0x20 || (c < 0x7f && strchr("\"\\<>&", c));
    return len < 0 || (len == 3 && c == 0xe2 && s.data[1] == 0x80 && (s.data[2] & 0xfe) == 0xa8);
}

static int put_string(struct bytes s, struct buf *out)
{
    int r = buf_putc(out, '"');
    size_t from = 0, i = 0;
    while (r == 0 && i < s.len) {
        struct bytes rest = bytes_of(s.data + i, s.len - i);
        int len = rest.data[0] < 0x80 ? 1 : utf8_next(rest);
        size_t next = i + (size_t)(len < 0 ? -len : len);
        if (needs_escape(rest, len)) {
            r = buf_append(out, s.data + from, i - from);
            if (r == 0)
                r = put_escaped(rest, len, out);
            from = next;
        }
        i = next;
    }
    if (r == 0)
        r = buf_append(out, s.data + from, s.len - from);
    return r < 0 ? r : buf_putc(out, '"');
}

static int put_base64(struct bytes b, struct buf *out)
{
    if (b.len == 0)
        return buf_append_str(out, "null");
    int r = buf_reserve(out, base64_size(b.len) + 2);
    if (r < 0)
        return r;
    buf_putc(out, '"');
    encode_base64(b, buf_tail(out));
    buf_commit(out, base64_size(b.len));
    return buf_putc(out, '"');
}

/* ---- lists and maps ---- */

static int put_list(const struct ottl_list *l, struct arena *a, struct buf *out)
{
    int r = buf_putc(out, '[');
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        if (i > 0)
            r = buf_putc(out, ',');
        if (r == 0)
            r = put_json(&l->items[i], a, out);
    }
    return r < 0 ? r : buf_putc(out, ']');
}

/* By key; of equal keys the last one first: that is the one shown. */
static int by_key(const void *a, const void *b)
{
    const struct ottl_entry *x = *(const struct ottl_entry *const *)a;
    const struct ottl_entry *y = *(const struct ottl_entry *const *)b;
    size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
    int d = n ? memcmp(x->key.data, y->key.data, n) : 0;
    if (d == 0)
        d = (x->key.len > y->key.len) - (x->key.len < y->key.len);
    return d ? d : x > y ? -1 : 1;
}

static int put_entries(const struct ottl_entry *const *e, size_t n, struct arena *a,
                       struct buf *out)
{
    int r = buf_putc(out, '{');
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (i > 0 && bytes_eq(e[i]->key, e[i - 1]->key))
            continue;
        if (i > 0)
            r = buf_putc(out, ',');
        if (r == 0)
            r = put_string(e[i]->key, out);
        if (r == 0)
            r = buf_putc(out, ':');
        if (r == 0)
            r = put_json(&e[i]->value, a, out);
    }
    return r < 0 ? r : buf_putc(out, '}');
}

static int put_map(const struct ottl_map *m, struct arena *a, struct buf *out)
{
    const struct ottl_entry **sorted = arena_alloc(a, (m->n + 1) * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->items[i];
    qsort(sorted, m->n, sizeof(*sorted), by_key);
    return put_entries(sorted, m->n, a, out);
}

/* ---- the rest ---- */

static int put_double(double d, struct buf *out)
{
    char text[DOUBLE_MAX_BYTES];
    if (!isfinite(d))
        return -EINVAL;
    return buf_append(out, text, double_text(d, DOUBLE_JSON, text));
}

static int put_time(int64_t ns, struct buf *out)
{
    char text[CIVIL_RFC3339_BYTES];
    int n = (int)civil_rfc3339(ns, text);
    return buf_printf(out, "\"%.*s\"", n, text);
}

/* An id is an array of bytes to Go's encoder. */
static int put_id(struct bytes id, struct buf *out)
{
    int r = buf_putc(out, '[');
    for (size_t i = 0; r == 0 && i < id.len; i++)
        r = buf_printf(out, i ? ",%u" : "%u", id.data[i]);
    return r < 0 ? r : buf_putc(out, ']');
}

static int put_json(const struct ottl_value *v, struct arena *a, struct buf *out)
{
    switch (v->kind) {
    case OTTL_NIL: return buf_append_str(out, "null");
    case OTTL_BOOL: return buf_append_str(out, v->b ? "true" : "false");
    case OTTL_INT:
    case OTTL_DURATION: return buf_printf(out, "%lld", (long long)v->i);
    case OTTL_DOUBLE: return put_double(v->d, out);
    case OTTL_STRING: return put_string(v->bytes, out);
    case OTTL_BYTES: return put_base64(v->bytes, out);
    case OTTL_LIST: return put_list(v->list, a, out);
    case OTTL_MAP: return put_map(v->map, a, out);
    case OTTL_TIME: return put_time(v->i, out);
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID: return put_id(v->bytes, out);
    case OTTL_ITEMS: return buf_append_str(out, "{}");
    }
    return -EINVAL;
}

static int hex_text(struct arena *a, struct bytes b, struct bytes *ret)
{
    char *p = arena_alloc(a, 2 * b.len + 1);
    if (!p)
        return -ENOMEM;
    encode_hex(b, p);
    *ret = bytes_of(p, 2 * b.len);
    return 0;
}

static int json_text_of(struct arena *a, const struct ottl_value *v, struct bytes *ret)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out)
        return -ENOMEM;
    int r = put_json(v, a, out);
    if (r < 0)
        return r;
    char *p = arena_strndup(a, (const char *)out->data, out->len);
    *ret = bytes_of(p, out->len);
    return p ? 0 : -ENOMEM;
}

int ottl_value_text(struct arena *a, const struct ottl_value *v, struct bytes *ret, bool *ret_nil)
{
    *ret = bytes_of("", 0);
    *ret_nil = v->kind == OTTL_NIL;
    switch (v->kind) {
    case OTTL_NIL: return 0;
    case OTTL_STRING: *ret = v->bytes; return 0;
    case OTTL_BYTES: return hex_text(a, v->bytes, ret);
    case OTTL_BOOL: *ret = bytes_str(v->b ? "true" : "false"); return 0;
    default: return json_text_of(a, v, ret);
    }
}
