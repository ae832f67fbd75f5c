/* Cuts the text of a statement into tokens: of the rules in their order the first that fits wins,
 * as in the reference. */
#include "ottl/lexer.h"

#include <errno.h>
#include <stdarg.h>

#include "agent/base/utf8.h"

struct cursor {
    struct bytes text;
    size_t at;
    unsigned line, column;
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool is_word(uint8_t c)
{
    return is_digit(c) || is_upper(c) || is_lower(c) || c == '_';
}

static size_t digits(struct bytes s, size_t from)
{
    size_t n = 0;
    while (from + n < s.len && is_digit(s.data[from + n]))
        n++;
    return n;
}

static bool at(struct bytes s, size_t i, char c)
{
    return i < s.len && s.data[i] == (uint8_t)c;
}

static size_t lex_bytes(struct bytes s)
{
    size_t n = 2;
    if (!at(s, 0, '0') || !at(s, 1, 'x'))
        return 0;
    while (n < s.len && is_hex(s.data[n]))
        n++;
    return n > 2 ? n : 0;
}

static size_t lex_float(struct bytes s)
{
    size_t whole = digits(s, 0);
    if (!at(s, whole, '.'))
        return 0;
    size_t n = whole + 1 + digits(s, whole + 1);
    if (n == 1)
        return 0;
    if (at(s, n, 'e') || at(s, n, 'E')) {
        size_t e = n + 1;
        if (at(s, e, '-') || at(s, e, '+'))
            e++;
        size_t exponent = digits(s, e);
        if (exponent)
            n = e + exponent;
    }
    return n;
}

static size_t lex_string(struct bytes s)
{
    if (!at(s, 0, '"'))
        return 0;
    for (size_t i = 1; i < s.len; i++) {
        if (s.data[i] == '"')
            return i + 1;
        if (s.data[i] == '\\' && (++i == s.len || s.data[i] == '\n'))
            return 0;
    }
    return 0;
}

static size_t lex_name(struct bytes s, bool (*letter)(uint8_t))
{
    size_t n = 0;
    if (!letter(s.data[0]))
        return 0;
    while (n < s.len && (letter(s.data[n]) || is_digit(s.data[n]) || s.data[n] == '_'))
        n++;
    return n;
}

/* A word of the language stands alone: no letter, digit or underscore follows. */
static size_t lex_keyword(struct bytes s, enum ottl_token_kind *ret)
{
    static const struct {
        const char *word;
        enum ottl_token_kind kind;
    } words[] = {{"nil", OTTL_T_NIL},     {"not", OTTL_T_NOT},   {"or", OTTL_T_OR},
                 {"and", OTTL_T_AND},     {"true", OTTL_T_BOOL}, {"false", OTTL_T_BOOL},
                 {"_", OTTL_T_UNDERSCORE}};
    size_t n = 0;
    while (n < s.len && is_word(s.data[n]))
        n++;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (bytes_eq_str(bytes_of(s.data, n), words[i].word)) {
            *ret = words[i].kind;
            return n;
        }
    return 0;
}

static size_t lex_sign(struct bytes s, enum ottl_token_kind *ret)
{
    static const struct {
        char text[3];
        enum ottl_token_kind kind;
    } signs[] = {{"==", OTTL_T_COMPARISON}, {"!=", OTTL_T_COMPARISON}, {">=", OTTL_T_COMPARISON},
                 {"<=", OTTL_T_COMPARISON}, {">", OTTL_T_COMPARISON},  {"<", OTTL_T_COMPARISON},
                 {"=>", OTTL_T_ARROW},      {"+", OTTL_T_SIGN},        {"-", OTTL_T_SIGN},
                 {"/", OTTL_T_FACTOR},      {"*", OTTL_T_FACTOR},      {"=", OTTL_T_EQUAL},
                 {"(", OTTL_T_LPAREN},      {")", OTTL_T_RPAREN},      {"{", OTTL_T_LBRACE},
                 {"}", OTTL_T_RBRACE},      {":", OTTL_T_COLON},       {",", OTTL_T_COMMA},
                 {".", OTTL_T_DOT},         {"[", OTTL_T_LBRACKET},    {"]", OTTL_T_RBRACKET}};
    for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
        size_t n = strlen(signs[i].text);
        if (s.len >= n && memcmp(s.data, signs[i].text, n) == 0) {
            *ret = signs[i].kind;
            return n;
        }
    }
    return 0;
}

