/* Filling a struct from a value by a table of fields. */
#include "agent/config/bind.h"

#include <errno.h>

#include "agent/config/kinds.h"

const struct cfg_field cfg_elem_string = {.key = "", .kind = BIND_STRING};
const struct cfg_field cfg_elem_opaque = {.key = "", .kind = BIND_OPAQUE};
const struct cfg_field cfg_elem_id = {.key = "", .kind = BIND_ID};
const struct cfg_field cfg_elem_any = {.key = "", .kind = BIND_ANY};
const struct cfg_field cfg_elem_double = {.key = "", .kind = BIND_DOUBLE};
const struct cfg_field cfg_elem_int = {.key = "", .kind = BIND_INT};

static int bind_one(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                    const struct cfg_value *def, void *ret);
static void bind_fields(struct binding *x, const struct cfg_field *fields,
                        const struct cfg_value *v, const struct cfg_value *def, void *base);

size_t cfg_elem_size(const struct cfg_field *elem)
{
    return elem->kind == BIND_STRUCT ? elem->size : bind_kind_size(elem->kind);
}

static int no_memory(struct binding *x)
{
    return bind_fail(x, (struct cfg_pos){0}, "out of memory");
}

static bool is_embedded(const struct cfg_field *f)
{
    return !*f->key && f->kind == BIND_STRUCT;
}

/* The field with this key or alias, in embedded tables too. */
static const struct cfg_field *field_of(const struct cfg_field *fields, const char *key)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        const struct cfg_field *found = is_embedded(f) ? field_of(f->fields, key) : NULL;
        if (found)
            return found;
        if (!is_embedded(f) && (strcmp(f->key, key) == 0 ||
                                (bind_more(f)->alias && strcmp(bind_more(f)->alias, key) == 0)))
            return f;
    }
    return NULL;
}

static size_t collect_names(const struct cfg_field *fields, const char **names, size_t n,
                            size_t max)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (is_embedded(f))
            n = collect_names(f->fields, names, n, max);
        else if (n < max)
            names[n++] = f->key;
    }
    return n;
}

static void report_unknown(struct binding *x, const struct cfg_field *fields,
                           const struct cfg_value *v, size_t i)
{
    const char *names[129];
    names[collect_names(fields, names, 0, ARRAY_SIZE(names) - 1)] = NULL;
    const char *near = cfg_suggest(v->keys[i], names);
    if (near)
        bind_fail(x, v->key_pos[i], "unknown key \"%.100s\"; did you mean \"%s\"?", v->keys[i],
                  near);
    else
        bind_fail(x, v->key_pos[i], "unknown key \"%.100s\"", v->keys[i]);
}

/* `enabled` is a key of every block whose own table does not have it. */
static void check_keys(struct binding *x, const struct cfg_field *fields, const struct cfg_value *v,
                       bool block)
{
    for (size_t i = 0; i < v->n; i++) {
        bool enabled = block && strcmp(v->keys[i], "enabled") == 0;
        if (!enabled && !field_of(fields, v->keys[i]))
            report_unknown(x, fields, v, i);
    }
}

/* A default from the table. Single words and numbers, as nearly all are, need no parser. */
static const struct cfg_value *parse_default(struct binding *x, const struct cfg_field *f)
{
    struct cfg_pos nowhere = {0};
    if (!f->def)
        return NULL;
    const struct cfg_value *v =
        strpbrk(f->def, " \"'[]{}#&*!|>%@`,\n")
            ? cfg_yaml_parse(x->b->arena, "default", f->def, strlen(f->def), x->b->errors, NULL)
            : cfg_new_plain(x->b->arena, nowhere, f->def, strlen(f->def));
    if (!v)
        bind_fail(x, nowhere, "default \"%s\" cannot be read", f->def);
    return v;
}

/* Whether a string field takes the (empty) text of a null that came from an unset variable. */
static bool takes_null(const struct cfg_field *f, const struct cfg_value *v)
{
    return v->expanded && !f->nullable && (f->kind == BIND_STRING || f->kind == BIND_OPAQUE);
}

