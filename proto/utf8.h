/* UTF-8 as Unicode defines it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef MOTEL_PROTO_UTF8_H
#define MOTEL_PROTO_UTF8_H

#include "agent/base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* True when every byte is below 0x80; quick, for most text is. */
static inline bool utf8_ascii(const uint8_t *p, size_t len)
{
    const uint64_t high = 0x8080808080808080;
    uint64_t a, b;
    if (len < 8) {
        uint8_t any = 0;
        for (size_t i = 0; i < len; i++)
            any |= p[i];
        return any < 0x80;
    }
    const uint8_t *last = p + len - 8;
    for (; last - p >= 8; p += 16) {
        memcpy(&a, p, 8);
        memcpy(&b, p + 8, 8);
        if ((a | b) & high)
            return false;
    }
    if (p < last) {
        memcpy(&a, p, 8);
        if (a & high)
            return false;
    }
    memcpy(&b, last, 8);
    return !(b & high);
}
/*
 * Length of the sequence at the front of `s` (not empty) when it is well formed, 1 to 4. Otherwise minus the length of the
 * maximal bad subpart (Unicode 15, 3.9, table 3-8), which one U+FFFD stands for.
 */
int utf8_next(struct bytes s);
bool utf8_valid(struct bytes s);
/* Appends `s` with every bad part as U+FFFD. 0, -ENOMEM or -EMSGSIZE. */
int utf8_append(struct bytes s, struct buf *out);

#endif
