/* Looking things up in bound structs by the keys of their tables, for code that does not know the struct. */
#ifndef MOTEL_CONFIG_BOUND_H
#define MOTEL_CONFIG_BOUND_H

#include "agent/config/bind.h"

/* The field at "protocols::grpc::endpoint" of a struct bound by `fields`, and where its value lies (as `field->kind` says). NULL when the
 * table has no such field, or a block on the way is absent. */
const struct cfg_field *cfg_bound_find(const struct cfg_field *fields, const void *bound, const char *path, const void **ret);
/* The text of a BIND_STRING field at `path`; NULL when there is no such field, or it has none. */
const char *cfg_bound_text(const struct cfg_field *fields, const void *bound, const char *path);
/* Whether the BIND_BLOCK at `path` is there. */
bool cfg_bound_has(const struct cfg_field *fields, const void *bound, const char *path);

/* A field of a table by the path that a value has in a configuration ("rules[2]::name", "headers::authorization"; older names too), and the
 * one that holds it when the path leads on into a BIND_ANY. NULL when there is none. */
const struct cfg_field *cfg_field_at(const struct cfg_field *fields, const char *path);

struct cfg_visit {
    const char *path;   /* "protocols::grpc::endpoint", "rules[0]::name" */
    const struct cfg_field *field;
    const void *at;     /* its value, as field->kind says */
    const void *normal; /* the same with all defaults */
    const struct cfg_field *beside; /* the table that it is in, and the struct: cfg_bound_find() finds what belongs to it */
    const void *base;
};
/* Calls each() for every value of a bound struct, in the order of the table: also for elements of lists and maps of structs, and for a block
 * after what is in it. `size` is that of the struct; `arena` holds paths and defaults. 0, or -ENOMEM when something was left out for want of memory. */
int cfg_bound_walk(struct arena *arena, const struct cfg_field *fields, size_t size, const void *bound,
                   void (*each)(void *ctx, const struct cfg_visit *v), void *ctx);

#endif
