/* Objects of console JSON by their tables. Absent, null and zero are the same for most members. */
#include <endian.h>
#include <errno.h>

#include "proto/console_map.h"
#include "proto/json_number.h"
#include "proto/wire.h"

/* ---- numbers ---- */

static int fail_number(struct console_mapper *m, struct bytes at, const char *what)
{
    return json_scan_fail(&m->scan, at.data, "expected %s, got %.*s", what,
                          (int)(at.len < 40 ? at.len : 40), (const char *)at.data);
}

static int read_uint(struct console_mapper *m, uint64_t max, uint64_t *ret)
{
    struct bytes text;
    int r = json_scan_number(&m->scan, &text);
    if (r == 0 && json_parse_uint(text, max, ret) < 0)
        return fail_number(
            m, text, max == UINT32_MAX ? "an unsigned 32-bit number" : "an unsigned 64-bit number");
    return r;
}

static int read_double(struct console_mapper *m, double *ret)
{
    struct bytes text;
    int r = json_scan_number(&m->scan, &text);
    if (r == 0 && json_parse_double(text, ret) < 0)
        return fail_number(m, text, "a number that a double holds");
    return r;
}

static int put_uint(struct console_mapper *m, const struct console_member *f)
{
    uint64_t v = 0;
    int r = read_uint(m, f->what == WHAT_FIXED64 ? UINT64_MAX : UINT32_MAX, &v);
    if (r < 0 || v == 0)
        return r;
    switch (f->what) {
    case WHAT_FIXED64: return wire_put_fixed64(m->record, f->number, v);
    case WHAT_FIXED32: return wire_put_fixed32(m->record, f->number, (uint32_t)v);
    default: return wire_put_uint(m->record, f->number, v);
    }
}

static int put_sint(struct console_mapper *m, const struct console_member *f)
{
    struct bytes text;
    int64_t v = 0;
    int r = json_scan_number(&m->scan, &text);
    if (r == 0 && json_parse_int(text, INT32_MIN, INT32_MAX, &v) < 0)
        return fail_number(m, text, "a 32-bit number");
    uint32_t zigzag = (uint32_t)v << 1 ^ (uint32_t)(v >> 63);
    return r == 0 && v ? wire_put_uint(m->record, f->number, zigzag) : r;
}

static int put_double(struct console_mapper *m, const struct console_member *f)
{
    double v = 0;
    int r = read_double(m, &v);
    return r == 0 ? wire_put_double(m->record, f->number, v) : r;
}

static int put_bool(struct console_mapper *m, const struct console_member *f)
{
    bool v = json_scan_peek(&m->scan) == 't';
    int r = json_scan_word(&m->scan, v ? "true" : "false");
    return r == 0 && v ? wire_put_uint(m->record, f->number, 1) : r;
}

/* An integer, or a double when it has a point, an exponent or more than 64 bits. */
static int put_number(struct console_mapper *m, const struct console_member *f)
{
    struct bytes text;
    int64_t i;
    double d;
    uint8_t next = json_scan_peek(&m->scan);
    if (next == 't' || next == 'f') {
        int r = json_scan_word(&m->scan, next == 't' ? "true" : "false");
        return r == 0 ? wire_put_fixed64(m->record, f->number, next == 't') : r;
    }
    int r = json_scan_number(&m->scan, &text);
    if (r < 0)
        return r;
    if (json_parse_int(text, INT64_MIN, INT64_MAX, &i) == 0)
        return wire_put_fixed64(m->record, f->number, (uint64_t)i);
    if (json_parse_double(text, &d) < 0)
        return fail_number(m, text, "a number that a double holds");
    return wire_put_double(m->record, f->other, d);
}

/* ---- packed numbers ---- */

static int put_element(struct console_mapper *m, const struct console_member *f)
{
    uint64_t v = 0;
    double d;
    int r = f->what == WHAT_DOUBLES ? read_double(m, &d) : read_uint(m, UINT64_MAX, &v);
    if (r < 0)
        return r;
    if (f->what == WHAT_UINTS)
        return wire_put_varint(m->record, v);
    if (f->what == WHAT_DOUBLES)
        memcpy(&v, &d, sizeof(v));
    v = htole64(v);
    return buf_append(m->record, &v, sizeof(v));
}

static int put_packed(struct console_mapper *m, const struct console_member *f)
{
    size_t before = m->record->len, mark = 0;
    bool first = true;
    int r = json_scan_char(&m->scan, '[');
    if (r == 0)
        r = wire_begin(m->record, f->number, &mark);
    while (r == 0 && (r = json_scan_element(&m->scan, &first)) > 0)
        r = put_element(m, f);
    if (r == 0 && m->record->len > mark)
        return wire_end(m->record, mark);
    buf_truncate(m->record, before);
    return r;
}

/* ---- ids and times ---- */

