#include "connectors/span_metrics/dimensions.h"

#include <errno.h>

#include "agent/base/regex.h"
#include "connectors/span_metrics/glob.h"

/* ---- checking ---- */

static const char *const common[] = {"service.name", "span.kind", "status.code", "span.name",
                                     "collector.instance.id"};

static bool is_taken(const struct dimension_config *c, size_t i)
{
    for (size_t k = 0; k < ARRAY_SIZE(common); k++)
        if (strcmp(c[i].name, common[k]) == 0)
            return true;
    for (size_t k = 0; k < i; k++)
        if (strcmp(c[i].name, c[k].name) == 0)
            return true;
    return false;
}

static int check_one(const struct dimension_config *c, size_t i, struct err *reterr)
{
    if (*c[i].name && *c[i].glob)
        return err_set(reterr, -EINVAL,
                       "dimension entry must set only one of `name` or `glob`, got both: "
                       "name=\"%s\" glob=\"%s\"",
                       c[i].name, c[i].glob);
    if (!*c[i].name && !*c[i].glob)
        return err_set(reterr, -EINVAL, "dimension entry must set one of `name` or `glob`");
    if (*c[i].name && is_taken(c, i))
        return err_set(reterr, -EINVAL, "duplicate dimension name \"%s\"", c[i].name);
    if (*c[i].glob && c[i].def)
        return err_set(reterr, -EINVAL, "`default` is not supported on `glob` dimension \"%s\"",
                       c[i].glob);
    return 0;
}

static int conflict(const struct regex *glob, const char *text, const char *name,
                    struct err *reterr)
{
    if (!*name || !regex_match(glob, bytes_str(name)))
        return 0;
    return err_set(reterr, -EINVAL, "duplicate dimension name \"%s\" conflicting with glob \"%s\"",
                   name, text);
}

/* A glob may not match what all series have, or what has a name of its own. */
static int check_glob(const struct dimension_config *c, size_t n, const char *text,
                      struct err *reterr)
{
    _cleanup_(regex_freep) struct regex *glob = NULL;
    int r = glob_compile(text, &glob, reterr);
    for (size_t k = 0; r == 0 && k < ARRAY_SIZE(common); k++)
        r = conflict(glob, text, common[k], reterr);
    for (size_t k = 0; r == 0 && k < n; k++)
        r = conflict(glob, text, c[k].name, reterr);
    return r;
}

int dimensions_check(const struct cfg_list *config, struct err *reterr)
{
    const struct dimension_config *c = config->items;
    int r = 0;
    for (size_t i = 0; r == 0 && i < config->n; i++)
        r = check_one(c, i, reterr);
    for (size_t i = 0; r == 0 && i < config->n; i++)
        if (*c[i].glob)
            r = check_glob(c, config->n, c[i].glob, reterr);
    return r;
}

/* ---- life cycle ---- */

static int encode_default(struct dimension *d, const char *def)
{
    struct any_value v = {ANY_STRING, .bytes = bytes_str(def)};
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out || any_value_write(&v, out) < 0)
        return -ENOMEM;
    uint8_t *copy = malloc(out->len);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, out->data, out->len);
    d->def = bytes_of(copy, out->len);
    return 0;
}

static int add_named(struct dimensions *d, const struct dimension_config *c)
{
    struct dimension *it = &d->named[d->nnamed++];
    it->name = bytes_str(c->name);
    return c->def ? encode_default(it, c->def) : 0;
}

static int add_all(struct dimensions *d, const struct cfg_list *config, struct err *reterr)
{
    const struct dimension_config *c = config->items;
    int r = 0;
    for (size_t i = 0; r == 0 && i < config->n; i++) {
        if (!*c[i].glob) {
            r = add_named(d, &c[i]);
            continue;
        }
        r = glob_compile(c[i].glob, &d->globs[d->nglobs], reterr);
        d->nglobs += r == 0;
    }
    return r;
}

int dimensions_init(struct dimensions *d, const struct cfg_list *config, struct err *reterr)
{
    *d = (struct dimensions){0};
    if (!config->n)
        return 0;
    err_set(reterr, -ENOMEM, "out of memory");
    d->named = calloc(config->n, sizeof(*d->named));
    d->globs = calloc(config->n, sizeof(struct regex *));
    int r = d->named && d->globs ? add_all(d, config, reterr) : -ENOMEM;
    if (r < 0)
        dimensions_done(d);
    return r;
}

void dimensions_done(struct dimensions *d)
{
    for (size_t i = 0; i < d->nnamed; i++)
        free((void *)d->named[i].def.data);
    for (size_t i = 0; i < d->nglobs; i++)
        regex_free(d->globs[i]);
    free(d->named);
    free(d->globs);
    *d = (struct dimensions){0};
}

/* ---- matching ---- */

uint64_t dimensions_lengths(const struct dimensions *d)
{
    uint64_t lengths = d->nglobs ? UINT64_MAX : 0;
    for (size_t i = 0; i < d->nnamed; i++)
        lengths |= 1ull << d->named[i].name.len % 64;
    return lengths;
}

void dimensions_set_resource(struct dimensions *d, const struct attributes *resource)
{
    for (size_t i = 0; i < d->nnamed; i++) {
        struct dimension *it = &d->named[i];
        const struct attribute *a = attributes_find(resource, it->name);
        it->inherited = a ? a->value : it->def;
    }
}

static int match_named(const struct dimension *d, const struct sources *from,
                       struct attributes *out)
{
    const struct attribute *a = attributes_find(from->span, d->name);
    if (!a && from->event)
        a = attributes_find(from->event, d->name);
    const struct bytes value = a ? a->value : d->inherited;
    return value.data ? attributes_add(out, d->name, value) : 0;
}

static bool any_glob(const struct dimensions *d, struct bytes name)
{
    for (size_t i = 0; i < d->nglobs; i++)
        if (regex_match(d->globs[i], name))
            return true;
    return false;
}

/* Appends those of `a` that match, are not in `but` or `but2` and were not appended from `a`
 * before. */
static int append_matching(const struct dimensions *d, const struct attributes *a,
                           const struct attributes *but, const struct attributes *but2,
                           struct attributes *out)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct attribute *it = &a->items[i];
        if ((but && attributes_find(but, it->key)) || (but2 && attributes_find(but2, it->key)) ||
            !any_glob(d, it->key) || attributes_find(a, it->key) != it)
            continue;
        if (attributes_add(out, it->key, it->value) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int match_globs(const struct dimensions *d, const struct sources *from,
                       struct attributes *out)
{
    const size_t span = out->n;
    if (append_matching(d, from->span, NULL, NULL, out) < 0)
        return -ENOMEM;
    const size_t others = out->n;
    attributes_sort(out, span);
    if ((from->event && append_matching(d, from->event, from->span, NULL, out) < 0) ||
        append_matching(d, from->resource, from->span, from->event, out) < 0)
        return -ENOMEM;
    attributes_sort(out, others);
    return 0;
}

int dimensions_match(const struct dimensions *d, const struct sources *from, struct attributes *out)
{
    for (size_t i = 0; i < d->nnamed; i++)
        if (match_named(&d->named[i], from, out) < 0)
            return -ENOMEM;
    return d->nglobs ? match_globs(d, from, out) : 0;
}
