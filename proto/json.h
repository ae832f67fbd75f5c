/* OTLP/JSON, https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: from bytes and to bytes, no objects. */
#ifndef MOTEL_PROTO_JSON_H
#define MOTEL_PROTO_JSON_H

#include "proto/schema.h"

enum json_flags { JSON_REDACT = 1 /* secrets in string values become the placeholder, before escaping */ };
/* Appends the JSON of the checked message `msg`, in the reference's form, without a newline. 0, -ENOMEM, -EMSGSIZE. */
int json_write(const struct schema_message *m, struct bytes msg, unsigned flags, struct buf *out);
/* One line for a whole batch (all segments in one array of entries), without the newline. */
int json_write_batch(const struct batch *b, unsigned flags, struct buf *out);
/* Appends the protobuf of JSON text. -EBADMSG with reason and line:column in reterr. The result still goes through
 * otlp_check(). Accepts camelCase and snake_case, int64 as string or number, enums by number or name, hex ids of any case,
 * standard base64, unknown fields, null, NaN words in strings; at most `OTLP_MAX_DEPTH`-deep AnyValues. */
int json_read(const struct schema_message *m, struct bytes text, struct buf *out, struct err *reterr);

/* Shortest decimal text that reads back as `v`, in the form of the reference ("5", "0.1", "1e-07", "1e+21", quoted "NaN");
 * at most 32 bytes; returns the length. */
size_t json_double(double v, char *out);
/* Appends `s` quoted and escaped; invalid UTF-8 becomes U+FFFD. */
int json_string(struct bytes s, unsigned flags, struct buf *out);

#endif
