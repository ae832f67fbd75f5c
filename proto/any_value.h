/* AnyValue and KeyValue (opentelemetry/proto/common/v1) on bytes: reading, writing, and their text. */
#ifndef MOTEL_PROTO_ANY_VALUE_H
#define MOTEL_PROTO_ANY_VALUE_H

#include "proto/wire.h"

enum any_kind { ANY_EMPTY, ANY_STRING, ANY_BOOL, ANY_INT, ANY_DOUBLE, ANY_ARRAY, ANY_KVLIST, ANY_BYTES };

/* Views into the bytes that were read. */
struct any_value {
    enum any_kind kind;
    union {
        struct bytes bytes; /* STRING, BYTES; ARRAY and KVLIST: the encoded ArrayValue or KeyValueList (both repeat field 1) */
        bool b;
        int64_t i;
        double d;
    };
};
/* What the checked AnyValue message `any` holds; zero bytes are ANY_EMPTY. */
struct any_value any_value_read(struct bytes any);
/* Appends the fields of an AnyValue (not its tag and length in a parent). 0, -ENOMEM or -EMSGSIZE. */
int any_value_write(const struct any_value *v, struct buf *out);

/* Text of an AnyValue as the reference makes it: a string as it is, numbers as in ECMAScript, bytes in base64, maps and lists as
 * JSON with sorted keys, empty = "". A map or list that holds a NaN or an infinity has no JSON: "" too. */
int any_value_text(struct bytes any, struct buf *out);

struct key_value {
    struct bytes key, value; /* value: an AnyValue message */
};
struct key_value key_value_read(struct bytes kv);
/* The next field `number` (below 16) behind `r` that is a KeyValue of that key; *ret_passed: how many others stood before it. False at the end. */
bool key_value_seek(struct wire_reader *r, uint32_t number, struct bytes key, struct key_value *ret, uint32_t *ret_passed);

#endif
