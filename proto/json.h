/* OTLP/JSON, https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: from bytes and to bytes, no objects. */
#ifndef MOTEL_PROTO_JSON_H
#define MOTEL_PROTO_JSON_H

#include "proto/schema.h"

enum json_flags {
    JSON_REDACT = 1, /* secrets in string values become the placeholder, before escaping */
    JSON_LINE = 2,   /* of a batch: with the newline */
};
/* Appends the JSON of the checked message `msg`, in the reference's form, without a newline. 0, -ENOMEM, -EMSGSIZE. */
int json_write(const struct schema_message *m, struct bytes msg, unsigned flags, struct buf *out);
/* One line for a whole batch (all segments in one array of entries). */
int json_write_batch(const struct batch *b, unsigned flags, struct buf *out);
/*
 * The same in pieces, for a text that is not to be held at once: when the capacity of `out` is used up take() takes from its front what
 * it wants; where that is too little, it grows. The last piece stays in `out`. An error of take() ends it.
 */
struct json_spill {
    int (*take)(void *ctx, struct buf *out); /* 0 or a negative errno */
    void *ctx;
};
int json_write_batch_in_pieces(const struct batch *b, unsigned flags, const struct json_spill *spill, struct buf *out);

/*
 * Appends the protobuf of JSON text; the result still goes through otlp_check(). What follows the first value is not looked at.
 * Accepts camelCase and snake_case, int64 as string or number, enums by number or name, hex ids of any case or "", standard base64,
 * unknown fields of any depth up to 10000, null for messages, lists and strings, NaN words in strings; lists and maps in values
 * at most OTLP_MAX_DEPTH deep. Needs no memory but the result's and that of one string.
 * -EBADMSG: not such JSON; reterr has "line L, column C: what was expected, what was got" and the two numbers.
 * -EILSEQ: the same, where a byte above 0x7f (a byte order mark, say) stands outside of a string: the reference answers 500 with
 * {"code": 13, "message": "failed to marshal error message"} then. -ENOMEM.
 */
int json_read(const struct schema_message *m, struct bytes text, struct buf *out, struct err *reterr);

/* Shortest decimal text that reads back as `v`, at most DOUBLE_MAX_BYTES, no NUL; returns the length. */
enum double_style {
    DOUBLE_JSON,   /* the reference's JSON: 5, 0.1, 1e-07, 1e+21, "NaN", "Infinity", quotes included */
    DOUBLE_ECMA,   /* attribute values as text: 5, 1e-7, 1e+21, NaN, Infinity */
    DOUBLE_GO,     /* Go's %v: 1e+06, 1e-05, NaN, +Inf */
    DOUBLE_PYTHON, /* repr: 5.0, 1e-05, 1e+16, NaN, Infinity */
};
#define DOUBLE_MAX_BYTES 32
size_t double_text(double v, enum double_style style, char *out);
size_t json_double(double v, char *out); /* DOUBLE_JSON */
/* Appends `s` quoted and escaped; invalid UTF-8 becomes U+FFFD. (json_string() is jansson's.) */
int json_put_string(struct bytes s, unsigned flags, struct buf *out);

#endif
