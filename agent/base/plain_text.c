#include "agent/base/plain_text.h"

#include <string.h>

static size_t wanted(uint8_t first)
{
    return first < 0x80                     ? 1
           : first >= 0xc2 && first <= 0xdf ? 2
           : first >= 0xe0 && first <= 0xef ? 3
           : first >= 0xf0 && first <= 0xf4 ? 4
                                            : 0;
}

/* The length of a well-formed character, or 0. */
static size_t decode(struct bytes s, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = wanted(*s.data);
    if (n == 0 || n > s.len)
        return 0;
    *ret = n == 1 ? *s.data : *s.data & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s.data[i] & 0xc0) != 0x80)
            return 0;
        *ret = *ret << 6 | (s.data[i] & 0x3f);
    }
    return *ret < least[n] || *ret > 0x10ffff || (*ret >= 0xd800 && *ret <= 0xdfff) ? 0 : n;
}

/* What a terminal obeys, or what makes a line look like another one. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t plain_next(struct bytes s, enum plain_kind *ret, uint32_t *ret_code)
{
    const size_t n = decode(s, ret_code);
    if (n == 0)
        *ret_code = *s.data;
    *ret = n == 0 ? PLAIN_BAD : is_control(*ret_code) ? PLAIN_CONTROL : PLAIN_SHOWN;
    return n ? n : 1;
}

int plain_text(struct buf *out, struct bytes s, char instead, const char *keep)
{
    int r = 0;
    for (size_t n; r == 0 && s.len; s = bytes_of(s.data + n, s.len - n)) {
        enum plain_kind kind;
        uint32_t code;
        n = plain_next(s, &kind, &code);
        if (kind == PLAIN_SHOWN || (n == 1 && *s.data && strchr(keep, *s.data)))
            r = buf_append(out, s.data, n);
        else
            r = buf_putc(out, instead);
    }
    return r;
}
