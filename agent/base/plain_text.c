#include "agent/base/plain_text.h"

#include <string.h>

#include "agent/base/utf8.h"

/* The code point of a well-formed character of `n` bytes. */
static uint32_t code_of(const uint8_t *p, int n)
{
    uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);
    for (int i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* What a terminal obeys, or what makes a line look like another one. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t plain_next(struct bytes s, enum plain_kind *ret, uint32_t *ret_code)
{
    const int n = utf8_next(s);
    *ret_code = n > 0 ? code_of(s.data, n) : *s.data;
    *ret = n < 0 ? PLAIN_BAD : is_control(*ret_code) ? PLAIN_CONTROL : PLAIN_SHOWN;
    return n > 0 ? (size_t)n : 1;
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
