/* JSON text token by token. */
#include "proto/json_scan.h"

#include <endian.h>
#include <errno.h>

static void place_of(const struct json_scan *s, const uint8_t *at, int *ret_line, int *ret_column)
{
    *ret_line = *ret_column = 1;
    for (const uint8_t *p = s->start; p < at; p++) {
        if (*p == '\n') {
            ++*ret_line;
            *ret_column = 1;
        } else if ((*p & 0xc0) != 0x80) {
            ++*ret_column;
        }
    }
}

int json_scan_fail(struct json_scan *s, const uint8_t *at, const char *fmt, ...)
{
    char text[400];
    int line, column;
    va_list ap;
    if (!s->err)
        return -EBADMSG;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    place_of(s, at, &line, &column);
    err_set(s->err, -EBADMSG, "line %d, column %d: %s", line, column, text);
    s->err->line = line;
    s->err->column = column;
    return -EBADMSG;
}

int json_scan_unexpected(struct json_scan *s, const char *what)
{
    uint8_t c = json_scan_peek(s);
    if (s->p == s->end)
        return json_scan_fail(s, s->p, "expected %s, got the end of the text", what);
    if (c < 0x80)
        return json_scan_fail(
            s, s->p, c > 0x20 ? "expected %s, got '%c'" : "expected %s, got byte %d", what, c);
    json_scan_fail(s, s->p, "expected %s, got byte 0x%02x", what, c);
    return -EILSEQ;
}

int json_scan_char(struct json_scan *s, char c)
{
    char what[] = {'\'', c, '\'', 0};
    if (json_scan_peek(s) != (uint8_t)c || s->p == s->end)
        return json_scan_unexpected(s, what);
    s->p++;
    return 0;
}

int json_scan_word(struct json_scan *s, const char *word)
{
    size_t n = strlen(word);
    json_scan_peek(s);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return json_scan_unexpected(s, word);
    s->p += n;
    return 0;
}

static const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The length of a word of Python's for no usual number, or 0. */
static size_t special_number(const uint8_t *p, const uint8_t *end)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - p) >= n && memcmp(p, words[i], n) == 0)
            return n;
    }
    return 0;
}

int json_scan_number(struct json_scan *s, struct bytes *ret)
{
    json_scan_peek(s);
    const uint8_t *p = s->p, *end = s->end;
    if (p < end && *p == '-')
        p++;
    if (s->python && p < end && (*p == 'N' || *p == 'I')) {
        *ret = bytes_of(s->p, special_number(s->p, end));
        s->p += ret->len;
        return ret->len ? 0 : json_scan_fail(s, s->p, "malformed number");
    }
    const uint8_t *digits = p;
    p = skip_digits(p, end);
    bool good = p > digits && (*digits != '0' || p == digits + 1);
    if (good && p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        good = p > digits;
    }
    if (good && p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = skip_digits(p, end);
        good = p > digits;
    }
    if (!good)
        return s->p == p ? json_scan_unexpected(s, "a number")
                         : json_scan_fail(s, s->p, "malformed number");
    *ret = bytes_of(s->p, (size_t)(p - s->p));
    s->p = p;
    return 0;
}

