/* What should be looked at: deprecated names, components that nothing uses, keys without effect. */
#include <string.h>

#include "agent/explain_parts.h"

struct noter {
    struct explanation *e;
    struct cfg_value *list;
    const struct explained *x;
};

static void add_note(struct noter *n, const char *kind, const char *of, struct cfg_pos pos,
                     const char *text)
{
    struct cfg_value *row = explain_map(n->e, n->list, NULL);
    explain_text(n->e, row, "kind", "%s", kind);
    if (*of)
        explain_text(n->e, row, "of", "%s", of);
    explain_at(n->e, row, pos);
    explain_text(n->e, row, "text", "%s", text);
}

static void see_key(void *ctx, const struct cfg_visit *v)
{
    struct noter *n = ctx;
    const bool idle = v->field->use == CFG_NO_EFFECT;
    const char *help = v->field->help ? v->field->help : "";
    if (!idle && strncmp(help, "Deprecated", 10) != 0)
        return;
    const struct cfg_pos pos = explain_place(n->e, n->x, v->path);
    if (pos.file)
        add_note(n, idle ? "no effect" : "deprecated",
                 explain_copy(n->e, "%s::%s", n->x->path, v->path), pos, help);
}

/* Whether a component keeps its queue in an extension. */
struct keeper {
    struct explanation *e;
    const struct component_settings *storage;
    bool found;
};

static void see_storage(void *ctx, const struct cfg_visit *v)
{
    struct keeper *k = ctx;
    const char *id = v->field->kind == BIND_ID ? ((const struct cfg_id *)v->at)->id : NULL;
    if (id && strcmp(v->field->key, "storage") == 0 && strcmp(id, k->storage->id) == 0)
        k->found = true;
}

static void see_keeper(void *ctx, const struct explained *x)
{
    struct keeper *k = ctx;
    if (cfg_bound_walk(k->e->arena, x->fields, x->size, x->bound, see_storage, k) < 0)
        k->e->failed = true;
}

static bool is_idle_storage(struct explanation *e, const struct component_settings *c)
{
    struct keeper k = {.e = e, .storage = c};
    if (strcmp(c->type->name, "file_storage") != 0)
        return false;
    explain_each(e, true, see_keeper, &k);
    return !k.found;
}

static void see_explained(void *ctx, const struct explained *x)
{
    struct noter *n = ctx;
    const struct component_settings *c = x->component;
    n->x = x;
    if (c && c->alias)
        add_note(n, "deprecated", x->path, c->pos,
                 explain_copy(n->e, "\"%.*s\" is an older name of \"%s\"", (int)strcspn(c->id, "/"),
                              c->id, c->type->name));
    if (c && !explain_is_used(n->e->l->service, c))
        add_note(n, "unused", x->path, c->pos,
                 c->type->kind == KIND_EXTENSION ? "defined, but not in service::extensions"
                                                 : "defined, but in no pipeline");
    else if (c && is_idle_storage(n->e, c))
        add_note(n, "unused", x->path, c->pos,
                 "no exporter names it as sending_queue::storage: nothing is kept in it");
    if (cfg_bound_walk(n->e->arena, x->fields, x->size, x->bound, see_key, n) < 0)
        n->e->failed = true;
}

void explain_notes(struct explanation *e)
{
    struct noter n = {.e = e, .list = explain_list(e, e->root, "notes")};
    const struct config *c = e->l->config;
    explain_each(e, false, see_explained, &n);
    for (size_t i = 0; i < c->nwarnings; i++)
        if (!strstr(c->warnings[i], " alias is deprecated; use ")) /* told above, with its place */
            add_note(&n, "warning", "", (struct cfg_pos){0}, c->warnings[i]);
}
