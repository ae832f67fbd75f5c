/*
 * Cutting batches. What fits is copied whole; a message that does not fit is entered: its fields
 * other than the items (resource, schema URL, metric name, temporality, …) are repeated around the
 * items in every piece. All levels are handled alike, down to the data points of a metric.
 */
#include <errno.h>

#include "proto/count.h"
#include "proto/rewrite.h"

#define TAG_LENGTH_MAX 10 /* what the tag and the length of a message may take */

struct wrapper {
    uint32_t number;    /* of the message in its parent */
    struct buf *header; /* its fields that are no items */
    bool open;          /* written in the present piece */
    size_t mark;
};

struct cutter {
    enum signal signal;
    uint32_t max_records, later_records; /* limits of the present and of later pieces */
    size_t max_bytes;
    struct wrapper wrappers[LEVEL_POINT];
    unsigned depth;   /* messages entered */
    uint32_t records; /* in the present piece */
    size_t bytes;     /* of its finished segments */
    struct buf *out;  /* its last segment, being written; NULL = none */
    struct buf **segs;
    size_t nsegs, segs_cap;
    struct batch **pieces;
    size_t npieces, pieces_cap;
};

static int cut_items(struct cutter *c, enum level level, struct bytes msg);

static int add_segment(struct cutter *c, struct buf *seg)
{
    _cleanup_buf_ struct buf *owned = seg;
    if (c->nsegs == c->segs_cap) {
        size_t cap = c->segs_cap * 2 + 4;
        struct buf **p = realloc(c->segs, cap * sizeof(*p));
        if (!p)
            return -ENOMEM;
        c->segs = p;
        c->segs_cap = cap;
    }
    c->bytes += seg->len;
    c->segs[c->nsegs++] = TAKE_PTR(owned);
    return 0;
}

static int add_piece(struct cutter *c, struct batch *piece)
{
    _cleanup_batch_ struct batch *owned = piece;
    if (!piece)
        return -ENOMEM;
    if (c->npieces == c->pieces_cap) {
        size_t cap = c->pieces_cap * 2 + 4;
        struct batch **p = realloc(c->pieces, cap * sizeof(*p));
        if (!p)
            return -ENOMEM;
        c->pieces = p;
        c->pieces_cap = cap;
    }
    c->pieces[c->npieces++] = TAKE_PTR(owned);
    return 0;
}

static int close_wrapper(struct cutter *c, unsigned i)
{
    struct wrapper *w = &c->wrappers[i];
    int r = w->open && i > 0 ? wire_end(c->out, w->mark) : 0;
    w->open = false;
    return r;
}

/* Ends the segment that is being written. */
static int finish_segment(struct cutter *c)
{
    if (!c->out)
        return 0;
    for (unsigned i = c->depth; i-- > 0;) {
        int r = close_wrapper(c, i);
        if (r < 0)
            return r;
    }
    buf_shrink(c->out);
    return add_segment(c, TAKE_PTR(c->out));
}

static int finish_piece(struct cutter *c)
{
    int r = finish_segment(c);
    if (r < 0 || c->nsegs == 0)
        return r;
    struct batch *piece = batch_new(c->signal, c->segs, (unsigned)c->nsegs, c->records);
    c->nsegs = c->records = 0;
    c->bytes = 0;
    c->max_records = c->later_records;
    return add_piece(c, piece);
}

/* An upper bound of the piece's size with `len` bytes more. */
static size_t size_with(const struct cutter *c, size_t len)
{
    size_t size = c->bytes + len + (c->out ? c->out->len : 0);
    for (unsigned i = 0; i < c->depth; i++)
        size +=
            (i > 0 ? TAG_LENGTH_MAX : 0) + (c->wrappers[i].open ? 0 : c->wrappers[i].header->len);
    return size;
}

static bool fits(const struct cutter *c, uint32_t records, size_t len)
{
    if (records > c->max_records - c->records)
        return false;
    return c->max_bytes == 0 || size_with(c, len) <= c->max_bytes;
}

/* Writes a field into the piece, after the messages around it. */
static int put_field(struct cutter *c, struct bytes whole, uint32_t records)
{
    int r = 0;
    if (!c->out && !(c->out = buf_new(0)))
        return -ENOMEM;
    for (unsigned i = 0; i < c->depth && r == 0; i++) {
        struct wrapper *w = &c->wrappers[i];
        if (w->open)
            continue;
        if (i > 0)
            r = wire_begin(c->out, w->number, &w->mark);
        if (r == 0)
            r = buf_append(c->out, w->header->data, w->header->len);
        w->open = r == 0;
    }
    c->records += records;
    return r == 0 ? buf_append(c->out, whole.data, whole.len) : r;
}

