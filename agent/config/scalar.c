/* What an unquoted YAML scalar is: null, bool, int, float, timestamp or string. */
#include <ctype.h>
#include <math.h>

#include "agent/config/tree.h"

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool resolve_word(struct cfg_value *v)
{
    static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    static const char *const inf[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", NULL};
    static const char *const minus[] = {"-.inf", "-.Inf", "-.INF", NULL};

    if (is_one_of(v->text, null)) {
        v->type = CFG_NULL;
    } else if (is_one_of(v->text, yes) || is_one_of(v->text, no)) {
        v->type = CFG_BOOL;
        v->b = is_one_of(v->text, yes);
    } else if (is_one_of(v->text, nan)) {
        v->type = CFG_DOUBLE;
        v->d = NAN;
    } else if (is_one_of(v->text, inf) || is_one_of(v->text, minus)) {
        v->type = CFG_DOUBLE;
        v->d = is_one_of(v->text, minus) ? -INFINITY : INFINITY;
    } else {
        return false;
    }
    return true;
}

/* One or two (or exactly four) digits between lo and hi; moves *p behind them. */
static bool number(const char **p, int digits, int lo, int hi, int *ret)
{
    int n = 0, value = 0;
    for (; n < digits && isdigit((unsigned char)**p); n++)
        value = value * 10 + *(*p)++ - '0';
    *ret = value;
    return n > 0 && (digits == 2 || n == digits) && value >= lo && value <= hi;
}

static bool literal(const char **p, char c)
{
    if (**p != c)
        return false;
    ++*p;
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool scan_clock(const char **p)
{
    int n;
    if (!number(p, 2, 0, 23, &n) || !literal(p, ':') || !number(p, 2, 0, 59, &n) ||
        !literal(p, ':') || !number(p, 2, 0, 59, &n))
        return false;
    if ((**p == '.' || **p == ',') && isdigit((unsigned char)(*p)[1]))
        *p += 1 + strspn(*p + 1, "0123456789");
    return true;
}

static bool scan_zone(const char **p)
{
    int n;
    if (literal(p, 'Z'))
        return true;
    return (literal(p, '+') || literal(p, '-')) && number(p, 2, 0, 24, &n) && literal(p, ':') &&
           number(p, 2, 0, 60, &n);
}

/* "2006-1-2", "2006-1-2 15:4:5.9", "2006-1-2T15:4:5.9Z" (or t, or with an offset). */
static bool is_timestamp(const char *p)
{
    int year, month, day;
    if (!number(&p, 4, 0, 9999, &year) || !literal(&p, '-') || !number(&p, 2, 1, 12, &month) ||
        !literal(&p, '-') || !number(&p, 2, 1, 31, &day) || day > days_in(year, month))
        return false;
    if (literal(&p, 'T') || literal(&p, 't'))
        return scan_clock(&p) && scan_zone(&p) && !*p;
    if (*p == ' ') {
        p += strspn(p, " ");
        return scan_clock(&p) && !*p;
    }
    return !*p;
}

/* The base that a prefix announces; moves *p behind the prefix. */
static int base_of(const char **p)
{
    if (**p != '0' || !(*p)[1])
        return 10;
    int base = strchr("xX", (*p)[1])   ? 16
               : strchr("oO", (*p)[1]) ? 8
               : strchr("bB", (*p)[1]) ? 2
                                       : 0;
    if (base)
        *p += 2;
    else
        *p += 1;
    return base ? base : 8;
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
                                        : 99;
}

/* The whole of `p` as digits of its base; false when it is none or does not fit. */
static bool parse_magnitude(const char *p, uint64_t *ret)
{
    int base = base_of(&p);
    bool digits = false;
    for (*ret = 0; digit_of(*p) < base; p++, digits = true)
        if (__builtin_mul_overflow(*ret, (uint64_t)base, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)digit_of(*p), ret))
            return false;
    return digits && *p == 0;
}

static bool resolve_int(struct cfg_value *v, const char *plain)
{
    bool negative = *plain == '-', sign = negative || *plain == '+';
    uint64_t u;
    if (!parse_magnitude(plain + sign, &u))
        return false;
    if (negative ? u > (uint64_t)INT64_MAX + 1 : u > INT64_MAX) {
        v->u = u;
        v->type = CFG_UINT;
        return !sign;
    }
    v->i = negative ? (int64_t)(0 - u) : (int64_t)u;
    v->type = CFG_INT;
    return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_like_float(const char *p)
{
    static const char digits[] = "0123456789";
    p += *p == '-' || *p == '+';
    size_t whole = strspn(p, digits), fraction = 0;
    p += whole;
    if (*p == '.') {
        fraction = strspn(p + 1, digits);
        p += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t n = strspn(p, digits);
        if (n == 0)
            return false;
        p += n;
    }
    return *p == 0;
}

static bool resolve_float(struct cfg_value *v, const char *plain)
{
    if (!looks_like_float(plain))
        return false;
    double d = strtod(plain, NULL);
    if (isinf(d))
        return false;
    v->d = d;
    v->type = CFG_DOUBLE;
    return true;
}

/* Copies without underscores; false when it does not fit (then it is no number). */
static bool without_underscores(const char *text, char *ret, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        if (*text != '_')
            ret[n++] = *text;
    ret[n] = 0;
    return *text == 0;
}

/* Whether every underscore stands between two digits, as a number that begins with a dot wants it.
 */
static bool underscores_fit(const char *text)
{
    for (const char *p = text; (p = strchr(p, '_')); p++)
        if (p == text || !isdigit((unsigned char)p[-1]) || !isdigit((unsigned char)p[1]))
            return false;
    return true;
}

static bool resolve_number(struct cfg_value *v)
{
    char plain[512];
    if (!without_underscores(v->text, plain, sizeof(plain)))
        return false;
    if (*v->text == '.')
        return underscores_fit(v->text) && resolve_float(v, plain);
    return resolve_int(v, plain) || resolve_float(v, plain);
}

void cfg_resolve(struct cfg_value *v)
{
    v->type = CFG_STRING;
    if (strlen(v->text) != v->text_len || resolve_word(v))
        return;
    if (!isdigit((unsigned char)*v->text) && !strchr("-+.", *v->text))
        return;
    if (is_timestamp(v->text))
        v->type = CFG_TIMESTAMP;
    else if (!resolve_number(v))
        v->type = CFG_STRING;
}
