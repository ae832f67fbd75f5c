/* Converters of lists and maps. */
#include "agent/base/cleanup.h"
#include "ottl/calls.h"

/* ---- keys and values ---- */

static int collect(const struct ottl_call *c, struct ottl_env *env, bool keys,
                   struct ottl_value *ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    struct ottl_list *l = r < 0 ? NULL : ottl_list_new(env->arena);
    if (r == 0 && !l)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < v.map->n; i++) {
        const struct ottl_entry *e = &v.map->items[i];
        r = ottl_list_append(env->arena, l, keys ? ottl_string(e->key) : e->value);
    }
    *ret = ottl_list_value(l);
    return r;
}

OTTL_FN(keys)
{
    return collect(c, env, true, ret);
}

OTTL_FN(values)
{
    return collect(c, env, false, ret);
}

/* ---- looking for something ---- */

static int64_t find_item(const struct ottl_list *l, const struct ottl_value *what)
{
    for (size_t i = 0; i < l->n; i++)
        if (ottl_compare(&l->items[i], OTTL_EQ, what))
            return (int64_t)i;
    return -1;
}

OTTL_FN(contains_value)
{
    struct ottl_value v, what;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        r = ottl_arg_value(c, 1, env, &what);
    if (r == 0)
        *ret = ottl_bool(find_item(v.list, &what) >= 0);
    return r;
}

static int index_in_text(struct ottl_env *env, struct bytes s, const struct ottl_value *what,
                         struct ottl_value *ret)
{
    if (what->kind != OTTL_STRING)
        return err_set(env->err, -EINVAL,
                       "invalid value type for Index function, value must be a string");
    const uint8_t *p = what->bytes.len == 0 ? s.data
                       : s.len == 0         ? NULL
                                    : memmem(s.data, s.len, what->bytes.data, what->bytes.len);
    *ret = ottl_int(p || what->bytes.len == 0 ? p - s.data : -1);
    return 0;
}

OTTL_FN(index)
{
    struct ottl_value v, what;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        r = ottl_arg_value(c, 1, env, &what);
    if (r < 0)
        return r;
    if (v.kind == OTTL_STRING)
        return index_in_text(env, v.bytes, &what, ret);
    if (v.kind != OTTL_LIST)
        return err_set(env->err, -EINVAL, "expected pcommon.Slice but got %s",
                       ottl_kind_name(v.kind));
    *ret = ottl_int(find_item(v.list, &what));
    return 0;
}

/* ---- Sort ---- */

OTTL_PREPARE(sort)
{
    struct bytes order = ottl_fn_literal(c, 1, "asc");
    if (bytes_eq_str(order, "asc") || bytes_eq_str(order, "desc"))
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid arguments: %.*s. Order should be either \"asc\" or \"desc\"",
                   (int)order.len, order.data);
}

struct sortable {
    struct ottl_value key; /* int, double or string, the same for all */
    struct ottl_value value;
    size_t place;
};

/* What all elements are compared as; OTTL_NIL: they cannot be sorted. */
static enum ottl_kind common_kind(const struct ottl_list *l)
{
    bool text = false, fraction = false;
    for (size_t i = 0; i < l->n; i++)
        switch (l->items[i].kind) {
        case OTTL_INT: break;
        case OTTL_DOUBLE: fraction = true; break;
        case OTTL_STRING:
        case OTTL_BOOL:
        case OTTL_NIL: text = true; break;
        default: return OTTL_NIL;
        }
    return text ? OTTL_STRING : fraction ? OTTL_DOUBLE : OTTL_INT;
}

static int make_key(struct arena *a, const struct ottl_value *v, enum ottl_kind kind,
                    struct ottl_value *ret)
{
    bool nil;
    *ret = *v;
    if (kind == OTTL_DOUBLE && v->kind == OTTL_INT)
        *ret = ottl_double((double)v->i);
    if (kind != OTTL_STRING || v->kind == OTTL_STRING)
        return 0;
    *ret = ottl_string(bytes_of("", 0));
    return ottl_value_text(a, v, &ret->bytes, &nil);
}

