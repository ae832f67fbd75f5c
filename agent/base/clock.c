#include "agent/base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

void clock_format_ms(uint64_t wall_ns, char ret_text[25])
{
    time_t s = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    gmtime_r(&s, &tm);
    char date[21];
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret_text, 25, "%.19s.%03uZ", date, (unsigned)(wall_ns / NS_PER_MS % 1000));
}
