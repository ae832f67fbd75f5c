/* Inside of the console mapping: shapes of JSON objects as tables, and what reads by them. Only proto/console_*.c use it. */
#ifndef MOTEL_PROTO_CONSOLE_MAP_H
#define MOTEL_PROTO_CONSOLE_MAP_H

#include "proto/console.h"
#include "proto/json_scan.h"
#include "proto/rewrite.h"

/* ---- resources: the same text comes again and again, so the last ones are kept with what they became ---- */
#define CONSOLE_NAME_MAX 128 /* of a server, in a prefix */
struct console_resource {
    struct buf *text;  /* the JSON; NULL = this place is empty */
    struct buf *entry; /* field ENTRY_HEAD of a resource entry, encoded; refcounted: who keeps it can tell it apart by its address */
    struct buf *url;   /* field ENTRY_SCHEMA_URL, or empty */
    char name[CONSOLE_NAME_MAX]; /* of the prefix */
    size_t name_len;
    char own[CONSOLE_NAME_MAX]; /* its own nemo.gym.server.name */
    size_t own_len;
};
#define CONSOLE_RESOURCES 8

/* ---- one reader of objects; keeps its memory from object to object ---- */
struct console_mapper {
    struct json_scan scan;
    struct buf *record; /* what was read: a Span, a LogRecord, or a whole request for metrics and OTLP */
    const struct console_resource *resource; /* of the span or log record */
    struct bytes server_name;
    struct console_resource resources[CONSOLE_RESOURCES];
    unsigned next_resource;
    uint32_t seen; /* members of the span or log record */
    int depth;     /* of lists and maps in a value */
};
int console_mapper_init(struct console_mapper *m); /* -ENOMEM */
void console_mapper_done(struct console_mapper *m);
/* As console_read(), but leaves the result in m->record and m->resource. */
int console_map(struct console_mapper *m, struct bytes text, struct bytes server_name, enum signal *ret_signal, size_t *ret_used,
                struct err *reterr);
/* Appends one entry of a request with the encoded records `items` (fields ENTRY_ITEMS of a scope's entry). */
int console_put_entry(struct buf *out, const struct console_resource *resource, struct bytes items);
/* What the object that `text` begins with is by the names of its members; its end may be missing. *ret_used: its length, 0 = no JSON. */
enum console_kind console_classify(struct console_mapper *m, struct bytes text, size_t *ret_used);

/* ---- tables ---- */
enum console_what {
    WHAT_STRING, /* left out when empty */
    WHAT_ID,     /* `size` bytes, as hex with or without 0x, or as a decimal number; zero is none */
    WHAT_TIME,   /* fixed64 nanoseconds from ISO 8601, or a number of them */
    WHAT_ATTRIBUTES,
    WHAT_ANY,    /* AnyValue, also null */
    WHAT_UINT,   /* varint of 32 bits */
    WHAT_SINT,   /* sint32 */
    WHAT_FIXED32,
    WHAT_FIXED64,
    WHAT_DOUBLE, /* also zero: these fields have presence */
    WHAT_BOOL,
    WHAT_NUMBER, /* fixed `number` as an integer, `other` as a double */
    WHAT_FIXED64S, WHAT_DOUBLES, WHAT_UINTS, /* packed */
    WHAT_MESSAGE, WHAT_MESSAGES, /* of `shape` */
    WHAT_INLINE, /* an object whose members go into the same message */
    WHAT_OWN,    /* `read` does it */
};
struct console_shape;
struct console_member {
    const char *key;
    enum console_what what;
    uint8_t number, other, size;
    const struct console_shape *shape;
    int (*read)(struct console_mapper *m);
};
struct console_shape {
    const struct console_member *members; /* in the order in which they are printed */
    unsigned n;
    uint32_t required; /* bits of members */
};
#define CONSOLE_SHAPE(table, needs) {.members = table, .n = ARRAY_SIZE(table), .required = needs}

/* Each reads the value that comes next and appends it to m->record: 0, -EBADMSG, -ENOMEM or -EMSGSIZE. */
/* An object. *ret_seen: bits of the members that were there and not null (but for numbers); may be NULL. */
int console_object(struct console_mapper *m, const struct console_shape *shape, uint32_t *ret_seen);
int console_message(struct console_mapper *m, const struct console_shape *shape, uint8_t number);
int console_attributes(struct console_mapper *m, uint8_t number);
int console_any(struct console_mapper *m); /* the fields of an AnyValue */
int console_string(struct console_mapper *m, uint8_t number);
/* The resource at this place, from the kept ones if it is among them, in m->resource. */
int console_resource(struct console_mapper *m);
/* An otlp_rewriter's: gives a resource without nemo.gym.server.name the name of the server; ctx is the mapper. */
enum edit console_name_resource(void *ctx, struct bytes resource, struct buf *out);
/* The whole "resource_metrics" list, as entries of a request. */
int console_metrics(struct console_mapper *m);

/* ---- texts (console_text.c): 0 or -EINVAL ---- */
int console_time(struct bytes text, uint64_t *ret_ns);
int console_hex_id(struct bytes text, size_t size, uint8_t *ret);
int console_decimal_id(struct bytes text, size_t size, uint8_t *ret);
/* Python's repr of a list of "{key=k, value=v}" as a W3C tracestate; other text as it is. 0 or -ENOMEM. */
int console_trace_state(struct bytes text, struct buf *out);

#endif
