/* Where a file was read up to, so that it is known again. */
#ifndef MOTEL_RECEIVERS_CONSOLE_MARK_H
#define MOTEL_RECEIVERS_CONSOLE_MARK_H

#include "proto/console.h"

#define MARK_BYTES 1024 /* of the beginning */
#define MARK_TAIL 256   /* before the place */
struct mark {
    uint64_t dev, ino, offset; /* read up to here */
    uint32_t head_len, tail_len;
    uint64_t head_hash, tail_hash;
    struct console_range *held; /* read, but not finished */
    size_t nheld;
};
void mark_done(struct mark *m);
/* Sets the place, and the hashes by what the file holds. 0 or -errno. */
int mark_set(struct mark *m, int fd, uint64_t offset);
/* Keeps what `r` holds. 1 when that is something else than before, 0, or -ENOMEM. */
int mark_hold(struct mark *m, const struct console_reader *r);
/* Whether the file still has the content that was read. */
bool mark_matches(const struct mark *m, int fd);

#endif
