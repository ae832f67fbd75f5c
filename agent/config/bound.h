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

#endif
