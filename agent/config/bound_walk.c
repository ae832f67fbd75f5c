/* Walking over all values of a bound struct beside the defaults of its table. */
#include <errno.h>
#include <string.h>

#include "agent/config/bound.h"
#include "agent/config/kinds.h"

struct walk {
    struct arena *arena;
    void (*each)(void *ctx, const struct cfg_visit *v);
    void *ctx;
    struct cfg_path path;
    bool no_memory;
};

/* A struct and the same one with its defaults. */
struct pair {
    const struct cfg_field *fields;
    const char *bound, *normal;
};

static void walk_fields(struct walk *w, const struct pair *whole, const struct cfg_field *fields,
                        size_t offset);

static void *all_defaults(struct walk *w, const struct cfg_field *fields, size_t size)
{
    struct cfg_errors errs = {0}; /* a list element may lack what is required */
    struct cfg_binder b = {.arena = w->arena, .errors = &errs};
    void *p = arena_calloc(w->arena, size ? size : 1);
    if (p)
        cfg_bind(&b, fields, NULL, "", p);
    cfg_errors_done(&errs);
    w->no_memory = w->no_memory || !p;
    return p;
}

static void visit(struct walk *w, const struct pair *in, const struct cfg_field *f, const void *at,
                  const void *normal)
{
    const char *path = arena_strdup(w->arena, w->path.text);
    w->no_memory = w->no_memory || !path;
    if (path)
        w->each(w->ctx, &(struct cfg_visit){path, f, at, normal, in->fields, in->bound});
}

static void walk_struct(struct walk *w, const struct cfg_field *f, const void *bound,
                        const void *normal)
{
    const struct pair in = {f->fields, bound,
                            normal ? normal : all_defaults(w, f->fields, f->size)};
    if (in.normal)
        walk_fields(w, &in, f->fields, 0);
}

/* The structs in a list, or in a map when there are `keys`. */
static void walk_items(struct walk *w, const struct cfg_field *elem, const char *const *keys,
                       const char *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t mark = keys ? cfg_path_push(&w->path, keys[i]) : cfg_path_push_index(&w->path, i);
        walk_struct(w, elem, items + i * cfg_elem_size(elem), NULL);
        cfg_path_pop(&w->path, mark);
    }
}

static void walk_field(struct walk *w, const struct pair *in, const struct cfg_field *f,
                       const char *at, const char *normal)
{
    const struct cfg_field *elem = bind_elem(f);
    const struct cfg_list *list = (const void *)at;
    const struct cfg_map *map = (const void *)at;
    const void *block = f->kind == BIND_BLOCK ? *(const void *const *)at : NULL;
    const char *text =
        bind_more(f)->text_at ? *(const char *const *)(at + bind_more(f)->text_at - 1) : NULL;
    if (f->kind == BIND_STRUCT && !text) {
        walk_struct(w, f, at, normal);
        return;
    }
    if (block)
        walk_struct(w, f, block, *(const void *const *)normal);
    if (elem && elem->kind == BIND_STRUCT && f->kind == BIND_LIST)
        walk_items(w, elem, NULL, list->items, list->n);
    else if (elem && elem->kind == BIND_STRUCT)
        walk_items(w, elem, map->keys, map->values, map->n);
    visit(w, in, f, at, normal);
}

static void walk_fields(struct walk *w, const struct pair *whole, const struct cfg_field *fields,
                        size_t offset)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (!*f->key && f->kind == BIND_STRUCT) {
            walk_fields(w, whole, f->fields, offset + f->offset);
        } else if (f->kind != BIND_REFUSED) {
            size_t mark = cfg_path_push(&w->path, f->key);
            walk_field(w, whole, f, whole->bound + offset + f->offset,
                       whole->normal + offset + f->offset);
            cfg_path_pop(&w->path, mark);
        }
    }
}

int cfg_bound_walk(struct arena *arena, const struct cfg_field *fields, size_t size,
                   const void *bound, void (*each)(void *ctx, const struct cfg_visit *v), void *ctx)
{
    struct walk w = {.arena = arena, .each = each, .ctx = ctx};
    const struct pair in = {fields, bound, all_defaults(&w, fields, size)};
    if (in.normal)
        walk_fields(&w, &in, fields, 0);
    return w.no_memory ? -ENOMEM : 0;
}
