#include "agent/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "agent/base/cleanup.h"

bool number_parse_int(struct bytes text, int64_t *ret)
{
    size_t i = 0;
    bool minus = text.len && text.data[0] == '-';
    if (text.len && (text.data[0] == '-' || text.data[0] == '+'))
        i++;
    if (i == text.len)
        return false;
    int64_t v = 0; /* kept negative, so that INT64_MIN can be read */
    for (; i < text.len; i++)
        if (!isdigit(text.data[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, text.data[i] - '0', &v))
            return false;
    if (!minus && v == INT64_MIN)
        return false;
    *ret = minus ? v : -v;
    return true;
}

/* "inf", "+Infinity", "nan" */
static bool special(struct bytes text, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    bool sign = text.len && (text.data[0] == '-' || text.data[0] == '+');
    bool minus = sign && text.data[0] == '-';
    if (sign)
        text = bytes_of(text.data + 1, text.len - 1);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (text.len != strlen(words[i].word) ||
            strncasecmp((const char *)text.data, words[i].word, text.len) != 0)
            continue;
        bool nan = isnan(words[i].value);
        *ret = nan ? number_nan() : minus ? -words[i].value : words[i].value;
        return !(sign && nan);
    }
    return false;
}

struct scan {
    const char *p, *end;
};

/* Digits with `_` only between them (or, `prefixed`, behind a base prefix). How many; -1 = a `_` in
 * a wrong place. */
static long digits(struct scan *s, bool hex, bool prefixed)
{
    long n = 0;
    bool after_digit = prefixed;
    for (; s->p < s->end; s->p++) {
        unsigned char c = (unsigned char)*s->p;
        if (hex ? isxdigit(c) : isdigit(c))
            n++;
        else if (c != '_')
            break;
        else if (!after_digit)
            return -1;
        after_digit = c != '_';
    }
    return n && !after_digit ? -1 : n;
}

static bool exponent(struct scan *s, char letter, bool required)
{
    if (s->p == s->end || tolower((unsigned char)*s->p) != letter)
        return !required;
    s->p++;
    if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
        s->p++;
    return s->p < s->end && isdigit((unsigned char)*s->p) && digits(s, false, false) > 0;
}

/* True for what Go's syntax allows; strtod() then reads the same number out of it. */
static bool well_formed(const char *text, size_t len)
{
    struct scan s = {text, text + len};
    if (s.p < s.end && (*s.p == '+' || *s.p == '-'))
        s.p++;
    bool hex = s.end - s.p > 2 && s.p[0] == '0' && tolower((unsigned char)s.p[1]) == 'x';
    if (hex)
        s.p += 2;
    long whole = digits(&s, hex, hex), fraction = 0;
    if (whole >= 0 && s.p < s.end && *s.p == '.') {
        s.p++;
        fraction = digits(&s, hex, false);
    }
    if (whole < 0 || fraction < 0 || whole + fraction == 0)
        return false;
    return exponent(&s, hex ? 'p' : 'e', hex) && s.p == s.end;
}

bool number_parse_double(struct bytes text, double *ret)
{
    if (special(text, ret))
        return true;
    if (text.len == 0 || !well_formed((const char *)text.data, text.len))
        return false;
    char small[64];
    _cleanup_free_ char *large = NULL;
    char *copy = text.len < sizeof(small) ? small : (large = malloc(text.len + 1));
    if (!copy)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] != '_')
            copy[n++] = (char)text.data[i];
    copy[n] = 0;
    *ret = strtod(copy, NULL);
    return isfinite(*ret);
}

int64_t number_double_to_int(double f)
{
    return f >= -0x1p63 && f < 0x1p63 ? (int64_t)f : INT64_MIN;
}
