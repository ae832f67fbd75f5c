#include "ottl/civil.h"

#include <stdio.h>

#define NS 1000000000ll
#define DAY_S 86400ll

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- dates ---- */

/* Months counted from March make the leap day the last of the year. 400 years have 146097 days. */
int64_t civil_days(int64_t year, int64_t month, int64_t day)
{
    year += floor_div(month - 1, 12);
    int64_t m = (month - 1) - floor_div(month - 1, 12) * 12;
    if (m < 2)
        year--;
    int64_t from_march = (m + 10) % 12, era = floor_div(year, 400), in_era = year - era * 400;
    int64_t in_year = (153 * from_march + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static void set_date(struct civil *c, int64_t days)
{
    int64_t z = days + 719468, era = floor_div(z, 146097), in_era = z - era * 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100), m = (5 * in_year + 2) / 153;
    c->day = (int)(in_year - (153 * m + 2) / 5 + 1);
    c->month = (int)(m < 10 ? m + 3 : m - 9);
    c->year = y + era * 400 + (c->month <= 2);
}

int civil_days_in_month(int64_t year, int month)
{
    return (int)(civil_days(year, month + 1, 1) - civil_days(year, month, 1));
}

struct civil civil_from_ns(int64_t ns)
{
    struct civil c = {0};
    int64_t s = floor_div(ns, NS), days = floor_div(s, DAY_S), in_day = s - days * DAY_S;
    set_date(&c, days);
    c.nanosecond = (int)(ns - s * NS);
    c.hour = (int)(in_day / 3600);
    c.minute = (int)(in_day / 60 % 60);
    c.second = (int)(in_day % 60);
    c.weekday = (int)(days + 4 - floor_div(days + 4, 7) * 7);
    c.yearday = (int)(days - civil_days(c.year, 1, 1)) + 1;
    return c;
}

bool civil_to_ns(int64_t seconds, int64_t nanosecond, int64_t *ret)
{
    int64_t ns;
    return !__builtin_mul_overflow(seconds, NS, &ns) &&
           !__builtin_add_overflow(ns, nanosecond, ret);
}

/* ---- texts ---- */

/* "." and the digits of `v` (below 10^digits) without zeros at the end; nothing for 0. */
static size_t put_fraction(uint64_t v, int digits, char *out)
{
    if (v == 0)
        return 0;
    for (; v % 10 == 0; digits--)
        v /= 10;
    out[0] = '.';
    for (int i = digits; i > 0; i--, v /= 10)
        out[i] = (char)('0' + v % 10);
    return (size_t)digits + 1;
}

size_t civil_rfc3339(int64_t ns, char ret[CIVIL_RFC3339_BYTES])
{
    struct civil c = civil_from_ns(ns);
    int n = snprintf(ret, CIVIL_RFC3339_BYTES, "%04d-%02u-%02uT%02u:%02u:%02u", (int)c.year,
                     (unsigned)c.month % 100, (unsigned)c.day % 100, (unsigned)c.hour % 100,
                     (unsigned)c.minute % 100, (unsigned)c.second % 100);
    size_t len = (size_t)n + put_fraction((uint64_t)c.nanosecond, 9, ret + n);
    ret[len++] = 'Z';
    return len;
}
