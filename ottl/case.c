#include "ottl/case.h"

#include "agent/base/utf8.h"
#include "ottl/case_tables.h"
#include "ottl/functions.h"

/* ---- upper and lower ---- */

static uint32_t map(uint32_t c, const struct case_range *ranges, size_t n)
{
    size_t from = 0, to = n;
    while (from < to) {
        size_t middle = (from + to) / 2;
        const struct case_range *r = &ranges[middle];
        if (c < r->from)
            to = middle;
        else if (c > r->to)
            from = middle + 1;
        else
            return (c - r->from) % r->step ? c : (uint32_t)((int32_t)c + r->delta);
    }
    return c;
}

/* The character of a well-formed sequence of 2 to 4 bytes. */
static uint32_t read_char(const uint8_t *p, int len)
{
    uint32_t c = p[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static int put_char(uint32_t c, struct buf *out)
{
    uint8_t p[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i > 1; i--, c >>= 6)
        p[i - 1] = (uint8_t)(0x80 | (c & 0x3f));
    p[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    return buf_append(out, p, n);
}

static int put_mapped(struct bytes s, int len, const struct case_range *ranges, size_t n,
                      struct buf *out)
{
    if (len < 0)
        return buf_append_str(out, UTF8_REPLACEMENT);
    return put_char(map(read_char(s.data, len), ranges, n), out);
}

int case_lower(struct bytes s, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.len;) {
        struct bytes rest = bytes_of(s.data + i, s.len - i);
        uint8_t c = rest.data[0];
        int len = c < 0x80 ? 1 : utf8_next(rest);
        if (c < 0x80)
            r = buf_putc(out, (char)(c >= 'A' && c <= 'Z' ? c + 32 : c));
        else
            r = put_mapped(rest, len, to_lower, ARRAY_SIZE(to_lower), out);
        i += (size_t)(len < 0 ? -len : len);
    }
    return r;
}

int case_upper(struct bytes s, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.len;) {
        struct bytes rest = bytes_of(s.data + i, s.len - i);
        uint8_t c = rest.data[0];
        int len = c < 0x80 ? 1 : utf8_next(rest);
        if (c < 0x80)
            r = buf_putc(out, (char)(c >= 'a' && c <= 'z' ? c - 32 : c));
        else
            r = put_mapped(rest, len, to_upper, ARRAY_SIZE(to_upper), out);
        i += (size_t)(len < 0 ? -len : len);
    }
    return r;
}

/* ---- identifiers ---- */

enum letter { OTHER, UPPER, LOWER, DIGIT };

static enum letter kind_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? UPPER
           : c >= 'a' && c <= 'z' ? LOWER
           : c >= '0' && c <= '9' ? DIGIT
                                  : OTHER;
}

static bool separates(uint8_t c)
{
    return c == ' ' || c == '_' || c == '-' || c == '.';
}

/* Whether a word ends at `i`, before it (the last capital of "HTTPServer") or behind it. */
static void find_border(struct bytes s, size_t i, bool *ret_before, bool *ret_behind)
{
    enum letter c = kind_of(s.data[i]), next = i + 1 < s.len ? kind_of(s.data[i + 1]) : OTHER;
    *ret_before = c == UPPER && next == LOWER && i > 0 && kind_of(s.data[i - 1]) == UPPER;
    *ret_behind = next != OTHER && c != OTHER && next != c && !(c == UPPER && next == LOWER);
}

int case_snake(struct bytes s, struct buf *out)
{
    int r = 0;
    s = ottl_trim_space(s);
    for (size_t i = 0; r == 0 && i < s.len; i++) {
        uint8_t c = s.data[i];
        bool before, behind;
        find_border(s, i, &before, &behind);
        if (before)
            r = buf_putc(out, '_');
        if (r == 0)
            r = buf_putc(out, (char)(separates(c) ? '_' : kind_of(c) == UPPER ? c + 32 : c));
        if (r == 0 && behind)
            r = buf_putc(out, '_');
    }
    return r;
}

int case_camel(struct bytes s, struct buf *out)
{
    bool capital = true, after_upper = false;
    int r = 0;
    s = ottl_trim_space(s);
    for (size_t i = 0; r == 0 && i < s.len; i++) {
        uint8_t c = s.data[i];
        enum letter kind = kind_of(c);
        if (capital && kind == LOWER)
            c = (uint8_t)(c - 32);
        else if (!capital && after_upper && kind == UPPER)
            c = (uint8_t)(c + 32);
        after_upper = kind == UPPER;
        capital = kind == DIGIT || (kind == OTHER && separates(c));
        if (kind != OTHER)
            r = buf_putc(out, (char)c);
    }
    return r;
}
