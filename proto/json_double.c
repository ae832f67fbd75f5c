/* Shortest decimal text of doubles, in the forms of Go, ECMAScript and Python. */
#include <math.h>
#include <stdio.h>

#include "proto/json.h"

/* 0.DIGITS times 10 to the `point`; at least one digit, no zeros at either end unless the value is
 * 0. */
struct decimal {
    char digits[24];
    int n, point;
};

static const double powers_of_ten[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static void strip_zeros(struct decimal *d)
{
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
}

static void set_integer(struct decimal *d, uint64_t m, int decimals)
{
    char text[20];
    int n = 0;
    do
        text[n++] = (char)('0' + m % 10);
    while (m /= 10);
    for (int i = 0; i < n; i++)
        d->digits[i] = text[n - 1 - i];
    d->n = n;
    d->point = n - decimals;
    strip_zeros(d);
}

/*
 * v as m / 10^k with at most 15 digits. Two different decimals of 15 digits never read back as one
 * double, so the one that is found is the shortest; and v * 10^k is off by less than 1/2 there, so
 * it is found when it exists (with up to 22 decimals, for no more is exact in 10^k).
 */
static bool from_fraction(double v, unsigned max_decimals, struct decimal *d)
{
    if (v < 9007199254740992.0 && v == (double)(uint64_t)v) {
        set_integer(d, (uint64_t)v, 0);
        return true;
    }
    for (unsigned k = 1; k <= max_decimals; k++) {
        double m = nearbyint(v * powers_of_ten[k]);
        if (m >= 1e15)
            return false;
        if (m / powers_of_ten[k] == v) {
            set_integer(d, (uint64_t)m, (int)k);
            return true;
        }
    }
    return false;
}

/* v * 10^decimals exactly: 17 digits before the point, and what is behind it in units of 2^-shift.
 */
struct scaled {
    uint64_t whole;
    unsigned __int128 rest, power;
    int shift, decimals;
};

static struct scaled scale(uint64_t m, int shift, int decimals)
{
    const unsigned __int128 power = (unsigned __int128)powers_of_ten[decimals], product = m * power;
    return (struct scaled){
        .whole = (uint64_t)(product >> shift),
        .rest = product & (((unsigned __int128)1 << shift) - 1),
        .power = power,
        .shift = shift,
        .decimals = decimals,
    };
}

/* Whether `n` reads back: it is less than half a step of the mantissa away from x, or just so far
 * from an even one. */
static bool reads_as(const struct scaled *x, uint64_t n, bool even)
{
    int64_t whole = (int64_t)(n - x->whole);
    if (whole < -12 || whole > 12) /* half a step is 10^17 / 2^53 at most */
        return false;
    __int128 off = whole * ((__int128)2 << x->shift) - (__int128)(x->rest << 1);
    unsigned __int128 distance = (unsigned __int128)(off < 0 ? -off : off);
    return distance < x->power || (even && distance == x->power);
}

/* x to the nearest multiple of `unit`; of two that are as near, the even one. */
static uint64_t nearest(const struct scaled *x, uint64_t unit)
{
    uint64_t n = x->whole / unit, left = x->whole % unit;
    unsigned __int128 half = unit > 1 ? 0 : (unsigned __int128)1 << (x->shift - 1);
    bool at_half = left == unit / 2;
    bool up = left > unit / 2 || (at_half && (x->rest > half || (x->rest == half && n % 2)));
    return (n + up) * unit;
}

/*
 * Numbers of the usual size: the mantissa times a power of ten fits 128 bits, so that it can be
 * told exactly which shorter numbers read back.
 */
static bool from_product(double v, struct decimal *d)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    int exponent = (int)(bits >> 52) - 1023;
    uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
    if (exponent < -19 || exponent > 49 ||
        m == 0x10000000000000) /* powers of two have uneven steps around */
        return false;
    struct scaled x = scale(m, 52 - exponent, 16 - (exponent * 1233 >> 12));
    if (x.whole >= 100000000000000000)
        x = scale(m, x.shift, x.decimals - 1);
    if (x.whole < 10000000000000000)
        return false;
    uint64_t best = nearest(&x, 1);
    for (uint64_t unit = 10;; unit *= 10) {
        uint64_t n = nearest(&x, unit);
        if (!reads_as(&x, n, m % 2 == 0))
            break;
        best = n;
    }
    set_integer(d, best, x.decimals);
    return true;
}

/* "d.ddde±xx" into digits and point. */
static void from_scientific(const char *text, struct decimal *d)
{
    d->n = 0;
    for (; *text && *text != 'e'; text++)
        if (*text != '.')
            d->digits[d->n++] = *text;
    d->point = (int)strtol(text + 1, NULL, 10) + 1;
    strip_zeros(d);
}

