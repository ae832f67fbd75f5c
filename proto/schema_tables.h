/* What proto/gen_schema.py makes at build: tables that only the files in proto/ see. */
#ifndef MOTEL_PROTO_SCHEMA_TABLES_H
#define MOTEL_PROTO_SCHEMA_TABLES_H

#include "proto/schema.h"

/* What the checker does with a field. */
enum check_action {
    CHECK_OTHER, /* unknown number */
    CHECK_VARINT,
    CHECK_I64,
    CHECK_I32,
    CHECK_BYTES,
    CHECK_STRING,
    CHECK_ID16,
    CHECK_ID8,
    CHECK_PACKED_I64,
    CHECK_PACKED_VARINT,
    CHECK_MESSAGE,
    CHECK_ATTRIBUTE, /* a KeyValue: there are many, and nearly all look alike */
    CHECK_CONTAINER, /* a list or map inside an AnyValue: one level of nesting */
    CHECK_RECORD,    /* a message that counts: span, data point, log record */
    CHECK_TIME,      /* fixed64: when a record was */
    CHECK_TIME_OBSERVED, /* fixed64: when a log record was seen; for those that do not say when they were */
};

/* A field with number below CHECK_FIELDS; members of one oneof share a slot. */
struct check_cell {
    uint8_t action; /* enum check_action */
    uint8_t wire;   /* expected wire type; 0xff for an unknown number */
    uint8_t slot;   /* bit that tells whether it was there before; CHECK_REPEATED for what may come again */
    uint8_t sub;    /* index of the message */
};

#define CHECK_FIELDS 32
#define CHECK_REPEATED 63
#define CHECK_FIRST_ONEOF 40 /* slot of oneof 0; other fields have their number as slot */

extern const struct schema_message schema_messages[];
extern const size_t schema_nmessages;
/* One row for each of schema_messages[]. */
extern const struct check_cell check_cells[][CHECK_FIELDS];
/* How a field is written in the order of proto/wire_order.h. */
enum order_action {
    ORDER_NUMBER, /* left out when zero */
    ORDER_NUMBER_PRESENT, /* has presence: zeros are written */
    ORDER_TEXT, /* string, bytes and packed numbers: left out when empty */
    ORDER_TEXT_PRESENT,
    ORDER_ID,
    ORDER_MESSAGE,
    ORDER_VALUE, /* an AnyValue */
    ORDER_ATTRIBUTE, /* a KeyValue */
};

struct order_cell {
    uint8_t action; /* enum order_action */
    uint8_t kind;   /* enum field_kind */
    uint8_t sub;    /* index of the message */
    uint8_t tag;    /* number << 3 | wire type */
};

/* The place of a field is its index in the order of declaration. */
struct order_message {
    uint32_t always;   /* places of fields that are written when they are not there */
    uint32_t repeated; /* places of fields whose elements are fields */
    uint16_t first;    /* index of the cell of place 0 */
    uint8_t places[CHECK_FIELDS]; /* by number: place << 3 | wire type */
};

#define ORDER_UNKNOWN 0xffu /* place 31 and no wire type */
#define ORDER_FIELDS 31

extern const struct order_cell order_cells[];
/* One for each of schema_messages[]. */
extern const struct order_message order_messages[];
extern const struct schema_message *const schema_requests[SIGNAL_COUNT];
extern const struct schema_message *const schema_responses[SIGNAL_COUNT];

static inline size_t schema_index(const struct schema_message *m)
{
    return (size_t)(m - schema_messages);
}

#endif
