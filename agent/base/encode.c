/* Numbers, hex and base64 to and from text. */
#include "agent/base/encode.h"

#include <endian.h>

static const char two_digits[] = "0001020304050607080910111213141516171819"
                                 "2021222324252627282930313233343536373839"
                                 "4041424344454647484950515253545556575859"
                                 "6061626364656667686970717273747576777879"
                                 "8081828384858687888990919293949596979899";

#define EIGHT_DIGITS 100000000u

/* A number below 10^8 as 8 digits, all at once: its halves, their halves and those again lie side
 * by side in one word, and a division by 100 or 10 is a multiplication. */
static void put_eight(uint32_t v, char *out)
{
    const uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
    const uint64_t hundreds = (fours * 10486 >> 20) & 0x0000007f0000007f;
    const uint64_t twos = hundreds + ((fours - 100 * hundreds) << 16);
    const uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
    const uint64_t digits = htole64((tens + ((twos - 10 * tens) << 8)) | 0x3030303030303030);
    memcpy(out, &digits, 8);
}

static unsigned count_digits(uint32_t v) /* below 10^8 */
{
    return v < 10000     ? v < 100 ? 1 + (v >= 10) : 3 + (v >= 1000)
               : v < 1000000 ? 5 + (v >= 100000)
                         : 7 + (v >= 10000000);
}

/* Without zeros before it. */
static size_t put_first(uint32_t v, char *out)
{
    char text[8];
    const unsigned n = count_digits(v);
    if (v < 100) {
        memcpy(out, two_digits + 2 * v + (2 - n), n);
        return n;
    }
    put_eight(v, text);
    for (unsigned i = 0; i < n; i++)
        out[i] = text[8 - n + i];
    return n;
}

size_t encode_uint(uint64_t v, void *out)
{
    char *p = out;
    if (v < EIGHT_DIGITS)
        return put_first((uint32_t)v, p);
    const uint64_t above = v / EIGHT_DIGITS;
    const size_t n = encode_uint(above, p);
    put_eight((uint32_t)(v % EIGHT_DIGITS), p + n);
    return n + 8;
}

size_t encode_int(int64_t v, void *out)
{
    if (v >= 0)
        return encode_uint((uint64_t)v, out);
    *(char *)out = '-';
    return 1 + encode_uint(0 - (uint64_t)v, (char *)out + 1);
}

/* Four bytes as eight digits: a nibble in each byte of a word, the upper one of a byte first. */
static void put_four_hex(const uint8_t *in, char *out)
{
    uint32_t four;
    memcpy(&four, in, 4);
    uint64_t x = le32toh(four);
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x >> 4 | x << 8) & 0x0f0f0f0f0f0f0f0f;
    const uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
    x = htole64(x + 0x3030303030303030 + letters * ('a' - '0' - 10));
    memcpy(out, &x, 8);
}

void encode_hex(struct bytes in, void *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *s = in.data;
    size_t left = in.len;
    char *p = out;
    for (; left >= 4; left -= 4, s += 4, p += 8)
        put_four_hex(s, p);
    for (; left > 0; left--) {
        *p++ = digits[*s >> 4];
        *p++ = digits[*s++ & 15];
    }
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool decode_hex(struct bytes in, void *out)
{
    uint8_t *p = out;
    for (size_t i = 0; i + 1 < in.len; i += 2) {
        int high = hex_value(in.data[i]), low = hex_value(in.data[i + 1]);
        if (high < 0 || low < 0)
            return false;
        *p++ = (uint8_t)(high << 4 | low);
    }
    return in.len % 2 == 0;
}

void encode_base64(struct bytes in, void *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *s = in.data;
    char *p = out;
    size_t left = in.len;
    for (; left >= 3; left -= 3, s += 3) {
        *p++ = digits[s[0] >> 2];
        *p++ = digits[(s[0] & 3) << 4 | s[1] >> 4];
        *p++ = digits[(s[1] & 15) << 2 | s[2] >> 6];
        *p++ = digits[s[2] & 63];
    }
    if (left == 0)
        return;
    unsigned second = left == 2 ? s[1] : 0;
    *p++ = digits[s[0] >> 2];
    *p++ = digits[(s[0] & 3u) << 4 | second >> 4];
    *p++ = left == 2 ? digits[(second & 15) << 2] : '=';
    *p++ = '=';
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool decode_base64(struct bytes in, void *out, size_t *ret_len)
{
    uint8_t *p = out;
    size_t padding = 0;
    *ret_len = 0;
    if (in.len % 4)
        return false;
    while (in.len && padding < 2 && in.data[in.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < in.len; i += 4) {
        unsigned bits = 0;
        size_t count = i + 4 == in.len ? 4 - padding : 4;
        for (size_t k = 0; k < 4; k++) {
            int v = k < count ? base64_value(in.data[i + k]) : 0;
            if (v < 0)
                return false;
            bits = bits << 6 | (unsigned)v;
        }
        for (size_t k = 0; k + 1 < count; k++)
            *p++ = (uint8_t)(bits >> (16 - 8 * k));
    }
    *ret_len = (size_t)(p - (uint8_t *)out);
    return true;
}
