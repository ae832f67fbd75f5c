/*
 * The byte form in which the reference collector's exporters send a request. Protobuf leaves the order of fields open; sending
 * the same order lets captures, digests and de-duplication by hash agree, whichever collector stood in between.
 */
#ifndef MOTEL_PROTO_WIRE_ORDER_H
#define MOTEL_PROTO_WIRE_ORDER_H

#include "proto/schema.h"

/*
 * Appends the checked message `msg` of type `m` to `out`: fields from the last declared to the first, elements of a repeated
 * field in their order, zero scalars left out unless they have presence, ids and singular messages always there (empty
 * when absent or, ids, all zero). Unknown fields are kept and come first. 0, -ENOMEM or -EMSGSIZE.
 */
int otlp_wire_order(const struct schema_message *m, struct bytes msg, struct buf *out);
/* The same of all segments of a batch, as one request. */
int batch_wire_order(const struct batch *b, struct buf *out);

#endif
