/* Civil time: the proleptic Gregorian calendar in UTC. */
#ifndef MOTEL_OTTL_CIVIL_H
#define MOTEL_OTTL_CIVIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct civil {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second, nanosecond;
    int weekday;    /* 0 = Sunday */
    int yearday;    /* from 1 */
};
/* Of nanoseconds since 1970. */
struct civil civil_from_ns(int64_t ns);
/* Days since 1970-01-01 of a date; month and day may be out of their range (month 13 is the next January). */
int64_t civil_days(int64_t year, int64_t month, int64_t day);
int civil_days_in_month(int64_t year, int month);
/* Nanoseconds of seconds since 1970 and a fraction; false when they do not fit. */
bool civil_to_ns(int64_t seconds, int64_t nanosecond, int64_t *ret);

/* "2026-08-21T10:00:00.5Z": RFC 3339, fraction without trailing zeros. */
#define CIVIL_RFC3339_BYTES 40
size_t civil_rfc3339(int64_t ns, char ret[CIVIL_RFC3339_BYTES]);

#endif
