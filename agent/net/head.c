#include "agent/net/head.h"

#include <strings.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_LEN 24
#define TLS_HANDSHAKE 0x16
#define MAX_LENGTH_DIGITS 18
#define MAX_METHOD 32

#define BIT(c) (1ull << ((c)&63))
#define BITS(first, last) ((BIT(last) << 1) - BIT(first))

/* One bit for each character of ASCII. */
static bool is_token_char(uint8_t c)
{
    static const uint64_t token[2] = {
        BITS('0', '9') | BIT('!') | BITS('#', '\'') | BIT('*') | BIT('+') | BIT('-') | BIT('.'),
        BITS('A', 'Z') | BITS('a', 'z') | BITS('^', '`') | BIT('|') | BIT('~'),
    };
    return c < 128 && token[c / 64] & BIT(c);
}

bool http_is_token(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (!is_token_char(b.data[i]))
            return false;
    return b.len > 0;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool name_is(struct bytes name, const char *lower)
{
    return name.len == strlen(lower) && strncasecmp((const char *)name.data, lower, name.len) == 0;
}

static struct bytes trim(struct bytes b)
{
    while (b.len && is_blank(b.data[0]))
        b = bytes_of(b.data + 1, b.len - 1);
    while (b.len && is_blank(b.data[b.len - 1]))
        b.len--;
    return b;
}

static bool is_length(struct bytes value)
{
    if (!value.len || value.len > MAX_LENGTH_DIGITS)
        return false;
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
    return true;
}

bool http_head_field(struct head_framing *f, struct bytes name, struct bytes value)
{
    if (!name.len || is_blank(name.data[name.len - 1]))
        return false;
    value = trim(value);
    if (name_is(name, "content-length"))
        return ++f->lengths == 1 && is_length(value);
    if (name_is(name, "transfer-encoding"))
        return ++f->encodings == 1 && name_is(value, "chunked");
    if (name_is(name, "host"))
        return ++f->hosts == 1;
    return true;
}

bool http_head_framing_ok(const struct head_framing *f, bool http10)
{
    if (f->encodings && (f->lengths || http10))
        return false;
    return f->hosts == 1 || (http10 && f->hosts == 0);
}

/* METHOD SP target SP HTTP/1.x */
static bool request_line_ok(struct bytes line, bool *ret_http10)
{
    size_t i = 0, start;
    while (i < line.len && is_token_char(line.data[i]))
        i++;
    if (i == 0 || i > MAX_METHOD || i >= line.len || line.data[i] != ' ')
        return false;
    start = ++i;
    while (i < line.len && line.data[i] > ' ' && line.data[i] != 0x7f)
        i++;
    if (i == start || line.len - i != 9 || memcmp(line.data + i, " HTTP/1.", 8) != 0)
        return false;
    uint8_t minor = line.data[line.len - 1];
    *ret_http10 = minor == '0';
    return minor == '0' || minor == '1';
}

static bool field_line_ok(struct bytes line, struct head_framing *f)
{
    size_t n = 0;
    while (n < line.len && is_token_char(line.data[n]))
        n++;
    if (n == 0 || n >= line.len || line.data[n] != ':')
        return false;
    struct bytes value = bytes_of(line.data + n + 1, line.len - n - 1);
    for (size_t i = 0; i < value.len; i++)
        if ((value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f)
            return false;
    return http_head_field(f, bytes_of(line.data, n), value);
}

/* Takes the next CRLF-ended line. 1 = a line, 0 = not whole yet, -1 = ended by a bare LF. */
static int next_line(struct bytes *in, struct bytes *ret)
{
    const uint8_t *nl = in->len ? memchr(in->data, '\n', in->len) : NULL;
    if (!nl)
        return 0;
    size_t n = (size_t)(nl - in->data);
    if (n == 0 || nl[-1] != '\r')
        return -1;
    *ret = bytes_of(in->data, n - 1);
    *in = bytes_of(nl + 1, in->len - n - 1);
    return 1;
}

/* The bytes of a first line that has not ended yet: may they still become one? */
static bool may_be_request_line(struct bytes in)
{
    size_t i = 0;
    while (i < in.len && is_token_char(in.data[i]))
        i++;
    if (i > MAX_METHOD)
        return false;
    if (i == in.len)
        return true;
    if (i == 0 || in.data[i] != ' ')
        return false;
    for (; i < in.len; i++)
        if ((in.data[i] < ' ' && in.data[i] != '\r') || in.data[i] == 0x7f)
            return false;
    return true;
}

static enum head_kind sniff_http1(struct bytes in)
{
    struct head_framing f = {0};
    struct bytes line;
    bool http10;
    while (in.len >= 2 && in.data[0] == '\r' && in.data[1] == '\n') /* RFC 9112 2.2 */
        in = bytes_of(in.data + 2, in.len - 2);
    if (in.len == 0 || (in.len == 1 && in.data[0] == '\r'))
        return HEAD_MORE;
    int r = next_line(&in, &line);
    if (r == 0)
        return may_be_request_line(in) ? HEAD_MORE : HEAD_BAD;
    if (r < 0 || !request_line_ok(line, &http10))
        return HEAD_BAD;
    while ((r = next_line(&in, &line)) == 1) {
        if (line.len == 0)
            return http_head_framing_ok(&f, http10) ? HEAD_HTTP1 : HEAD_BAD;
        if (!field_line_ok(line, &f))
            return HEAD_BAD;
    }
    return r < 0 ? HEAD_BAD : HEAD_MORE;
}

enum head_kind http_head_sniff(struct bytes in, size_t max)
{
    if (in.len == 0)
        return HEAD_MORE;
    if (in.data[0] == TLS_HANDSHAKE)
        return HEAD_TLS;
    size_t n = in.len < PREFACE_LEN ? in.len : PREFACE_LEN;
    if (memcmp(in.data, PREFACE, n) == 0)
        return n == PREFACE_LEN ? HEAD_HTTP2 : HEAD_MORE;
    if (in.len > max)
        in.len = max;
    enum head_kind k = sniff_http1(in);
    return k == HEAD_MORE && in.len == max ? HEAD_TOO_LARGE : k;
}
