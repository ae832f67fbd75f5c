/* Groups of statements as the configuration has them, compiled. */
#ifndef MOTEL_PROCESSORS_TRANSFORM_GROUPS_H
#define MOTEL_PROCESSORS_TRANSFORM_GROUPS_H

#include "agent/config/bind.h"
#include "ottl/ottl.h"

enum error_mode { ERRORS_IGNORE, ERRORS_SILENT, ERRORS_PROPAGATE };

/* One item of a list of statements: a statement alone, or a group. */
struct group_config {
    const char *text; /* the statement alone; NULL = a group */
    const char *context, *error_mode;
    struct cfg_list conditions, statements;
    bool shared_cache;
};
extern const struct cfg_field transform_group_elem;

struct transform_group {
    enum ottl_context context;
    enum error_mode error_mode;
    bool shared_cache;
    struct ottl_statement **statements;
    struct ottl_condition **conditions; /* one that holds is enough; none: all items */
    size_t nstatements, nconditions;
};
struct transform_groups {
    struct transform_group *items;
    size_t n;
};

/* "ignore", "silent", "propagate" in any case; "" = `def`. -EINVAL with reterr. */
int transform_error_mode(const char *text, enum error_mode def, enum error_mode *ret, struct err *reterr);
/*
 * Compiles a list of struct group_config. `key` ("trace_statements") and the place in the list go into reterr->path. Statements alone
 * make up one group, whose context is inferred. 0, -EINVAL, -ENOMEM.
 */
int transform_groups_new(const struct cfg_list *list, const char *key, enum signal s, enum error_mode mode, struct transform_groups **ret,
                         struct err *reterr);
struct transform_groups *transform_groups_free(struct transform_groups *g); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct transform_groups *, transform_groups_free)

#endif
