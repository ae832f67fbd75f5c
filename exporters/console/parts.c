/* JSON as Python's json.dumps writes it. */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/secrets.h"
#include "agent/base/utf8.h"
#include "exporters/console/lines.h"
#include "proto/any_value.h"
#include "proto/json.h"
#include "proto/otlp_fields.h"

void line_text(struct lines *l, const char *text)
{
    if (l->error == 0)
        l->error = buf_append_str(l->out, text);
}

void line_bytes(struct lines *l, struct bytes text)
{
    if (l->error == 0)
        l->error = buf_append(l->out, text.data, text.len);
}

static uint8_t *put_unit(uint8_t *o, unsigned unit)
{
    uint8_t two[2] = {(uint8_t)(unit >> 8), (uint8_t)unit};
    *o++ = '\\';
    *o++ = 'u';
    encode_hex(bytes_of(two, 2), o);
    return o + 4;
}

static uint8_t *put_escape(uint8_t *o, uint8_t c)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return put_unit(o, c);
    *o++ = '\\';
    *o++ = (uint8_t)to[at - from];
    return o;
}

/* The code point of a well-formed sequence of `n` bytes. */
static unsigned code_point(const uint8_t *p, int n)
{
    unsigned c = n == 2 ? p[0] & 0x1fu : n == 3 ? p[0] & 0xfu : p[0] & 7u;
    for (int i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3fu);
    return c;
}

/* One character that is not printable ASCII, a quote or a backslash; at most 12 bytes. Returns its
 * length in `s`. */
static size_t put_other(struct bytes s, uint8_t **o)
{
    int n = utf8_next(s);
    unsigned c = n > 1 ? code_point(s.data, n) : n == 1 ? s.data[0] : 0xfffd;
    if (n == 1) {
        *o = put_escape(*o, s.data[0]);
    } else if (c >= 0x10000) {
        *o = put_unit(*o, 0xd800 + ((c - 0x10000) >> 10));
        *o = put_unit(*o, 0xdc00 + (c & 0x3ff));
    } else {
        *o = put_unit(*o, c);
    }
    return (size_t)abs(n);
}

static bool is_plain(uint8_t c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

static int append_string(struct bytes s, struct buf *out)
{
    int r = buf_reserve(out, s.len + 2);
    size_t i = 0;
    if (r < 0)
        return r;
    out->data[out->len++] = '"';
    while (i < s.len) {
        size_t run = i;
        while (run < s.len && is_plain(s.data[run]))
            run++;
        r = buf_append(out, s.data + i, run - i);
        i = run;
        if (r == 0)
            r = buf_reserve(out, 12 + 1);
        if (r < 0)
            return r;
        uint8_t *o = buf_tail(out);
        if (i < s.len)
            i += put_other(bytes_of(s.data + i, s.len - i), &o);
        buf_commit(out, (size_t)(o - buf_tail(out)));
    }
    return buf_putc(out, '"');
}

static int append_redacted(struct bytes s, struct buf *out)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    int r = clean ? secrets_redact(s, clean) : -ENOMEM;
    return r < 0 ? r : append_string(buf_bytes(clean), out);
}

void line_string(struct lines *l, struct bytes s)
{
    if (l->error == 0)
        l->error =
            l->redact && secrets_found(s) ? append_redacted(s, l->out) : append_string(s, l->out);
}

void line_uint(struct lines *l, uint64_t v)
{
    char digits[20];
    line_bytes(l, bytes_of(digits, encode_uint(v, digits)));
}

void line_int(struct lines *l, int64_t v)
{
    char digits[20];
    line_bytes(l, bytes_of(digits, encode_int(v, digits)));
}

void line_double(struct lines *l, double v)
{
    char digits[DOUBLE_MAX_BYTES];
    line_bytes(l, bytes_of(digits, double_text(v, DOUBLE_PYTHON, digits)));
}

void line_id(struct lines *l, struct bytes id, size_t digits)
{
    char text[32];
    memset(text, '0', sizeof(text));
    if (2 * id.len == digits)
        encode_hex(id, text);
    line_text(l, "\"0x");
    line_bytes(l, bytes_of(text, digits));
    line_text(l, "\"");
}

/* A number of an attribute, unless all of it is a secret. */
static void put_any_number(struct lines *l, struct any_value v)
{
    char digits[DOUBLE_MAX_BYTES];
    size_t n =
        v.kind == ANY_INT ? encode_int(v.i, digits) : double_text(v.d, DOUBLE_PYTHON, digits);
    if (v.kind == ANY_INT ? secrets_int(v.i) : secrets_double(v.d))
        line_string(l, bytes_str(SECRET_PLACEHOLDER));
    else
        line_bytes(l, bytes_of(digits, n));
}

/* What base64 hides anybody can read. */
static void put_base64(struct lines *l, struct bytes b)
{
    _cleanup_buf_ struct buf *clean = NULL;
    if (l->redact && secrets_found(b)) {
        clean = buf_new(0);
        const int r = clean ? secrets_redact(b, clean) : -ENOMEM;
        if (r < 0 && l->error == 0)
            l->error = r;
        b = r < 0 ? (struct bytes){0} : buf_bytes(clean);
    }
    size_t n = base64_size(b.len);
    line_text(l, "\"");
    if (l->error == 0)
        l->error = buf_reserve(l->out, n);
    if (l->error == 0) {
        encode_base64(b, buf_tail(l->out));
        buf_commit(l->out, n);
    }
    line_text(l, "\"");
}

static void put_list(struct lines *l, struct bytes list)
{
    struct wire_reader r = wire_reader(list);
    struct bytes item;
    line_text(l, "[");
    for (bool first = true; wire_each(&r, 1, &item); first = false) {
        line_text(l, first ? "" : ", ");
        line_value(l, item);
    }
    line_text(l, "]");
}

void line_value(struct lines *l, struct bytes any)
{
    struct any_value v = any_value_read(any);
    switch (v.kind) {
    case ANY_EMPTY: line_text(l, "null"); break;
    case ANY_STRING: line_string(l, v.bytes); break;
    case ANY_BOOL: line_text(l, v.b ? "true" : "false"); break;
    case ANY_INT:
    case ANY_DOUBLE: put_any_number(l, v); break;
    case ANY_BYTES: put_base64(l, v.bytes); break;
    case ANY_ARRAY: put_list(l, v.bytes); break;
    case ANY_KVLIST: line_attributes(l, v.bytes, 1, "{}"); break;
    }
}

void line_attributes(struct lines *l, struct bytes msg, uint32_t field, const char *empty)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes kv;
    bool first = true;
    for (; wire_each(&r, field, &kv); first = false) {
        struct key_value pair = key_value_read(kv);
        line_text(l, first ? "{" : ", ");
        line_string(l, pair.key);
        line_text(l, ": ");
        line_value(l, pair.value);
    }
    line_text(l, first ? empty : "}");
}

void line_resource(struct lines *l, struct bytes entry)
{
    line_text(l, "{\"attributes\": ");
    line_attributes(l, wire_bytes(entry, ENTRY_HEAD), RESOURCE_ATTRIBUTES, "{}");
    line_text(l, ", \"schema_url\": ");
    line_string(l, wire_bytes(entry, ENTRY_SCHEMA_URL));
    line_text(l, "}");
}
