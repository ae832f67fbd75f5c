/* Durations and sizes as Prometheus' configuration writes them. */
#include <errno.h>
#include <inttypes.h>

#include "agent/base/clock.h"
#include "receivers/prometheus/config.h"

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {{"y", 365 * 86400 * NS_PER_S},
             {"w", 7 * 86400 * NS_PER_S},
             {"d", 86400 * NS_PER_S},
             {"h", 3600 * NS_PER_S},
             {"m", 60 * NS_PER_S},
             {"s", NS_PER_S},
             {"ms", NS_PER_MS}};

static bool read_number(const char **p, uint64_t *ret)
{
    const char *start = *p;
    uint64_t v = 0;
    for (; **p >= '0' && **p <= '9'; ++*p)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, **p - '0', &v))
            return false;
    *ret = v;
    return *p > start;
}

/* The unit at *p among those from `first` on; its index, or ARRAY_SIZE(units). */
static size_t read_unit(const char **p, size_t first)
{
    const size_t len = strspn(*p, "ywdhms");
    for (size_t i = first; i < ARRAY_SIZE(units); i++)
        if (strlen(units[i].name) == len && strncmp(units[i].name, *p, len) == 0) {
            *p += len;
            return i;
        }
    return ARRAY_SIZE(units);
}

int prom_parse_duration(const char *text, uint64_t *ret_ns, struct err *reterr)
{
    const char *p = text;
    uint64_t total = 0, n, part;
    if (!*text)
        return err_set(reterr, -EINVAL, "empty duration string");
    if (strcmp(text, "0") == 0)
        p = "";
    for (size_t next = 0; *p;) {
        const size_t unit = read_number(&p, &n) ? read_unit(&p, next) : ARRAY_SIZE(units);
        if (unit == ARRAY_SIZE(units))
            return err_set(reterr, -EINVAL,
                           "not a valid duration string: \"%s\" (expected a number and a unit such "
                           "as \"15s\" or \"1m30s\")",
                           text);
        if (__builtin_mul_overflow(n, units[unit].ns, &part) ||
            __builtin_add_overflow(total, part, &total) || total > INT64_MAX)
            return err_set(reterr, -EINVAL, "duration out of range: \"%s\"", text);
        next = unit + 1;
    }
    if (ret_ns)
        *ret_ns = total;
    return 0;
}

void prom_format_duration(uint64_t ns, char ret[40])
{
    size_t at = 0;
    uint64_t left = ns / NS_PER_MS * NS_PER_MS;
    ret[0] = 0;
    for (size_t i = 0; i < ARRAY_SIZE(units) && left; i++) {
        const bool whole_only = i < 3; /* years, weeks and days only where nothing is left over */
        const uint64_t n = left / units[i].ns;
        if (n == 0 || (whole_only && left % units[i].ns))
            continue;
        at += (size_t)snprintf(ret + at, 40 - at, "%" PRIu64 "%s", n, units[i].name);
        left -= n * units[i].ns;
    }
    if (at == 0)
        snprintf(ret, 40, "0s");
}

/* ---- sizes ---- */

static int size_unit(const char **p)
{
    static const char letters[] = "BKMGTPE";
    const char *found = **p ? strchr(letters, **p) : NULL;
    if (!found)
        return -1;
    ++*p;
    const int power = (int)(found - letters);
    if (power == 0)
        return 0;
    if (**p == 'i')
        ++*p;
    if (**p != 'B')
        return -1;
    ++*p;
    return power;
}

int prom_parse_size(const char *text, uint64_t *ret_bytes, struct err *reterr)
{
    double total = 0;
    const char *p = strcmp(text, "0") == 0 ? "" : text;
    bool bad = !*text;
    while (*p && !bad) {
        char *end;
        const double n = *p >= '0' && *p <= '9' ? strtod(p, &end) : -1;
        if (n < 0)
            break;
        p = end;
        const int power = size_unit(&p);
        bad = power < 0;
        total += bad ? 0 : n * (double)(1ull << (10 * power));
    }
    if (bad || *p || !(total < 9e18))
        return err_set(reterr, -EINVAL,
                       "not a valid size: \"%s\" (expected a number and a unit such as \"10MB\")",
                       text);
    if (ret_bytes)
        *ret_bytes = (uint64_t)total;
    return 0;
}
