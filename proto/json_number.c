/* Numbers of OTLP/JSON: integers without a trip through double, doubles with a fast way for the
 * usual ones. */
#include "proto/json_number.h"

#include <errno.h>
#include <math.h>

#include "agent/base/number.h"

int json_parse_uint(struct bytes text, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    if (text.len == 0)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = text.data[i] - (unsigned)'0';
        if (digit > 9)
            return -EINVAL;
        if (v > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        v = v * 10 + digit;
    }
    *ret = v;
    return v > max ? -ERANGE : 0;
}

int json_parse_int(struct bytes text, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = text.len && text.data[0] == '-';
    bool sign = negative || (text.len && text.data[0] == '+');
    uint64_t limit = negative ? 0 - (uint64_t)min : (uint64_t)max, v = 0;
    int r = json_parse_uint(bytes_of(text.data + sign, text.len - sign), limit, &v);
    *ret = (int64_t)(negative ? 0 - v : v);
    return r;
}

/* 123, 1.25: at most 15 digits and 22 decimals are exact in a double, and so is the quotient's
 * rounding. */
static bool parse_plain(struct bytes text, double *ret)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint8_t *p = text.data, *end = p + text.len, *point = NULL;
    bool negative = p < end && *p == '-';
    uint64_t m = 0;
    p += negative;
    if (p == end || end - p > 17)
        return false;
    for (; p < end; p++) {
        if (*p == '.' && !point)
            point = p + 1;
        else if (*p >= '0' && *p <= '9')
            m = m * 10 + (*p - '0');
        else
            return false;
    }
    if (m >= 1000000000000000)
        return false;
    double v = (double)m / powers[point ? end - point : 0];
    *ret = negative ? -v : v;
    return true;
}

int json_parse_double(struct bytes number, double *ret)
{
    return parse_plain(number, ret) || number_parse_double(number, ret) ? 0 : -EINVAL;
}
