/* Strings as JSON: RFC 8259 section 7, escaping only what has to be. */
#include <errno.h>

#include "agent/base/secrets.h"
#include "proto/json.h"
#include "proto/utf8.h"

#define EACH_BYTE(c) (0x0101010101010101ull * (c))

/* True when none of eight bytes is a control character, a quote, a backslash or above 0x7f. */
static inline bool plain_word(uint64_t x)
{
    uint64_t quote = x ^ EACH_BYTE('"'), backslash = x ^ EACH_BYTE('\\');
    uint64_t hit = x | (x - EACH_BYTE(0x20)) | (quote - EACH_BYTE(1)) | (backslash - EACH_BYTE(1));
    return (hit & EACH_BYTE(0x80)) == 0;
}

static inline bool plain_byte(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Copies bytes that need no look until one does or the end; returns where it stopped. */
static inline const uint8_t *copy_plain(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    uint8_t *o = *out;
    for (uint64_t word; end - p >= 8; p += 8, o += 8) {
        memcpy(&word, p, 8);
        if (!plain_word(word))
            break;
        memcpy(o, &word, 8);
    }
    while (p < end && plain_byte(*p))
        *o++ = *p++;
    *out = o;
    return p;
}

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

/* One character that is not plain; returns where it ends. */
static const uint8_t *put_other(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    if (*p < 0x80) {
        *out = put_escape(*out, *p);
        return p + 1;
    }
    int n = utf8_next(bytes_of(p, (size_t)(end - p)));
    size_t len = (size_t)abs(n);
    memcpy(*out, n > 0 ? (const char *)p : UTF8_REPLACEMENT, n > 0 ? len : 3);
    *out += n > 0 ? len : 3;
    return p + len;
}

static int put_string(struct bytes s, struct buf *out)
{
    const uint8_t *p = s.data, *end = p + s.len;
    int r = buf_reserve(out, s.len + 2);
    if (r < 0)
        return r;
    uint8_t *o = buf_tail(out);
    *o++ = '"';
    while ((p = copy_plain(p, end, &o)) < end) {
        buf_commit(out, (size_t)(o - buf_tail(out)));
        r = buf_reserve(out, (size_t)(end - p) + 8);
        if (r < 0)
            return r;
        o = buf_tail(out);
        p = put_other(p, end, &o);
    }
    *o++ = '"';
    buf_commit(out, (size_t)(o - buf_tail(out)));
    return 0;
}

static int put_redacted(struct bytes s, struct buf *out)
{
    _cleanup_buf_ struct buf *clean = buf_new(0);
    if (!clean)
        return -ENOMEM;
    int r = secrets_redact(s, clean);
    return r < 0 ? r : put_string(buf_bytes(clean), out);
}

int json_put_string(struct bytes s, unsigned flags, struct buf *out)
{
    if ((flags & JSON_REDACT) && secrets_found(s))
        return put_redacted(s, out);
    return put_string(s, out);
}
