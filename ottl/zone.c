#include "ottl/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "agent/base/buf.h"
#include "ottl/civil.h"

enum { HEADER_BYTES = 44, MOST_BYTES = 1 << 20, TYPE_BYTES = 6, DAY_S = 86400 };

/* When one half of the year begins. */
struct rule {
    char kind; /* 'M' month, week and weekday; 'J' day 1 to 365 without leap days; 'N' day 0 to 365
                */
    int month, week, day;
    int32_t time_s; /* of the day, in local time */
};
struct zone {
    size_t n;
    int64_t *times;   /* of the changes, ascending */
    int32_t *offsets; /* from then on */
    int32_t first;    /* before the first one */
    bool has_rule;    /* after the last one */
    bool has_summer;
    int32_t standard, summer;
    struct rule start, end; /* of the summer time */
};

/* ---- the file ---- */

static int read_file(struct bytes name, struct buf *out)
{
    char path[512];
    const char *folder = getenv("TZDIR");
    int n = snprintf(path, sizeof(path), "%s/%.*s", folder ? folder : "/usr/share/zoneinfo",
                     (int)name.len, name.data);
    if (n < 0 || (size_t)n >= sizeof(path) || memchr(name.data, 0, name.len))
        return -EINVAL;
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    int r = f ? buf_reserve(out, 4096) : -EINVAL;
    while (r == 0) {
        size_t got = fread(buf_tail(out), 1, 4096, f);
        buf_commit(out, got);
        if (got == 0)
            return out->len >= HEADER_BYTES ? 0 : -EINVAL;
        r = buf_reserve(out, 4096);
    }
    return r;
}

