/*
 * What a statement is evaluated on: the record under the cursor and what stands above it (data point in metric in scope in
 * resource). Reading is done on the encoded bytes; the first write opens an item for editing, and only then a new message is made.
 */
#ifndef MOTEL_OTTL_ENV_H
#define MOTEL_OTTL_ENV_H

#include "agent/base/err.h"
#include "ottl/value.h"
#include "proto/batch.h"

enum ottl_context {
    OTTL_RESOURCE,
    OTTL_SCOPE,
    OTTL_SPAN,
    OTTL_SPANEVENT,
    OTTL_METRIC,
    OTTL_DATAPOINT,
    OTTL_EXEMPLAR,
    OTTL_LOG,
    OTTL_CONTEXT_COUNT,
};
#define OTTL_CONTEXT_BIT(c) (1u << (c))
/* "resource" …; and back, ignoring case, also "instrumentation_scope"; -1 when unknown. */
const char *ottl_context_name(enum ottl_context c);
int ottl_context_find(struct bytes name);
/* The contexts that can be reached from `c`: itself and those above (resource, scope, span for spanevent …), as bits. */
unsigned ottl_context_reach(enum ottl_context c);

struct ottl_expr; /* ottl/function.h */
struct ottl_item;  /* one message under the cursor; ottl/item.h */
struct ottl_added; /* metrics that editors made; ottl/item.h */

struct ottl_env {
    struct arena *arena;                         /* of this visit: everything a getter returns lives here */
    struct ottl_item *items[OTTL_CONTEXT_COUNT]; /* NULL where the context is not above the cursor */
    enum ottl_context context;                   /* under the cursor */
    struct ottl_map *cache[OTTL_CONTEXT_COUNT];  /* <ctx>.cache; NULL until it is used */
    uint64_t event_index;                        /* spanevent.event_index */
    struct ottl_added *added;                    /* NULL where no metric can be added */
    struct err *err;                             /* why the last call answered -EINVAL */
};

/* ---- paths ---- */

/* One key in brackets: a literal, or something to be evaluated (then `getter` is set). */
struct ottl_key {
    bool is_int, is_string;
    int64_t i;
    struct bytes s;
    const struct ottl_expr *expr; /* neither literal: ottl_expr_eval() */
};
struct ottl_segment { /* name["key"][0] */
    struct bytes name;
    const struct ottl_key *keys;
    unsigned nkeys;
    unsigned column; /* in the statement, 1-based */
};
/* A path as written, without its context prefix. */
struct ottl_path_text {
    enum ottl_context context;
    const struct ottl_segment *segments;
    unsigned n;
    struct bytes text; /* as written, for errors */
};

/* One resolved path: how to read and write it. `self` is what resolve made. */
struct ottl_path {
    const struct ottl_path_ops *ops;
    const void *self;
    enum ottl_context context;
    unsigned kinds; /* bits of enum ottl_kind that it can give; 0 = any. For checks at the start. */
    struct bytes text;
};
struct ottl_path_ops {
    /* 0; -EINVAL with env->err; -ENOMEM. What is absent reads as nil. */
    int (*get)(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret);
    /* NULL = cannot be written. A wrong kind is -EINVAL with env->err. */
    int (*set)(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v);
};
/*
 * Finds out what a path means. Memory comes from `arena`, which lives as long as the statement. 0; -EINVAL with a text that names
 * the segment, its column and the nearest valid name; -ENOMEM.
 */
int ottl_path_resolve(const struct ottl_path_text *p, struct arena *arena, struct ottl_path *ret, struct err *reterr);

/* The number of an enum symbol ("SPAN_KIND_SERVER", "STATUS_CODE_ERROR", "SEVERITY_NUMBER_INFO" …); false when unknown. */
bool ottl_enum_find(struct bytes symbol, int64_t *ret);
/* The i-th symbol, NULL behind the last one: for suggestions. */
const char *ottl_enum_symbol(size_t i);

#endif