static int put_id(struct console_mapper *m, const struct console_member *f)
{
    static const uint8_t zeros[16];
    uint8_t id[16];
    struct bytes text;
    bool quoted = json_scan_peek(&m->scan) == '"';
    int r = quoted ? json_scan_string(&m->scan, &text) : json_scan_number(&m->scan, &text);
    if (r < 0)
        return r;
    r = quoted ? console_hex_id(text, f->size, id) : console_decimal_id(text, f->size, id);
    if (r < 0)
        return fail_number(m, text, f->size == 16 ? "an id of 16 bytes" : "an id of 8 bytes");
    return memcmp(id, zeros, f->size) ? wire_put_bytes(m->record, f->number, bytes_of(id, f->size))
                                      : 0;
}

static int put_time(struct console_mapper *m, const struct console_member *f)
{
    struct bytes text;
    uint64_t ns = 0;
    int r;
    if (json_scan_peek(&m->scan) == '"') {
        r = json_scan_string(&m->scan, &text);
        if (r == 0 && console_time(text, &ns) < 0)
            return fail_number(m, text, "a time such as 2026-01-31T23:59:59.123456Z");
    } else {
        r = read_uint(m, UINT64_MAX, &ns);
    }
    return r == 0 && ns ? wire_put_fixed64(m->record, f->number, ns) : r;
}

/* ---- objects ---- */

int console_message(struct console_mapper *m, const struct console_shape *shape, uint8_t number)
{
    size_t mark;
    int r = wire_begin(m->record, number, &mark);
    if (r == 0)
        r = console_object(m, shape, NULL);
    return r == 0 ? wire_end(m->record, mark) : r;
}

static int put_any(struct console_mapper *m, const struct console_member *f)
{
    size_t mark;
    int r = wire_begin(m->record, f->number, &mark);
    if (r == 0)
        r = console_any(m);
    return r == 0 ? wire_end(m->record, mark) : r;
}

static int put_messages(struct console_mapper *m, const struct console_member *f)
{
    bool first = true;
    int r = json_scan_char(&m->scan, '[');
    while (r == 0 && (r = json_scan_element(&m->scan, &first)) > 0)
        r = console_message(m, f->shape, f->number);
    return r;
}

static int read_member(struct console_mapper *m, const struct console_member *f)
{
    if (f->what != WHAT_ANY && json_scan_peek(&m->scan) == 'n')
        return json_scan_word(&m->scan, "null");
    switch (f->what) {
    case WHAT_STRING: return console_string(m, f->number);
    case WHAT_ID: return put_id(m, f);
    case WHAT_TIME: return put_time(m, f);
    case WHAT_ATTRIBUTES: return console_attributes(m, f->number);
    case WHAT_ANY: return put_any(m, f);
    case WHAT_UINT:
    case WHAT_FIXED32:
    case WHAT_FIXED64: return put_uint(m, f);
    case WHAT_SINT: return put_sint(m, f);
    case WHAT_DOUBLE: return put_double(m, f);
    case WHAT_BOOL: return put_bool(m, f);
    case WHAT_NUMBER: return put_number(m, f);
    case WHAT_FIXED64S:
    case WHAT_DOUBLES:
    case WHAT_UINTS: return put_packed(m, f);
    case WHAT_MESSAGE: return console_message(m, f->shape, f->number);
    case WHAT_MESSAGES: return put_messages(m, f);
    case WHAT_INLINE: return console_object(m, f->shape, NULL);
    case WHAT_OWN: return f->read(m);
    }
    return -EINVAL;
}

/* Members come mostly in the order of the table, so the search starts behind the last one. */
static int find_member(const struct console_shape *shape, struct bytes key, int last)
{
    for (unsigned k = 1; k <= shape->n; k++) {
        unsigned i = ((unsigned)last + k) % shape->n;
        if (bytes_eq_str(key, shape->members[i].key))
            return (int)i;
    }
    return -1;
}

int console_object(struct console_mapper *m, const struct console_shape *shape, uint32_t *ret_seen)
{
    json_scan_peek(&m->scan);
    const uint8_t *start = m->scan.p;
    struct bytes key;
    uint32_t seen = 0;
    bool first = true;
    int last = -1, r = json_scan_char(&m->scan, '{');
    while (r == 0 && (r = json_scan_key(&m->scan, &first, &key)) > 0) {
        int i = find_member(shape, key, last);
        if (i < 0) {
            r = json_scan_skip(&m->scan);
            continue;
        }
        if (shape->members[i].what == WHAT_NUMBER || json_scan_peek(&m->scan) != 'n')
            seen |= 1u << i;
        r = read_member(m, &shape->members[i]);
        last = i;
    }
    if (r == 0 && (seen & shape->required) != shape->required)
        return json_scan_fail(&m->scan, start, "expected \"%s\" in this object",
                              shape->members[__builtin_ctz(shape->required & ~seen)].key);
    if (ret_seen)
        *ret_seen = seen;
    return r;
}
