/* Writes bytes that are legal but odd in canonical form. Only for proto/check.c and its tests. */
#ifndef MOTEL_PROTO_REPAIR_H
#define MOTEL_PROTO_REPAIR_H

#include "proto/schema.h"

#define OTLP_OLD_SCOPES 1000 /* where entries had their scopes before OTLP 0.9 */

/* Appends the canonical form of the structurally valid message `msg` (proto/check.h says what that is). 0, -ENOMEM or
 * -EMSGSIZE. */
int otlp_repair(const struct schema_message *m, struct bytes msg, struct buf *out);
/* The message that field 1000 of `m` holds; NULL when `m` is no resource entry. */
const struct schema_message *otlp_old_scopes(const struct schema_message *m);

#endif
