/*
 * The same messages as protobuf-c knows them: what the laws of the tests compare the walkers with. The program itself walks the bytes and
 * has no object trees, so this is in a library of its own that only tests link.
 */
#ifndef MOTEL_PROTO_SCHEMA_PBC_H
#define MOTEL_PROTO_SCHEMA_PBC_H

#include <protobuf-c/protobuf-c.h>

#include "proto/schema.h"

/* For protobuf_c_message_unpack() and the structs of proto/otlp/X.pb-c.h. There `string` fields are ProtobufCBinaryData like `bytes`:
 * protobuf-c's char pointers would cut a string at a NUL. */
const ProtobufCMessageDescriptor *schema_descriptor(const struct schema_message *m);

#endif
