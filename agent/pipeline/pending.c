#include "agent/pipeline/pending.h"

#include <errno.h>

/* Copying a piece costs less than a segment of its own (a buffer, an iovec, cache misses) below
 * this... */
#define SMALL_BYTES 4096
/* ...and up to this size of what it is copied to. */
#define OPEN_BYTES (256 * 1024)

static int reserve(struct pending *p, unsigned more)
{
    if (p->cap - p->n >= more)
        return 0;
    unsigned cap = p->cap ? 2 * p->cap : 16;
    cap = cap < p->n + more ? p->n + more : cap;
    struct buf **segs = realloc(p->segs, cap * sizeof(struct buf *));
    if (!segs)
        return -ENOMEM;
    p->segs = segs;
    p->cap = cap;
    return 0;
}

/* Copies a small segment behind the others; false = it has to be referenced. */
static bool copied(struct pending *p, const struct buf *seg)
{
    if (seg->len >= SMALL_BYTES)
        return false;
    if (p->open && buf_append(p->open, seg->data, seg->len) == 0)
        return true;
    struct buf *new = buf_new(OPEN_BYTES);
    if (!new || buf_append(new, seg->data, seg->len) < 0) {
        buf_unref(new);
        return false;
    }
    p->open = p->segs[p->n++] = new;
    return true;
}

int pending_add(struct pending *p, const struct batch *b)
{
    if (reserve(p, b->nsegs) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < b->nsegs; i++)
        if (!copied(p, b->segs[i])) {
            p->segs[p->n++] = buf_ref(b->segs[i]);
            p->open = NULL;
        }
    p->records += b->records;
    p->bytes += b->bytes;
    return 0;
}

struct batch *pending_take(struct pending *p, enum signal s)
{
    if (p->open)
        buf_shrink(p->open);
    p->open = NULL;
    /* batch_new() drops its references when it fails; ours are for that case. */
    for (unsigned i = 0; i < p->n; i++)
        buf_ref(p->segs[i]);
    struct batch *b = batch_new(s, p->segs, p->n, p->records);
    if (!b)
        return NULL;
    for (unsigned i = 0; i < p->n; i++)
        buf_unref(p->segs[i]);
    p->n = 0;
    p->records = 0;
    p->bytes = 0;
    return b;
}

void pending_done(struct pending *p)
{
    for (unsigned i = 0; i < p->n; i++)
        buf_unref(p->segs[i]);
    free(p->segs);
    *p = (struct pending){0};
}
