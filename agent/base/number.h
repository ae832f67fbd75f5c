/* Numbers out of text, by the rules of Go's strconv, which the reference's conversions follow. */
#ifndef MOTEL_BASE_NUMBER_H
#define MOTEL_BASE_NUMBER_H

#include "agent/base/bytes.h"

/* ParseInt(s, 10, 64): digits with an optional sign, nothing else; false when it is none or does not fit. */
bool number_parse_int(struct bytes text, int64_t *ret);
/* ParseFloat(s, 64): decimal, hexadecimal with an exponent ("0x1p-2"), "inf", "Infinity", "NaN" in any case, `_` between
 * digits; no space. False when it is none or too large; too small is 0. */
bool number_parse_double(struct bytes text, double *ret);
/* int64(f) as amd64 does it: cut towards 0; not-a-number and what does not fit are INT64_MIN. */
int64_t number_double_to_int(double f);

/* The not-a-number that Go makes; its bits show in protobuf and in hashes. */
static inline double number_nan(void)
{
    const uint64_t bits = 0x7ff8000000000001;
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

#endif
