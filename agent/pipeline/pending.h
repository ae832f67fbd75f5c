/*
 * What was collected for one batch and not sent yet: segments in the order they came. Small ones are copied behind
 * each other into one buffer, large ones referenced. Not thread safe.
 */
#ifndef MOTEL_PIPELINE_PENDING_H
#define MOTEL_PIPELINE_PENDING_H

#include "proto/batch.h"

struct pending {
    struct buf **segs;
    unsigned n, cap;
    struct buf *open; /* the last segment while it is ours to append to, else NULL */
    uint32_t records;
    size_t bytes;
};

/* Adds the content of `b` (borrowed). 0, or -ENOMEM: then nothing was added. */
int pending_add(struct pending *p, const struct batch *b);
/* Everything as one batch; `p` is empty afterwards. NULL when out of memory: then `p` is as before. */
struct batch *pending_take(struct pending *p, enum signal s);
void pending_done(struct pending *p);

#endif
