/* The filter processor's conditions: read from the configuration and compiled into groups. */
#ifndef MOTEL_PROCESSORS_FILTER_CONDITIONS_H
#define MOTEL_PROCESSORS_FILTER_CONDITIONS_H

#include "agent/config/bind.h"
#include "ottl/ottl.h"

enum filter_errors { FILTER_IGNORE, FILTER_SILENT, FILTER_PROPAGATE, FILTER_ERRORS_DEFAULT };
extern const char *const filter_error_modes[]; /* names for a BIND_ENUM; the default has none */

/* One item of trace_conditions and its like: a condition, or a group of them. */
struct filter_item {
    const char *text; /* the condition; NULL = a group */
    const char *context;
    struct cfg_list conditions; /* of const char * */
    int error_mode;
};
extern const struct cfg_field filter_item_elem;

/* Conditions of one context; an item for which one of them holds is dropped. */
struct filter_group {
    enum ottl_context context;
    enum filter_errors errors;
    struct ottl_condition **conditions;
    size_t n;
};
struct filter_groups {
    struct filter_group *items;
    size_t n;
};

/* Appends the groups of `list` (of struct filter_item), the value of the key `key`. 0; -EINVAL with reterr; -ENOMEM. */
int filter_groups_add(struct filter_groups *g, const struct cfg_list *list, const char *key, enum signal s, enum filter_errors def,
                      struct err *reterr);
/* Appends one group of the older style: `list` of const char *, in `context`, whose prefix paths may leave out. */
int filter_groups_add_list(struct filter_groups *g, const struct cfg_list *list, const char *key, enum ottl_context context,
                           enum filter_errors errors, struct err *reterr);
void filter_groups_done(struct filter_groups *g);

#endif
