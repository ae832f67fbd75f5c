#include "proto/batch.h"

const char *signal_name(enum signal s)
{
    static const char *const names[SIGNAL_COUNT] = {"traces", "metrics", "logs"};
    return names[s];
}

const char *signal_records_name(enum signal s)
{
    static const char *const names[SIGNAL_COUNT] = {"spans", "metric_points", "log_records"};
    return names[s];
}

struct batch *batch_new(enum signal s, struct buf *const *segs, unsigned nsegs, uint32_t records)
{
    struct batch *b = malloc(sizeof(*b) + nsegs * sizeof(b->segs[0]));
    if (!b) {
        for (unsigned i = 0; i < nsegs; i++)
            buf_unref(segs[i]);
        return NULL;
    }
    *b = (struct batch){.refs = 1, .signal = s, .records = records, .nsegs = nsegs};
    for (unsigned i = 0; i < nsegs; i++) {
        b->segs[i] = segs[i];
        b->bytes += segs[i]->len;
    }
    return b;
}

struct batch *batch_ref(struct batch *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

struct batch *batch_unref(struct batch *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
        for (unsigned i = 0; i < b->nsegs; i++)
            buf_unref(b->segs[i]);
        free(b);
    }
    return NULL;
}

struct buf *batch_flatten(const struct batch *b)
{
    if (b->nsegs == 1)
        return buf_ref(b->segs[0]);
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out || buf_reserve(out, b->bytes) < 0)
        return NULL;
    for (unsigned i = 0; i < b->nsegs; i++)
        if (buf_append(out, b->segs[i]->data, b->segs[i]->len) < 0)
            return NULL;
    return TAKE_PTR(out);
}
