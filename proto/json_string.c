/* Strings as JSON: RFC 8259 section 7, escaping only what has to be. */
#include <errno.h>

#include "agent/base/secrets.h"
#include "agent/base/utf8.h"
#include "proto/json_out.h"
#include "proto/json_plain.h"

static uint8_t *put_escape(uint8_t *o, uint8_t c)
{
    static const char digits[] = "0123456789abcdef";
    *o++ = '\\';
    switch (c) {
    case '\n': *o++ = 'n'; return o;
    case '\r': *o++ = 'r'; return o;
    case '\t': *o++ = 't'; return o;
    case '"':
    case '\\': *o++ = c; return o;
    default: break;
    }
    memcpy(o, "u00", 3);
    o[3] = (uint8_t)digits[c >> 4];
    o[4] = (uint8_t)digits[c & 15];
    return o + 5;
}

static inline bool plain_byte(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Characters that are not plain, up to the next that is; returns where that is. One of several
 * bytes may reach behind `stop`. */
static const uint8_t *put_others(const uint8_t *p, const uint8_t *stop, const uint8_t *end,
                                 uint8_t **out)
{
    uint8_t *o = *out;
    for (; p < stop && !plain_byte(*p);) {
        if (*p < 0x80) {
            o = put_escape(o, *p++);
            continue;
        }
        const int n = utf8_next(bytes_of(p, (size_t)(end - p)));
        const size_t len = (size_t)abs(n), put = n > 0 ? len : 3;
        memcpy(o, n > 0 ? (const char *)p : UTF8_REPLACEMENT, put);
        o += put;
        p += len;
    }
    *out = o;
    return p;
}

/* From *at on to `stop`, and to the end of the character there; the string goes on to `end`. */
static inline uint8_t *run(uint8_t *o, const uint8_t **at, const uint8_t *stop, const uint8_t *end,
                           const uint8_t *safe)
{
    const uint8_t *p = *at;
    while (p < stop && safe - p >= 16) {
        const unsigned n = jplain_16(p);
        memcpy(o, p, 16);
        if ((size_t)(stop - p) <= n) {
            *at = stop;
            return o + (stop - p);
        }
        p += n;
        o += n;
        if (n < 16)
            p = put_others(p, stop, end, &o);
    }
    while (p < stop)
        if (plain_byte(*p))
            *o++ = *p++;
        else
            p = put_others(p, stop, end, &o);
    *at = p;
    return o;
}

uint8_t *jout_run(uint8_t *p, struct bytes s, const uint8_t *safe)
{
    const uint8_t *at = s.data, *end = at + s.len;
    return s.len ? run(p, &at, end, end, safe) : p;
}

static uint8_t *put_string(struct jout *j, uint8_t *o, struct bytes s, const uint8_t *safe)
{
    const uint8_t *p = s.data, *end = s.len ? p + s.len : p;
    o = jout_room(j, o, 1);
    *o++ = '"';
    while (p < end) {
        const uint8_t *stop = end - p > JOUT_RUN ? p + JOUT_RUN : end;
        o = jout_room(j, o, JOUT_RUN_ROOM(stop - p));
        o = run(o, &p, stop, end, safe);
    }
    o = jout_room(j, o, 1);
    *o++ = '"';
    return o;
}

static uint8_t *put_redacted(struct jout *j, uint8_t *o, struct bytes s)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    const int r = clean ? secrets_redact(s, clean) : -ENOMEM;
    if (r < 0 && !j->error)
        j->error = r;
    return r < 0 ? o : put_string(j, o, buf_bytes(clean), buf_tail(clean));
}

uint8_t *jout_string(struct jout *j, uint8_t *p, struct bytes s, const uint8_t *safe)
{
    if ((j->flags & JSON_REDACT) && secrets_found(s))
        return put_redacted(j, p, s);
    return put_string(j, p, s, safe);
}

int json_put_string(struct bytes s, unsigned flags, struct buf *out)
{
    struct jout j;
    uint8_t *p = jout_begin(&j, flags, NULL, out);
    p = jout_string(&j, p, s, s.len ? s.data + s.len : s.data);
    return jout_end(&j, p);
}
