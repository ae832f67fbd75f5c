/*
 * Console JSON, as the OpenTelemetry Python SDK's console exporters print it, back into telemetry: framing out of a mixed
 * stream of text, and the mapping of its three shapes (span, metrics, log record) to OTLP.
 */
#ifndef MOTEL_PROTO_CONSOLE_H
#define MOTEL_PROTO_CONSOLE_H

#include "proto/batch.h"

/* ---- mapping */
enum console_kind { CONSOLE_NOT_TELEMETRY, CONSOLE_SPAN, CONSOLE_METRICS, CONSOLE_LOG, CONSOLE_OTLP /* a line of the file exporter */ };

/*
 * Appends the Export*ServiceRequest of the JSON object that `text` starts with (compact or indented) to `out`; it still goes
 * through batch_from_wire(). `server_name`: from a "(name) " prefix, fills nemo.gym.server.name when a resource lacks it;
 * len 0 = none. Returns the kind, with *ret_signal set when it is telemetry and *ret_used the length of the object when it is
 * JSON; CONSOLE_NOT_TELEMETRY: other JSON, or none; -EBADMSG with "line L, column C" (of the object) in reterr when it looks like
 * telemetry and is malformed; -ENOMEM. `out` is unchanged unless it is telemetry.
 */
int console_read(struct bytes text, struct bytes server_name, struct buf *out, enum signal *ret_signal, size_t *ret_used,
                 struct err *reterr);

/* ---- framing */
struct console_stats {
    uint64_t records[SIGNAL_COUNT]; /* spans, data points, log records */
    uint64_t plain_lines;           /* passed on as they are */
    uint64_t malformed;             /* objects that looked like telemetry and were not; passed on as plain lines */
    uint64_t oversized;             /* objects or lines over the limit; passed on */
};
struct console_sink {
    /*
     * Takes one batch, checked: neighbours with the same resource share an entry, so it holds a record or many. 0 goes on;
     * anything else ends console_feed() soon, which returns it (a few more calls of either function may come before: the line is
     * finished and what is ready is handed over). The batch was taken all the same: who cannot pass it on now keeps it, and feeds the
     * rest when it could.
     */
    int (*telemetry)(void *ctx, struct batch *b);
    /* A line that is no telemetry, with its line end as it came; a piece without one when a record follows on the same line or the line
     * is longer than the limit. Returns as above. NULL = dropped. */
    int (*plain)(void *ctx, struct bytes line);
    void *ctx;
};
struct console_reader; /* one per stream; not thread safe */

/* max_record_bytes: of one object, 0 = 16 MiB. NULL when out of memory. */
struct console_reader *console_reader_new(const struct console_sink *sink, size_t max_record_bytes);
struct console_reader *console_reader_free(struct console_reader *r); /* NULL ok; what is held is forgotten */
/*
 * Feeds the next bytes of the stream, in any cut. *ret_used: how many were taken (all of them on 0); after another answer feed from there
 * on. Objects that are not finished stay inside until their rest comes or resynchronisation gives them up; everything else was handed to
 * the sink when it returns. 0, what the sink returned, or -ENOMEM (feed again from *ret_used on).
 */
int console_feed(struct console_reader *r, struct bytes text, size_t *ret_used);
/* The stream ends, or rests. A last line without a line end is read; what is unfinished goes out as plain lines, or stays when `keep` (the
 * end of a file that may grow). Returns as console_feed(). */
int console_flush(struct console_reader *r, bool keep);

/* The stream rests in the middle of a line: when no object is or may be under way, what is there of the line is passed on as a piece, so
 * that prompts and progress bars are seen. Returns as console_feed(). */
int console_flush_text(struct console_reader *r);

/*
 * Where the bytes that are held unfinished are in the stream, in order. To go on at another time, store these places and the end of what
 * was fed; then feed the places again, before what follows, with console_reader_seek() before each piece.
 */
struct console_range {
    uint64_t offset, len;
};
/* Fills ret[max]; returns how many there are (perhaps more than max). */
size_t console_held(const struct console_reader *r, struct console_range *ret, size_t max);
size_t console_pending(const struct console_reader *r); /* the sum of their bytes */
/* The next byte fed is number `offset` of the stream (0 at first). */
void console_reader_seek(struct console_reader *r, uint64_t offset);
const struct console_stats *console_reader_stats(const struct console_reader *r);

#endif