/* The length of the token at the front of `s` (not empty); 0 = none begins here. */
static size_t lex_one(struct bytes s, enum ottl_token_kind *ret)
{
    static size_t (*const numbers[])(struct bytes) = {lex_bytes, lex_float};
    size_t n;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if ((n = numbers[i](s))) {
            *ret = i == 0 ? OTTL_T_BYTES : OTTL_T_FLOAT;
            return n;
        }
    *ret = OTTL_T_INT;
    if ((n = digits(s, 0)))
        return n;
    *ret = OTTL_T_STRING;
    if ((n = lex_string(s)))
        return n;
    if ((n = lex_keyword(s, ret)) || (n = lex_sign(s, ret)))
        return n;
    *ret = OTTL_T_UPPER;
    if ((n = lex_name(s, is_upper)))
        return n;
    *ret = OTTL_T_LOWER;
    return lex_name(s, is_lower);
}

/* Moves over `n` bytes and counts lines and characters. */
static void advance(struct cursor *c, size_t n)
{
    for (; n; n--, c->at++) {
        uint8_t b = c->text.data[c->at];
        if (b == '\n') {
            c->line++;
            c->column = 1;
        } else if ((b & 0xc0) != 0x80) {
            c->column++;
        }
    }
}

static struct bytes rest(const struct cursor *c)
{
    return bytes_of(c->text.data + c->at, c->text.len - c->at);
}

static int next_token(struct cursor *c, struct ottl_token *ret, struct err *reterr)
{
    while (c->at < c->text.len && is_space(c->text.data[c->at]))
        advance(c, 1);
    *ret = (struct ottl_token){OTTL_T_END, c->line, c->column, rest(c)};
    if (!ret->text.len)
        return 0;
    size_t n = lex_one(ret->text, &ret->kind);
    if (!n && ret->text.data[0] == '"')
        return ottl_syntax_error(reterr, ret, "the string has no end");
    if (!n)
        return ottl_syntax_error(reterr, ret, "no word of the language begins like this");
    ret->text.len = n;
    advance(c, n);
    return 0;
}

int ottl_lex(struct arena *a, struct bytes text, const struct ottl_token **ret, struct err *reterr)
{
    struct cursor c = {text, 0, 1, 1};
    struct ottl_token *tokens = NULL;
    size_t n = 0, cap = 0;
    do {
        if (n == cap) {
            cap = cap ? 2 * cap : 32;
            struct ottl_token *more = arena_alloc(a, cap * sizeof(*more));
            if (!more)
                return -ENOMEM;
            if (n)
                memcpy(more, tokens, n * sizeof(*more));
            tokens = more;
        }
        int r = next_token(&c, &tokens[n], reterr);
        if (r < 0)
            return r;
    } while (tokens[n++].kind != OTTL_T_END);
    *ret = tokens;
    return 0;
}

/* ---- strings ---- */

static unsigned digit_value(uint8_t c)
{
    return is_digit(c) ? c - (unsigned)'0' : (c | 0x20u) - 'a' + 10;
}

/* `n` digits of that base at the front. */
static int number_digits(struct bytes s, size_t n, unsigned base, uint32_t *ret)
{
    uint32_t v = 0;
    if (s.len < n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = s.data[i];
        unsigned digit = is_hex(c) ? digit_value(c) : 16;
        if (digit >= base)
            return -EINVAL;
        v = v * base + digit;
    }
    *ret = v;
    return 0;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(lead[n] | c);
    return n;
}

