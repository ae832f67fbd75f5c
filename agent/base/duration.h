/* Durations as Go reads and writes them (time.ParseDuration, Duration.String). */
#ifndef MOTEL_BASE_DURATION_H
#define MOTEL_BASE_DURATION_H

#include <stdint.h>

/* "1h15m30.918s", "-1.5h", "0" as nanoseconds. 0, or -EINVAL: no duration, or past 292 years. */
int duration_parse(const char *text, int64_t *ret_ns);
/* "1h2m3.5s", "1.5ms", "0s"; NUL ended. */
void duration_text(int64_t ns, char ret[32]);

#endif
