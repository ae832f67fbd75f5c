#include "ottl/strptime.h"

#include <errno.h>
#include <strings.h>
#include <time.h>

#include "ottl/civil.h"

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

/* Directives that stand for several; NULL = none. */
static const char *expansion(char directive)
{
    switch (directive) {
    case 'D':
    case 'x': return "%m/%d/%Y";
    case 'F': return "%Y-%m-%d";
    case 'T':
    case 'X': return "%H:%M:%S";
    case 'r': return "%I:%M:%S %P";
    case 'R': return "%H:%M";
    case 'c': return "%a %b %d %H:%M:%S %Y";
    case 'n': return "\n";
    case 't': return "\t";
    default: return NULL;
    }
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* A dot or comma with %L, %f or %s behind it. */
static bool is_fraction(struct bytes format)
{
    return format.len >= 3 && (format.data[0] == '.' || format.data[0] == ',') &&
           format.data[1] == '%' && format.data[2] && strchr("Lfs", format.data[2]);
}

static struct bytes skip(struct bytes s, size_t n)
{
    return bytes_of(s.data + n, s.len - n);
}

int strptime_check(struct bytes format, struct err *reterr)
{
    for (size_t i = 0; i < format.len; i++) {
        uint8_t c = format.data[i], next = i + 1 < format.len ? format.data[i + 1] : 0;
        if (is_digit(c))
            return err_set(reterr, -EINVAL, "format string should not contain decimals");
        if (is_fraction(skip(format, i)))
            i += 2;
        else if (c == '%' && next && strchr("Lfs", next))
            return err_set(
                reterr, -EINVAL,
                "invalid fractional seconds directive: '%%%c'. must be preceded with '.' "
                "or ','",
                next);
        else if (c == '%' && !(next && strchr("YymoqbhBdegaAHlIpPMSZzwijkDxFTXrRntc%", next)))
            return err_set(reterr, -EINVAL, "invalid strptime format: unsupported directive: %%%c",
                           next ? next : ' ');
        else
            i += c == '%';
    }
    return 0;
}

/* ---- reading ---- */

struct parse {
    struct bytes rest;
    int64_t year;
    bool year_given, pm, am, zone_given;
    bool no_memory; /* why nothing could be taken */
    int month, day, hour, minute, second, nanosecond;
    int64_t offset_s; /* of the zone */
};

/* Digits, `least` to `most` of them, with spaces before. */
static bool take_number(struct parse *p, size_t least, size_t most, int *ret)
{
    size_t n = 0;
    while (p->rest.len &&
           (p->rest.data[0] == ' ' || (p->rest.data[0] >= '\t' && p->rest.data[0] <= '\r')))
        p->rest = skip(p->rest, 1);
    for (*ret = 0; n < most && n < p->rest.len && is_digit(p->rest.data[n]); n++)
        *ret = *ret * 10 + (p->rest.data[n] - '0');
    p->rest = skip(p->rest, n);
    return n >= least;
}

static bool take_between(struct parse *p, int low, int high, int *ret)
{
    return take_number(p, 1, 2, ret) && *ret >= low && *ret <= high;
}

/* One of the names, or of their first three letters, in any case. */
static bool take_name(struct parse *p, const char *const *names, int n, bool whole, int *ret)
{
    for (int i = 0; i < n; i++) {
        size_t len = whole ? strlen(names[i]) : 3;
        if (p->rest.len >= len && strncasecmp((const char *)p->rest.data, names[i], len) == 0) {
            p->rest = skip(p->rest, len);
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool take_word(struct parse *p, const char *word)
{
    size_t n = strlen(word);
    if (p->rest.len < n || memcmp(p->rest.data, word, n) != 0)
        return false;
    p->rest = skip(p->rest, n);
    return true;
}

static bool take_half(struct parse *p, const char *am, const char *pm)
{
    p->am = take_word(p, am);
    p->pm = !p->am && take_word(p, pm);
    return p->am || p->pm;
}

/* Any number of digits behind a dot or comma, when they are there. */
static void take_fraction(struct parse *p)
{
    struct bytes s = p->rest;
    if (s.len < 2 || (s.data[0] != '.' && s.data[0] != ',') || !is_digit(s.data[1]))
        return;
    int scale = 100000000;
    p->nanosecond = 0;
    for (s = skip(s, 1); s.len && is_digit(s.data[0]); s = skip(s, 1), scale /= 10)
        p->nanosecond += (s.data[0] - '0') * scale;
    p->rest = s;
}

static bool take_second(struct parse *p, struct bytes format)
{
    if (!take_between(p, 0, 59, &p->second))
        return false;
    if (!is_fraction(format))
        take_fraction(p);
    return true;
}

static bool take_year(struct parse *p, size_t digits)
{
    struct bytes before = p->rest;
    int year;
    if (!take_number(p, digits, digits, &year)) {
        p->rest = before;
        return false;
    }
    p->year = digits == 4 ? year : year + (year >= 69 ? 1900 : 2000);
    p->year_given = p->year > 0;
    return true;
}

static bool take_two(struct parse *p, int64_t unit, int64_t *offset)
{
    if (p->rest.len < 2 || !is_digit(p->rest.data[0]) || !is_digit(p->rest.data[1]))
        return false;
    *offset += unit * ((p->rest.data[0] - '0') * 10 + (p->rest.data[1] - '0'));
    p->rest = skip(p->rest, 2);
    return true;
}

/* Sign and hours, then `parts` - 1 more of two digits, behind a colon each when `colon`. */
static bool take_offset(struct parse *p, int parts, bool colon)
{
    int64_t offset = 0, unit = 3600;
    struct bytes before = p->rest;
    bool minus = take_word(p, "-"), ok = minus || take_word(p, "+");
    ok = ok && take_two(p, unit, &offset);
    for (int i = 1; ok && i < parts; i++)
        ok = (!colon || take_word(p, ":")) && take_two(p, unit /= 60, &offset);
    if (!ok) {
        p->rest = before;
        return false;
    }
    p->offset_s = minus ? -offset : offset;
    p->zone_given = true;
    return true;
}

/* Z, +0100, +01:00 or +01. */
static bool take_any_offset(struct parse *p)
{
    if (take_word(p, "Z"))
        return p->zone_given = true;
    return take_offset(p, 2, false) || take_offset(p, 2, true) || take_offset(p, 1, false);
}

/* An abbreviation: UTC, or a zone of the database that is named like it ("EST", "CET"). */
static bool take_zone_name(struct parse *p)
{
    _cleanup_(zone_freep) struct zone *zone = NULL;
    size_t n = 0;
    while (n < p->rest.len && n < 6 && p->rest.data[n] >= 'A' && p->rest.data[n] <= 'Z')
        n++;
    struct bytes name = bytes_of(p->rest.data, n);
    p->rest = skip(p->rest, n);
    if (n < 3 || n > 5)
        return false;
    p->zone_given = true;
    if (bytes_eq_str(name, "UTC") || bytes_eq_str(name, "GMT"))
        return true;
    int r = zone_load(name, &zone, NULL);
    p->no_memory = r == -ENOMEM;
    p->offset_s = r == 0 ? zone_standard_offset(zone) : 0;
    return r == 0;
}

/* What stands between the directives. A space takes any number of them, at the end none is needed.
 */
static bool take_literal(struct parse *p, uint8_t c)
{
    if (c == ' ') {
        if (p->rest.len && p->rest.data[0] != ' ')
            return false;
        while (p->rest.len && p->rest.data[0] == ' ')
            p->rest = skip(p->rest, 1);
        return true;
    }
    bool same = p->rest.len && p->rest.data[0] == c;
    if (same)
        p->rest = skip(p->rest, 1);
    return same;
}

static bool take_all(struct parse *p, struct bytes format, struct bytes *ret_failed);

/* The day's date with a year of four digits, or two. */
static bool take_date(struct parse *p)
{
    struct bytes failed;
    if (!take_all(p, bytes_str("%m/%d/"), &failed))
        return false;
    return take_year(p, 4) || take_year(p, 2);
}

static bool take_directive(struct parse *p, char directive, struct bytes behind)
{
    int ignored;
    switch (directive) {
    case 'Y': return take_year(p, 4);
    case 'y': return take_year(p, 2);
    case 'm':
    case 'o':
    case 'q': return take_between(p, 1, 12, &p->month);
    case 'b':
    case 'h':
    case 'B': return take_name(p, months, 12, directive == 'B', &p->month) && ++p->month;
    case 'd':
    case 'e':
    case 'g': return take_between(p, 1, 31, &p->day);
    case 'a':
    case 'A': return take_name(p, weekdays, 7, directive == 'A', &ignored);
    case 'H': return take_between(p, 0, 23, &p->hour);
    case 'I':
    case 'l': return take_between(p, 0, 12, &p->hour);
    case 'p': return take_half(p, "AM", "PM");
    case 'P': return take_half(p, "am", "pm");
    case 'M': return take_between(p, 0, 59, &p->minute);
    case 'S': return take_second(p, behind);
    case 'z': return take_any_offset(p);
    case 'w': return take_offset(p, 3, false);
    case 'i': return take_offset(p, 1, false);
    case 'j': return take_offset(p, 2, true);
    case 'k': return take_offset(p, 3, true);
    case 'Z': return take_zone_name(p);
    case '%': return take_literal(p, '%');
    default: return false;
    }
}

/* One directive or character at the front of the format; *ret_length of it. */
static bool take_item(struct parse *p, struct bytes format, size_t *ret_length)
{
    *ret_length = 1;
    if (is_fraction(format)) {
        *ret_length = 3;
        take_fraction(p);
        return true;
    }
    if (format.data[0] != '%')
        return take_literal(p, format.data[0]);
    *ret_length = 2;
    char directive = (char)format.data[1];
    struct bytes failed;
    if (directive == 'D' || directive == 'x')
        return take_date(p);
    const char *several = expansion(directive);
    return several ? take_all(p, bytes_str(several), &failed)
                   : take_directive(p, directive, skip(format, 2));
}

/* *ret_failed: what of the format did not fit. */
static bool take_all(struct parse *p, struct bytes format, struct bytes *ret_failed)
{
    size_t n;
    for (; format.len; format = skip(format, n))
        if (!take_item(p, format, &n)) {
            *ret_failed = bytes_of(format.data, n);
            return false;
        }
    return true;
}

/* ---- the time ---- */

static int64_t seconds_of(const struct parse *p, int64_t year)
{
    return civil_days(year, p->month, p->day) * 86400 + p->hour * 3600 + p->minute * 60 + p->second;
}

/* Of a time in the system's zone. */
static int64_t local_seconds(const struct parse *p, int64_t year)
{
    struct tm tm = {.tm_year = (int)year - 1900,
                    .tm_mon = p->month - 1,
                    .tm_mday = p->day,
                    .tm_hour = p->hour,
                    .tm_min = p->minute,
                    .tm_sec = p->second,
                    .tm_isdst = -1};
    return mktime(&tm);
}

static int64_t seconds_in_zone(const struct parse *p, int64_t year, const struct zone *zone)
{
    if (p->zone_given)
        return seconds_of(p, year) - p->offset_s;
    return zone ? zone_to_utc(zone, seconds_of(p, year)) : local_seconds(p, year);
}

static bool to_ns(struct parse *p, const struct zone *zone, int64_t now_ns, int64_t *ret)
{
    const int64_t week_s = 7 * 86400;
    int64_t year = p->year_given ? p->year : civil_from_ns(now_ns).year;
    int64_t s = seconds_in_zone(p, year, zone);
    if (!p->year_given && s > now_ns / 1000000000 + week_s)
        s = seconds_in_zone(p, year - 1, zone);
    return civil_to_ns(s, p->nanosecond, ret);
}

static int finish(struct parse *p, struct bytes text, const struct zone *zone, int64_t now_ns,
                  int64_t *ret_ns, struct err *reterr)
{
    if (p->rest.len)
        return err_set(reterr, -EINVAL, "parsing time \"%.*s\": extra text: \"%.*s\"",
                       (int)text.len, text.data, (int)p->rest.len, p->rest.data);
    if (p->day > civil_days_in_month(p->year_given ? p->year : 2000, p->month))
        return err_set(reterr, -EINVAL, "parsing time \"%.*s\": day out of range", (int)text.len,
                       text.data);
    if (p->pm && p->hour < 12)
        p->hour += 12;
    if (p->am && p->hour == 12)
        p->hour = 0;
    if (!to_ns(p, zone, now_ns, ret_ns))
        return err_set(reterr, -EINVAL,
                       "parsing time \"%.*s\": years from 1678 to 2261 can be told in nanoseconds",
                       (int)text.len, text.data);
    return 0;
}

int strptime_parse(struct bytes format, struct bytes text, const struct zone *zone, int64_t now_ns,
                   int64_t *ret_ns, struct err *reterr)
{
    struct parse p = {.rest = text, .month = 1, .day = 1};
    struct bytes failed;
    if (take_all(&p, format, &failed))
        return finish(&p, text, zone, now_ns, ret_ns, reterr);
    if (p.no_memory)
        return -ENOMEM;
    return err_set(reterr, -EINVAL,
                   "parsing time \"%.*s\" as \"%.*s\": cannot parse \"%.*s\" as \"%.*s\"",
                   (int)text.len, text.data, (int)format.len, format.data, (int)p.rest.len,
                   p.rest.data, (int)failed.len, failed.data);
}

/* ---- writing ---- */

/* The separator and `digits` digits without zeros at the end; nothing for 0. */
static int put_fraction(char separator, int digits, int nanosecond, struct buf *out)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%c%09d", separator, nanosecond);
    n -= 9 - digits;
    while (n > 1 && text[n - 1] == '0')
        n--;
    return n > 1 ? buf_append(out, text, (size_t)n) : 0;
}

static int put_directive(const struct civil *c, char directive, struct buf *out)
{
    int hour = c->hour % 12 ? c->hour % 12 : 12;
    switch (directive) {
    case 'Y': return buf_printf(out, "%04d", (int)c->year);
    case 'y': return buf_printf(out, "%02d", (int)(c->year % 100));
    case 'm': return buf_printf(out, "%02d", c->month);
    case 'o': return buf_printf(out, "_%d", c->month);
    case 'q': return buf_printf(out, "%d", c->month);
    case 'b':
    case 'h': return buf_printf(out, "%.3s", months[c->month - 1]);
    case 'B': return buf_append_str(out, months[c->month - 1]);
    case 'd': return buf_printf(out, "%02d", c->day);
    case 'e': return buf_printf(out, "%2d", c->day);
    case 'g': return buf_printf(out, "%d", c->day);
    case 'a': return buf_printf(out, "%.3s", weekdays[c->weekday]);
    case 'A': return buf_append_str(out, weekdays[c->weekday]);
    case 'H': return buf_printf(out, "%02d", c->hour);
    case 'I': return buf_printf(out, "%02d", hour);
    case 'l': return buf_printf(out, "%d", hour);
    case 'p': return buf_append_str(out, c->hour < 12 ? "AM" : "PM");
    case 'P': return buf_append_str(out, c->hour < 12 ? "am" : "pm");
    case 'M': return buf_printf(out, "%02d", c->minute);
    case 'S': return buf_printf(out, "%02d", c->second);
    case 'Z': return buf_append_str(out, "UTC");
    case 'z': return buf_putc(out, 'Z');
    case 'w': return buf_append_str(out, "+000000");
    case 'i': return buf_append_str(out, "+00");
    case 'j': return buf_append_str(out, "+00:00");
    case 'k': return buf_append_str(out, "+00:00:00");
    default: return buf_putc(out, directive);
    }
}

static int put_all(struct bytes format, const struct civil *c, struct buf *out)
{
    int r = 0;
    for (size_t n; r == 0 && format.len; format = skip(format, n)) {
        if (is_fraction(format)) {
            n = 3;
            int digits = format.data[2] == 'L' ? 3 : format.data[2] == 'f' ? 6 : 9;
            r = put_fraction((char)format.data[0], digits, c->nanosecond, out);
        } else if (format.data[0] == '%' && format.len > 1) {
            n = 2;
            const char *several = expansion((char)format.data[1]);
            r = several ? put_all(bytes_str(several), c, out)
                        : put_directive(c, (char)format.data[1], out);
        } else {
            n = 1;
            r = buf_putc(out, (char)format.data[0]);
        }
    }
    return r;
}

int strptime_format(struct bytes format, int64_t ns, struct buf *out)
{
    struct civil c = civil_from_ns(ns);
    return put_all(format, &c, out);
}
