#include "exporters/file/output.h"

#include <errno.h>
#include <string.h>

#include "exporters/file/group.h"

#define TEXT_BYTES                                                                                 \
    (128u << 10) /* of text; a longer record is written in pieces, where that can be */
#define WRITE_BYTES (TEXT_BYTES / 2) /* of some records together: enough for one write */
#define WRITE_RECORDS 1024
#define KEEP_BYTES (1u << 20) /* a larger text area is given back after use */

struct open_file {
    char *segment; /* NULL: the one file */
    struct shared *shared;
    uint64_t used;
};

struct output {
    struct output_options options;
    struct open_file *items;
    size_t max_open, n;
    uint64_t uses;
    uint64_t *opened; /* hashes of paths that were opened once: they are not emptied again */
    size_t nopened, opened_cap;

    struct outfile *selected;
    struct json_spill spill;
    struct buf *text;                     /* what is not written yet */
    size_t ends[WRITE_RECORDS], nrecords; /* in all the text of this write */

    size_t spilled; /* bytes of this write that have left `text` */
    bool pieces;    /* they are in the file, which is locked */
    bool whole;     /* there cannot be pieces; `text` grows */
    int error;      /* of the file */
};

/* ---- files ---- */

static struct open_file *find(struct output *o, const char *segment)
{
    for (size_t i = 0; i < o->n; i++)
        if (!segment || strcmp(o->items[i].segment, segment) == 0)
            return &o->items[i];
    return NULL;
}

static void close_one(struct output *o, struct open_file *f)
{
    host_unshare(o->options.host, f->shared);
    free(f->segment);
    *f = o->items[--o->n];
}

/* A place for one more file. */
static struct open_file *make_room(struct output *o)
{
    if (o->n < o->max_open)
        return &o->items[o->n];
    struct open_file *oldest = &o->items[0];
    for (size_t i = 1; i < o->n; i++)
        if (o->items[i].used < oldest->used)
            oldest = &o->items[i];
    close_one(o, oldest);
    return &o->items[o->n];
}

/* FNV-1a; two paths of one hash only mean that a file is continued instead of emptied. */
static uint64_t hash_of(const char *s)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3;
    return h;
}

static bool was_opened(const struct output *o, uint64_t hash)
{
    for (size_t i = 0; i < o->nopened; i++)
        if (o->opened[i] == hash)
            return true;
    return false;
}

static int reserve_opened(struct output *o)
{
    if (o->nopened < o->opened_cap)
        return 0;
    size_t cap = o->opened_cap ? 2 * o->opened_cap : 64;
    uint64_t *opened = realloc(o->opened, cap * sizeof(*opened));
    if (!opened)
        return -ENOMEM;
    o->opened = opened;
    o->opened_cap = cap;
    return 0;
}

/* A file that was closed to make room is continued when it is needed again. */
static int open_path(struct output *o, const char *path, struct shared **ret, struct err *reterr)
{
    struct outfile_options file = o->options.file;
    uint64_t hash = hash_of(path);
    bool again = was_opened(o, hash);
    file.path = path;
    file.truncate = file.truncate && !again;
    int r = outfile_open(o->options.host, &file, ret, reterr);
    if (r == 0 && !again)
        o->opened[o->nopened++] = hash;
    return r;
}

static int path_of(struct output *o, const char *segment, struct buf *out, struct err *reterr)
{
    const char *path = o->options.file.path;
    int r = reserve_opened(o);
    if (r == 0)
        r = segment ? group_path(path, segment, out) : buf_append_str(out, path);
    if (r < 0 || !buf_str(out))
        return err_set(reterr, -ENOMEM, "out of memory");
    r = segment ? outfile_make_directory(buf_str(out), o->options.directory_mode) : 0;
    return r < 0 ? err_set(reterr, r, "cannot make the directory of \"%s\": %s", buf_str(out),
                           strerror(-r))
                 : 0;
}

