#include "ottl/format.h"

#include <errno.h>
#include <math.h>

#include "agent/base/duration.h"
#include "agent/base/encode.h"
#include "agent/base/utf8.h"
#include "ottl/civil.h"
#include "proto/json.h"

enum { MOST_WIDTH = 1000000 };

struct spec {
    bool plus, minus, sharp, space, zero;
    bool has_width, has_precision;
    int width, precision;
    char verb;
};

static int put_value(const struct spec *s, const struct ottl_value *v, struct buf *out);

/* ---- padding ---- */

static size_t count_chars(struct bytes s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += (s.data[i] & 0xc0) != 0x80;
    return n;
}

static int put_many(char c, size_t n, struct buf *out)
{
    int r = 0;
    for (; r == 0 && n > 0; n--)
        r = buf_putc(out, c);
    return r;
}

/* To the width, with zeros when `zeros`. */
static int put_padded(const struct spec *s, struct bytes text, bool zeros, struct buf *out)
{
    size_t chars = count_chars(text), width = s->has_width ? (size_t)s->width : 0;
    size_t pad = width > chars ? width - chars : 0;
    int r = s->minus ? 0 : put_many(zeros ? '0' : ' ', pad, out);
    if (r == 0)
        r = buf_append(out, text.data, text.len);
    return r < 0 || !s->minus ? r : put_many(' ', pad, out);
}

/* "%!d(string=x)" */
static int put_bad_verb(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    const struct spec plain = {.verb = 'v'};
    if (v->kind == OTTL_NIL)
        return buf_printf(out, "%%!%c(<nil>)", s->verb);
    int r = buf_printf(out, "%%!%c(%s=", s->verb, ottl_kind_name(v->kind));
    if (r == 0)
        r = put_value(&plain, v, out);
    return r < 0 ? r : buf_putc(out, ')');
}

/* ---- strings ---- */

static struct bytes cut_chars(struct bytes s, size_t chars)
{
    size_t i = 0;
    for (; i < s.len; i++)
        if ((s.data[i] & 0xc0) != 0x80 && chars-- == 0)
            break;
    return bytes_of(s.data, i);
}

static int put_escaped(uint8_t c, struct buf *out)
{
    static const char from[] = "\"\\\a\b\f\n\r\t\v", to[] = "\"\\abfnrtv";
    const char *known = c ? strchr(from, c) : NULL;
    if (known)
        return buf_printf(out, "\\%c", to[known - from]);
    return c < 0x20 || c == 0x7f ? buf_printf(out, "\\x%02x", c) : buf_putc(out, (char)c);
}

/* As a Go literal. */
static int quote(struct bytes s, struct buf *out)
{
    int r = buf_putc(out, '"');
    for (size_t i = 0, n; r == 0 && i < s.len; i += n) {
        struct bytes rest = bytes_of(s.data + i, s.len - i);
        int len = utf8_next(rest);
        n = len > 0 ? (size_t)len : 1;
        if (len < 0)
            r = buf_printf(out, "\\x%02x", rest.data[0]);
        else
            r = len == 1 ? put_escaped(rest.data[0], out) : buf_append(out, rest.data, n);
    }
    return r < 0 ? r : buf_putc(out, '"');
}

static int put_hex(const struct spec *s, struct bytes b, struct buf *out)
{
    size_t n = s->has_precision && (size_t)s->precision < b.len ? (size_t)s->precision : b.len;
    int r = s->sharp && n ? buf_append_str(out, s->verb == 'x' ? "0x" : "0X") : 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = buf_printf(out, s->verb == 'x' ? "%02x" : "%02X", b.data[i]);
    return r;
}

/* Verbs of strings and of what has a String() method. */
static int put_string(const struct spec *s, struct bytes text, const struct ottl_value *v,
                      struct buf *out)
{
    _cleanup_buf_ struct buf *made = buf_new(0);
    int r = made ? 0 : -ENOMEM;
    if (s->has_precision && s->verb != 'x' && s->verb != 'X')
        text = cut_chars(text, (size_t)s->precision);
    if (r < 0)
        return r;
    switch (s->verb) {
    case 'v':
    case 's': return put_padded(s, text, s->zero, out);
    case 'q': r = quote(text, made); break;
    case 'x':
    case 'X': r = put_hex(s, text, made); break;
    default: return put_bad_verb(s, v, out);
    }
    return r < 0 ? r : put_padded(s, buf_bytes(made), s->zero, out);
}

/* ---- integers ---- */

