/* Secrets (agent/base/secrets.h) out of protobuf: for what is stored as bytes and not rendered as text. */
#ifndef MOTEL_PROTO_REDACT_H
#define MOTEL_PROTO_REDACT_H

#include "proto/schema.h"

/* Appends the checked message `msg` with every secret in its strings and bytes (not ids), at any depth, replaced by the placeholder; a number
 * that an AnyValue holds and that is a secret becomes a string. All else as it is. 0, -ENOMEM or -EMSGSIZE. */
int otlp_redact(const struct schema_message *m, struct bytes msg, struct buf *out);
/* A batch without the secrets of `b`; NULL when there are none in it. 0, -ENOMEM or -EMSGSIZE. */
int otlp_redact_batch(const struct batch *b, struct batch **ret);

#endif