static enum cfg_presence presence_of(const struct cfg_value *v)
{
    if (!v)
        return CFG_ABSENT;
    if (v->type == CFG_NULL)
        return CFG_GIVEN_NULL;
    bool empty = v->type == CFG_STRING ? v->text_len == 0
                                       : (v->type == CFG_LIST || v->type == CFG_MAP) && v->n == 0;
    return empty ? CFG_GIVEN_EMPTY : CFG_GIVEN;
}

static bool is_off(const struct cfg_value *v)
{
    const struct cfg_value *enabled = cfg_get(v, "enabled");
    return enabled && enabled->type == CFG_BOOL && !enabled->b;
}

/* A key that is known but not served: what says "off" or what happens anyway may stand there. */
static int bind_refused(struct binding *x, const struct cfg_field *f, const struct cfg_value *v)
{
    if (!v || v->type == CFG_NULL || is_off(v))
        return 0;
    if (f->def && v->type != CFG_LIST && v->type != CFG_MAP && strcmp(v->text, f->def) == 0)
        return 0;
    if (f->def && v->n == 0 && strcmp(f->def, v->type == CFG_LIST ? "[]" : "{}") == 0)
        return 0;
    return bind_fail(x, v->pos, "not supported: %s", f->help ? f->help : "not built in");
}

/* The given map over the defaults of the table. */
static const struct cfg_value *with_defaults(struct binding *x, const struct cfg_value *own,
                                             const struct cfg_value *outer)
{
    if (!own || !outer)
        return own ? own : outer;
    const struct cfg_value *v =
        cfg_merge(x->b->arena, (struct cfg_value *)own, (struct cfg_value *)outer);
    if (!v)
        no_memory(x);
    return v;
}

static int bind_struct(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                       const struct cfg_value *def, void *ret)
{
    int r = 0;
    const char *text = NULL;
    if (bind_more(f)->text_at && v && v->type == CFG_STRING) {
        text = v->text;
        v = NULL;
    }
    if (v && v->type != CFG_MAP && v->type != CFG_NULL) {
        r = bind_mismatch(x, f, v,
                          bind_more(f)->text_at ? "a map or a string" : bind_expected(BIND_STRUCT));
        v = NULL;
    }
    if (v && v->type == CFG_MAP)
        check_keys(x, f->fields, v, false);
    bind_fields(x, f->fields, v, def, ret);
    if (bind_more(f)->text_at)
        *(const char **)((char *)ret + bind_more(f)->text_at - 1) = text;
    return r;
}

/* Reads a block's `enabled`; what is not a bool is a mistake and counts as on. */
static bool block_enabled(struct binding *x, const struct cfg_field *f, const struct cfg_value *v)
{
    bool on = true;
    const struct cfg_value *enabled = cfg_get(v, "enabled");
    if (!enabled || enabled->type == CFG_NULL || field_of(f->fields, "enabled"))
        return true;
    static const struct cfg_field field = {.key = "enabled", .kind = BIND_BOOL};
    size_t mark = cfg_path_push(&x->path, field.key);
    bind_scalar(x, &field, enabled, &on);
    cfg_path_pop(&x->path, mark);
    return on;
}

static int bind_block(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                      const struct cfg_value *def, void **ret)
{
    *ret = NULL;
    if (v && v->type == CFG_NULL && f->null_absent && !def)
        v = NULL;
    if (!v && (!def || def->type == CFG_NULL))
        return 0;
    if (v && v->type != CFG_MAP && v->type != CFG_NULL)
        return bind_mismatch(x, f, v, bind_expected(BIND_BLOCK));
    void *block = arena_calloc(x->b->arena, f->size);
    if (!block)
        return no_memory(x);
    if (v && v->type == CFG_MAP)
        check_keys(x, f->fields, v, true);
    bool on = block_enabled(x, f, v), was_off = x->off;
    x->off = was_off || !on;
    bind_fields(x, f->fields, v, def, block);
    x->off = was_off;
    if (on)
        *ret = block;
    return 0;
}

/* One element of a list or map. An id cannot be left out there. */
static int bind_element(struct binding *x, const struct cfg_field *elem, const struct cfg_value *v,
                        void *ret)
{
    if (elem->kind == BIND_ID && v->type == CFG_NULL)
        return bind_mismatch(x, elem, v, bind_expected(BIND_ID));
    return bind_one(x, elem, v, NULL, ret);
}

