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

/*
 * The same step by step, from the last message to the first: each one is put in front of what is there. The memory is kept for
 * the next round. Not thread safe.
 */
struct wire_order;
struct wire_order *wire_order_new(void); /* NULL when out of memory */
struct wire_order *wire_order_free(struct wire_order *o); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct wire_order *, wire_order_free)
int wire_order_reserve(struct wire_order *o, size_t bytes); /* for what is to come; -ENOMEM */
int wire_order_put(struct wire_order *o, const struct schema_message *m, struct bytes msg); /* 0 or -ENOMEM */
struct bytes wire_order_bytes(const struct wire_order *o); /* until the next put, reset or free */
void wire_order_reset(struct wire_order *o);

#endif
