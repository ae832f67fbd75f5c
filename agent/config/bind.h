/*
 * The field binder: tables that say what keys a component has, and the code that fills a struct from a config value by
 * them. One table serves reading, defaults, error texts, print-config, the `components` listing and the docs.
 *
 *   struct batch_config { int64_t timeout_ns; int64_t send_batch_size; struct cfg_list metadata_keys; };
 *   static const struct cfg_field fields[] = {
 *       {.key = "timeout", .kind = BIND_DURATION, CFG_AT(struct batch_config, timeout_ns), .def = "200ms", .help = "…"},
 *       {.key = "metadata_keys", .kind = BIND_LIST, CFG_AT(struct batch_config, metadata_keys), .elem = &cfg_elem_string},
 *       {0}};
 * All memory is of the arena that is passed in; a bound struct has no destructor of its own and lives as long as it.
 */
#ifndef MOTEL_CONFIG_BIND_H
#define MOTEL_CONFIG_BIND_H

#include <stdio.h>

#include "agent/base/duration.h"
#include "agent/config/errors.h"
#include "agent/config/use.h"
#include "agent/config/value.h"

enum bind_kind {
    BIND_BOOL = 1,  /* bool */
    BIND_INT,       /* int64_t, within min..max */
    BIND_DOUBLE,    /* double, within min..max (ints are taken) */
    BIND_DURATION,  /* int64_t nanoseconds, Go text such as "1h30m"; bare 0 is taken */
    BIND_SIZE_MIB,  /* int64_t bytes; the config says MiB */
    BIND_ENUM,      /* int, index in `values`; null and "" take the default */
    BIND_STRING,    /* const char *, never NULL after binding unless `nullable` */
    BIND_OPAQUE,    /* like BIND_STRING; printed as [REDACTED] */
    BIND_OCTAL,     /* int64_t from an octal string such as "0755" */
    BIND_ANY,       /* const struct cfg_value *: typed value, original text and position; NULL = absent */
    BIND_ID,        /* struct cfg_id: a component id, syntax checked */
    BIND_STRUCT,    /* the struct itself, by value, by `fields`; absent = all defaults */
    BIND_BLOCK,     /* struct pointer, NULL = absent; takes `enabled`; null and {} = present with defaults (but see null_absent) */
    BIND_LIST,      /* struct cfg_list of `elem`; for string elements a plain string is split at commas */
    BIND_MAP,       /* struct cfg_map of `elem`, in file order */
    BIND_REFUSED,   /* known but not served, `help` says why: an error when given (enabled: false, null and the value in `def` pass) */
};

/* How a key was given; kept where a field names `presence_at`. */
enum cfg_presence { CFG_ABSENT, CFG_GIVEN_NULL, CFG_GIVEN_EMPTY /* {} or [] or "" */, CFG_GIVEN };

struct cfg_id {
    const char *id; /* "otlp/x"; NULL = absent */
    struct cfg_pos pos;
};
struct cfg_list {
    void *items; /* n elements of elem->size bytes each, as `elem->kind` says */
    size_t n;
    const struct cfg_value *value; /* where it came from; NULL = default */
};
struct cfg_map {
    const char **keys;
    void *values;
    struct cfg_pos *pos;
    size_t n;
};

struct cfg_more { /* what few of the 700 fields have */
    const char *unit;   /* "spans", "bytes" … for the docs */
    const char *alias;  /* an older spelling, taken with a warning */
    double min, max;    /* INT, DOUBLE, DURATION (ns), SIZE_MIB: both 0 = not limited */
    size_t text_at;     /* STRUCT: offset + 1 of a const char *, NULL otherwise: a string in place of the map is kept there; 0 = no */
    size_t presence_at; /* offset + 1 of an enum cfg_presence; 0 = none. Where it says absent, cfg_print() leaves the key out, but see: */
    bool (*printed)(const void *bound); /* whether it is printed all the same, as giving it would change nothing; NULL = no */
};

