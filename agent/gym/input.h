/*
 * A file of telemetry as one stream of text: what the file exporter or a console wrote, plain or compressed with zstd (a whole file
 * by the zstd program, or message by message by the file exporter). What it is shows in its first bytes, not in its name.
 */
#ifndef MOTEL_GYM_INPUT_H
#define MOTEL_GYM_INPUT_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

struct input;
/* `path`: a file or pipe; "-" = stdin. 0 or a negative errno with a reterr that names the file: -EBADMSG = what is in it is of no use (gzip,
 * protobuf). */
int input_open(const char *path, struct input **ret, struct err *reterr);
struct input *input_free(struct input *in); /* NULL ok; returns NULL */
/* Whether it is a directory; reterr then says so. */
bool input_is_folder(const char *path, struct err *reterr);
DEFINE_CLEANUP(struct input *, input_free)

/* The next piece of the text, at most `max` bytes (SIZE_MAX = any), len 0 at its end; it stays until the next call. 0; -errno of the read; -EBADMSG when compressed data is
 * damaged or ends too early (what came before it was given out). */
int input_read(struct input *in, size_t max, struct bytes *ret, struct err *reterr);
/* Moves on to byte `offset` of the text, which is not before the present one. A text that ends before it is -ESPIPE. */
int input_skip_to(struct input *in, uint64_t offset, struct err *reterr);
/* Of the text: where the next piece begins. */
uint64_t input_offset(const struct input *in);

/* How far it is in bytes of the file, and the file's size: 0 = unknown. */
struct input_progress {
    uint64_t done_bytes, size_bytes;
};
struct input_progress input_progress(const struct input *in);
const char *input_name(const struct input *in); /* the path, or "stdin" */
/* The descriptor, for fstat(). */
int input_fd(const struct input *in);

#endif
