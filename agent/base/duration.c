/* Durations as Go reads and writes them. */
#include "agent/base/duration.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/cleanup.h"

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},       {"us", 1000},      {"\xc2\xb5s", 1000}, {"\xce\xbcs", 1000},
    {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
};

/* The unit that is the text up to the next digit or dot; moves *p behind it. */
static uint64_t scan_unit(const char **p)
{
    size_t n = strcspn(*p, "0123456789.");
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strlen(units[i].name) == n && strncmp(units[i].name, *p, n) == 0) {
            *p += n;
            return units[i].ns;
        }
    return 0;
}

/* Digits; false past 2^63. */
static bool scan_whole(const char **p, uint64_t *ret)
{
    for (*ret = 0; isdigit((unsigned char)**p); ++*p) {
        if (*ret > ((uint64_t)1 << 63) / 10)
            return false;
        *ret = *ret * 10 + (uint64_t)(**p - '0');
        if (*ret > (uint64_t)1 << 63)
            return false;
    }
    return true;
}

/* Digits behind a dot as a number and its scale; what does not fit is cut off. */
static void scan_fraction(const char **p, uint64_t *ret, double *ret_scale)
{
    bool full = false;
    *ret = 0;
    for (*ret_scale = 1; isdigit((unsigned char)**p); ++*p) {
        full = full || *ret > (INT64_MAX - 9) / 10;
        if (full)
            continue;
        *ret = *ret * 10 + (uint64_t)(**p - '0');
        *ret_scale *= 10;
    }
}

/* "1.5h": one number with its unit, added to *total. */
static bool scan_part(const char **p, uint64_t *total)
{
    uint64_t whole, fraction = 0, ns;
    double scale = 1;
    const char *start = *p;
    if (!scan_whole(p, &whole))
        return false;
    bool digits = *p > start;
    if (**p == '.') {
        start = ++*p;
        scan_fraction(p, &fraction, &scale);
        digits = digits || *p > start;
    }
    if (!digits || (ns = scan_unit(p)) == 0 || whole > ((uint64_t)1 << 63) / ns)
        return false;
    uint64_t v = whole * ns + (uint64_t)((double)fraction * ((double)ns / scale));
    if (v > (uint64_t)1 << 63)
        return false;
    *total += v;
    return *total <= (uint64_t)1 << 63;
}

int duration_parse(const char *text, int64_t *ret_ns)
{
    bool negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+');
    uint64_t total = 0;
    if (strcmp(p, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    if (!*p)
        return -EINVAL;
    while (*p)
        if (!scan_part(&p, &total))
            return -EINVAL;
    if (!negative && total > INT64_MAX)
        return -EINVAL;
    *ret_ns = negative ? (int64_t)(0 - total) : (int64_t)total;
    return 0;
}

/* "1.5" for 1500 in units of 1000: no trailing zeros. */
static int format_decimal(char *ret, size_t size, uint64_t value, uint64_t unit)
{
    int n = snprintf(ret, size, "%" PRIu64, value / unit);
    uint64_t rest = value % unit;
    if (rest == 0)
        return n;
    ret[n++] = '.';
    for (unit /= 10; rest; rest %= unit, unit /= 10)
        ret[n++] = (char)('0' + rest / unit);
    ret[n] = 0;
    return n;
}

void duration_text(int64_t ns, char ret[32])
{
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char *p = ret;
    if (ns < 0)
        *p++ = '-';
    if (u == 0) {
        strncpy(p, "0s", 3);
    } else if (u < 1000000000) {
        uint64_t unit = u < 1000 ? 1 : u < 1000000 ? 1000 : 1000000;
        p += format_decimal(p, 24, u, unit);
        snprintf(p, 4, "%s", unit == 1 ? "ns" : unit == 1000 ? "\xc2\xb5s" : "ms");
    } else {
        uint64_t minutes = u / 60000000000;
        if (minutes >= 60)
            p += snprintf(p, 12, "%" PRIu64 "h", minutes / 60);
        if (minutes)
            p += snprintf(p, 4, "%um", (unsigned)(minutes % 60));
        p += format_decimal(p, 16, u % 60000000000, 1000000000);
        *p++ = 's';
        *p = 0;
    }
}
