#include "agent/gym/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#define RAW_BYTES ((size_t)256 * 1024)
#define MIN_READ_BYTES ((size_t)64 * 1024)
#define WINDOW_LOG_MAX 27 /* 128 MiB: what the zstd program takes without being asked */
#define LENGTH_BYTES 4    /* before a message: its length, big-endian */

enum form {
    FORM_PLAIN,
    FORM_ZSTD,     /* frames, one after the other */
    FORM_MESSAGES, /* each frame is a message with its length before it */
};

struct input {
    const char *name;
    int fd;
    enum form form;
    uint8_t raw[RAW_BYTES];
    size_t at, len;      /* what of `raw` is not used yet */
    uint64_t raw_read;   /* bytes of the file read so far */
    uint64_t size_bytes; /* of the file; 0 = a pipe */
    uint64_t offset;     /* of the next piece in the text */
    ZSTD_DCtx *zstd;     /* and what it writes into: */
    uint8_t *text;
    size_t text_bytes;
    struct bytes rest; /* read, but not given out */
    bool in_frame;     /* a frame is open */
    bool line_open;    /* messages: the last one had no line end */
};

static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

/* ---- the bytes of the file ---- */

/* Reads until `want` unused bytes are there or the file ends. */
static int fill(struct input *in, size_t want, struct err *reterr)
{
    while (in->len - in->at < want) {
        if (in->at) {
            memmove(in->raw, in->raw + in->at, in->len - in->at);
            in->len -= in->at;
            in->at = 0;
        }
        const ssize_t n = read(in->fd, in->raw + in->len, RAW_BYTES - in->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(reterr, -errno, "%s: cannot read: %s", in->name, strerror(errno));
        if (n == 0)
            return 0;
        in->len += (size_t)n;
        in->raw_read += (size_t)n;
    }
    return 0;
}

static bool magic_at(const struct input *in, size_t at)
{
    return in->len >= at + 4 && memcmp(in->raw + at, zstd_magic, 4) == 0;
}

static int find_form(struct input *in, struct err *reterr)
{
    int r = fill(in, LENGTH_BYTES + sizeof(zstd_magic), reterr);
    if (r < 0)
        return r;
    if (magic_at(in, 0))
        in->form = FORM_ZSTD;
    else if (magic_at(in, LENGTH_BYTES))
        in->form = FORM_MESSAGES;
    else if (in->len >= 2 && in->raw[0] == 0x1f && in->raw[1] == 0x8b)
        return err_set(reterr, -EBADMSG,
                       "%s: is compressed with gzip; unpack it: zcat %s | motel ... -", in->name,
                       in->name);
    else if (in->len > LENGTH_BYTES && in->raw[0] == 0 && in->raw[LENGTH_BYTES] == 0x0a)
        return err_set(reterr, -EBADMSG,
                       "%s: holds protobuf messages (format: proto); only JSON can be read: write "
                       "it with format: json",
                       in->name);
    return 0;
}

static int set_up_zstd(struct input *in, struct err *reterr)
{
    if (in->form == FORM_PLAIN)
        return 0;
    in->text_bytes = ZSTD_DStreamOutSize();
    in->zstd = ZSTD_createDCtx();
    in->text = malloc(in->text_bytes);
    if (!in->zstd || !in->text)
        return err_set(reterr, -ENOMEM, "out of memory");
    ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return 0;
}

bool input_is_folder(const char *path, struct err *reterr)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return false;
    err_set(reterr, -EISDIR, "%s: is a directory; name the files in it: %s/*", path, path);
    return true;
}

int input_open(const char *path, struct input **ret, struct err *reterr)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    _cleanup_(input_freep) struct input *in = calloc(1, sizeof(*in));
    if (!in)
        return err_set(reterr, -ENOMEM, "out of memory");
    in->name = is_stdin ? "stdin" : path;
    in->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (in->fd < 0 || fstat(in->fd, &st) < 0)
        return err_set(reterr, -errno, "%s: cannot open: %s", in->name, strerror(errno));
    if (!is_stdin && input_is_folder(path, reterr))
        return -EISDIR;
    if (S_ISREG(st.st_mode)) {
        in->size_bytes = (uint64_t)st.st_size;
        posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    int r = find_form(in, reterr);
    if (r == 0)
        r = set_up_zstd(in, reterr);
    if (r == 0)
        *ret = TAKE_PTR(in);
    return r;
}

struct input *input_free(struct input *in)
{
    if (!in)
        return NULL;
    ZSTD_freeDCtx(in->zstd);
    free(in->text);
    if (in->fd >= 0)
        close(in->fd);
    free(in);
    return NULL;
}

/* ---- the text ---- */

