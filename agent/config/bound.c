#include "agent/config/bound.h"

#include <string.h>

#include "agent/config/kinds.h"

static bool key_is(const struct cfg_field *f, struct bytes key)
{
    const char *alias = bind_more(f)->alias;
    return bytes_eq_str(key, f->key) || (alias && bytes_eq_str(key, alias));
}

/* A field of one level, those of embedded tables too; *ret_base is the struct that it is in. */
static const struct cfg_field *find_key(const struct cfg_field *fields, const char *base,
                                        struct bytes key, const char **ret_base)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (*f->key) {
            *ret_base = base;
            if (key_is(f, key))
                return f;
        } else if (f->kind == BIND_STRUCT) {
            const struct cfg_field *in = find_key(f->fields, base + f->offset, key, ret_base);
            if (in)
                return in;
        }
    }
    return NULL;
}

const struct cfg_field *cfg_bound_find(const struct cfg_field *fields, const void *bound,
                                       const char *path, const void **ret)
{
    const char *base = bound;
    for (;;) {
        const char *end = strstr(path, "::");
        const size_t len = end ? (size_t)(end - path) : strlen(path);
        const struct cfg_field *f = find_key(fields, base, bytes_of(path, len), &base);
        if (!f)
            return NULL;
        *ret = base + f->offset;
        if (!end)
            return f;
        base = f->kind == BIND_BLOCK ? *(const char *const *)*ret : *ret;
        fields = bind_nested(f);
        path = end + 2;
        if (!fields || !base)
            return NULL;
    }
}

const char *cfg_bound_text(const struct cfg_field *fields, const void *bound, const char *path)
{
    const void *p = NULL;
    const struct cfg_field *f = cfg_bound_find(fields, bound, path, &p);
    return f && f->kind == BIND_STRING ? *(const char *const *)p : NULL;
}

bool cfg_bound_has(const struct cfg_field *fields, const void *bound, const char *path)
{
    const void *p = NULL;
    const struct cfg_field *f = cfg_bound_find(fields, bound, path, &p);
    return f && f->kind == BIND_BLOCK && *(const void *const *)p;
}

/* The field that the next part of a path names, seen from `f` (NULL: from `fields`); NULL when
 * there is none. */
static const struct cfg_field *descend(const struct cfg_field *f, const struct cfg_field *fields,
                                       struct bytes key)
{
    const char *ignored;
    if (f && f->kind == BIND_MAP)
        return f->elem;
    if (f)
        fields = bind_nested(f);
    return fields ? find_key(fields, "", key, &ignored) : NULL;
}

const struct cfg_field *cfg_field_at(const struct cfg_field *fields, const char *path)
{
    const struct cfg_field *f = NULL;
    while (*path) {
        if (f && f->kind == BIND_ANY)
            return f;
        if (*path == '[') {
            f = f && f->kind == BIND_LIST ? f->elem : NULL;
            path += strcspn(path, "]");
            path += *path == ']';
        } else {
            path += strncmp(path, "::", 2) == 0 ? 2 : 0;
            const char *end = strstr(path, "::"), *index = strchr(path, '[');
            size_t len = end ? (size_t)(end - path) : strlen(path);
            if (index && (size_t)(index - path) < len && !(f && f->kind == BIND_MAP))
                len = (size_t)(index - path);
            f = descend(f, fields, bytes_of(path, len));
            path += len;
        }
        if (!f)
            return NULL;
    }
    return f;
}
