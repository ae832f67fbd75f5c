/*
 * Console JSON, as the OpenTelemetry Python SDK's console exporters print it, back into telemetry: framing out of a mixed
 * stream of text, and the mapping of its three shapes (span, metrics, log record) to OTLP.
 */
#ifndef MOTEL_PROTO_CONSOLE_H
#define MOTEL_PROTO_CONSOLE_H

#include "proto/batch.h"

/* ---- mapping */
enum console_kind { CONSOLE_NOT_TELEMETRY, CONSOLE_SPAN, CONSOLE_METRICS, CONSOLE_LOG, CONSOLE_OTLP /* a line of the file exporter */ };

/* Appends the Export*ServiceRequest of one JSON object (compact or indented) to `out`. `server_name`: from a "(name) " prefix, fills
 * nemo.gym.server.name when the resource lacks it; len 0 = none. The kind, with *ret_signal set when it is telemetry; -EBADMSG with
 * line:column (of the object) in reterr when it looks like telemetry and is malformed; -ENOMEM. CONSOLE_NOT_TELEMETRY: other JSON. */
int console_read(struct bytes object, struct bytes server_name, struct buf *out, enum signal *ret_signal, struct err *reterr);

/* ---- framing */
struct console_stats {
    uint64_t records[SIGNAL_COUNT]; /* spans, data points, log records */
    uint64_t plain_lines;           /* passed on as they are */
    uint64_t malformed;             /* objects that looked like telemetry and were not; passed on as plain lines */
    uint64_t oversized;             /* objects over the limit; passed on */
};
struct console_sink {
    /* One record or export: takes `request` (a complete, checked request). 0 goes on; anything else stops console_feed(), which
     * returns it (-EAGAIN: offer the same bytes again later). */
    int (*telemetry)(void *ctx, enum signal s, struct buf *request);
    /* A line that is no telemetry, with its line end as it came. */
    int (*plain)(void *ctx, struct bytes line);
    void *ctx;
};
struct console_reader; /* one per stream; not thread safe */

/* max_record_bytes: of one object, 0 = 16 MiB. */
struct console_reader *console_reader_new(const struct console_sink *sink, size_t max_record_bytes);
struct console_reader *console_reader_free(struct console_reader *r); /* NULL ok */
/* Feeds the next bytes of the stream in any cut. *ret_used: how many were taken (all of them on 0). Objects that are not finished stay
 * inside until their rest comes or resynchronisation gives them up. */
int console_feed(struct console_reader *r, struct bytes text, size_t *ret_used);
/* The stream ends, or was silent for long: what is held unfinished goes out as plain lines (or, at the end of a file that may
 * grow, stays when `keep`). */
int console_flush(struct console_reader *r, bool keep);
/* Bytes of the stream that are held unfinished: a follower stores (offset - this) as the place to start again. */
size_t console_pending(const struct console_reader *r);
const struct console_stats *console_reader_stats(const struct console_reader *r);

#endif
