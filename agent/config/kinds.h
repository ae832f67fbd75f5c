/* What the binder knows of each scalar kind; for bind*.c and print.c. */
#ifndef MOTEL_CONFIG_KINDS_H
#define MOTEL_CONFIG_KINDS_H

#include "agent/config/bind.h"
#include "agent/config/tree.h"

struct binding {
    struct cfg_binder *b;
    struct cfg_path path; /* of the value that is being bound */
    bool failed;
    bool off;             /* inside a block that is switched off: what must be given need not be */
};

/* Of a list or map: what an element is; NULL of other fields. */
static inline const struct cfg_field *bind_elem(const struct cfg_field *f)
{
    return f->kind == BIND_LIST || f->kind == BIND_MAP ? f->elem : NULL;
}
/* Of a struct or block: its fields; NULL of other fields. */
static inline const struct cfg_field *bind_nested(const struct cfg_field *f)
{
    return f->kind == BIND_STRUCT || f->kind == BIND_BLOCK ? f->fields : NULL;
}
extern const struct cfg_more bind_no_more;
static inline const struct cfg_more *bind_more(const struct cfg_field *f)
{
    return f->more ? f->more : &bind_no_more;
}

/* Adds a mistake about the value at x->path. Returns -EINVAL. */
int bind_fail(struct binding *x, struct cfg_pos pos, const char *fmt, ...) _printf_(3, 4);
/* "expected WANT, got int 5"; the value of secrets, opaque fields and what has such fields in it is left out. Returns -EINVAL. */
int bind_mismatch(struct binding *x, const struct cfg_field *f, const struct cfg_value *v, const char *want);

/* Reads one scalar (v is not null) into *ret. 0 or -EINVAL after bind_fail(). */
int bind_scalar(struct binding *x, const struct cfg_field *f, const struct cfg_value *v, void *ret);
/* The text a string field takes from a value; NULL when it takes none. */
const char *bind_text(const struct cfg_value *v);
/* The index of `name` in an enum's values, aliases too, or -1. */
int bind_enum_index(const struct cfg_field *f, const char *name);
/* "a string", "a duration such as \"5s\"" … for error texts; "string", "duration" for the docs. */
const char *bind_expected(enum bind_kind kind);
const char *bind_kind_name(enum bind_kind kind);
size_t bind_kind_size(enum bind_kind kind); /* of the C type; 0 for STRUCT and REFUSED */

#endif