/* The code point that an escape names: \x41, \101, \u00e9, \U0001f600; of the first two, too, it is
 * a code point and no byte. */
static int escaped_number(struct bytes s, uint32_t *ret, size_t *ret_read)
{
    if (number_digits(s, 3, 8, ret) == 0 && *ret < 256) {
        *ret_read = 3;
        return 0;
    }
    size_t n = s.data[0] == 'x' ? 2 : s.data[0] == 'u' ? 4 : s.data[0] == 'U' ? 8 : 0;
    if (!n || number_digits(bytes_of(s.data + 1, s.len - 1), n, 16, ret) < 0)
        return -EINVAL;
    *ret_read = n + 1;
    return *ret > 0x10ffff || (*ret >= 0xd800 && *ret < 0xe000) ? -EINVAL : 0;
}

/* `s` is what follows the backslash. The bytes written to `out`, at most 4, and those read;
 * -EINVAL. */
static int unescape(struct bytes s, uint8_t *out, size_t *ret_read)
{
    static const char names[] = "a\ab\bf\fn\nr\rt\tv\v\\\\\"\"";
    uint32_t v;
    *ret_read = 1;
    for (const char *p = names; *p; p += 2)
        if (s.data[0] == (uint8_t)*p) {
            out[0] = (uint8_t)p[1];
            return 1;
        }
    if (escaped_number(s, &v, ret_read) < 0)
        return -EINVAL;
    return (int)put_utf8(out, v);
}

/* Every bad part of `s` becomes U+FFFD. */
static int repair(struct arena *a, struct bytes s, struct bytes *ret)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b || utf8_append(s, b) < 0)
        return -ENOMEM;
    uint8_t *p = arena_alloc(a, b->len + 1);
    if (!p)
        return -ENOMEM;
    memcpy(p, b->data, b->len);
    *ret = bytes_of(p, b->len);
    return 0;
}

/* `offset`: of the backslash in the token. */
static int bad_escape(const struct ottl_token *t, size_t offset, struct err *reterr)
{
    struct cursor c = {t->text, 0, t->line, t->column};
    advance(&c, offset);
    struct ottl_token here = {OTTL_T_STRING, c.line, c.column, rest(&c)};
    return ottl_syntax_error(reterr, &here,
                             "invalid quoted string: no such escape (a backslash is written \\\\)");
}

int ottl_unquote(struct arena *a, const struct ottl_token *t, struct bytes *ret, struct err *reterr)
{
    struct bytes in = bytes_of(t->text.data + 1, t->text.len - 2);
    uint8_t *out = arena_alloc(a, in.len + 1);
    size_t n = 0;
    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < in.len; i++) {
        if (in.data[i] != '\\') {
            out[n++] = in.data[i];
            continue;
        }
        size_t read;
        int r = unescape(bytes_of(in.data + i + 1, in.len - i - 1), out + n, &read);
        if (r < 0)
            return bad_escape(t, i + 1, reterr);
        n += (size_t)r;
        i += read;
    }
    *ret = bytes_of(out, n);
    return utf8_valid(*ret) ? 0 : repair(a, *ret, ret);
}

/* ---- errors ---- */

#define NEAR_BYTES 12

/* How much of the text from here on is shown: whole characters of this line. */
static int shown(struct bytes s)
{
    size_t n = 0;
    while (n < s.len && n < NEAR_BYTES && s.data[n] >= ' ')
        n++;
    while (n && n < s.len && (s.data[n] & 0xc0) == 0x80)
        n--;
    return (int)n;
}

int ottl_syntax_error(struct err *e, const struct ottl_token *where, const char *fmt, ...)
{
    char reason[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    int near = shown(where->text);
    if (near)
        err_set(e, -EINVAL, "invalid syntax at %u:%u near `%.*s`: %s", where->line, where->column,
                near, (const char *)where->text.data, reason);
    else
        err_set(e, -EINVAL, "invalid syntax at %u:%u: %s", where->line, where->column, reason);
    if (e)
        e->column = (int)where->column;
    return -EINVAL;
}
