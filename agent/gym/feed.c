#include "agent/gym/feed.h"

#include <errno.h>

int feed_open(struct feed *f, const char *path, const struct console_sink *sink, struct err *reterr)
{
    *f = (struct feed){0};
    int r = input_open(path, &f->input, reterr);
    if (r < 0)
        return r;
    f->reader = console_reader_new(sink, 0);
    return f->reader ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

void feed_done(struct feed *f)
{
    f->reader = console_reader_free(f->reader);
    f->input = input_free(f->input);
}

/* What the sink says ends it; so does a lack of memory. */
static int feed_bytes(struct feed *f, struct bytes text, struct err *reterr)
{
    size_t used;
    int r = console_feed(f->reader, text, &used);
    return r == -ENOMEM ? err_set(reterr, r, "%s: out of memory", input_name(f->input)) : r;
}

static int feed_end(struct feed *f, struct err *reterr)
{
    int r = console_flush(f->reader, f->keep);
    return r == -ENOMEM ? err_set(reterr, r, "%s: out of memory", input_name(f->input)) : r;
}

int feed_step(struct feed *f, struct err *reterr)
{
    struct bytes piece;
    int r = input_read(f->input, SIZE_MAX, &piece, reterr);
    if (r < 0) {
        feed_end(f, NULL); /* what came before the damage counts */
        return r;
    }
    if (piece.len == 0)
        return feed_end(f, reterr);
    r = feed_bytes(f, piece, reterr);
    return r < 0 ? r : 1;
}

/* Feeds the bytes of one place. */
static int feed_range(struct feed *f, const struct console_range *range, struct err *reterr)
{
    struct bytes piece;
    uint64_t left = range->len;
    int r = input_skip_to(f->input, range->offset, reterr);
    console_reader_seek(f->reader, range->offset);
    while (r == 0 && left) {
        r = input_read(f->input, (size_t)left, &piece, reterr);
        if (r == 0 && piece.len == 0)
            return err_set(reterr, -ESPIPE, "%s: has become shorter", input_name(f->input));
        if (r == 0)
            r = feed_bytes(f, piece, reterr);
        left -= piece.len;
    }
    return r;
}

int feed_resume(struct feed *f, const struct console_range *held, size_t n, uint64_t offset,
                struct err *reterr)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = feed_range(f, &held[i], reterr);
    if (r == 0)
        r = input_skip_to(f->input, offset, reterr);
    console_reader_seek(f->reader, offset);
    return r;
}
