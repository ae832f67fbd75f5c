/*
 * One open output file. All exporters of the process that write to the same path share it, also across a reload: records
 * are whole and never mixed, and nobody cuts off what another has written. Thread safe.
 */
#ifndef MOTEL_EXPORTERS_FILE_OUTFILE_H
#define MOTEL_EXPORTERS_FILE_OUTFILE_H

#include "agent/pipeline/host.h"
#include "exporters/file/rotate.h"

struct outfile_options {
    const char *path;
    const char *content; /* what its records are, "json", "proto zstd"; all that share a file have the same */
    bool framed;         /* records are length-prefixed messages; else they are lines */
    bool truncate;       /* empty it when this is the first to open it */
    int64_t mode;        /* of a file that is made, less the umask; -1 = 0644 */
    const struct rotation *rotation; /* NULL = none; copied */
    const struct logger *logger;     /* outlives nothing: used during the call */
};

struct outfile;
/* Opens, or finds, the file of o->path; an unfinished last record is taken away. 0 or a negative errno with reterr: -EBADMSG = the file
 * holds something else, -EBUSY = it is being written with other content. Release: host_unshare(). */
int outfile_open(struct host *h, const struct outfile_options *o, struct shared **ret, struct err *reterr);
static inline struct outfile *outfile_of(const struct shared *s)
{
    return s->thing;
}
/*
 * Appends records: `text` holds them one after the other, ends[i] is where record i ends. What is written is always whole
 * records: after a failure (a full disk) a part of one is taken back. *ret_written: how many are in the file. 0 or a negative
 * errno. A file that was moved or deleted meanwhile is made anew.
 */
int outfile_write(struct outfile *f, struct bytes text, const size_t *ends, size_t n, size_t *ret_written);
/*
 * The same for records that are not to be held at once. outfile_begin() locks the file: 0 with *ret_pieces, then any number of pieces
 * follows, and outfile_end(). Without it nothing is locked and records have to be written whole: another process has the file open,
 * it rotates, or is no regular file. A negative errno: neither.
 */
int outfile_begin(struct outfile *f, bool *ret_pieces);
/* How many of `len` bytes are best written next: pieces that end at multiples of 128 KiB cost a third less. Most of them, from 128 KiB
 * on. */
size_t outfile_good_piece(const struct outfile *f, size_t len);
/* Appends text. 0 or a negative errno, also for all pieces that follow; -ESTALE: somebody cut the file or wrote to it meanwhile, and
 * what did not get whole before that has to be written anew. */
int outfile_piece(struct outfile *f, struct bytes text);
/* ends[i] is where record i ends in the text of all pieces. What is no whole record is taken back. *ret_written: how many are in the file. */
void outfile_end(struct outfile *f, const size_t *ends, size_t n, size_t *ret_written);
const char *outfile_path(const struct outfile *f);

/* mkdir -p of the directory that `path` stands in. 0 or a negative errno. */
int outfile_make_directory(const char *path, mode_t mode);

#endif
