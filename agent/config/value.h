/*
 * The parsed configuration: a tree of values that remember where they were written. Everything lives in the arena of its
 * struct config and is freed with it.
 */
#ifndef MOTEL_CONFIG_VALUE_H
#define MOTEL_CONFIG_VALUE_H

#include "agent/base/arena.h"
#include "agent/base/bytes.h"

enum cfg_type { CFG_NULL, CFG_BOOL, CFG_INT, CFG_UINT, CFG_DOUBLE, CFG_STRING, CFG_TIMESTAMP, CFG_LIST, CFG_MAP };

struct cfg_pos {
    const char *file; /* "collector.yaml", "--set", "env:NAME"; NULL = a default */
    int line, column; /* 1-based; 0 = unknown */
};

struct cfg_value {
    enum cfg_type type;
    struct cfg_pos pos;
    union {
        bool b;
        int64_t i;
        uint64_t u; /* CFG_UINT: above INT64_MAX only */
        double d;
    };
    /* STRING: the string. Other scalars: their text. A value that came whole from one ${...}: the original text, which a
     * string field takes as it is (`expanded`). NUL ended; may hold NULs. */
    const char *text;
    size_t text_len;
    bool expanded;
    bool secret;             /* holds, or is part of, a value of an environment variable (never print it) */
    size_t n;                /* LIST, MAP */
    struct cfg_value **items; /* LIST: elements; MAP: values, in file order */
    const char **keys;       /* MAP */
    struct cfg_pos *key_pos; /* MAP: where each key stands */
};

/* The value under `key` of a map; NULL when absent or `v` is no map (or NULL). */
const struct cfg_value *cfg_get(const struct cfg_value *v, const char *key);
/* The value at "a::b[2]::c" below `v`; the deepest one there is when *ret_exact is false. */
const struct cfg_value *cfg_find(const struct cfg_value *v, const char *path, bool *ret_exact);
/* Whether the value at `path` below element `i` of a list ("" = itself), or a part of it, came from a variable. */
bool cfg_item_secret(const struct cfg_value *list, size_t i, const char *path);
const char *cfg_type_name(enum cfg_type t); /* "int", "string", "map" … as error texts say it */

#endif