static int bind_items(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                      struct cfg_list *ret)
{
    int r = 0;
    size_t size = cfg_elem_size(f->elem);
    char *items = arena_calloc(x->b->arena, v->n * size + 1);
    if (!items)
        return no_memory(x);
    for (size_t i = 0; i < v->n; i++) {
        size_t mark = cfg_path_push_index(&x->path, i);
        if (bind_element(x, f->elem, v->items[i], items + i * size) < 0)
            r = -EINVAL;
        cfg_path_pop(&x->path, mark);
    }
    if (r == 0)
        *ret = (struct cfg_list){items, v->n, v};
    return r;
}

/* "a,b" as a list of two. */
static struct cfg_value *split(struct arena *a, const struct cfg_value *v)
{
    struct cfg_value *list = cfg_new(a, CFG_LIST, v->pos);
    const char *p = v->text, *end = v->text + v->text_len;
    while (list && p < end + (list->n > 0)) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t len = (size_t)((comma ? comma : end) - p);
        struct cfg_value *item = cfg_new_string(a, v->pos, p, len);
        if (!item || cfg_append(a, list, NULL, v->pos, item) < 0)
            return NULL;
        item->secret = v->secret;
        p += len + 1;
    }
    return list;
}

static int bind_list(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                     void *ret)
{
    bool strings = f->elem->kind == BIND_STRING || f->elem->kind == BIND_OPAQUE;
    if (strings && v->type == CFG_STRING && !(v = split(x->b->arena, v)))
        return no_memory(x);
    if (v->type != CFG_LIST)
        return bind_mismatch(x, f, v, bind_expected(BIND_LIST));
    return bind_items(x, f, v, ret);
}

static int bind_entries(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                        struct cfg_map *ret)
{
    int r = 0;
    size_t size = cfg_elem_size(f->elem);
    char *values = arena_calloc(x->b->arena, v->n * size + 1);
    if (!values)
        return no_memory(x);
    for (size_t i = 0; i < v->n; i++) {
        size_t mark = cfg_path_push(&x->path, v->keys[i]);
        if (bind_element(x, f->elem, v->items[i], values + i * size) < 0)
            r = -EINVAL;
        cfg_path_pop(&x->path, mark);
    }
    if (r == 0)
        *ret = (struct cfg_map){v->keys, values, v->key_pos, v->n};
    return r;
}

/* Adds one {name: …, value: …} to the map. */
static int add_pair(struct binding *x, struct cfg_value *map, const struct cfg_value *pair)
{
    const struct cfg_value *name = cfg_get(pair, "name"), *value = cfg_get(pair, "value");
    const char *key = name ? bind_text(name) : NULL;
    if (!key || pair->n != (value ? 2 : 1))
        return bind_fail(x, pair->pos, "expected a map with the keys \"name\" and \"value\"");
    if (cfg_index(map, key) < map->n)
        return bind_fail(x, name->pos, "\"%.100s\" is given twice", key);
    if (!value)
        value = cfg_new_string(x->b->arena, pair->pos, "", 0);
    if (!value || cfg_append(x->b->arena, map, key, name->pos, (struct cfg_value *)value) < 0)
        return no_memory(x);
    return 0;
}

static struct cfg_value *map_of_pairs(struct binding *x, const struct cfg_value *v)
{
    struct cfg_value *map = cfg_new(x->b->arena, CFG_MAP, v->pos);
    for (size_t i = 0; map && i < v->n; i++) {
        size_t mark = cfg_path_push_index(&x->path, i);
        if (add_pair(x, map, v->items[i]) < 0)
            map = NULL;
        cfg_path_pop(&x->path, mark);
    }
    return map;
}

static int bind_map(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                    void *ret)
{
    if (f->pairs && v->type == CFG_LIST && !(v = map_of_pairs(x, v)))
        return -EINVAL;
    if (v->type != CFG_MAP)
        return bind_mismatch(x, f, v, bind_expected(BIND_MAP));
    return bind_entries(x, f, v, ret);
}

static int bind_leaf(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                     void *ret)
{
    if (f->kind == BIND_LIST)
        return bind_list(x, f, v, ret);
    if (f->kind == BIND_MAP)
        return bind_map(x, f, v, ret);
    return bind_scalar(x, f, v, ret);
}