static int open_one(struct output *o, struct open_file *f, const char *segment, struct err *reterr)
{
    _cleanup_buf_ struct buf *path = buf_new(0);
    _cleanup_free_ char *copy = segment ? strdup(segment) : NULL;
    struct shared *shared = NULL;
    if (!path || (segment && !copy))
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = path_of(o, segment, path, reterr);
    if (r == 0)
        r = open_path(o, buf_str(path), &shared, reterr);
    if (r < 0)
        return r;
    *f = (struct open_file){.segment = TAKE_PTR(copy), .shared = shared};
    o->n++;
    return 0;
}

int output_select(struct output *o, const char *segment, struct err *reterr)
{
    struct open_file *f = find(o, segment);
    int r = f ? 0 : open_one(o, f = make_room(o), segment, reterr);
    if (r < 0)
        return r;
    f->used = ++o->uses;
    o->selected = outfile_of(f->shared);
    return 0;
}

/* ---- records ---- */

/* The text area is full within a record. */
static int spill(void *ctx, struct buf *text)
{
    struct output *o = ctx;
    if (!o->pieces && !o->whole) {
        o->error = outfile_begin(o->selected, &o->pieces);
        o->whole = !o->pieces;
    }
    if (o->error || o->whole)
        return o->error;
    const size_t n = outfile_good_piece(o->selected, text->len), left = text->len - n;
    o->error = outfile_piece(o->selected, bytes_of(text->data, n));
    o->spilled += n;
    memmove(text->data, text->data + n, left);
    buf_truncate(text, left);
    return o->error;
}

static size_t end_of_records(const struct output *o)
{
    return o->nrecords ? o->ends[o->nrecords - 1] : 0;
}

int output_add(struct output *o, const struct batch *b)
{
    if (!o->text && !(o->text = buf_new(0)))
        return -ENOMEM;
    int r = buf_reserve(o->text, o->nrecords ? 0 : TEXT_BYTES);
    if (r == 0)
        r = render(o->options.renderer, b, &o->spill, o->text);
    if (r == 0) {
        o->ends[o->nrecords++] = o->spilled + o->text->len;
        return 0;
    }
    const size_t end = end_of_records(o);
    buf_truncate(o->text, end > o->spilled ? end - o->spilled : 0);
    return r == -ESTALE ? -EAGAIN : r;
}

bool output_full(const struct output *o)
{
    return o->nrecords == WRITE_RECORDS || o->spilled || (o->text && o->text->len >= WRITE_BYTES);
}

static int flush(struct output *o, size_t *ret_written)
{
    if (!o->pieces)
        return o->nrecords && !o->error ? outfile_write(o->selected, buf_bytes(o->text), o->ends,
                                                        o->nrecords, ret_written)
                                        : o->error;
    int r = o->error ? o->error : outfile_piece(o->selected, buf_bytes(o->text));
    outfile_end(o->selected, o->ends, o->nrecords, ret_written);
    return r == -ESTALE ? 0 : r;
}

int output_flush(struct output *o, size_t *ret_written, struct err *reterr)
{
    *ret_written = 0;
    int r = flush(o, ret_written);
    o->nrecords = o->spilled = 0;
    o->pieces = o->whole = false;
    o->error = 0;
    if (o->text)
        buf_truncate(o->text, 0);
    if (o->text && o->text->cap > KEEP_BYTES)
        o->text = buf_unref(o->text);
    return r < 0 ? err_set(reterr, r, "cannot write to \"%s\": %s", outfile_path(o->selected),
                           strerror(-r))
                 : 0;
}

/* ---- life cycle ---- */

struct output *output_new(const struct output_options *options)
{
    struct output *o = calloc(1, sizeof(*o));
    if (!o)
        return NULL;
    o->options = *options;
    o->spill = (struct json_spill){spill, o};
    o->max_open = options->grouped ? options->max_open_files : 1;
    o->items = calloc(o->max_open, sizeof(*o->items));
    return o->items ? o : output_free(o);
}

struct output *output_free(struct output *o)
{
    if (!o)
        return NULL;
    while (o->n)
        close_one(o, &o->items[o->n - 1]);
    free(o->items);
    free(o->opened);
    buf_unref(o->text);
    free(o);
    return NULL;
}
