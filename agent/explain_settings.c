/* Pipelines, and what every component is told that is not its default. */
#include <inttypes.h>
#include <string.h>

#include "agent/base/secrets.h"
#include "agent/explain_parts.h"

/* ---- pipelines ---- */

static void add_ids(struct explanation *e, struct cfg_value *pipeline, const char *key,
                    const struct component_settings **all, size_t n)
{
    struct cfg_value *list = explain_list(e, pipeline, key);
    for (size_t i = 0; i < n; i++)
        explain_text(e, list, NULL, all[i]->type->kind == KIND_CONNECTOR ? "[%s]" : "%s",
                     all[i]->id);
}

/* The pipelines that a connector is an exporter of, or a receiver. */
static void add_ends(struct explanation *e, struct cfg_value *joint, const char *key,
                     const struct component_settings *c, bool in)
{
    struct cfg_value *list = explain_list(e, joint, key);
    for (size_t i = 0; i < e->l->service->npipelines; i++) {
        const struct pipeline_settings *p = &e->l->service->pipelines[i];
        const size_t n = in ? p->nexporters : p->nreceivers;
        for (size_t k = 0; k < n; k++)
            if ((in ? p->exporters : p->receivers)[k] == c)
                explain_text(e, list, NULL, "%s", p->name);
    }
}

void explain_pipelines(struct explanation *e)
{
    const struct service_settings *s = e->l->service;
    struct cfg_value *list = explain_list(e, e->root, "pipelines");
    for (size_t i = 0; i < s->npipelines; i++) {
        const struct pipeline_settings *p = &s->pipelines[i];
        struct cfg_value *map = explain_map(e, list, NULL);
        explain_text(e, map, "name", "%s", p->name);
        add_ids(e, map, "receivers", p->receivers, p->nreceivers);
        add_ids(e, map, "processors", p->processors, p->nprocessors);
        add_ids(e, map, "exporters", p->exporters, p->nexporters);
        explain_at(e, map, p->pos);
    }
    struct cfg_value *joints = explain_list(e, e->root, "joints");
    for (size_t i = 0; i < s->ncomponents[KIND_CONNECTOR]; i++) {
        const struct component_settings *c = &s->components[KIND_CONNECTOR][i];
        if (!explain_is_used(s, c))
            continue;
        struct cfg_value *map = explain_map(e, joints, NULL);
        explain_text(e, map, "id", "%s", c->id);
        add_ends(e, map, "from", c, true);
        add_ends(e, map, "to", c, false);
    }
}

/* ---- settings ---- */

struct lister {
    struct explanation *e;
    const struct explained *x;
    struct cfg_value *rows;
};

static bool is_number(enum bind_kind k)
{
    return k == BIND_INT || k == BIND_DOUBLE;
}

/* The value with its unit, in the arena. */
static const char *render(struct explanation *e, const struct cfg_field *f, const void *p)
{
    char *text = NULL;
    size_t len = 0;
    const size_t text_at = f->more ? f->more->text_at : 0;
    const char *in_place = text_at ? *(const char *const *)((const char *)p + text_at - 1) : NULL;
    const char *unit = f->kind == BIND_SIZE_MIB ? " MiB"
                       : is_number(f->kind) && f->more && f->more->unit
                           ? explain_copy(e, " %s", f->more->unit)
                           : "";
    FILE *out = open_memstream(&text, &len);
    if (!out) {
        e->failed = true;
        return "";
    }
    if (in_place)
        fputs(in_place, out);
    else
        cfg_print_flow(out, f, p);
    const bool written = fclose(out) == 0;
    const char *copy = written ? explain_copy(e, "%s%s", text, unit) : "";
    free(text);
    return copy;
}

/* Whether a row is about something inside the value at `path`. */
static bool has_inner(const struct cfg_value *rows, const char *path)
{
    const size_t len = strlen(path);
    const struct cfg_value *last = rows->n ? cfg_get(rows->items[rows->n - 1], "key") : NULL;
    return last && strncmp(last->text, path, len) == 0 &&
           (last->text[len] == ':' || last->text[len] == '[');
}

static void add_setting(struct lister *l, const struct cfg_visit *v, const char *value,
                        const char *normal)
{
    const struct cfg_pos pos = explain_place(l->e, l->x, v->path);
    if (!pos.file && strchr(v->path, '[')) /* of a list that is the default */
        return;
    struct cfg_value *row = explain_map(l->e, l->rows, NULL);
    if (explain_is_hidden(l->e, explain_copy(l->e, "%s::%s", l->x->path, v->path)))
        value = SECRET_PLACEHOLDER;
    explain_text(l->e, row, "key", "%s", v->path);
    explain_text(l->e, row, "value", "%s", value);
    if (normal && *normal && strcmp(normal, "\"\"") != 0 && strcmp(normal, "null") != 0 &&
        strcmp(normal, "[]") != 0 && strcmp(normal, "{}") != 0)
        explain_text(l->e, row, "default", "%s", normal);
    explain_at(l->e, row, pos);
    if (v->field->help)
        explain_text(l->e, row, "help", "%s", v->field->help);
}

/* Not given, or a -1 that says so. */
static bool is_nothing(const struct cfg_visit *v)
{
    if (v->field->kind == BIND_ANY)
        return !*(const void *const *)v->at;
    return v->field->kind == BIND_OCTAL && *(const int64_t *)v->at < 0;
}

static void see_setting(void *ctx, const struct cfg_visit *v)
{
    struct lister *l = ctx;
    if (v->field->use == CFG_NO_EFFECT || is_nothing(v) || has_inner(l->rows, v->path))
        return;
    if (v->field->kind == BIND_BLOCK) {
        const bool on = *(const void *const *)v->at, was = *(const void *const *)v->normal;
        if (on != was)
            add_setting(l, v, on ? "on" : "off", on ? "off" : "on");
        return;
    }
    const char *value = render(l->e, v->field, v->at), *normal = render(l->e, v->field, v->normal);
    if (strcmp(value, normal) != 0)
        add_setting(l, v, value, normal);
}

static void see_explained(void *ctx, const struct explained *x)
{
    struct explanation *e = ctx;
    const struct component_settings *c = x->component;
    struct cfg_value *list = (struct cfg_value *)cfg_get(e->root, "components");
    struct cfg_value *map = explain_map(e, list, NULL);
    explain_text(e, map, "path", "%s", x->path);
    if (c) {
        explain_text(e, map, "kind", "%s", component_kind_name(c->type->kind));
        explain_text(e, map, "id", "%s", c->id);
        explain_text(e, map, "type", "%s", c->type->name);
        explain_flag(e, map, "used", explain_is_used(e->l->service, c));
        if (c->type->help)
            explain_text(e, map, "help", "%s", c->type->help);
        explain_at(e, map, c->pos);
    }
    struct lister l = {e, x, explain_list(e, map, "settings")};
    if (cfg_bound_walk(e->arena, x->fields, x->size, x->bound, see_setting, &l) < 0)
        e->failed = true;
}

void explain_settings(struct explanation *e)
{
    explain_list(e, e->root, "components");
    explain_each(e, false, see_explained, e);
}
