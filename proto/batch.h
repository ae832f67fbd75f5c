/*
 * Immutable telemetry: an array of buffers, each a complete Export*ServiceRequest in protobuf that passed otlp_check().
 * Two encoded requests one after the other are one request, so batching is appending segments. Nobody changes a batch:
 * who edits makes a new one (proto/rewrite.h) and drops the old. All functions are thread safe.
 */
#ifndef MOTEL_PROTO_BATCH_H
#define MOTEL_PROTO_BATCH_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

enum signal { SIGNAL_TRACES, SIGNAL_METRICS, SIGNAL_LOGS, SIGNAL_COUNT };
#define SIGNAL_BIT(s) (1u << (s))
#define SIGNALS_ALL ((1u << SIGNAL_COUNT) - 1)

/* "traces", "metrics", "logs". */
const char *signal_name(enum signal s);
/* What one counted record is called in metrics and logs: "spans", "metric_points", "log_records". */
const char *signal_records_name(enum signal s);

/* The first and the last time stamp of records, Unix time in ns: starts and ends of spans, times of points and log records
 * (when all log records have none: when they were observed). 0 = none, or not known. */
struct time_range {
    uint64_t first_ns, last_ns;
};

struct batch {
    atomic_uint refs;
    enum signal signal;
    uint32_t records; /* spans, data points or log records */
    size_t bytes;     /* sum of the segments */
    struct time_range times; /* known of batches that batch_from_wire() made */
    unsigned nsegs;
    struct buf *segs[];
};

/* Takes `wire`, checks and counts it (proto/check.h). 0; -EBADMSG with reterr when it is not a valid request; -ENOMEM.
 * The buffer is dropped on error. A request without records is a batch with records == 0. */
int batch_from_wire(enum signal s, struct buf *wire, struct batch **ret, struct err *reterr);
/* A batch of segments known to be good; takes one reference of each; NULL when out of memory (then the refs are dropped). */
struct batch *batch_new(enum signal s, struct buf *const *segs, unsigned nsegs, uint32_t records);
struct batch *batch_ref(struct batch *b);
struct batch *batch_unref(struct batch *b); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct batch *, batch_unref)
#define _cleanup_batch_ _cleanup_(batch_unrefp)
/* All segments in one buffer: a reference when there is one segment already; NULL when out of memory. */
struct buf *batch_flatten(const struct batch *b);

#endif
