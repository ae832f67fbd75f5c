/* Numbers of the exposition formats: ParseFloat(s, 64) of Go before 1.13. */
#include "agent/base/number.h"
#include "receivers/prometheus/powers.h"
#include "receivers/prometheus/scan.h"

#define MOST_DIGITS 19                    /* any integer of that many digits fits in 64 bits */
#define EXACT_INTEGER ((uint64_t)1 << 53) /* up to here every integer is a double */

#define MANTISSA_BITS 52 /* of a double, as they are stored */
#define EXPONENT_BIAS 1023
#define EXPONENT_MAX 2047 /* infinity */

/* Powers of ten that are doubles. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define EXACT_POWER ((int)ARRAY_SIZE(powers) - 1)

/* digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
    bool minus;
};

static bool is_digit(uint8_t c)
{
    return (unsigned)(c - '0') < 10;
}

static const uint8_t *skip_zeros(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p == '0')
        p++;
    return p;
}

/* May overflow where there are more than MOST_DIGITS, which the caller finds out. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    for (; p < end && is_digit(*p); p++)
        *v = *v * 10 + (uint64_t)(*p - '0');
    return p;
}

/* "e5", "e-07", "E+3" at p; NULL for anything else. */
static const uint8_t *read_exponent(const uint8_t *p, const uint8_t *end, struct decimal *d)
{
    if (++p == end)
        return NULL;
    const bool minus = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    int v = 0;
    const uint8_t *first = p;
    for (; p < end && is_digit(*p); p++)
        if (v < 1000)
            v = v * 10 + (*p - '0');
    d->exponent += minus ? -v : v;
    return p > first ? p : NULL;
}

/* Behind the number; NULL when there is none or it has too many digits. */
static const uint8_t *read_decimal(const uint8_t *p, const uint8_t *end, struct decimal *d)
{
    if (p < end && (*p == '-' || *p == '+'))
        d->minus = *p++ == '-';
    const uint8_t *start = p, *first = skip_zeros(p, end);
    p = read_digits(first, end, &d->digits);
    size_t n = (size_t)(p - first), all = (size_t)(p - start);
    if (p < end && *p == '.') {
        const uint8_t *fraction = ++p;
        first = n ? p : skip_zeros(p, end);
        p = read_digits(first, end, &d->digits);
        n += (size_t)(p - first);
        all += (size_t)(p - fraction);
        if (p - fraction > 1000)
            return NULL;
        d->exponent = -(int)(p - fraction);
    }
    if (all == 0 || n > MOST_DIGITS)
        return NULL;
    return p < end && (*p | 0x20) == 'e' ? read_exponent(p, end, d) : p;
}

/*
 * The double nearest to digits * 10^exponent, digits not 0; false where this quick way does not
 * say. The product of the digits and the 128 leading bits of the power of five is exact enough for
 * all but a few numbers, which are noticed.
 */
static bool nearest(uint64_t digits, int exponent, double *ret)
{
    if (exponent < POWER_MIN || exponent > POWER_MAX)
        return false;
    const uint64_t *power = powers_of_five[exponent - POWER_MIN];
    const int zeros = __builtin_clzll(digits);
    const unsigned __int128 product = (unsigned __int128)(digits << zeros) * power[0];
    uint64_t upper = (uint64_t)(product >> 64), lower = (uint64_t)product;
    if ((upper & 0x1ff) == 0x1ff) { /* the lower half of the power may make a difference */
        const uint64_t more = (uint64_t)(((unsigned __int128)(digits << zeros) * power[1]) >> 64);
        lower += more;
        upper += lower < more;
        if (lower == UINT64_MAX)
            return false;
    }
    const int top = (int)(upper >> 63), shift = top + 64 - MANTISSA_BITS - 3;
    const int binary = ((217706 * exponent) >> 16) + 63 + top - zeros + EXPONENT_BIAS;
    uint64_t mantissa = upper >> shift; /* with one bit more, for rounding */
    if (lower <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 &&
        mantissa << shift == upper)
        mantissa &= ~(uint64_t)1; /* half way between two: to the even one */
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    const bool carried = mantissa >> (MANTISSA_BITS + 1);
    if (binary <= 0 || binary + carried >= EXPONENT_MAX)
        return false;
    const uint64_t bits = (uint64_t)(binary + carried) << MANTISSA_BITS |
                          (carried ? 0 : mantissa & (((uint64_t)1 << MANTISSA_BITS) - 1));
    memcpy(ret, &bits, sizeof(bits));
    return true;
}

/* The numbers of nearly all pages: one exact multiplication or division gives the nearest double.
 */
static bool to_double(const struct decimal *d, double *ret)
{
    double v = 0;
    if (d->digits <= EXACT_INTEGER && d->exponent >= -EXACT_POWER && d->exponent <= EXACT_POWER)
        v = d->exponent < 0 ? (double)d->digits / powers[-d->exponent]
                            : (double)d->digits * powers[d->exponent];
    else if (d->digits && !nearest(d->digits, d->exponent, &v))
        return false;
    *ret = d->minus ? -v : v;
    return true;
}

const uint8_t *prom_scan_double(const uint8_t *p, const uint8_t *end, double *ret)
{
    struct decimal d = {0};
    p = read_decimal(p, end, &d);
    return p && to_double(&d, ret) ? p : NULL;
}

bool prom_quick_double(struct bytes text, double *ret)
{
    const uint8_t *end = text.data + text.len;
    return text.len && prom_scan_double(text.data, end, ret) == end;
}

bool prom_parse_double(struct bytes text, double *ret)
{
    if (prom_quick_double(text, ret))
        return true;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '_' || (text.data[i] | 0x20) == 'p')
            return false;
    return number_parse_double(text, ret);
}
