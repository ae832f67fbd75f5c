/* The `telemetry:` block of NeMo Gym's config files. */
#include <errno.h>

#include "agent/config/load.h"
#include "agent/gym/telemetry.h"

static int fail(struct cfg_errors *errs, const char *file, const char *text)
{
    cfg_error(errs, (struct cfg_pos){.file = file}, "", "%s", text);
    return -EINVAL;
}

/* The block of one file in *ret; null when it has none. */
static int read_one(struct arena *a, const char *file, struct cfg_errors *errs,
                    struct cfg_value **ret)
{
    struct err e = {0};
    struct retrieved text;
    const char *uri = arena_printf(a, "file:%s", file);
    if (!uri)
        return fail(errs, file, "out of memory");
    if (cfg_retrieve(a, uri, &text, &e) < 0)
        return fail(errs, NULL, e.text);
    struct cfg_value *root = cfg_yaml_parse(a, text.name, text.text, text.len, errs, NULL);
    if (!root)
        return -EINVAL;
    if (root->type != CFG_MAP && root->type != CFG_NULL) {
        cfg_error(errs, root->pos, "", "expected a NeMo Gym config, which is a map, got %s",
                  cfg_type_name(root->type));
        return -EINVAL;
    }
    const size_t i = cfg_index(root, "telemetry");
    *ret = i < root->n ? root->items[i] : cfg_new(a, CFG_NULL, root->pos);
    if (!*ret)
        return fail(errs, file, "out of memory");
    if ((*ret)->type == CFG_MAP || (*ret)->type == CFG_NULL)
        return 0;
    cfg_error(errs, (*ret)->pos, "telemetry", "expected a map of settings, got %s",
              cfg_type_name((*ret)->type));
    return -EINVAL;
}

const struct cfg_value *gym_block_read(struct arena *a, const char *const *files, size_t n,
                                       struct cfg_errors *errs)
{
    const size_t before = errs->n + errs->dropped;
    struct cfg_value *merged = cfg_new(a, CFG_NULL, (struct cfg_pos){0}), *one = NULL;
    for (size_t i = 0; merged && i < n; i++)
        if (read_one(a, files[i], errs, &one) == 0 && one->type == CFG_MAP)
            merged = merged->type == CFG_MAP ? cfg_merge(a, merged, one) : one;
    if (!merged)
        fail(errs, NULL, "out of memory");
    return errs->n + errs->dropped == before ? merged : NULL;
}
