/*
 * The `attributes:` / `actions:` list of the resource and attributes processors: insert, update, upsert, delete, hash, extract
 * and convert, run in order over a list of attributes.
 */
#ifndef MOTEL_PIPELINE_ATTR_ACTIONS_H
#define MOTEL_PIPELINE_ATTR_ACTIONS_H

#include "agent/base/log.h"
#include "agent/config/bind.h"
#include "proto/attr_list.h"

struct attr_action_config {
    const char *key, *action, *pattern, *from_attribute, *converted_type;
    const struct cfg_value *value, *default_value;
};
/* One element of the list: {.kind = BIND_LIST, .elem = &attr_action_elem}. */
extern const struct cfg_field attr_action_elem;

struct attr_actions;
/* Checks and compiles a list of struct attr_action_config, which has to outlive the result. `list_key` is the key it stands
 * under, for error texts; `lg` (may be NULL) gets debug lines about values that do not convert. 0, -EINVAL or -ENOMEM. */
int attr_actions_new(const struct cfg_list *list, const char *list_key, const struct logger *lg,
                     struct attr_actions **ret, struct err *reterr);
struct attr_actions *attr_actions_free(struct attr_actions *as); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct attr_actions *, attr_actions_free)
/* Runs all actions; any number of threads. l->changed tells whether something is different. 0 or -ENOMEM. */
int attr_actions_run(const struct attr_actions *as, struct attr_list *l);

#endif