/* Four hex digits at `p`, or -1. */
static int read_unit(const uint8_t *p, const uint8_t *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i] | 0x20;
        if (p[i] >= '0' && p[i] <= '9')
            v = v << 4 | (p[i] - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (c - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static size_t put_utf8(uint8_t *o, unsigned c)
{
    if (c < 0x80) {
        o[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        o[i] = (uint8_t)(0x80 | (c & 0x3f));
    o[0] = (uint8_t)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

/* What follows "\u" at `p`, which a low surrogate may complete; the end of it, or NULL. */
static const uint8_t *read_unicode(const uint8_t *p, const uint8_t *end, unsigned *ret)
{
    int high = read_unit(p, end);
    if (high < 0)
        return NULL;
    p += 4;
    *ret = (unsigned)high;
    if (high < 0xd800 || high > 0xdfff)
        return p;
    int low =
        high < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? read_unit(p + 2, end) : -1;
    if (low < 0xdc00 || low > 0xdfff) {
        *ret = 0xfffd;
        return p;
    }
    *ret = 0x10000u + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00);
    return p + 6;
}

/* The escape whose backslash is before `p`; the end of it, or NULL. */
static const uint8_t *read_escape(const uint8_t *p, const uint8_t *end, unsigned *ret)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p == end)
        return NULL;
    if (*p == 'u')
        return read_unicode(p + 1, end, ret);
    const char *at = *p ? strchr(from, *p) : NULL;
    if (!at)
        return NULL;
    *ret = (unsigned)to[at - from];
    return p + 1;
}

#define EACH_BYTE(c) (0x0101010101010101ull * (c))

/* The first quote, backslash or control character. A borrow only spoils what is behind a hit. */
static const uint8_t *skip_plain(const uint8_t *p, const uint8_t *end)
{
    for (uint64_t x; end - p >= 8; p += 8) {
        memcpy(&x, p, 8);
        x = le64toh(x);
        uint64_t quote = x ^ EACH_BYTE('"'), backslash = x ^ EACH_BYTE('\\');
        uint64_t hit = ((x - EACH_BYTE(0x20)) & ~x) | ((quote - EACH_BYTE(1)) & ~quote) |
                       ((backslash - EACH_BYTE(1)) & ~backslash);
        hit &= EACH_BYTE(0x80);
        if (hit)
            return p + __builtin_ctzll(hit) / 8;
    }
    while (p < end && *p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* From the opening quote's next byte to behind the closing one; `out` NULL: only checked. */
static int read_string(struct json_scan *s, const uint8_t *p, struct buf *out)
{
    for (;;) {
        const uint8_t *plain = p;
        unsigned c = 0;
        p = skip_plain(p, s->end);
        int r = out ? buf_append(out, plain, (size_t)(p - plain)) : 0;
        if (r < 0)
            return r;
        if (p == s->end)
            return json_scan_fail(s, p, "the text ends inside a string");
        if (*p == '"') {
            s->p = p + 1;
            return 0;
        }
        if (*p != '\\')
            return json_scan_fail(s, p, "control character 0x%02x in a string", *p);
        const uint8_t *next = read_escape(p + 1, s->end, &c);
        if (!next)
            return json_scan_fail(s, p, "bad escape in a string");
        uint8_t utf8[4];
        r = out ? buf_append(out, utf8, put_utf8(utf8, c)) : 0;
        if (r < 0)
            return r;
        p = next;
    }
}

int json_scan_string(struct json_scan *s, struct bytes *ret)
{
    if (json_scan_peek(s) != '"')
        return json_scan_unexpected(s, "a string");
    const uint8_t *p = s->p + 1, *stop = skip_plain(p, s->end);
    if (stop < s->end && *stop == '"') {
        *ret = bytes_of(p, (size_t)(stop - p));
        s->p = stop + 1;
        return 0;
    }
    buf_truncate(s->scratch, 0);
    int r = read_string(s, p, s->scratch);
    *ret = buf_bytes(s->scratch);
    return r;
}

int json_scan_key(struct json_scan *s, bool *first, struct bytes *ret)
{
    uint8_t c = json_scan_peek(s);
    if (c == '}') {
        s->p++;
        return 0;
    }
    if (!*first && c != ',')
        return json_scan_unexpected(s, "',' or '}'");
    if (!*first)
        s->p++;
    *first = false;
    int r = json_scan_string(s, ret);
    if (r == 0)
        r = json_scan_char(s, ':');
    return r < 0 ? r : 1;
}

int json_scan_element(struct json_scan *s, bool *first)
{
    uint8_t c = json_scan_peek(s);
    if (c == ']') {
        s->p++;
        return 0;
    }
    if (!*first && c != ',')
        return json_scan_unexpected(s, "',' or ']'");
    if (!*first)
        s->p++;
    *first = false;
    return 1;
}

/* A string, number or word. */
static int skip_scalar(struct json_scan *s)
{
    struct bytes number;
    switch (json_scan_peek(s)) {
    case '"': return read_string(s, s->p + 1, NULL);
    case 't': return json_scan_word(s, "true");
    case 'f': return json_scan_word(s, "false");
    case 'n': return json_scan_word(s, "null");
    default: break;
    }
    if (*s->p == '-' || (*s->p >= '0' && *s->p <= '9') ||
        (s->python && (*s->p == 'N' || *s->p == 'I')))
        return json_scan_number(s, &number);
    return json_scan_unexpected(s, "a value");
}

int json_scan_skip(struct json_scan *s)
{
    uint8_t objects[JSON_MAX_SKIP_DEPTH / 8 + 1]; /* one bit a level: object or array */
    bool first = false;
    int depth = 0, r;
    do {
        uint8_t c = json_scan_peek(s);
        bool open = c == '{' || c == '[';
        if (s->p == s->end)
            return json_scan_unexpected(s, "a value");
        if (open && depth == JSON_MAX_SKIP_DEPTH)
            return json_scan_fail(s, s->p, "nested deeper than %d levels", JSON_MAX_SKIP_DEPTH);
        if (open) {
            uint8_t bit = (uint8_t)(1u << depth % 8);
            objects[depth / 8] =
                (uint8_t)(c == '{' ? objects[depth / 8] | bit : objects[depth / 8] & ~bit);
            depth++;
            s->p++;
        } else if ((r = skip_scalar(s)) < 0) {
            return r;
        }
        /* Closes what ends here and steps to the next value. */
        for (first = open, r = 0; depth > 0 && r == 0; first = false) {
            struct bytes key;
            bool object = objects[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
            r = object ? json_scan_key(s, &first, &key) : json_scan_element(s, &first);
            if (r < 0)
                return r;
            depth -= r == 0;
        }
    } while (depth > 0);
    return 0;
}
