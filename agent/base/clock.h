/* Time sources. */
#ifndef MOTEL_BASE_CLOCK_H
#define MOTEL_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

uint64_t clock_now_ns(void);  /* CLOCK_MONOTONIC; for time-outs and deadlines */
uint64_t clock_wall_ns(void); /* nanoseconds since 1970 UTC */
/* "2026-08-21T10:00:00.000Z" (24 characters and NUL) of a wall clock reading, millisecond precision. */
void clock_format_ms(uint64_t wall_ns, char ret_text[25]);

#endif