static int put_char_verb(const struct spec *s, int64_t i, struct buf *out)
{
    uint32_t c = i < 0 || i > 0x10ffff || (i >= 0xd800 && i < 0xe000) ? 0xfffd : (uint32_t)i;
    char text[8];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t k = n; k > 1; k--, c >>= 6)
        text[k - 1] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    return put_padded(s, bytes_of(text, n), false, out);
}

static unsigned base_of(char verb)
{
    return verb == 'b' ? 2 : verb == 'o' || verb == 'O' ? 8 : verb == 'x' || verb == 'X' ? 16 : 10;
}

static const char *prefix_of(const struct spec *s)
{
    if (s->verb == 'O')
        return "0o";
    if (!s->sharp)
        return "";
    return s->verb == 'x'   ? "0x"
           : s->verb == 'X' ? "0X"
           : s->verb == 'b' ? "0b"
           : s->verb == 'o' ? "0"
                            : "";
}

/* Digits of the magnitude, backwards; their number. */
static size_t put_digits(uint64_t v, unsigned base, bool upper, char *out)
{
    size_t n = 0;
    do {
        out[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
        v /= base;
    } while (v);
    return n;
}

static int put_int(const struct spec *s, int64_t i, struct buf *out)
{
    char digits[64], sign = i < 0 ? '-' : s->plus ? '+' : s->space ? ' ' : 0;
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    size_t n = put_digits(magnitude, base_of(s->verb), s->verb == 'X', digits);
    size_t least = s->has_precision ? (size_t)s->precision
                   : s->zero && !s->minus && s->has_width
                       ? (size_t)s->width - (sign && s->width ? 1 : 0)
                       : 0;
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!text)
        return -ENOMEM;
    int r = sign ? buf_putc(text, sign) : 0;
    if (r == 0 && !(s->has_precision && s->precision == 0 && i == 0))
        r = buf_append_str(text, prefix_of(s));
    else
        n = 0;
    if (r == 0)
        r = put_many('0', least > n ? least - n : 0, text);
    while (r == 0 && n > 0)
        r = buf_putc(text, digits[--n]);
    return r < 0 ? r : put_padded(s, buf_bytes(text), false, out);
}

static int put_int_value(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    switch (s->verb) {
    case 'v':
    case 'd':
    case 'b':
    case 'o':
    case 'O':
    case 'x':
    case 'X': return put_int(s, v->i, out);
    case 'c': return put_char_verb(s, v->i, out);
    case 'U': return buf_printf(out, "U+%04llX", (unsigned long long)v->i);
    case 'q': {
        const struct spec plain = {.verb = 'c'};
        int r = buf_putc(out, '\'');
        if (r == 0)
            r = put_char_verb(&plain, v->i, out);
        return r < 0 ? r : buf_putc(out, '\'');
    }
    default: return put_bad_verb(s, v, out);
    }
}

/* ---- floats ---- */

static size_t double_digits(const struct spec *s, double d, char *text, size_t size)
{
    char format[] = "%.*?";
    bool shortest = !s->has_precision && (s->verb == 'v' || s->verb == 'g' || s->verb == 'G');
    if (shortest || !isfinite(d))
        return double_text(d, DOUBLE_GO, text);
    format[3] = s->verb == 'v' ? 'g' : s->verb;
    int n = snprintf(text, size, format, s->has_precision ? s->precision : 6, d);
    return (size_t)n < size ? (size_t)n : size - 1;
}

static int put_double(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    char text[512];
    if (!s->verb || !strchr("vgGeEfF", s->verb))
        return put_bad_verb(s, v, out);
    struct spec own = *s;
    own.precision = own.precision > 100 ? 100 : own.precision;
    size_t n = double_digits(&own, v->d, text + 1, sizeof(text) - 1);
    char *p = text + 1;
    if (*p != '-' && *p != '+' && (s->plus || s->space)) {
        *--p = s->plus ? '+' : ' ';
        n++;
    }
    if (*p == '+' && !s->plus && !isinf(v->d))
        p++, n--;
    if (!s->zero || s->minus || !isfinite(v->d))
        return put_padded(s, bytes_of(p, n), false, out);
    bool sign = *p == '-' || *p == '+' || *p == ' ';
    int r = sign ? buf_putc(out, *p) : 0;
    own.width = own.width > 0 ? own.width - sign : 0;
    return r < 0 ? r : put_padded(&own, bytes_of(p + sign, n - sign), true, out);
}

