/* UTF-8 as Unicode defines it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef MOTEL_BASE_UTF8_H
#define MOTEL_BASE_UTF8_H

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "agent/base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* utf8_ascii() of texts below 16 bytes, and of all where there are no registers of 16: words instead. */
static inline bool utf8_ascii_words(const uint8_t *p, size_t len)
{
    const uint64_t high = 0x8080808080808080;
    uint64_t any = 0, a, b;
    if (len >= 8) {
        const uint8_t *const last = p + len - 8;
        memcpy(&any, last, 8);
        for (; last - p > 8; p += 16) {
            memcpy(&a, p, 8);
            memcpy(&b, p + 8, 8);
            any |= a | b;
        }
        memcpy(&a, p < last ? p : last, 8);
        return ((any | a) & high) == 0;
    }
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + len - 4, 4);
        return ((first | last) & (uint32_t)high) == 0;
    }
    return len == 0 || (p[0] | p[len / 2] | p[len - 1]) < 0x80;
}

/* True when every byte is below 0x80; quick, for most text is. */
static inline bool utf8_ascii(const uint8_t *p, size_t len)
{
#if defined(__SSE2__)
    if (len >= 16) {
        const uint8_t *const last = p + len - 16;
        __m128i any = _mm_loadu_si128((const __m128i *)last);
        for (; p < last; p += 16)
            any = _mm_or_si128(any, _mm_loadu_si128((const __m128i *)p));
        return _mm_movemask_epi8(any) == 0;
    }
#elif defined(__aarch64__)
    if (len >= 16) {
        const uint8_t *const last = p + len - 16;
        uint8x16_t any = vld1q_u8(last);
        for (; p < last; p += 16)
            any = vorrq_u8(any, vld1q_u8(p));
        return vmaxvq_u8(any) < 0x80;
    }
#endif
    return utf8_ascii_words(p, len);
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
