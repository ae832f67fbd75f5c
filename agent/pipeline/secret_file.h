/* A small file that holds a secret and may be replaced while the program runs (a rotated token, a mounted secret). */
#ifndef MOTEL_PIPELINE_SECRET_FILE_H
#define MOTEL_PIPELINE_SECRET_FILE_H

#include <sys/stat.h>

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/base/digest.h"

#define SECRET_FILE_MAX ((size_t)1 << 20)

struct secret_file { /* one user at a time; zeroed but for the path */
    const char *path;
    struct stat seen;
    bool known;                   /* `digest` is of what was read last */
    int failed;                   /* the last look failed so */
    uint8_t digest[SHA256_BYTES];
};
/* One stat(2) when nothing has changed. A file that changed a moment ago is read again: a second change may have the same time.
 * 1: the content is new, in *ret (white space at both ends trimmed; the caller frees it). 0: as before.
 * -errno with reterr, where the failure is another than last time, or -EALREADY. Empty is -ENODATA. */
int secret_file_poll(struct secret_file *f, struct buf **ret, struct err *reterr);

#endif