static struct buf *header_of(enum level level, struct bytes msg)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    _cleanup_buf_ struct buf *header = buf_new(0);
    while (header && wire_next(&r, &f) > 0)
        if (!level_items(level, f.number) && buf_append(header, f.whole.data, f.whole.len) < 0)
            return NULL;
    return TAKE_PTR(header);
}

/* Goes into a message of `level` that does not fit whole. */
static int enter(struct cutter *c, enum level level, uint32_t number, struct bytes msg)
{
    _cleanup_buf_ struct buf *header = header_of(level, msg);
    if (!header)
        return -ENOMEM;
    c->wrappers[level] = (struct wrapper){.number = number, .header = header};
    c->depth = level + 1;
    int r = cut_items(c, level, msg);
    if (r == 0)
        r = close_wrapper(c, level);
    c->depth = level;
    return r;
}

static int cut_item(struct cutter *c, enum level level, const struct wire_field *f)
{
    uint32_t records = level_count(c->signal, level, f->bytes);
    if (!fits(c, records, f->whole.len)) {
        if (records && level < level_counted(c->signal))
            return enter(c, level, f->number, f->bytes);
        int r = finish_piece(c);
        if (r < 0)
            return r;
    }
    return put_field(c, f->whole, records);
}

static int cut_items(struct cutter *c, enum level level, struct bytes msg)
{
    struct wire_reader reader = wire_reader(msg);
    struct wire_field f;
    int r = 0;
    while (r == 0 && wire_next(&reader, &f) > 0)
        if (level_items(level, f.number))
            r = cut_item(c, level + 1, &f);
    return r;
}

static int cut_segment(struct cutter *c, struct buf *seg, uint32_t records)
{
    if (!fits(c, records, seg->len)) {
        if (records) {
            int r = enter(c, LEVEL_REQUEST, 0, buf_bytes(seg));
            return r == 0 ? finish_segment(c) : r;
        }
        int r = finish_piece(c);
        if (r < 0)
            return r;
    }
    c->records += records;
    return add_segment(c, buf_ref(seg));
}

static int cut_batch(struct cutter *c, struct batch *in)
{
    int r = 0;
    for (unsigned i = 0; i < in->nsegs && r == 0; i++) {
        struct bytes all = buf_bytes(in->segs[i]);
        r = cut_segment(c, in->segs[i], level_count(in->signal, LEVEL_REQUEST, all));
    }
    if (r == 0)
        r = finish_piece(c);
    buf_unref(c->out);
    for (size_t i = 0; i < c->nsegs; i++)
        buf_unref(c->segs[i]);
    free(c->segs);
    for (size_t i = 0; r < 0 && i < c->npieces; i++)
        batch_unref(c->pieces[i]);
    if (r < 0)
        free(c->pieces);
    return r;
}

int otlp_split(struct batch *in, uint32_t max, struct batch **ret_head, struct batch **ret_tail)
{
    if (in->records <= max) {
        *ret_head = batch_ref(in);
        *ret_tail = NULL;
        return 0;
    }
    struct cutter c = {.signal = in->signal, .max_records = max, .later_records = UINT32_MAX};
    int r = cut_batch(&c, in);
    if (r < 0)
        return r;
    *ret_head = c.pieces[0];
    *ret_tail = c.pieces[1];
    free(c.pieces);
    return 0;
}

int otlp_split_all(struct batch *in, uint32_t max_records, size_t max_bytes, struct batch ***ret,
                   size_t *ret_n)
{
    uint32_t max = max_records ? max_records : UINT32_MAX;
    struct cutter c = {
        .signal = in->signal, .max_records = max, .later_records = max, .max_bytes = max_bytes};
    int r = 0;
    if (in->records <= max && (max_bytes == 0 || in->bytes <= max_bytes))
        r = add_piece(&c, batch_ref(in));
    else
        r = cut_batch(&c, in);
    *ret = r == 0 ? c.pieces : NULL;
    *ret_n = r == 0 ? c.npieces : 0;
    return r;
}
