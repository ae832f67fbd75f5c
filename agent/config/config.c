/* Loading a configuration. */
#include "agent/config/config.h"

#include <errno.h>

#include "agent/config/tree.h"

struct config *config_load_text(const char *name, const char *text, struct cfg_errors *errs)
{
    struct config *c = calloc(1, sizeof(*c));
    if (!c || !(c->arena = arena_new(0)))
        return config_free(c);
    struct cfg_value *v = cfg_yaml_parse(c->arena, arena_strdup(c->arena, name), text, strlen(text),
                                         errs, NULL),
                     *nested;
    if (!v || cfg_nest(c->arena, v, 1, &nested) < 0)
        return config_free(c);
    c->root = nested;
    return c;
}

struct config *config_free(struct config *c)
{
    if (c)
        arena_free(c->arena);
    free(c);
    return NULL;
}
