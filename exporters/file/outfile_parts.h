/* What exporters/file/outfile*.c share; nobody else includes it. */
#ifndef MOTEL_EXPORTERS_FILE_OUTFILE_PARTS_H
#define MOTEL_EXPORTERS_FILE_OUTFILE_PARTS_H

#include <pthread.h>
#include <sys/types.h>

#include "exporters/file/outfile.h"

#define OUTFILE_TAIL 256 /* bytes that are looked at before text is taken back */

/* Text that goes into the file in pieces. */
struct piecewise {
    off_t end;    /* where the last piece ended in the file */
    size_t put;   /* bytes of all pieces */
    size_t last;  /* of the last one */
    int error;    /* of a piece: nothing follows it */
    size_t ntail; /* the last bytes that were put */
    uint8_t tail[OUTFILE_TAIL];
};

struct outfile {
    pthread_mutex_t lock;
    char *path, *content;
    bool framed, rotates;
    int64_t mode;
    struct rotation rotation;
    int fd;
    bool torn;      /* a part of a record may stand at the end */
    bool stuck;     /* the last rotation failed; said once */
    bool regular;   /* when the last write began */
    bool shares;    /* holds the shared lock of the file (flock) */
    bool lockless;  /* there are no such locks */
    bool disturbed; /* somebody without a lock cut or wrote while a record was written in pieces */
    off_t size;     /* when the last write began */
    struct piecewise pieces;
};

/* A file descriptor of the path, or a negative errno. */
int outfile_open_fd(const struct outfile *f, bool truncate);
/* Takes an unfinished record away from the end. 0 or a negative errno. */
int outfile_repair(const struct outfile *f, const struct logger *lg);

#endif
