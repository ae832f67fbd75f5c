/* Data as text for people, as the reference's debug exporter writes it. */
#ifndef MOTEL_EXPORTERS_DEBUG_TEXT_H
#define MOTEL_EXPORTERS_DEBUG_TEXT_H

#include "proto/schema.h"

/* A text that is being made; after the first error nothing is added. */
struct text {
    struct buf *out;
    int error;
};

/* One line an item: verbosity `normal`. */
void normal_text(struct text *t, const struct batch *b);
/* Everything: verbosity `detailed`. */
void detailed_text(struct text *t, const struct batch *b);
/* The same of one metric, from "Descriptor:" on. */
void detailed_metric(struct text *t, struct bytes metric);

/* Calls `put_entry` with each resource entry of the batch and its number. */
void text_resources(struct text *t, const struct batch *b,
                   void (*put_entry)(struct text *t, enum signal s, unsigned i, struct bytes entry));

void text_printf(struct text *t, const char *fmt, ...) _printf_(2, 3);
void text_bytes(struct text *t, struct bytes s);
/* BEFORE, the bytes, and the end of the line. */
void text_line(struct text *t, const char *before, struct bytes s);
/* `field` of `msg`, a string or (as hex digits, "" when all zero) an id. */
void text_string_line(struct text *t, const char *before, struct bytes msg, uint32_t field);
void text_id_line(struct text *t, const char *before, struct bytes msg, uint32_t field);
void text_id(struct text *t, struct bytes id);
/* "2026-11-29 13:31:16.56640318 +0000 UTC" */
void text_time_line(struct text *t, const char *before, struct bytes msg, uint32_t field);
/* Go's %f: "1.500000", "NaN", "+Inf" */
void text_fixed(struct text *t, double v);
/* An AnyValue without and with its type: "x", "Str(x)". */
void text_value(struct text *t, struct bytes any);
void text_typed_value(struct text *t, struct bytes any);
/* "HEADER:" and a line "INDENT KEY: TYPE(VALUE)" for each KeyValue in `field` of `msg`; nothing when there is none. */
void text_attributes(struct text *t, const char *header, const char *indent, struct bytes msg, uint32_t field);

/* The counts of one side of an exponential histogram; `t` gets the error when there is no memory. */
struct buckets {
    double offset;
    size_t n;
    uint64_t *counts;
};
struct buckets buckets_read(struct text *t, struct bytes buckets);
void buckets_done(struct buckets *b);
#define _cleanup_buckets_ _cleanup_(buckets_done)
/* Bucket i begins at bucket_bound(i, buckets_factor(point)). */
double buckets_factor(struct bytes point);
double bucket_bound(double i, double factor);

/* names[i], or "" beyond the end. */
const char *text_name(const char *const *names, size_t n, uint64_t i);

#endif
