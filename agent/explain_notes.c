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
