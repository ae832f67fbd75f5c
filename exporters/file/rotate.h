/* Rotated files: `name-2026-08-21T10-00-00.000-size.ext` beside `name.ext`, as the reference names them. */
#ifndef MOTEL_EXPORTERS_FILE_ROTATE_H
#define MOTEL_EXPORTERS_FILE_ROTATE_H

#include <stdbool.h>
#include <stdint.h>

struct rotation {
    int64_t max_bytes, max_days, max_backups; /* days, backups: 0 = no limit */
    bool localtime;
};

/* Moves `path` out of the way; never over an existing file. `wall_ns`: the time in the new name; a name that is taken gets the next
 * free millisecond. 0 or a negative errno. */
int rotate_move(const char *path, const struct rotation *r, uint64_t wall_ns);
/* Removes old rotated files of `path` beyond the limits. What cannot be removed stays. */
void rotate_clean(const char *path, const struct rotation *r, uint64_t wall_ns);

#endif
