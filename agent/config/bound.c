#include "agent/config/bound.h"

#include <string.h>

#include "agent/config/kinds.h"

/* A field of one level, those of embedded tables too; *ret_base is the struct that it is in. */
static const struct cfg_field *find_key(const struct cfg_field *fields, const char *base,
                                        struct bytes key, const char **ret_base)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (*f->key) {
            *ret_base = base;
            if (bytes_eq_str(key, f->key))
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
