/* Converters of times and durations. */
#include <stdio.h>

#include "agent/base/clock.h"
#include "agent/base/duration.h"
#include "ottl/calls.h"
#include "ottl/civil.h"
#include "ottl/strptime.h"

enum { NANOSECOND = 1, MICROSECOND = 1000, MILLISECOND = 1000000, SECOND = 1000000000 };

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- making times ---- */

/* The zone of times that have none: as given, else UTC when the format ends with Z, else (no zone)
 * the system's. */
static int load_zone(struct ottl_call *c, struct bytes format, struct err *reterr)
{
    struct bytes name = ottl_fn_literal(c, 2, "");
    struct zone *zone = NULL;
    bool utc = name.len == 0 && format.data[format.len - 1] == 'Z';
    if (!utc && (name.len == 0 || bytes_eq_str(name, "Local")))
        return 0;
    int r = zone_load(name, &zone, reterr);
    if (r == -EINVAL)
        err_prefix(reterr, "failed to load location %.*s: ", (int)name.len, name.data);
    c->data = zone;
    return r;
}

OTTL_PREPARE(time)
{
    struct bytes format = ottl_fn_literal(c, 1, "");
    if (format.len == 0)
        return err_set(reterr, -EINVAL, "format cannot be nil");
    if (c->args[3].given)
        return err_set(reterr, -EINVAL,
                       "locales are not supported: names of months and days are English");
    int r = strptime_check(format, reterr);
    return r < 0 ? r : load_zone(c, format, reterr);
}

void ottl_release_time(void *data)
{
    zone_free(data);
}

OTTL_FN(time)
{
    struct bytes s = {0}, format = ottl_fn_literal(c, 1, "");
    int64_t ns = 0;
    int r = ottl_fn_string(c, 0, env, &s);
    if (r == 0 && s.len == 0)
        r = err_set(env->err, -EINVAL, "time cannot be nil");
    if (r == 0)
        r = strptime_parse(format, s, c->data, (int64_t)clock_wall_ns(), &ns, env->err);
    *ret = ottl_time_value(ns);
    return r;
}

OTTL_PREPARE(format_time)
{
    struct bytes format = ottl_fn_literal(c, 1, "");
    if (format.len == 0)
        return err_set(reterr, -EINVAL, "format cannot be nil");
    return strptime_check(format, reterr);
}

OTTL_FN(format_time)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    int64_t ns = 0;
    if (!out)
        return -ENOMEM;
    int r = ottl_fn_int(c, 0, env, &ns);
    if (r == 0)
        r = strptime_format(ottl_fn_literal(c, 1, ""), ns, out);
    return r < 0 ? r : ottl_fn_text(env, out, ret);
}

OTTL_FN(now)
{
    (void)c;
    (void)env;
    *ret = ottl_time_value((int64_t)clock_wall_ns());
    return 0;
}

OTTL_FN(unix)
{
    int64_t seconds = 0, nanoseconds = 0, ns = 0;
    int r = ottl_fn_int(c, 0, env, &seconds);
    if (r == 0)
        r = ottl_fn_int(c, 1, env, &nanoseconds);
    if (r == 0 && !civil_to_ns(seconds, nanoseconds, &ns))
        r = err_set(env->err, -EINVAL, "Unix: %lld s do not fit into 64 bits of nanoseconds",
                    (long long)seconds);
    *ret = ottl_time_value(ns);
    return r;
}

/* Down to a multiple of the duration, counted from the year 1. */
OTTL_FN(truncate_time)
{
    int64_t ns = 0, unit = 0;
    int r = ottl_fn_int(c, 0, env, &ns);
    if (r == 0)
        r = ottl_fn_int(c, 1, env, &unit);
    if (r == 0 && unit > 0) {
        __int128 since_1 = (__int128)ns + (__int128)719162 * 86400 * SECOND;
        ns -= (int64_t)(since_1 % unit);
    }
    *ret = ottl_time_value(ns);
    return r;
}

/* ---- times as numbers ---- */

static int time_in(const struct ottl_call *c, struct ottl_env *env, int64_t unit,
                   struct ottl_value *ret)
{
    int64_t ns = 0;
    int r = ottl_fn_int(c, 0, env, &ns);
    *ret = ottl_int(floor_div(ns, unit));
    return r;
}

OTTL_FN(unix_nano)
{
    return time_in(c, env, NANOSECOND, ret);
}

OTTL_FN(unix_micro)
{
    return time_in(c, env, MICROSECOND, ret);
}

OTTL_FN(unix_milli)
{
    return time_in(c, env, MILLISECOND, ret);
}

OTTL_FN(unix_seconds)
{
    return time_in(c, env, SECOND, ret);
}

static int civil_of(const struct ottl_call *c, struct ottl_env *env, struct civil *ret)
{
    int64_t ns = 0;
    int r = ottl_fn_int(c, 0, env, &ns);
    *ret = civil_from_ns(ns);
    return r;
}

#define CIVIL_PART(name)                                                                           \
    OTTL_FN(name)                                                                                  \
    {                                                                                              \
        struct civil t;                                                                            \
        int r = civil_of(c, env, &t);                                                              \
        *ret = ottl_int(t.name);                                                                   \
        return r;                                                                                  \
    }

CIVIL_PART(year)
CIVIL_PART(month)
CIVIL_PART(day)
CIVIL_PART(hour)
CIVIL_PART(minute)
CIVIL_PART(second)
CIVIL_PART(nanosecond)
CIVIL_PART(weekday)

/* ---- durations ---- */

OTTL_FN(duration)
{
    struct bytes s = {0};
    int64_t ns = 0;
    int r = ottl_fn_string(c, 0, env, &s);
    if (r < 0)
        return r;
    char *text = arena_strndup(env->arena, s.len ? (const char *)s.data : "", s.len);
    if (!text)
        return -ENOMEM;
    if (strlen(text) != s.len || duration_parse(text, &ns) < 0)
        return err_set(env->err, -EINVAL, "time: invalid duration \"%s\"", text);
    *ret = ottl_duration_value(ns);
    return 0;
}

static int duration_in(const struct ottl_call *c, struct ottl_env *env, int64_t unit,
                       struct ottl_value *ret)
{
    int64_t ns = 0;
    int r = ottl_fn_int(c, 0, env, &ns);
    *ret = ottl_int(ns / unit);
    return r;
}

OTTL_FN(nanoseconds)
{
    return duration_in(c, env, NANOSECOND, ret);
}

OTTL_FN(microseconds)
{
    return duration_in(c, env, MICROSECOND, ret);
}

OTTL_FN(milliseconds)
{
    return duration_in(c, env, MILLISECOND, ret);
}

/* Whole units and the rest apart, as Go does it: less is lost. */
static int fraction_of(const struct ottl_call *c, struct ottl_env *env, int64_t unit,
                       struct ottl_value *ret)
{
    int64_t ns = 0;
    int r = ottl_fn_int(c, 0, env, &ns);
    *ret = ottl_double((double)(ns / unit) + (double)(ns % unit) / (double)unit);
    return r;
}

OTTL_FN(seconds)
{
    return fraction_of(c, env, SECOND, ret);
}

OTTL_FN(minutes)
{
    return fraction_of(c, env, (int64_t)60 * SECOND, ret);
}

OTTL_FN(hours)
{
    return fraction_of(c, env, (int64_t)3600 * SECOND, ret);
}
