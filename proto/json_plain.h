/*
 * How many of 16 bytes stand in JSON strings as they are: no control character, quote or backslash, and none above 0x7f. Without branches.
 */
#ifndef MOTEL_PROTO_JSON_PLAIN_H
#define MOTEL_PROTO_JSON_PLAIN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define JPLAIN_EACH(c) (0x0101010101010101ull * (c))

/* The same of 8 bytes. A borrow only spoils what is behind a hit. */
static inline unsigned jplain_8(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    x = le64toh(x);
    const uint64_t quote = x ^ JPLAIN_EACH('"'), backslash = x ^ JPLAIN_EACH('\\');
    const uint64_t hit = (x | (x - JPLAIN_EACH(0x20)) | (quote - JPLAIN_EACH(1)) | (backslash - JPLAIN_EACH(1))) & JPLAIN_EACH(0x80);
    return hit ? (unsigned)__builtin_ctzll(hit) / 8 : 8;
}

static inline unsigned jplain_portable(const uint8_t *p)
{
    const unsigned n = jplain_8(p);
    return n < 8 ? n : 8 + jplain_8(p + 8);
}

static inline unsigned jplain_16(const uint8_t *p)
{
#if defined(__SSE2__)
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i low_or_high = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)); /* signed: above 0x7f too */
    const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"')), backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    const int hit = _mm_movemask_epi8(_mm_or_si128(low_or_high, _mm_or_si128(quote, backslash)));
    return (unsigned)__builtin_ctz((unsigned)hit | 0x10000);
#elif defined(__aarch64__) && defined(__ARM_NEON)
    const int8x16_t v = vreinterpretq_s8_u8(vld1q_u8(p));
    const uint8x16_t low_or_high = vcltq_s8(v, vdupq_n_s8(0x20));
    const uint8x16_t mark = vorrq_u8(vceqq_s8(v, vdupq_n_s8('"')), vceqq_s8(v, vdupq_n_s8('\\')));
    const uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(vorrq_u8(low_or_high, mark)), 4);
    const uint64_t hit = vget_lane_u64(vreinterpret_u64_u8(nibbles), 0);
    return hit ? (unsigned)__builtin_ctzll(hit) / 4 : 16;
#else
    return jplain_portable(p);
#endif
}

#endif
