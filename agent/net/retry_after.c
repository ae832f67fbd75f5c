#include "agent/net/retry_after.h"

#include <string.h>
#include <time.h>

#include "agent/base/clock.h"

#define LONGEST_S 86400u

static uint32_t clamp_ms(uint64_t ms)
{
    return ms > LONGEST_S * 1000ull ? LONGEST_S * 1000u : (uint32_t)ms;
}

static uint32_t of_seconds(const char *text)
{
    uint64_t s = 0;
    if (strlen(text) > 12)
        return 0;
    for (; *text; text++)
        s = s * 10 + (uint64_t)(*text - '0');
    return clamp_ms(s * 1000);
}

static uint32_t of_date(const char *text, uint64_t wall_ns)
{
    struct tm t = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S", &t);
    if (!end || (strcmp(end, " GMT") != 0 && strcmp(end, " UTC") != 0))
        return 0;
    time_t at = timegm(&t);
    if (at <= 0 || (uint64_t)at <= wall_ns / NS_PER_S)
        return 0;
    return clamp_ms(((uint64_t)at * NS_PER_S - wall_ns + NS_PER_MS - 1) / NS_PER_MS);
}

uint32_t retry_after_parse(const char *text, uint64_t wall_ns)
{
    if (*text && text[strspn(text, "0123456789")] == 0)
        return of_seconds(text);
    return of_date(text, wall_ns);
}