static uint64_t big_endian(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

struct counts {
    size_t utc, standard, leaps, times, types, chars;
};

static int read_counts(struct bytes b, struct counts *ret)
{
    if (b.len < HEADER_BYTES || memcmp(b.data, "TZif", 4) != 0 || b.data[4] < '2')
        return -EINVAL;
    const uint8_t *p = b.data + 20;
    *ret = (struct counts){big_endian(p, 4),      big_endian(p + 4, 4),  big_endian(p + 8, 4),
                           big_endian(p + 12, 4), big_endian(p + 16, 4), big_endian(p + 20, 4)};
    return 0;
}

/* Bytes behind the header, with times of `size` bytes. */
static size_t body_size(const struct counts *c, size_t size)
{
    return c->times * (size + 1) + c->types * TYPE_BYTES + c->chars + c->leaps * (size + 4) +
           c->standard + c->utc;
}

static struct bytes skip(struct bytes b, size_t n)
{
    n = n < b.len ? n : b.len;
    return bytes_of(b.data + n, b.len - n);
}

static int32_t type_offset(const uint8_t *types, size_t i)
{
    return (int32_t)big_endian(types + i * TYPE_BYTES, 4);
}

static int read_changes(struct zone *z, struct bytes body, const struct counts *c)
{
    const uint8_t *index = body.data + c->times * 8, *types = index + c->times;
    z->times = calloc(c->times + 1, sizeof(*z->times));
    z->offsets = calloc(c->times + 1, sizeof(*z->offsets));
    if (!z->times || !z->offsets)
        return -ENOMEM;
    for (size_t i = 0; i < c->times; i++) {
        if (index[i] >= c->types)
            return -EINVAL;
        z->times[i] = (int64_t)big_endian(body.data + i * 8, 8);
        z->offsets[i] = type_offset(types, index[i]);
    }
    z->n = c->times;
    z->first = c->types ? type_offset(types, 0) : 0;
    return 0;
}

/* ---- the rule in the last line: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static bool take_name(const char **p)
{
    const char *from = *p;
    if (**p == '<') {
        *p += strcspn(*p, ">");
        return *(*p)++ == '>';
    }
    while (isalpha((unsigned char)**p))
        ++*p;
    return *p - from >= 3;
}

static bool take_number(const char **p, int *ret)
{
    const char *from = *p;
    for (*ret = 0; isdigit((unsigned char)**p) && *p - from < 4; ++*p)
        *ret = *ret * 10 + (**p - '0');
    return *p > from;
}

/* "[+-]h[:m[:s]]" in seconds. */
static bool take_time(const char **p, int32_t *ret)
{
    bool minus = **p == '-';
    int part, unit = 3600;
    *p += minus || **p == '+';
    if (!take_number(p, &part))
        return false;
    for (*ret = part * unit; **p == ':' && unit > 1; *ret += part * unit) {
        ++*p;
        unit /= 60;
        if (!take_number(p, &part))
            return false;
    }
    *ret = minus ? -*ret : *ret;
    return true;
}

static bool take_date(const char **p, struct rule *ret)
{
    *ret = (struct rule){.kind = 'N', .time_s = 2 * 3600};
    if (**p == 'J' || **p == 'M')
        ret->kind = *(*p)++;
    bool ok = ret->kind == 'M'
                  ? take_number(p, &ret->month) && *(*p)++ == '.' && take_number(p, &ret->week) &&
                        *(*p)++ == '.' && take_number(p, &ret->day)
                  : take_number(p, &ret->day);
    if (ok && **p == '/') {
        ++*p;
        ok = take_time(p, &ret->time_s);
    }
    return ok;
}

/* Offsets there are those that have to be added for UTC. */
static bool parse_rule(const char *p, struct zone *z)
{
    int32_t west;
    if (!take_name(&p) || !take_time(&p, &west))
        return false;
    z->standard = -west;
    if (!*p)
        return true;
    z->has_summer = true;
    z->summer = z->standard + 3600;
    if (!take_name(&p))
        return false;
    if (*p && *p != ',') {
        if (!take_time(&p, &west))
            return false;
        z->summer = -west;
    }
    return *p == ',' && (p++, take_date(&p, &z->start)) && *p == ',' &&
           (p++, take_date(&p, &z->end)) && !*p;
}

static void read_rule(struct zone *z, struct bytes line)
{
    char text[128];
    if (line.len < 3 || line.len > sizeof(text) || line.data[0] != '\n')
        return;
    memcpy(text, line.data + 1, line.len - 1);
    text[line.len - 2] = 0;
    z->has_rule = parse_rule(text, z);
}

/* ---- loading ---- */

static int parse(struct zone *z, struct bytes file)
{
    struct counts c;
    int r = read_counts(file, &c);
    if (r < 0)
        return r;
    struct bytes second = skip(file, HEADER_BYTES + body_size(&c, 4));
    r = read_counts(second, &c);
    struct bytes body = skip(second, HEADER_BYTES);
    if (r < 0 || c.times > MOST_BYTES || body.len < body_size(&c, 8))
        return -EINVAL;
    r = read_changes(z, body, &c);
    if (r == 0)
        read_rule(z, skip(body, body_size(&c, 8)));
    return r;
}

int zone_load(struct bytes name, struct zone **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *file = buf_new(MOST_BYTES);
    _cleanup_(zone_freep) struct zone *z = calloc(1, sizeof(*z));
    if (!file || !z)
        return -ENOMEM;
    bool utc = name.len == 0 || bytes_eq_str(name, "UTC");
    bool odd = name.len &&
               (name.data[0] == '/' || name.data[0] == '.' || memmem(name.data, name.len, "..", 2));
    int r = utc ? 0 : odd ? -EINVAL : read_file(name, file);
    if (r == 0 && !utc)
        r = parse(z, buf_bytes(file));
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return err_set(reterr, -EINVAL, "unknown time zone %.*s", (int)name.len, name.data);
    *ret = TAKE_PTR(z);
    return 0;
}

struct zone *zone_free(struct zone *z)
{
    if (!z)
        return NULL;
    free(z->times);
    free(z->offsets);
    free(z);
    return NULL;
}

/* ---- asking ---- */

/* Days since 1970 on which the rule falls. */
static int64_t rule_day(const struct rule *r, int64_t year)
{
    int64_t first = civil_days(year, 1, 1);
    if (r->kind == 'N')
        return first + r->day;
    if (r->kind == 'J')
        return first + r->day - 1 + (r->day >= 60 && civil_days_in_month(year, 2) == 29);
    int64_t month = civil_days(year, r->month, 1);
    int64_t weekday = ((month + 4) % 7 + 7) % 7;
    int64_t day = (r->day - weekday + 7) % 7 + (int64_t)(r->week - 1) * 7;
    while (day >= civil_days_in_month(year, r->month))
        day -= 7;
    return month + day;
}

static int32_t offset_by_rule(const struct zone *z, int64_t at)
{
    if (!z->has_summer)
        return z->standard;
    int64_t days = at / DAY_S - (at % DAY_S < 0), year = 1970 + days / 365;
    while (civil_days(year, 1, 1) > days)
        year--;
    int64_t start = rule_day(&z->start, year) * DAY_S + z->start.time_s - z->standard;
    int64_t end = rule_day(&z->end, year) * DAY_S + z->end.time_s - z->summer;
    bool summer = start < end ? at >= start && at < end : at >= start || at < end;
    return summer ? z->summer : z->standard;
}

int32_t zone_offset(const struct zone *z, int64_t at)
{
    size_t from = 0, to = z->n;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (z->times[middle] <= at)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == z->n && z->has_rule)
        return offset_by_rule(z, at);
    return from ? z->offsets[from - 1] : z->first;
}

int32_t zone_standard_offset(const struct zone *z)
{
    return z->has_rule ? z->standard : zone_offset(z, INT64_MAX);
}

int64_t zone_to_utc(const struct zone *z, int64_t local)
{
    return local - zone_offset(z, local - zone_offset(z, local));
}
