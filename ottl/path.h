/* How the paths of all contexts are described and carried out. Only ottl/path*.c use it. */
#ifndef MOTEL_OTTL_PATH_H
#define MOTEL_OTTL_PATH_H

#include "ottl/item.h"

/* How a field is written, and what it is for statements. */
enum ottl_scalar {
    SCALAR_STRING,
    SCALAR_BOOL,
    SCALAR_UINT32,       /* int; cut to 32 bits */
    SCALAR_ENUM,         /* int */
    SCALAR_SINT32,       /* int; zigzag */
    SCALAR_FIXED32,      /* int; cut to 32 bits */
    SCALAR_FLAGS,        /* the same, refused outside of 32 bits */
    SCALAR_FIXED64,      /* int */
    SCALAR_TIME,         /* time */
    SCALAR_DOUBLE,       /* 0 is not written */
    SCALAR_DOUBLE_SET,   /* 0 is written: it has presence */
    SCALAR_TRACE_ID,
    SCALAR_SPAN_ID,
    SCALAR_TRACE_ID_HEX, /* string */
    SCALAR_SPAN_ID_HEX,
    SCALAR_KIND,         /* a span kind as string: "Server" */
    SCALAR_OLD_KIND,     /* "SPAN_KIND_SERVER" */
    SCALAR_VALUE_DOUBLE, /* of a point or exemplar; replaces one of the other type */
    SCALAR_VALUE_INT,
};

/* One path, or one of several with the same first name. */
struct ottl_path_row {
    const char *name, *sub; /* "status", "code"; sub NULL = the first alone */
    const struct ottl_path_ops *ops;
    enum ottl_scalar type;
    bool keyed;                         /* may have keys */
    bool nullable;                      /* ITEMS: nil empties it */
    uint8_t number[OTTL_POINT_COUNT];   /* field; of data points by their kind, 0 = they do not have it; of others [0] */
    uint8_t inside[OTTL_POINT_COUNT];   /* field of the message that it is in; 0 = of the item itself */
    uint8_t other[OTTL_POINT_COUNT];    /* ITEMS: a second field whose elements are taken; VALUE_*: the other type's field */
    const char *go_type;                /* of ITEMS, for errors */
    const char *point_type;             /* the only kind of point that has it, for errors; NULL = several have */
    unsigned kinds;                     /* bits of enum ottl_kind */
};
extern const struct ottl_path_row *const ottl_path_rows[OTTL_CONTEXT_COUNT]; /* each ended by a NULL name */

struct ottl_path_self {
    const struct ottl_path_row *row;
    const struct ottl_key *keys;
    unsigned nkeys;
};
static inline const struct ottl_path_self *ottl_path_self(const struct ottl_path *p) { return p->self; }

extern const struct ottl_path_ops ottl_scalar_ops, ottl_schema_url_ops, ottl_trace_state_ops; /* path_scalar.c, path_trace_state.c */
extern const struct ottl_path_ops ottl_map_ops, ottl_body_ops, ottl_body_string_ops;          /* path_map.c, path_body.c */
extern const struct ottl_path_ops ottl_cache_ops;
extern const struct ottl_path_ops ottl_items_ops, ottl_data_points_ops;                       /* path_items.c */
extern const struct ottl_path_ops ottl_ints_ops, ottl_doubles_ops;
extern const struct ottl_path_ops ottl_metric_type_ops, ottl_temporality_ops, ottl_monotonic_ops;
extern const struct ottl_path_ops ottl_event_index_ops;

/* The item a path is about; -EINVAL with env->err when the cursor has none of that context. */
int ottl_path_item(const struct ottl_path *p, struct ottl_env *env, struct ottl_item **ret);
/* Its field, by the kind of point; 0 = the point does not have it. */
uint32_t ottl_path_number(const struct ottl_path *p, const struct ottl_item *it);
/* -EINVAL with the reference's text for a value of the wrong kind. */
int ottl_expects(struct ottl_env *env, const char *want, const struct ottl_value *got);
int ottl_wrong_point(const struct ottl_path *p, struct ottl_env *env, const struct ottl_item *it); /* a field this kind of point lacks */
const char *ottl_point_go_type(enum ottl_point p);
/* -EINVAL of an encoder: a value inside that attributes cannot hold. -ENOMEM otherwise. */
int ottl_encode_error(struct ottl_env *env, int r);

/* Keys into values. Both may evaluate expressions. */
int ottl_key_name(struct ottl_env *env, const struct ottl_key *key, struct bytes *ret);
int ottl_key_index(struct ottl_env *env, const struct ottl_key *key, size_t n, size_t *ret);
/* Whether a value can be an attribute. */
bool ottl_is_any_value(const struct ottl_value *v);
/* What the AnyValue `any` holds behind `keys`. */
int ottl_any_get(struct ottl_env *env, struct bytes any, const struct ottl_key *keys, unsigned n, struct ottl_value *ret);
/* Sets what is behind `keys` in a tree of the arena. */
int ottl_tree_get(struct ottl_env *env, const struct ottl_value *tree, const struct ottl_key *keys, unsigned n, struct ottl_value *ret);
int ottl_tree_set(struct ottl_env *env, struct ottl_value *tree, const struct ottl_key *keys, unsigned n, const struct ottl_value *v);

#endif
