/*
 * Values of the OpenTelemetry Transformation Language: what paths read, converters return and editors write. A value is a small
 * struct passed by copy; strings, bytes, lists and maps live in an arena of the evaluation (struct ottl_env) or in the bytes of
 * the record being looked at, and are gone when the record is done. Lists and maps are owned by whoever got them from a getter:
 * every read of a path gives a tree of its own, so editing it changes nothing until it is written back.
 */
#ifndef MOTEL_OTTL_VALUE_H
#define MOTEL_OTTL_VALUE_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"

enum ottl_kind {
    OTTL_NIL, /* nothing, and an AnyValue without a value */
    OTTL_BOOL,
    OTTL_INT,
    OTTL_DOUBLE,
    OTTL_STRING,
    OTTL_BYTES,
    OTTL_LIST,
    OTTL_MAP,
    OTTL_TIME,     /* i: nanoseconds since 1970-01-01 UTC */
    OTTL_DURATION, /* i: nanoseconds */
    OTTL_TRACE_ID, /* bytes: 16 */
    OTTL_SPAN_ID,  /* bytes: 8 */
    OTTL_ITEMS,    /* bytes: encoded repeated messages that only their own path can take back (events, links, data points …) */
};

struct ottl_list;
struct ottl_map;
struct ottl_value {
    enum ottl_kind kind;
    union {
        bool b;
        int64_t i;
        double d;
        struct bytes bytes; /* STRING, BYTES, ids, ITEMS */
        struct ottl_list *list;
        struct ottl_map *map;
    };
    uint32_t items; /* ITEMS: how many */
};
struct ottl_list {
    struct ottl_value *items;
    size_t n, cap;
};
struct ottl_entry {
    struct bytes key;
    struct ottl_value value;
};
/* Keys in their order. A key may stand in it several times when it did so on the wire; the first one is meant. */
struct ottl_map {
    struct ottl_entry *items;
    size_t n, cap;
};

/* "string", "int64", "pcommon.Map" …: Go's names as the reference prints them in errors. */
const char *ottl_kind_name(enum ottl_kind k);

static inline struct ottl_value ottl_nil(void) { return (struct ottl_value){.kind = OTTL_NIL}; }
static inline struct ottl_value ottl_bool(bool b) { return (struct ottl_value){.kind = OTTL_BOOL, .b = b}; }
static inline struct ottl_value ottl_int(int64_t i) { return (struct ottl_value){.kind = OTTL_INT, .i = i}; }
static inline struct ottl_value ottl_double(double d) { return (struct ottl_value){.kind = OTTL_DOUBLE, .d = d}; }
static inline struct ottl_value ottl_string(struct bytes s) { return (struct ottl_value){.kind = OTTL_STRING, .bytes = s}; }

/* Empty ones in `a`; NULL when out of memory. */
struct ottl_list *ottl_list_new(struct arena *a);
struct ottl_map *ottl_map_new(struct arena *a);
int ottl_list_append(struct arena *a, struct ottl_list *l, struct ottl_value v); /* 0 or -ENOMEM */
struct ottl_value *ottl_map_find(const struct ottl_map *m, struct bytes key);     /* NULL when absent */
int ottl_map_put(struct arena *a, struct ottl_map *m, struct bytes key, struct ottl_value v); /* replaces or appends; 0 or -ENOMEM */
int ottl_map_append(struct arena *a, struct ottl_map *m, struct bytes key, struct ottl_value v); /* without looking for the key */
/* Removes the first of that name; the last entry takes its place, as in the reference. False when there is none. */
bool ottl_map_remove(struct ottl_map *m, struct bytes key);

/* A table over the keys of a map, in `arena`, for who looks for many. Until it is left the map is changed through it only. */
struct ottl_index {
    struct arena *arena;
    struct ottl_map *map;
    uint32_t *slots;
    size_t size;
};
int ottl_index_init(struct ottl_index *x, struct arena *a, struct ottl_map *m);          /* 0 or -ENOMEM */
struct ottl_value *ottl_index_find(const struct ottl_index *x, struct bytes key);        /* NULL when absent; the first of that name */
int ottl_index_append(struct ottl_index *x, struct bytes key, struct ottl_value v);      /* a key that is absent; 0 or -ENOMEM */

/* A deep copy in `a`. 0 or -ENOMEM. */
int ottl_value_copy(struct arena *a, const struct ottl_value *v, struct ottl_value *ret);
/* From and to the bytes of an AnyValue (checked). The strings of the tree point into `any`. TIME, DURATION, ids and ITEMS are
 * not AnyValues, and lists and maps go OTLP_MAX_DEPTH deep at most: else -EINVAL. Otherwise 0 or -ENOMEM. */
int ottl_value_decode(struct arena *a, struct bytes any, struct ottl_value *ret);
int ottl_value_encode(const struct ottl_value *v, struct buf *out); /* appends the fields of the AnyValue */
/* Appends a string field; what is not UTF-8 (escapes and byte-wise functions can make it) becomes U+FFFD, for one bad string makes
 * backends refuse whole requests. */
int ottl_string_encode(struct bytes s, uint32_t number, struct buf *out);
/* All KeyValue fields `number` of the message `msg` as a map; and appended as such fields. */
int ottl_map_decode(struct arena *a, struct bytes msg, uint32_t number, struct ottl_map **ret);
int ottl_map_encode(const struct ottl_map *m, uint32_t number, struct buf *out);

/* The text that StringLike parameters and String() see: strings as they are, bytes in hex, everything else as Go's JSON: maps with
 * sorted keys, bytes inside in base64, times in quotes, durations as nanoseconds, ids as lists of numbers. nil has none: *ret_nil.
 * 0, -ENOMEM, or -EINVAL: not a number and infinities have no JSON. */
int ottl_value_text(struct arena *a, const struct ottl_value *v, struct bytes *ret, bool *ret_nil);

enum ottl_compare_op { OTTL_EQ, OTTL_NE, OTTL_LT, OTTL_LE, OTTL_GT, OTTL_GE };
/* The language's comparison: different types are only "not equal", int and double compare as numbers, nil equals nil and empty. */
bool ottl_compare(const struct ottl_value *a, enum ottl_compare_op op, const struct ottl_value *b);

#endif
