/* Telemetry as the lines that the OpenTelemetry Python SDK's console exporters print (SDK 1.45, one line an object). */
#ifndef MOTEL_EXPORTERS_CONSOLE_LINES_H
#define MOTEL_EXPORTERS_CONSOLE_LINES_H

#include "proto/schema.h"

/* Text that is being made; after the first error nothing is added. */
struct lines {
    struct buf *out;
    int error;
    bool redact; /* secrets become the placeholder in strings, and numbers that are one become a string */
};

/* A line for each span and log record; one for all metrics of a batch. 0, -ENOMEM. */
int console_lines(const struct batch *b, struct buf *out);

/* One resource entry of metrics: the object in "resource_metrics". */
void line_resource_metrics(struct lines *l, struct bytes entry);

/* ---- parts of lines ---- */
void line_text(struct lines *l, const char *text);
/* Text that was rendered before. */
void line_bytes(struct lines *l, struct bytes text);
/* A string in quotes, ASCII only, as Python's json.dumps writes it. */
void line_string(struct lines *l, struct bytes s);
void line_uint(struct lines *l, uint64_t v);
void line_int(struct lines *l, int64_t v);
/* repr(float): 1.0, 1e-07, NaN */
void line_double(struct lines *l, double v);
/* "0x", `digits` hex digits (zeros when `id` is empty), in quotes. */
void line_id(struct lines *l, struct bytes id, size_t digits);
/* The KeyValues in `field` of `msg` as an object; `empty` is what none of them gives: "{}" or "null". */
void line_attributes(struct lines *l, struct bytes msg, uint32_t field, const char *empty);
/* An AnyValue. */
void line_value(struct lines *l, struct bytes any);
/* {"attributes": {...}, "schema_url": "..."} of a resource entry. */
void line_resource(struct lines *l, struct bytes entry);

#endif
