#include "receivers/prometheus/sd_file.h"

#include <errno.h>
#include <jansson.h>
#include <strings.h>

#include "agent/config/tree.h"
#include "agent/net/tls.h"

#define MAX_DEPTH 32

/* ---- JSON as a config value ---- */

static struct cfg_value *of_json(struct arena *a, const json_t *j, int depth);

static struct cfg_value *of_container(struct arena *a, const json_t *j, int depth)
{
    const struct cfg_pos nowhere = {0};
    const bool map = json_is_object(j);
    struct cfg_value *v = cfg_new(a, map ? CFG_MAP : CFG_LIST, nowhere);
    const char *key;
    json_t *item;
    size_t i;
    if (map) {
        json_object_foreach((json_t *)j, key, item)
        {
            struct cfg_value *c = of_json(a, item, depth + 1);
            const char *name = arena_strdup(a, key);
            if (!v || !c || !name || cfg_append(a, v, name, nowhere, c) < 0)
                return NULL;
        }
    } else {
        json_array_foreach(j, i, item)
        {
            struct cfg_value *c = of_json(a, item, depth + 1);
            if (!v || !c || cfg_append(a, v, NULL, nowhere, c) < 0)
                return NULL;
        }
    }
    return v;
}

static struct cfg_value *of_json(struct arena *a, const json_t *j, int depth)
{
    const struct cfg_pos nowhere = {0};
    if (depth > MAX_DEPTH)
        return NULL;
    if (json_is_string(j))
        return cfg_new_string(a, nowhere, json_string_value(j), json_string_length(j));
    if (json_is_object(j) || json_is_array(j))
        return of_container(a, j, depth);
    return cfg_new(a, json_is_null(j) ? CFG_NULL : CFG_BOOL, nowhere);
}

static struct cfg_value *parse_json(struct arena *a, const char *path, struct bytes text,
                                    struct err *reterr)
{
    json_error_t e;
    json_t *j = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &e);
    if (!j) {
        err_set(reterr, -EINVAL, "%s:%d:%d: %s", path, e.line, e.column, e.text);
        return NULL;
    }
    struct cfg_value *v = of_json(a, j, 0);
    json_decref(j);
    if (!v)
        err_set(reterr, -EINVAL, "%s: nested too deeply, or out of memory", path);
    return v;
}

static struct cfg_value *parse_yaml(struct arena *a, const char *path, struct bytes text,
                                    struct err *reterr)
{
    struct cfg_errors errs = {.n = 0};
    struct cfg_value *v = cfg_yaml_parse(a, path, (const char *)text.data, text.len, &errs, NULL);
    if (!v)
        err_set(reterr, -EINVAL, "%s:%d:%d: %s", path, errs.n ? errs.items[0].line : 0,
                errs.n ? errs.items[0].column : 0, errs.n ? errs.items[0].text : "out of memory");
    cfg_errors_done(&errs);
    return v;
}

/* ---- groups ---- */

static int bad(const char *path, size_t group, const char *what, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "%s: group %zu: expected %s", path, group + 1, what);
}

/* Numbers and bools of YAML have their text; those of JSON have none here, and are refused as
 * Prometheus refuses them. */
static bool is_text(const struct cfg_value *v)
{
    const bool scalar = v->type != CFG_LIST && v->type != CFG_MAP && v->type != CFG_NULL;
    return scalar && (v->type == CFG_STRING || v->text_len) && strlen(v->text) == v->text_len;
}

static int read_targets(struct sd_groups *g, const struct cfg_value *v, const char *path,
                        struct err *reterr)
{
    struct sd_group *group = &g->items[g->n];
    if (v->type == CFG_NULL)
        return 0;
    if (v->type != CFG_LIST)
        return bad(path, g->n, "a list of targets", reterr);
    group->targets = arena_calloc(g->arena, (v->n + 1) * sizeof(*group->targets));
    if (!group->targets)
        return err_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < v->n; i++) {
        if (!is_text(v->items[i]))
            return bad(path, g->n, "targets to be strings", reterr);
        group->targets[group->ntargets++] = v->items[i]->text;
    }
    return 0;
}

static int read_labels(struct sd_groups *g, const struct cfg_value *v, const char *path,
                       struct err *reterr)
{
    if (v->type == CFG_NULL)
        return 0;
    if (v->type != CFG_MAP)
        return bad(path, g->n, "a map of labels", reterr);
    struct prom_label *items = arena_calloc(g->arena, (v->n + 1) * sizeof(*items));
    if (!items)
        return err_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < v->n; i++) {
        if (!is_text(v->items[i]))
            return bad(path, g->n, "values of labels to be strings", reterr);
        items[i] = (struct prom_label){bytes_str(v->keys[i]),
                                       bytes_of(v->items[i]->text, v->items[i]->text_len)};
    }
    g->items[g->n].labels = (struct prom_labels){items, v->n};
    return 0;
}

static int read_group(struct sd_groups *g, const struct cfg_value *v, const char *path,
                      struct err *reterr)
{
    if (v->type != CFG_MAP)
        return bad(path, g->n, "a map with targets and labels", reterr);
    for (size_t i = 0; i < v->n; i++) {
        int r = strcmp(v->keys[i], "targets") == 0 ? read_targets(g, v->items[i], path, reterr)
                : strcmp(v->keys[i], "labels") == 0
                    ? read_labels(g, v->items[i], path, reterr)
                    : bad(path, g->n, "no other keys than targets and labels", reterr);
        if (r < 0)
            return r;
    }
    g->n++;
    return 0;
}

static int read_groups(struct sd_groups *g, const struct cfg_value *v, const char *path,
                       struct err *reterr)
{
    if (v->type == CFG_NULL)
        return 0;
    if (v->type != CFG_LIST)
        return err_set(reterr, -EINVAL, "%s: expected a list of groups", path);
    g->items = arena_calloc(g->arena, (v->n + 1) * sizeof(*g->items));
    int r = g->items ? 0 : err_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < v->n; i++)
        r = read_group(g, v->items[i], path, reterr);
    return r;
}

int prom_sd_file_read(const char *path, struct sd_groups **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    _cleanup_(prom_sd_groups_freep) struct sd_groups *g = calloc(1, sizeof(*g));
    if (!text || !g || !(g->arena = arena_new(0)))
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = tls_read_file(path, text, reterr);
    const char *name = r == 0 ? arena_strdup(g->arena, path) : NULL;
    if (!name)
        return r < 0 ? r : err_set(reterr, -ENOMEM, "out of memory");
    const size_t n = strlen(path);
    const bool json = n > 5 && strcasecmp(path + n - 5, ".json") == 0;
    const struct bytes all = text->len ? buf_bytes(text) : bytes_of("", 0);
    const struct cfg_value *v =
        json ? parse_json(g->arena, path, all, reterr) : parse_yaml(g->arena, name, all, reterr);
    r = v ? read_groups(g, v, path, reterr) : -EINVAL;
    if (r == 0)
        *ret = TAKE_PTR(g);
    return r;
}

struct sd_groups *prom_sd_groups_free(struct sd_groups *g)
{
    if (g)
        arena_free(g->arena);
    free(g);
    return NULL;
}