static int read_plain(struct input *in, struct bytes *ret, struct err *reterr)
{
    int r = in->at == in->len ? fill(in, 1, reterr) : 0;
    *ret = bytes_of(in->raw + in->at, in->len - in->at);
    in->at = in->len;
    return r;
}

static int ends_early(struct input *in, struct err *reterr)
{
    return err_set(reterr, -EBADMSG,
                   "%s: ends within a compressed message; the rest is missing (was its program "
                   "killed, or does it still write?)",
                   in->name);
}

/* Lines are what readers look for: between two messages there is a line end. */
static int end_message(struct input *in, struct bytes *ret)
{
    in->line_open = false;
    *ret = bytes_of("\n", 1);
    return 0;
}

/* Before a frame: its length, when there is one. *ret_end: nothing more comes. */
static int begin_frame(struct input *in, bool *ret_end, struct err *reterr)
{
    const size_t head = in->form == FORM_MESSAGES ? LENGTH_BYTES : 0;
    int r = fill(in, head + 1, reterr);
    *ret_end = r == 0 && in->at == in->len;
    if (r < 0 || *ret_end)
        return r;
    if (in->len - in->at <= head)
        return ends_early(in, reterr);
    in->at += head;
    in->in_frame = true;
    return 0;
}

static int inflate_some(struct input *in, struct bytes *ret, struct err *reterr)
{
    int r = fill(in, 1, reterr);
    if (r < 0)
        return r;
    ZSTD_inBuffer from = {in->raw + in->at, in->len - in->at, 0};
    ZSTD_outBuffer to = {in->text, in->text_bytes, 0};
    const size_t left = ZSTD_decompressStream(in->zstd, &to, &from);
    if (ZSTD_isError(left))
        return err_set(reterr, -EBADMSG, "%s: damaged: zstd: %s", in->name,
                       ZSTD_getErrorName(left));
    if (from.size == 0 && to.pos == 0)
        return ends_early(in, reterr);
    in->at += from.pos;
    in->in_frame = left != 0;
    if (to.pos)
        in->line_open = in->text[to.pos - 1] != '\n';
    *ret = bytes_of(in->text, to.pos);
    return 0;
}

static int read_zstd(struct input *in, struct bytes *ret, struct err *reterr)
{
    bool end = false;
    int r = 0;
    while (r == 0 && ret->len == 0) {
        if (!in->in_frame && in->form == FORM_MESSAGES && in->line_open)
            return end_message(in, ret);
        if (!in->in_frame)
            r = begin_frame(in, &end, reterr);
        if (r < 0 || end)
            return r;
        r = inflate_some(in, ret, reterr);
    }
    return r;
}

/* Keeps what is behind `max` for the next call. */
static void cut(struct input *in, struct bytes *piece, size_t max)
{
    if (piece->len <= max)
        return;
    in->rest = bytes_of(piece->data + max, piece->len - max);
    piece->len = max;
}

int input_read(struct input *in, size_t max, struct bytes *ret, struct err *reterr)
{
    *ret = in->rest;
    in->rest = bytes_of(NULL, 0);
    int r = 0;
    if (ret->len == 0)
        r = (in->form == FORM_PLAIN ? read_plain : read_zstd)(in, ret, reterr);
    cut(in, ret, max);
    in->offset += ret->len;
    return r;
}

/* A plain file need not be read up to there. */
static void jump(struct input *in, uint64_t offset)
{
    if (in->form != FORM_PLAIN || !in->size_bytes || offset > in->size_bytes ||
        lseek(in->fd, (off_t)offset, SEEK_SET) < 0)
        return;
    in->offset = in->raw_read = offset;
    in->at = in->len = 0;
    in->rest = bytes_of(NULL, 0);
}

int input_skip_to(struct input *in, uint64_t offset, struct err *reterr)
{
    struct bytes piece;
    if (offset > in->offset + MIN_READ_BYTES)
        jump(in, offset);
    while (in->offset < offset) {
        const uint64_t left = offset - in->offset;
        int r = input_read(in, left < SIZE_MAX ? (size_t)left : SIZE_MAX, &piece, reterr);
        if (r < 0)
            return r;
        if (piece.len == 0)
            return err_set(reterr, -ESPIPE, "%s: has become shorter", in->name);
    }
    return 0;
}

uint64_t input_offset(const struct input *in)
{
    return in->offset;
}

struct input_progress input_progress(const struct input *in)
{
    const uint64_t unused = in->len - in->at + (in->form == FORM_PLAIN ? in->rest.len : 0);
    return (struct input_progress){in->raw_read - unused, in->size_bytes};
}

const char *input_name(const struct input *in)
{
    return in->name;
}

int input_fd(const struct input *in)
{
    return in->fd;
}