struct cfg_field {
    const char *key;          /* NULL ends a table; "" embeds the fields of a shared table at this level (BIND_STRUCT) */
    const char *def;          /* default as YAML text; NULL = zero, "", none. STRUCT, BLOCK: a map; such a BLOCK is present unless switched off */
    const char *help;         /* one sentence for the docs */
    union {                   /* which one: by kind */
        const char *const *values;      /* ENUM: names, NULL ended; aliases of one value are written "gzip|default" */
        const struct cfg_field *fields; /* STRUCT, BLOCK */
        const struct cfg_field *elem;   /* LIST, MAP: describes one element; its key and offset are not used */
        int (*parse)(const char *text, void *ret, struct err *reterr); /* STRING elements with a syntax of their own: checks only */
    };
    const struct cfg_more *more; /* CFG_MORE(.unit = "bytes", .min = 1, …); NULL = nothing of it */
    uint16_t offset;
    uint16_t size;            /* STRUCT, BLOCK: size of the struct */
    enum bind_kind kind : 8;
    enum cfg_use use : 8;     /* files, servers, destinations; none of it as a rule */
    bool nullable : 1;        /* STRING: NULL when absent or null, instead of "" */
    bool required : 1;        /* must be given and not be empty */
    bool null_absent : 1;     /* BLOCK: a null value means absent (the reference's optional blocks without defaults: tls, auth, cors) */
    bool any_scalar : 1;      /* STRING, OPAQUE: numbers and bools are taken as well, as they are written */
    bool pairs : 1;           /* MAP: a list of {name: …, value: …} is taken too (headers) */
};
#define CFG_AT(type, member) .offset = offsetof(type, member)
#define CFG_NESTED(type) .size = sizeof(type)
#define CFG_MORE(...) .more = &(const struct cfg_more){__VA_ARGS__}
#define CFG_TEXT(type, member) .text_at = offsetof(type, member) + 1
#define CFG_PRESENCE(type, member) .presence_at = offsetof(type, member) + 1

extern const struct cfg_field cfg_elem_string, cfg_elem_opaque, cfg_elem_id, cfg_elem_any, cfg_elem_double, cfg_elem_int;
size_t cfg_elem_size(const struct cfg_field *elem); /* of one element in a cfg_list or cfg_map */

struct cfg_binder {
    struct arena *arena;
    struct cfg_errors *errors;
    void (*warn)(void *ctx, const char *text); /* aliases; may be NULL */
    void *ctx;
};
/* Fills `ret` (cleared first) from `value` (NULL, null: all defaults). `path` is the full one of the value for error texts. Mistakes are
 * added to b->errors, the field keeps its default, and binding goes on. 0, or -EINVAL if any was found. */
int cfg_bind(struct cfg_binder *b, const struct cfg_field *fields, const struct cfg_value *value, const char *path, void *ret);
/* As YAML at an indent, opaque values and secrets as [REDACTED]. Aliases under their new names. */
void cfg_print(FILE *f, const struct cfg_field *fields, const void *bound, int indent);
void cfg_print_flow(FILE *f, const struct cfg_field *field, const void *p); /* one value in one line, without its end */
/* Prints the fields as a Markdown table: key, type, default, help. */
void cfg_print_docs(FILE *f, const struct cfg_field *fields);
static inline int cfg_parse_duration(const char *text, int64_t *ret_ns) { return duration_parse(text, ret_ns); }
static inline void cfg_format_duration(int64_t ns, char ret[32]) { duration_text(ns, ret); }
/* A component id "type[/name]" by the reference's rules: 0 or -EINVAL with the reason. */
int cfg_parse_id(const char *text, struct err *reterr);
/* The same id without the white space that may stand around its parts ("otlp / x"): `text` itself or a copy; NULL when out of memory. */
const char *cfg_trim_id(struct arena *a, const char *text);

#endif