static bool reads_back(const char *text, double v)
{
    return strtod(text, NULL) == v;
}

/* The next larger number of as many digits. */
static void next_up(char *text)
{
    char *p = strchr(text, 'e') - 1;
    for (; p > text && *p == '9'; p--)
        if (*p != '.')
            *p = '0';
    if (*p == '.')
        p--;
    ++*p;
}

/*
 * More and more digits until the text reads back. Below a power of two doubles lie closer than
 * above it: there the nearest text may fall into the smaller gap while its upper neighbour is as
 * short and reads back.
 */
static void from_ladder(double v, struct decimal *d)
{
    char text[40];
    int exponent;
    bool power = frexp(v, &exponent) == 0.5;
    for (int digits = v < 2.2250738585072014e-308 ? 1 : 15; digits < 17; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, v);
        bool found = reads_back(text, v);
        if (!found && power && digits == 16) {
            next_up(text);
            found = reads_back(text, v);
        }
        if (found) {
            from_scientific(text, d);
            return;
        }
    }
    snprintf(text, sizeof(text), "%.16e", v);
    from_scientific(text, d);
}

static char *put_zeros(char *p, int n)
{
    for (; n > 0; n--)
        *p++ = '0';
    return p;
}

static char *put_digits(char *p, const char *digits, int n)
{
    memcpy(p, digits, (size_t)n);
    return p + n;
}

/* 123, 1200, 0.0012, 1.5 */
static char *put_plain(char *p, const struct decimal *d)
{
    if (d->point <= 0) {
        *p++ = '0';
        *p++ = '.';
        return put_digits(put_zeros(p, -d->point), d->digits, d->n);
    }
    if (d->point >= d->n)
        return put_zeros(put_digits(p, d->digits, d->n), d->point - d->n);
    p = put_digits(p, d->digits, d->point);
    *p++ = '.';
    return put_digits(p, d->digits + d->point, d->n - d->point);
}

/* 1e-07, 1.5e+21; with one exponent digit where that is enough and `wide` is false */
static char *put_scientific(char *p, const struct decimal *d, bool wide)
{
    int e = d->point - 1;
    *p++ = d->digits[0];
    if (d->n > 1) {
        *p++ = '.';
        p = put_digits(p, d->digits + 1, d->n - 1);
    }
    *p++ = 'e';
    *p++ = e < 0 ? '-' : '+';
    e = abs(e);
    if (e >= 100)
        *p++ = (char)('0' + e / 100);
    if (e >= 10 || wide)
        *p++ = (char)('0' + e / 10 % 10);
    *p++ = (char)('0' + e % 10);
    return p;
}

static size_t put_special(double v, enum double_style style, char *out)
{
    static const char *const words[][3] = {
        [DOUBLE_JSON] = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""},
        [DOUBLE_ECMA] = {"NaN", "Infinity", "-Infinity"},
        [DOUBLE_GO] = {"NaN", "+Inf", "-Inf"},
        [DOUBLE_PYTHON] = {"NaN", "Infinity", "-Infinity"},
    };
    const char *word = words[style][isnan(v) ? 0 : v > 0 ? 1 : 2];
    memcpy(out, word, strlen(word));
    return strlen(word);
}

size_t double_text(double v, enum double_style style, char *out)
{
    /* Decimal exponents (of d.ddd) below and from which the scientific form is used. */
    static const struct {
        int below, from;
    } limits[] = {
        [DOUBLE_JSON] = {-6, 21},
        [DOUBLE_ECMA] = {-6, 21},
        [DOUBLE_GO] = {-4, 6},
        [DOUBLE_PYTHON] = {-4, 16},
    };
    if (!isfinite(v))
        return put_special(v, style, out);
    char *p = out;
    if (signbit(v))
        *p++ = '-';
    v = fabs(v);
    struct decimal d;
    if (!from_fraction(v, 3, &d) && !from_product(v, &d) && !from_fraction(v, 22, &d))
        from_ladder(v, &d);
    int e = d.point - 1;
    if (v != 0 && (e < limits[style].below || e >= limits[style].from))
        return (size_t)(put_scientific(p, &d, style != DOUBLE_ECMA) - out);
    p = put_plain(p, &d);
    if (style == DOUBLE_PYTHON && d.point >= d.n) {
        *p++ = '.';
        *p++ = '0';
    }
    return (size_t)(p - out);
}

size_t json_double(double v, char *out)
{
    return double_text(v, DOUBLE_JSON, out);
}