/* ---- lists, maps, bytes ---- */

static int put_list(const struct spec *s, const struct ottl_list *l, struct buf *out)
{
    int r = buf_putc(out, '[');
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        if (i > 0)
            r = buf_putc(out, ' ');
        if (r == 0)
            r = put_value(s, &l->items[i], out);
    }
    return r < 0 ? r : buf_putc(out, ']');
}

static int put_map(const struct spec *s, const struct ottl_map *m, struct buf *out)
{
    int r = buf_append_str(out, "map[");
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        struct ottl_value key = ottl_string(m->items[i].key);
        if (i > 0)
            r = buf_putc(out, ' ');
        if (r == 0)
            r = put_value(s, &key, out);
        if (r == 0)
            r = buf_putc(out, ':');
        if (r == 0)
            r = put_value(s, &m->items[i].value, out);
    }
    return r < 0 ? r : buf_putc(out, ']');
}

static int put_bytes(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    if (s->verb != 'v' && s->verb != 'd')
        return put_string(s, v->bytes, v, out);
    int r = buf_putc(out, '[');
    for (size_t i = 0; r == 0 && i < v->bytes.len; i++)
        r = buf_printf(out, i ? " %u" : "%u", v->bytes.data[i]);
    return r < 0 ? r : buf_putc(out, ']');
}

/* ---- what has a String() method ---- */

static int put_id(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    char hex[32];
    bool zero = true;
    for (size_t i = 0; i < v->bytes.len; i++)
        zero = zero && v->bytes.data[i] == 0;
    size_t n = v->bytes.len > sizeof(hex) / 2 || zero ? 0 : v->bytes.len;
    encode_hex(bytes_of(v->bytes.data, n), hex);
    return put_string(s, bytes_of(hex, 2 * n), v, out);
}

static int put_duration(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    char text[32];
    if (s->verb && strchr("dobOcU", s->verb))
        return put_int_value(s, v, out);
    duration_text(v->i, text);
    return put_string(s, bytes_str(text), v, out);
}

/* "1970-01-01 00:00:05.5 +0000 UTC" */
static int put_time(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    char rfc[CIVIL_RFC3339_BYTES], text[CIVIL_RFC3339_BYTES + 16];
    int n = (int)civil_rfc3339(v->i, rfc) - 1;
    rfc[10] = ' ';
    n = snprintf(text, sizeof(text), "%.*s +0000 UTC", n, rfc);
    return put_string(s, bytes_of(text, (size_t)n), v, out);
}

static int put_bool(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    if (s->verb != 'v' && s->verb != 't')
        return put_bad_verb(s, v, out);
    return put_padded(s, bytes_str(v->b ? "true" : "false"), false, out);
}

static int put_nil(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    return s->verb == 'v' ? put_padded(s, bytes_str("<nil>"), false, out) : put_bad_verb(s, v, out);
}

static int put_value(const struct spec *s, const struct ottl_value *v, struct buf *out)
{
    switch (v->kind) {
    case OTTL_NIL: return put_nil(s, v, out);
    case OTTL_BOOL: return put_bool(s, v, out);
    case OTTL_INT: return put_int_value(s, v, out);
    case OTTL_DOUBLE: return put_double(s, v, out);
    case OTTL_STRING: return put_string(s, v->bytes, v, out);
    case OTTL_BYTES: return put_bytes(s, v, out);
    case OTTL_LIST: return put_list(s, v->list, out);
    case OTTL_MAP: return put_map(s, v->map, out);
    case OTTL_TIME: return put_time(s, v, out);
    case OTTL_DURATION: return put_duration(s, v, out);
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID: return put_id(s, v, out);
    case OTTL_ITEMS: return buf_append_str(out, "{}");
    }
    return 0;
}

/* ---- the format ---- */

struct scan {
    struct bytes rest;
    const struct ottl_value *args;
    size_t n, next;
    bool reordered; /* [n] was used: what is left over is no mistake */
    bool bad_index;
};

static bool take(struct scan *sc, char c)
{
    if (!sc->rest.len || sc->rest.data[0] != (uint8_t)c)
        return false;
    sc->rest = bytes_of(sc->rest.data + 1, sc->rest.len - 1);
    return true;
}

static bool take_int(struct scan *sc, int *ret)
{
    bool any = false;
    for (*ret = 0; sc->rest.len && sc->rest.data[0] >= '0' && sc->rest.data[0] <= '9'; any = true) {
        *ret = *ret > MOST_WIDTH ? *ret : *ret * 10 + (sc->rest.data[0] - '0');
        take(sc, (char)sc->rest.data[0]);
    }
    return any;
}

