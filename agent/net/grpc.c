#include "agent/net/grpc.h"

#include <errno.h>

int grpc_frame_parse(struct bytes in, bool *ret_compressed, struct bytes *ret, size_t *ret_used,
                     size_t *ret_need)
{
    *ret_need = 0;
    if (in.len >= 1 && in.data[0] > 1)
        return -EBADMSG;
    if (in.len < GRPC_PREFIX_BYTES)
        return 0;
    size_t len =
        (size_t)in.data[1] << 24 | (size_t)in.data[2] << 16 | (size_t)in.data[3] << 8 | in.data[4];
    *ret_need = len;
    if (in.len - GRPC_PREFIX_BYTES < len)
        return 0;
    *ret_compressed = in.data[0];
    *ret = bytes_of(in.data + GRPC_PREFIX_BYTES, len);
    *ret_used = GRPC_PREFIX_BYTES + len;
    return 1;
}

void grpc_frame_prefix(bool compressed, uint32_t len, uint8_t ret[GRPC_PREFIX_BYTES])
{
    ret[0] = compressed;
    for (int i = 0; i < 4; i++)
        ret[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

int grpc_percent_encode(struct bytes text, struct buf *out)
{
    int r = buf_reserve(out, text.len * 3);
    if (r < 0)
        return r;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            buf_putc(out, (char)c);
            continue;
        }
        const char *hex = "0123456789ABCDEF";
        const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        buf_append(out, escape, 3);
    }
    return 0;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int grpc_percent_decode(struct bytes text, struct buf *out)
{
    int r = buf_reserve(out, text.len);
    for (size_t i = 0; r == 0 && i < text.len; i++) {
        char c = (char)text.data[i];
        if (c == '%' && i + 2 < text.len && hex_digit(text.data[i + 1]) >= 0 &&
            hex_digit(text.data[i + 2]) >= 0) {
            c = (char)(hex_digit(text.data[i + 1]) << 4 | hex_digit(text.data[i + 2]));
            i += 2;
        }
        r = buf_putc(out, c);
    }
    return r;
}

static const struct {
    char unit;
    uint64_t ns;
} units[] = {{'n', 1},          {'u', 1000},        {'m', 1000000},
             {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000}};

void grpc_timeout_format(uint64_t ns, char ret[16])
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        uint64_t n = ns / units[i].ns + (ns % units[i].ns != 0);
        if (n <= 99999999 || i + 1 == ARRAY_SIZE(units)) {
            snprintf(ret, 16, "%llu%c", (unsigned long long)(n <= 99999999 ? n : 99999999),
                     units[i].unit);
            return;
        }
    }
}

int grpc_timeout_parse(struct bytes text, uint64_t *ret_ns)
{
    if (text.len < 2 || text.len > 9)
        return -EBADMSG;
    uint64_t n = 0;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EBADMSG;
        n = n * 10 + (uint64_t)(text.data[i] - '0');
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (units[i].unit == (char)text.data[text.len - 1]) {
            *ret_ns = n > UINT64_MAX / units[i].ns ? UINT64_MAX : n * units[i].ns;
            return 0;
        }
    return -EBADMSG;
}

int grpc_bin_encode(struct bytes in, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int r = buf_reserve(out, in.len / 3 * 4 + 4);
    if (r < 0)
        return r;
    for (size_t i = 0; i < in.len; i += 3) {
        size_t n = in.len - i < 3 ? in.len - i : 3;
        uint32_t v = (uint32_t)in.data[i] << 16;
        v |= n > 1 ? (uint32_t)in.data[i + 1] << 8 : 0;
        v |= n > 2 ? in.data[i + 2] : 0;
        for (size_t k = 0; k <= n; k++)
            buf_putc(out, digits[v >> (18 - 6 * k) & 63]);
    }
    return 0;
}

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int grpc_bin_decode(struct bytes in, struct buf *out)
{
    if (in.len % 4 == 0)
        for (int i = 0; i < 2 && in.len && in.data[in.len - 1] == '='; i++)
            in.len--;
    if (in.len % 4 == 1)
        return -EBADMSG;
    int r = buf_reserve(out, in.len / 4 * 3 + 3);
    uint32_t v = 0;
    for (size_t i = 0; r == 0 && i < in.len; i++) {
        int d = base64_digit(in.data[i]);
        if (d < 0)
            return -EBADMSG;
        v = v << 6 | (uint32_t)d;
        if (i % 4)
            r = buf_putc(out, (char)(v >> (6 - i % 4 * 2) & 255));
    }
    return r;
}

int grpc_code_of_http(int http_status)
{
    switch (http_status) {
    case 400: return GRPC_INTERNAL;
    case 401: return GRPC_UNAUTHENTICATED;
    case 403: return GRPC_PERMISSION_DENIED;
    case 404: return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return GRPC_UNAVAILABLE;
    default: return GRPC_UNKNOWN;
    }
}

int otlp_code_of_http(int http_status)
{
    switch (http_status) {
    case 400: return GRPC_INVALID_ARGUMENT;
    case 401: return GRPC_UNAUTHENTICATED;
    case 403: return GRPC_PERMISSION_DENIED;
    case 404: return GRPC_UNIMPLEMENTED;
    case 429: return GRPC_RESOURCE_EXHAUSTED;
    case 502:
    case 503:
    case 504: return GRPC_UNAVAILABLE;
    default: return GRPC_UNKNOWN;
    }
}

int http_status_of_grpc(int code)
{
    switch (code) {
    case GRPC_OK: return 200;
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_ABORTED:
    case GRPC_OUT_OF_RANGE:
    case GRPC_UNAVAILABLE:
    case GRPC_DATA_LOSS: return 503;
    case GRPC_RESOURCE_EXHAUSTED: return 429;
    case GRPC_INVALID_ARGUMENT: return 400;
    case GRPC_UNAUTHENTICATED: return 401;
    case GRPC_PERMISSION_DENIED: return 403;
    case GRPC_UNIMPLEMENTED: return 404;
    default: return 500;
    }
}
