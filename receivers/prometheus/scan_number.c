/* Numbers of the exposition formats: ParseFloat(s, 64) of Go before 1.13. */
#include "agent/base/number.h"
#include "receivers/prometheus/scan.h"

#define EXACT_DIGITS 15 /* any integer of that many digits is a double */

/* Powers of ten that are doubles. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define EXACT_POWER ((int)ARRAY_SIZE(powers) - 1)

struct decimal {
    uint64_t digits;
    int n, exponent;
    bool minus;
};

static bool is_digit(uint8_t c)
{
    return (unsigned)(c - '0') < 10;
}

static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, struct decimal *d)
{
    for (; p < end && is_digit(*p) && d->n < EXACT_DIGITS; p++, d->n++)
        d->digits = d->digits * 10 + (uint64_t)(*p - '0');
    return p;
}

/* "e5", "e-07", "E+3": false for anything else. */
static bool read_exponent(const uint8_t *p, const uint8_t *end, struct decimal *d)
{
    if (p == end || (*p | 0x20) != 'e' || ++p == end)
        return false;
    const bool minus = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    int v = 0;
    const uint8_t *first = p;
    for (; p < end && is_digit(*p) && v < 1000; p++)
        v = v * 10 + (*p - '0');
    d->exponent += minus ? -v : v;
    return p == end && p > first;
}

static bool read_decimal(struct bytes text, struct decimal *d)
{
    const uint8_t *p = text.data, *end = p + text.len;
    if (p < end && (*p == '-' || *p == '+'))
        d->minus = *p++ == '-';
    p = read_digits(p, end, d);
    if (p < end && *p == '.') {
        const int whole = d->n;
        p = read_digits(p + 1, end, d);
        d->exponent = whole - d->n;
    }
    return d->n > 0 && (p == end || read_exponent(p, end, d));
}

/* The numbers of nearly all pages: one exact multiplication or division gives the nearest double.
 */
static bool quick(struct bytes text, double *ret)
{
    struct decimal d = {0};
    if (!read_decimal(text, &d) || d.exponent < -EXACT_POWER || d.exponent > EXACT_POWER)
        return false;
    double v = (double)d.digits;
    v = d.exponent < 0 ? v / powers[-d.exponent] : v * powers[d.exponent];
    *ret = d.minus ? -v : v;
    return true;
}

bool prom_parse_double(struct bytes text, double *ret)
{
    if (quick(text, ret))
        return true;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '_' || (text.data[i] | 0x20) == 'p')
            return false;
    return number_parse_double(text, ret);
}
