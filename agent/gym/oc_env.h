/* ${oc.env:NAME} and ${oc.env:NAME,default}: variables of the environment in OmegaConf's notation, which NeMo Gym's configs use. */
#ifndef MOTEL_GYM_OC_ENV_H
#define MOTEL_GYM_OC_ENV_H

#include <stdbool.h>

#include "agent/base/arena.h"
#include "agent/base/err.h"

/* The value of a variable in "NAME=value" strings (NULL ended); NULL when it is not set. */
const char *environment_get(char *const *environment, const char *name);

struct oc_env {
    struct arena *arena;
    char *const *environment;
    bool secret; /* what is read goes into agent/base/secrets */
};
/*
 * Replaces the interpolations of `text`, whose defaults may hold others; "\${" is a plain "${". *ret is `text` itself when it has none, else it
 * is in the arena; NULL when the whole text is one interpolation of the default null. 0 or -EINVAL: another interpolation, a
 * variable that is not set and has no default, bad syntax.
 */
int oc_env_resolve(const struct oc_env *o, const char *text, const char **ret, struct err *reterr);

#endif