/* [n]: the argument that comes next. */
static void take_index(struct scan *sc)
{
    int index;
    if (!take(sc, '['))
        return;
    sc->reordered = true;
    bool number = take_int(sc, &index);
    sc->bad_index = !take(sc, ']') || !number || index < 1 || (size_t)index > sc->n;
    sc->next = sc->bad_index ? sc->next : (size_t)index - 1;
}

/* A number, or * for the next argument. False when there is neither. */
static bool take_size(struct scan *sc, int *ret)
{
    take_index(sc);
    if (!take(sc, '*'))
        return take_int(sc, ret);
    bool fits = sc->next < sc->n && sc->args[sc->next].kind == OTTL_INT &&
                sc->args[sc->next].i >= -MOST_WIDTH && sc->args[sc->next].i <= MOST_WIDTH;
    *ret = fits ? (int)sc->args[sc->next].i : 0;
    sc->next += sc->next < sc->n;
    return fits;
}

static void take_flags(struct scan *sc, struct spec *s)
{
    for (;;)
        if (take(sc, '+'))
            s->plus = true;
        else if (take(sc, '-'))
            s->minus = true;
        else if (take(sc, '#'))
            s->sharp = true;
        else if (take(sc, ' '))
            s->space = true;
        else if (take(sc, '0'))
            s->zero = true;
        else
            return;
}

static void take_spec(struct scan *sc, struct spec *s)
{
    take_flags(sc, s);
    s->has_width = take_size(sc, &s->width);
    if (s->has_width && s->width < 0) {
        s->minus = true;
        s->width = -s->width;
    }
    if (take(sc, '.')) {
        s->has_precision = true;
        if (!take_size(sc, &s->precision) || s->precision < 0)
            s->precision = 0;
    }
    take_index(sc);
    s->zero = s->zero && !s->minus;
    s->width = s->width > MOST_WIDTH ? MOST_WIDTH : s->width;
}

/* Behind a percent sign. */
static int put_verb(struct scan *sc, struct buf *out)
{
    struct spec s = {0};
    take_spec(sc, &s);
    if (sc->rest.len == 0)
        return buf_append_str(out, "%!(NOVERB)");
    s.verb = (char)sc->rest.data[0];
    take(sc, s.verb);
    if (s.verb == '%')
        return buf_putc(out, '%');
    bool bad = sc->bad_index;
    sc->bad_index = false;
    if (bad)
        return buf_printf(out, "%%!%c(BADINDEX)", s.verb);
    if (sc->next >= sc->n)
        return buf_printf(out, "%%!%c(MISSING)", s.verb);
    const struct ottl_value *v = &sc->args[sc->next++];
    if (s.verb != 'T')
        return put_value(&s, v, out);
    const char *type = v->kind == OTTL_NIL ? "<nil>" : ottl_kind_name(v->kind);
    return put_padded(&s, bytes_str(type), false, out);
}

/* What no verb asked for. */
static int put_extra(const struct scan *sc, struct buf *out)
{
    const struct spec plain = {.verb = 'v'};
    int r = buf_append_str(out, "%!(EXTRA ");
    for (size_t i = sc->next; r == 0 && i < sc->n; i++) {
        const struct ottl_value *v = &sc->args[i];
        if (i > sc->next)
            r = buf_append_str(out, ", ");
        if (r == 0 && v->kind != OTTL_NIL)
            r = buf_printf(out, "%s=", ottl_kind_name(v->kind));
        if (r == 0)
            r = put_value(&plain, v, out);
    }
    return r < 0 ? r : buf_putc(out, ')');
}

int ottl_format(struct bytes format, const struct ottl_value *args, size_t n, struct buf *out)
{
    struct scan sc = {.rest = format, .args = args, .n = n};
    int r = 0;
    while (r == 0 && sc.rest.len) {
        const uint8_t *percent = memchr(sc.rest.data, '%', sc.rest.len);
        size_t plain = percent ? (size_t)(percent - sc.rest.data) : sc.rest.len;
        r = buf_append(out, sc.rest.data, plain);
        sc.rest = bytes_of(sc.rest.data + plain, sc.rest.len - plain);
        if (r == 0 && take(&sc, '%'))
            r = put_verb(&sc, out);
    }
    return r < 0 || sc.reordered || sc.next >= n ? r : put_extra(&sc, out);
}
