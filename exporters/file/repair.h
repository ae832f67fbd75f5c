/* The end of a file that is going to be continued: a record that a crash cut in two is taken away. */
#ifndef MOTEL_EXPORTERS_FILE_REPAIR_H
#define MOTEL_EXPORTERS_FILE_REPAIR_H

#include <stdbool.h>
#include <sys/types.h>

enum repair {
    REPAIR_NONE,       /* the file ends with a whole record, or is empty */
    REPAIR_CUT,        /* an unfinished record was cut off */
    REPAIR_ENDED,      /* the last line was whole but for its newline, or is not ours: it got one */
};
/*
 * `framed`: the file is a sequence of 4-byte big-endian lengths and messages; else it is lines of JSON. `fd` is open for
 * reading and appending. *ret_cut: bytes that were cut off. A negative errno; -EBADMSG when a framed file ends with something
 * that is no part of such a sequence (then it is not touched).
 */
int file_repair(int fd, bool framed, enum repair *ret, off_t *ret_cut);

#endif