/* Not-a-number is less than all others. */
static int order_of(const struct sortable *a, const struct sortable *b)
{
    if (a->key.kind == OTTL_DOUBLE) {
        bool a_nan = a->key.d != a->key.d, b_nan = b->key.d != b->key.d;
        if (a_nan || b_nan)
            return b_nan - a_nan;
    }
    return ottl_compare(&a->key, OTTL_LT, &b->key) ? -1 : ottl_compare(&a->key, OTTL_GT, &b->key);
}

static int ascending(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    int d = order_of(x, y);
    return d ? d : x->place < y->place ? -1 : 1;
}

static int descending(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    int d = order_of(y, x);
    return d ? d : x->place < y->place ? -1 : 1;
}

static int sort_list(struct arena *a, struct ottl_list *l, enum ottl_kind kind, bool down)
{
    struct sortable *s = arena_alloc(a, (l->n + 1) * sizeof(*s));
    int r = s ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        s[i].value = l->items[i];
        s[i].place = i;
        r = make_key(a, &l->items[i], kind, &s[i].key);
    }
    if (r < 0)
        return r;
    qsort(s, l->n, sizeof(*s), down ? descending : ascending);
    for (size_t i = 0; i < l->n; i++)
        l->items[i] = s[i].value;
    return 0;
}

OTTL_FN(sort)
{
    bool down = bytes_eq_str(ottl_fn_literal(c, 1, "asc"), "desc");
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0 && v.kind != OTTL_LIST)
        r = err_set(env->err, -EINVAL, "sort with unsupported type: '%s'. Target is not a list",
                    ottl_kind_name(v.kind));
    if (r < 0)
        return r;
    struct ottl_list *sorted = ottl_list_new(env->arena);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < v.list->n; i++)
        r = ottl_list_append(env->arena, sorted, v.list->items[i]);
    enum ottl_kind kind = common_kind(v.list);
    if (r == 0 && v.list->n && kind != OTTL_NIL)
        r = sort_list(env->arena, sorted, kind, down);
    *ret = ottl_list_value(sorted);
    return r;
}

/* ---- SliceToMap ---- */

static int follow(struct ottl_env *env, const struct ottl_value *v, const struct ottl_list *path,
                  const char *what, size_t element, struct ottl_value *ret)
{
    if (path->n == 0)
        return err_set(env->err, -EINVAL,
                       "could not extract %s from element %zu: must provide at "
                       "least one path item",
                       what, element);
    if (v->kind != OTTL_MAP)
        return err_set(
            env->err, -EINVAL,
            "slice elements must be maps when using `key_path` or `value_path`, but could "
            "not cast element of type `%s` to a map",
            ottl_kind_name(v->kind));
    for (size_t i = 0; v && i < path->n; i++)
        v = v->kind == OTTL_MAP ? ottl_map_find(v->map, path->items[i].bytes) : NULL;
    if (!v)
        return err_set(
            env->err, -EINVAL,
            "could not extract %s from element %zu: provided object does not contain the "
            "path",
            what, element);
    *ret = *v;
    return 0;
}

static int entry_of(const struct ottl_call *c, struct ottl_env *env, const struct ottl_value *v,
                    size_t i, struct ottl_value *ret_key, struct ottl_value *ret_value)
{
    int r = 0;
    *ret_value = *v;
    if (c->args[1].given)
        r = follow(env, v, c->args[1].literal.list, "key", i, ret_key);
    else if (!(ret_key->bytes.data = (uint8_t *)arena_printf(env->arena, "%zu", i)))
        return -ENOMEM;
    else
        *ret_key = ottl_string(bytes_str((const char *)ret_key->bytes.data));
    if (r == 0 && ret_key->kind != OTTL_STRING)
        r = err_set(env->err, -EINVAL,
                    "element %zu: extracted key attribute is not of type string, got \"%s\"", i,
                    ottl_kind_name(ret_key->kind));
    if (r == 0 && c->args[2].given)
        r = follow(env, v, c->args[2].literal.list, "value", i, ret_value);
    return r;
}

OTTL_FN(slice_to_map)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    struct ottl_map *m = r < 0 ? NULL : ottl_map_new(env->arena);
    if (r == 0 && !m)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < v.list->n; i++) {
        struct ottl_value key = ottl_nil(), value = ottl_nil();
        r = entry_of(c, env, &v.list->items[i], i, &key, &value);
        if (r == 0)
            r = ottl_map_put(env->arena, m, key.bytes, value);
    }
    *ret = ottl_map_value(m);
    return r;
}