/* Sets *ret to the value of a field: v, or where that is absent or null the default. */
static int bind_one(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                    const struct cfg_value *def, void *ret)
{
    if (f->kind == BIND_REFUSED)
        return bind_refused(x, f, v);
    if (!def || f->kind == BIND_STRUCT || f->kind == BIND_BLOCK)
        def = with_defaults(x, parse_default(x, f), def);
    if (f->kind == BIND_STRUCT)
        return bind_struct(x, f, v, def, ret);
    if (f->kind == BIND_BLOCK)
        return bind_block(x, f, v, def, ret);
    memset(ret, 0, bind_kind_size(f->kind));
    if ((f->kind == BIND_STRING || f->kind == BIND_OPAQUE) && !f->nullable)
        *(const char **)ret = "";
    if (f->kind == BIND_ANY && v) {
        *(const struct cfg_value **)ret = v;
        return 0;
    }
    if (def && def->type != CFG_NULL && bind_leaf(x, f, def, ret) < 0)
        return -EINVAL;
    if (!v || (v->type == CFG_NULL && !takes_null(f, v)))
        return 0;
    return bind_leaf(x, f, v, ret);
}

/* The value given for a field, under its key or its older spelling. */
static const struct cfg_value *given(struct binding *x, const struct cfg_field *f,
                                     const struct cfg_value *map)
{
    const struct cfg_value *v = cfg_get(map, f->key),
                           *old = bind_more(f)->alias ? cfg_get(map, bind_more(f)->alias) : NULL;
    if (!old)
        return v;
    if (v) {
        bind_fail(x, old->pos, "given twice, as \"%s\" and as \"%s\"", f->key, bind_more(f)->alias);
        return v;
    }
    char text[700];
    snprintf(text, sizeof(text), "%s:%d:%d: %s: \"%s\" is an older name, use \"%s\"",
             old->pos.file ? old->pos.file : "", old->pos.line, old->pos.column, x->path.text,
             bind_more(f)->alias, f->key);
    if (x->b->warn)
        x->b->warn(x->b->ctx, text);
    return old;
}

static void check_required(struct binding *x, const struct cfg_field *f, const struct cfg_value *v,
                           const struct cfg_value *map)
{
    enum cfg_presence p = presence_of(v);
    if (!f->required || x->off || p == CFG_GIVEN || (p == CFG_ABSENT && f->def))
        return;
    bind_fail(x,
              v     ? v->pos
              : map ? map->pos
                    : (struct cfg_pos){0},
              "required, but %s",
              p == CFG_ABSENT       ? "not given"
              : p == CFG_GIVEN_NULL ? "null"
                                    : "empty");
}

static void bind_field(struct binding *x, const struct cfg_field *f, const struct cfg_value *map,
                       const struct cfg_value *defs, void *base)
{
    const struct cfg_value *v = given(x, f, map);
    size_t mark = cfg_path_push(&x->path, f->key);
    if (bind_more(f)->presence_at)
        *(enum cfg_presence *)((char *)base + bind_more(f)->presence_at - 1) = presence_of(v);
    if (bind_one(x, f, v, cfg_get(defs, f->key), (char *)base + f->offset) == 0)
        check_required(x, f, v, map);
    cfg_path_pop(&x->path, mark);
}

static void bind_fields(struct binding *x, const struct cfg_field *fields,
                        const struct cfg_value *v, const struct cfg_value *def, void *base)
{
    for (const struct cfg_field *f = fields; f->key; f++) {
        if (is_embedded(f))
            bind_fields(x, f->fields, v, with_defaults(x, parse_default(x, f), def),
                        (char *)base + f->offset);
        else
            bind_field(x, f, v, def, base);
    }
}

int cfg_bind(struct cfg_binder *b, const struct cfg_field *fields, const struct cfg_value *value,
             const char *path, void *ret)
{
    struct binding x = {.b = b};
    const struct cfg_field top = {.key = "", .kind = BIND_STRUCT, .fields = fields};
    cfg_path_set(&x.path, path);
    bind_struct(&x, &top, value, NULL, ret);
    return x.failed ? -EINVAL : 0;
}
