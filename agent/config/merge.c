/* Several sources in one tree, and "a::b" keys as nested maps. */
#include <errno.h>

#include "agent/config/tree.h"

static int merge_key(struct arena *a, struct cfg_value *into, const struct cfg_value *over,
                     size_t i)
{
    size_t at = cfg_index(into, over->keys[i]);
    if (at == into->n)
        return cfg_append(a, into, over->keys[i], over->key_pos[i], over->items[i]);
    into->items[at] = cfg_merge(a, into->items[at], over->items[i]);
    into->key_pos[at] = over->key_pos[i];
    return into->items[at] ? 0 : -ENOMEM;
}

static int append_all(struct arena *a, struct cfg_value *into, const struct cfg_value *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (cfg_append(a, into, from->keys[i], from->key_pos[i], from->items[i]) < 0)
            return -ENOMEM;
    return 0;
}

struct cfg_value *cfg_merge(struct arena *a, struct cfg_value *base, struct cfg_value *over)
{
    if (!base || !over || base->type != CFG_MAP || over->type != CFG_MAP)
        return over;
    struct cfg_value *into = cfg_new(a, CFG_MAP, over->pos);
    if (!into || append_all(a, into, base) < 0)
        return NULL;
    for (size_t i = 0; i < over->n; i++)
        if (merge_key(a, into, over, i) < 0)
            return NULL;
    return into;
}

/* The map that `key` below the first "::" makes around `v`; *ret_first is the part before it. */
static struct cfg_value *wrap(struct arena *a, const char *key, struct cfg_pos pos,
                              struct cfg_value *v, const char **ret_first)
{
    const char *split = strstr(key, "::"), *name;
    *ret_first = split ? arena_strndup(a, key, (size_t)(split - key)) : key;
    if (!split || !*ret_first)
        return *ret_first ? v : NULL;
    v = wrap(a, split + 2, pos, v, &name);
    struct cfg_value *map = v ? cfg_new(a, CFG_MAP, pos) : NULL;
    return map && cfg_append(a, map, name, pos, v) == 0 ? map : NULL;
}

static int count_parts(const char *key)
{
    int n = 0;
    for (const char *p = key; (p = strstr(p, "::")); p += 2)
        n++;
    return n;
}

/* Puts entry i of `from`, whose key has a "::", into the map. */
static int nest_key(struct arena *a, struct cfg_value *into, const struct cfg_value *from, size_t i,
                    int depth)
{
    struct cfg_value *v;
    const char *first;
    int r = cfg_nest(a, from->items[i], depth + count_parts(from->keys[i]), &v);
    if (r < 0)
        return r;
    v = wrap(a, from->keys[i], from->key_pos[i], v, &first);
    if (!v)
        return -ENOMEM;
    size_t at = cfg_index(into, first);
    if (at == into->n)
        return cfg_append(a, into, first, from->key_pos[i], v);
    into->items[at] = cfg_merge(a, into->items[at], v);
    return into->items[at] ? 0 : -ENOMEM;
}

int cfg_nest(struct arena *a, struct cfg_value *v, int depth, struct cfg_value **ret)
{
    *ret = v;
    if (depth > CFG_MAX_DEPTH)
        return -E2BIG;
    if (v->type != CFG_MAP)
        return 0;
    struct cfg_value *into = cfg_copy(a, v);
    if (!into)
        return -ENOMEM;
    into->n = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct cfg_value *item;
        if (strstr(v->keys[i], "::"))
            continue;
        int r = cfg_nest(a, v->items[i], depth + 1, &item);
        if (r < 0 || (r = cfg_append(a, into, v->keys[i], v->key_pos[i], item)) < 0)
            return r;
    }
    for (size_t i = 0; i < v->n; i++) {
        int r = strstr(v->keys[i], "::") ? nest_key(a, into, v, i, depth + 1) : 0;
        if (r < 0)
            return r;
    }
    *ret = into;
    return 0;
}
