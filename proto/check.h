/*
 * The deep check of bytes from outside: after it, walkers may rely on the structure.
 */
#ifndef MOTEL_PROTO_CHECK_H
#define MOTEL_PROTO_CHECK_H

#include "proto/schema.h"

/* Lists and maps inside each other in one AnyValue; a value inside 64 of them is fine. */
#define OTLP_MAX_DEPTH 64

/* Attributes of one record, resource or scope, and entries of one map. */
#define OTLP_MAX_ATTRIBUTES 65536
/* Lowers them, or sets another number of attributes, for all checks that begin later; 0 = the values above. A depth above OTLP_MAX_DEPTH
 * counts as that: who walks values relies on it. */
void otlp_limits_set(unsigned max_depth, unsigned max_attributes);

struct otlp_checked {
    uint32_t records;    /* spans, data points, log records */
    bool canonical;      /* false: the bytes are legal but odd; `fixed` has the same content in canonical form */
    struct buf *fixed;   /* owned by the caller; NULL when canonical */
    struct time_range times;
};
/*
 * Walks every nested field of an Export*ServiceRequest by schema: wire types, lengths, ids (0 or 16/8 bytes), depth,
 * groups refused, unknown fields kept. What walkers may rely on after it: every known field has its own wire type; singular
 * fields come at most once, of a oneof at most one member, repeated scalars are one packed field; strings are UTF-8.
 * Bytes that are legal without being so are written anew: a message given twice is merged, of other singular fields and
 * oneofs the last one wins; invalid UTF-8 becomes U+FFFD (one for each maximal bad subpart, Unicode 3.9); the deprecated
 * field 1000 of resource entries is moved to 2 when there is no 2 and else dropped, as the reference does.
 * Field order is free. 0; -EBADMSG with the reason and the byte offset in reterr; -ENOMEM.
 */
int otlp_check(enum signal s, struct bytes wire, struct otlp_checked *ret, struct err *reterr);
/* The same for any message, without repair: 0 when it is well formed, canonical or not; or -EBADMSG. */
int otlp_check_message(const struct schema_message *m, struct bytes wire, struct err *reterr);
/* Counts the records of checked bytes. */
uint32_t otlp_count(enum signal s, struct bytes wire);

#endif
