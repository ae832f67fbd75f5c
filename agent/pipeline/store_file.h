/* One LMDB file and the room in it; for agent/pipeline/store*.c and their tests. */
#ifndef MOTEL_PIPELINE_STORE_FILE_H
#define MOTEL_PIPELINE_STORE_FILE_H

#include <lmdb.h>
#include <stdbool.h>

#include "agent/base/err.h"

#define STORE_RESERVE_PAGES 64 /* that puts leave free, so that deletions find room on a full disk */

struct store_file {
    MDB_env *env; /* NULL = not open */
    MDB_dbi dbi;
    int fd;       /* of the same file: to give it room */
    size_t page_bytes, bytes; /* its size; all of it is there on the disk */
};
#define STORE_FILE_NONE ((struct store_file){.fd = -1})

/* Opens what store_verify() found good. 0; -EBADMSG when it is not a queue file of this version; other -errno. */
int store_file_open(const char *path, bool fsync, struct store_file *ret, struct err *reterr);
/* A new, empty queue file; one of that name is replaced. Its content is on the disk when this returns. 0 or -errno. */
int store_file_make(const char *path, bool fsync, struct store_file *ret, struct err *reterr);
void store_file_close(struct store_file *f); /* without a sync; not open is fine */
/* After it was written to without store_file_room(): its size, and that all of it is there. 0 or -errno. */
int store_file_settle(struct store_file *f, struct err *reterr);
/* Makes sure that a transaction of up to `pages` new pages fits and leaves STORE_RESERVE_PAGES free. 0; -ENOSPC; other -errno. */
int store_file_room(struct store_file *f, size_t pages, int64_t max_bytes, struct err *reterr);
/* Gives the unused end of the file back to the disk. */
void store_file_trim(struct store_file *f);
/* A negative errno for what LMDB answers, with reterr; 0 for 0. */
int store_error(int rc, const char *what, struct err *reterr);
/* What the last page in use is + 1. */
size_t store_file_pages(const struct store_file *f);

/* ---- store_verify.c: is this an LMDB file that LMDB can be trusted with? ---- */

struct store_verified {
    size_t pages, free_pages, entries; /* of the newest snapshot */
};
/* Walks the pages of the file `fd`. 0; -EBADMSG with reterr saying what is wrong; other -errno. */
int store_verify(int fd, struct store_verified *ret, struct err *reterr);

#endif
