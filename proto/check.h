/*
 * The deep check of bytes from outside: after it, walkers may rely on the structure.
 */
#ifndef MOTEL_PROTO_CHECK_H
#define MOTEL_PROTO_CHECK_H

#include "proto/schema.h"

#define OTLP_MAX_DEPTH 64

struct otlp_checked {
    uint32_t records;    /* spans, data points, log records */
    bool canonical;      /* false: the bytes are legal but odd; `fixed` has the same content in canonical form */
    struct buf *fixed;   /* owned by the caller; NULL when canonical */
};
/*
 * Walks every nested field of an Export*ServiceRequest by schema: wire types, lengths, ids (0 or 16/8 bytes), depth,
 * groups refused, unknown fields kept. Singular messages or oneofs given twice are brought to canonical form through
 * protobuf-c; invalid UTF-8 in string fields becomes U+FFFD (one for each maximal bad subpart, Unicode 3.9); the deprecated
 * field 1000 of resource entries is moved to 2 as the reference does. 0; -EBADMSG with the reason and the byte offset in
 * reterr; -ENOMEM.
 */
int otlp_check(enum signal s, struct bytes wire, struct otlp_checked *ret, struct err *reterr);
/* Counts the records of checked bytes. */
uint32_t otlp_count(enum signal s, struct bytes wire);

#endif
