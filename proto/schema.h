/*
 * The OTLP messages as tables, made at build from the .proto files (protoc --descriptor_set_out): what check, JSON in
 * and out and path resolution walk. One truth; no second, hand-written table.
 */
#ifndef MOTEL_PROTO_SCHEMA_H
#define MOTEL_PROTO_SCHEMA_H

#include "proto/batch.h"
#include "proto/wire.h"

enum field_kind {
    KIND_DOUBLE, KIND_FIXED64, KIND_SFIXED64, KIND_FIXED32, KIND_INT32, KIND_INT64, KIND_SINT32, KIND_UINT32, KIND_UINT64,
    KIND_BOOL, KIND_ENUM, KIND_STRING, KIND_BYTES, KIND_MESSAGE,
};

struct schema_enum_value {
    const char *name; /* "SPAN_KIND_SERVER" */
    int32_t number;
};
struct schema_enum {
    const char *name;
    size_t nvalues;
    const struct schema_enum_value *values;
};

/* Messages that JSON out has a short cut for. */
enum json_shape { SHAPE_ANY, SHAPE_KEY_VALUE, SHAPE_VALUE };

#define JSON_START_BYTES 32
struct schema_field {
    const char *name, *json_name; /* "start_time_unix_nano", "startTimeUnixNano" */
    uint8_t name_len, json_len;
    uint8_t number;    /* all field numbers of OTLP are below 64 */
    uint8_t kind;      /* enum field_kind */
    uint8_t wire_type; /* of one element */
    uint8_t id_len;    /* 16 or 8 for trace and span ids, else 0 */
    bool repeated;     /* scalars are then packed on output and accepted either way */
    int8_t oneof;      /* index of the oneof in its message, -1 = none; explicit presence */
    const struct schema_message *message;    /* KIND_MESSAGE */
    const struct schema_enum *enumeration;   /* KIND_ENUM */
    uint8_t json_shape;                      /* enum json_shape of `message` */
    uint8_t json_start_len;
    char json_start[JSON_START_BYTES];       /* `,"startTimeUnixNano":` */
};

struct schema_message {
    const char *name; /* "opentelemetry.proto.trace.v1.Span" */
    uint8_t nfields, noneofs;
    bool container; /* a list or a map in a value, which may nest */
    const struct schema_field *fields; /* in declaration order, which is JSON order */
    uint8_t by_number[64];             /* field number -> index + 1, 0 = unknown */
    uint32_t json_always;              /* bits of the fields that JSON has in any case */
};

static inline const struct schema_field *schema_field(const struct schema_message *m, uint32_t number)
{
    unsigned i = number < 64 ? m->by_number[number] : 0;
    return i ? &m->fields[i - 1] : NULL;
}
/* The Export*ServiceRequest / Response of a signal. */
const struct schema_message *schema_request(enum signal s);
const struct schema_message *schema_response(enum signal s);
/* A message by full name; NULL when there is none. */
const struct schema_message *schema_find(const char *name);

/* All export requests nest alike: request.1 = resource entries; entry.1 = resource, .2 = scope entries, .3 = schema_url;
 * scope entry.1 = scope, .2 = records, .3 = schema_url. (For metrics a record is a Metric.) */
enum { OTLP_ENTRIES = 1, ENTRY_HEAD = 1, ENTRY_ITEMS = 2, ENTRY_SCHEMA_URL = 3 };

#endif
