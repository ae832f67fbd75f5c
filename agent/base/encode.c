/* Numbers, hex and base64 to and from text. */
#include "agent/base/encode.h"

static const char two_digits[] = "0001020304050607080910111213141516171819"
                                 "2021222324252627282930313233343536373839"
                                 "4041424344454647484950515253545556575859"
                                 "6061626364656667686970717273747576777879"
                                 "8081828384858687888990919293949596979899";

size_t encode_uint(uint64_t v, void *out)
{
    char text[20], *end = text + sizeof(text), *p = end;
    for (; v >= 100; v /= 100) {
        p -= 2;
        memcpy(p, two_digits + v % 100 * 2, 2);
    }
    if (v >= 10) {
        p -= 2;
        memcpy(p, two_digits + v * 2, 2);
    } else {
        *--p = (char)('0' + v);
    }
    memcpy(out, p, (size_t)(end - p));
    return (size_t)(end - p);
}

size_t encode_int(int64_t v, void *out)
{
    if (v >= 0)
        return encode_uint((uint64_t)v, out);
    *(char *)out = '-';
    return 1 + encode_uint(0 - (uint64_t)v, (char *)out + 1);
}

void encode_hex(struct bytes in, void *out)
{
    static const char digits[] = "0123456789abcdef";
    char *p = out;
    for (size_t i = 0; i < in.len; i++) {
        *p++ = digits[in.data[i] >> 4];
        *p++ = digits[in.data[i] & 15];
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
