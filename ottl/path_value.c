/* Keys into maps and lists: on encoded values for reading, on trees for writing. */
#include <errno.h>

#include "ottl/function.h"
#include "ottl/path.h"
#include "proto/any_value.h"

#define LIST_MAX 1000000 /* elements that a key may make */

/* ---- errors ---- */

int ottl_expects(struct ottl_env *env, const char *want, const struct ottl_value *got)
{
    if (got->kind == OTTL_NIL)
        return err_set(env->err, -EINVAL, "setting a value to nil is not supported");
    return err_set(env->err, -EINVAL, "expects %s but got %s", want, ottl_kind_name(got->kind));
}

int ottl_encode_error(struct ottl_env *env, int r)
{
    if (r != -EINVAL)
        return r < 0 ? -ENOMEM : 0;
    return err_set(env->err, -EINVAL, "unsupported type inside of a map or list");
}

bool ottl_is_any_value(const struct ottl_value *v)
{
    return v->kind <= OTTL_MAP;
}

static const char *any_name(enum any_kind k)
{
    static const char *const names[] = {
        [ANY_EMPTY] = "Empty",   [ANY_STRING] = "Str",  [ANY_BOOL] = "Bool",  [ANY_INT] = "Int",
        [ANY_DOUBLE] = "Double", [ANY_ARRAY] = "Slice", [ANY_KVLIST] = "Map", [ANY_BYTES] = "Bytes",
    };
    return names[k];
}

static const char *tree_name(enum ottl_kind k)
{
    static const char *const names[] = {"Empty", "Bool",  "Int",   "Double",
                                        "Str",   "Bytes", "Slice", "Map"};
    return k < ARRAY_SIZE(names) ? names[k] : ottl_kind_name(k);
}

static int not_indexable(struct ottl_env *env, const char *name)
{
    return err_set(env->err, -EINVAL, "type %s does not support string indexing", name);
}

/* ---- keys ---- */

static int eval_key(struct ottl_env *env, const struct ottl_key *key, enum ottl_kind want,
                    const char *what, struct ottl_value *ret)
{
    if (!key->expr)
        return err_set(env->err, -EINVAL, "unable to resolve %s: invalid key type", what);
    int r = ottl_expr_eval(key->expr, env, ret);
    if (r < 0 || ret->kind == want)
        return r;
    return err_set(env->err, -EINVAL,
                   "unable to resolve %s: could not resolve key for map/slice, expecting '%s' but "
                   "got '%s'",
                   what, ottl_kind_name(want), ottl_kind_name(ret->kind));
}

int ottl_key_name(struct ottl_env *env, const struct ottl_key *key, struct bytes *ret)
{
    struct ottl_value v;
    if (key->is_string) {
        *ret = key->s;
        return 0;
    }
    int r = eval_key(env, key, OTTL_STRING, "a string index in map", &v);
    if (r == 0)
        *ret = v.bytes;
    return r;
}

static int key_number(struct ottl_env *env, const struct ottl_key *key, int64_t *ret)
{
    struct ottl_value v = {.i = key->i};
    int r = key->is_int ? 0 : eval_key(env, key, OTTL_INT, "an integer index in slice", &v);
    *ret = r == 0 ? v.i : 0;
    return r;
}

int ottl_key_index(struct ottl_env *env, const struct ottl_key *key, size_t n, size_t *ret)
{
    int64_t i;
    int r = key_number(env, key, &i);
    if (r < 0)
        return r;
    if (i < 0 || (uint64_t)i >= n)
        return err_set(env->err, -EINVAL, "index %lld out of bounds", (long long)i);
    *ret = (size_t)i;
    return 0;
}

/* ---- encoded values ---- */

static bool find_key(struct bytes list, struct bytes key, struct bytes *ret_any)
{
    struct wire_reader r = wire_reader(list);
    struct bytes kv;
    while (wire_each(&r, 1, &kv)) {
        struct key_value e = key_value_read(kv);
        if (bytes_eq(e.key, key)) {
            *ret_any = e.value;
            return true;
        }
    }
    return false;
}

static size_t count_elements(struct bytes list)
{
    struct wire_reader r = wire_reader(list);
    struct bytes any;
    size_t n = 0;
    while (wire_each(&r, 1, &any))
        n++;
    return n;
}

static int element(struct ottl_env *env, struct bytes list, const struct ottl_key *key,
                   struct bytes *ret_any)
{
    struct wire_reader r = wire_reader(list);
    size_t i;
    int e = ottl_key_index(env, key, count_elements(list), &i);
    for (size_t at = 0; e == 0 && at <= i; at++)
        wire_each(&r, 1, ret_any);
    return e;
}

/* Scalars without the way through a tree. */
static int decode(struct ottl_env *env, struct bytes any, const struct any_value *v,
                  struct ottl_value *ret)
{
    switch (v->kind) {
    case ANY_EMPTY: *ret = ottl_nil(); return 0;
    case ANY_STRING: *ret = ottl_string(v->bytes); return 0;
    case ANY_BOOL: *ret = ottl_bool(v->b); return 0;
    case ANY_INT: *ret = ottl_int(v->i); return 0;
    case ANY_DOUBLE: *ret = ottl_double(v->d); return 0;
    case ANY_BYTES: *ret = (struct ottl_value){OTTL_BYTES, {.bytes = v->bytes}, 0}; return 0;
    default: return ottl_value_decode(env->arena, any, ret);
    }
}

int ottl_any_get(struct ottl_env *env, struct bytes any, const struct ottl_key *keys, unsigned n,
                 struct ottl_value *ret)
{
    struct bytes name;
    for (unsigned i = 0; i < n; i++) {
        struct any_value v = any_value_read(any);
        int r = 0;
        if (v.kind == ANY_KVLIST)
            r = ottl_key_name(env, &keys[i], &name);
        else if (v.kind == ANY_ARRAY)
            r = element(env, v.bytes, &keys[i], &any);
        else
            return not_indexable(env, any_name(v.kind));
        if (r < 0)
            return r;
        if (v.kind == ANY_KVLIST && !find_key(v.bytes, name, &any)) {
            *ret = ottl_nil();
            return 0;
        }
    }
    struct any_value v = any_value_read(any);
    return decode(env, any, &v, ret);
}

/* ---- trees ---- */

static int tree_step(struct ottl_env *env, const struct ottl_value *at, const struct ottl_key *key,
                     struct ottl_value **ret)
{
    struct bytes name;
    size_t i = 0;
    int r;
    if (at->kind == OTTL_MAP) {
        r = ottl_key_name(env, key, &name);
        *ret = r == 0 ? ottl_map_find(at->map, name) : NULL;
        return r;
    }
    if (at->kind != OTTL_LIST)
        return not_indexable(env, tree_name(at->kind));
    r = ottl_key_index(env, key, at->list->n, &i);
    *ret = r == 0 ? &at->list->items[i] : NULL;
    return r;
}

int ottl_tree_get(struct ottl_env *env, const struct ottl_value *tree, const struct ottl_key *keys,
                  unsigned n, struct ottl_value *ret)
{
    const struct ottl_value *at = tree;
    for (unsigned i = 0; at && i < n; i++) {
        struct ottl_value *next = NULL;
        int r = tree_step(env, at, &keys[i], &next);
        if (r < 0)
            return r;
        at = next;
    }
    *ret = ottl_nil();
    return at ? ottl_value_copy(env->arena, at, ret) : 0;
}

static int put_key(struct ottl_env *env, struct ottl_value *map, struct bytes name,
                   struct ottl_value **ret)
{
    *ret = ottl_map_find(map->map, name);
    if (*ret)
        return 0;
    if (ottl_map_put(env->arena, map->map, name, ottl_nil()) < 0)
        return -ENOMEM;
    *ret = ottl_map_find(map->map, name);
    return 0;
}

static int make_list(struct ottl_env *env, struct ottl_value *at, int64_t i,
                     struct ottl_value **ret)
{
    struct ottl_list *l = ottl_list_new(env->arena);
    if (i > LIST_MAX)
        return err_set(env->err, -EINVAL, "index %lld out of bounds", (long long)i);
    for (int64_t n = 0; l && n <= (i < 0 ? 0 : i); n++)
        if (ottl_list_append(env->arena, l, ottl_nil()) < 0)
            return -ENOMEM;
    if (!l)
        return -ENOMEM;
    *at = (struct ottl_value){OTTL_LIST, {.list = l}, 0};
    *ret = &l->items[l->n - 1];
    return 0;
}

static int make_map(struct ottl_env *env, struct ottl_value *at, struct bytes name,
                    struct ottl_value **ret)
{
    struct ottl_map *m = ottl_map_new(env->arena);
    if (!m)
        return -ENOMEM;
    *at = (struct ottl_value){OTTL_MAP, {.map = m}, 0};
    return put_key(env, at, name, ret);
}

/* Nothing there yet: the key says whether it becomes a map or a list. */
static int make_container(struct ottl_env *env, struct ottl_value *at, const struct ottl_key *key,
                          struct ottl_value **ret)
{
    struct ottl_value v;
    if (key->is_string)
        return make_map(env, at, key->s, ret);
    if (key->is_int)
        return make_list(env, at, key->i, ret);
    int r = key->expr ? ottl_expr_eval(key->expr, env, &v) : 0;
    if (r < 0)
        return r;
    if (key->expr && v.kind == OTTL_INT)
        return make_list(env, at, v.i, ret);
    if (key->expr && v.kind == OTTL_STRING)
        return make_map(env, at, v.bytes, ret);
    return err_set(env->err, -EINVAL,
                   "neither a string nor an int index was given, this is an error in the OTTL");
}

static int make_step(struct ottl_env *env, struct ottl_value *at, const struct ottl_key *key,
                     struct ottl_value **ret)
{
    struct bytes name;
    if (at->kind == OTTL_NIL)
        return make_container(env, at, key, ret);
    if (at->kind != OTTL_MAP)
        return tree_step(env, at, key, ret);
    int r = ottl_key_name(env, key, &name);
    return r < 0 ? r : put_key(env, at, name, ret);
}

int ottl_tree_set(struct ottl_env *env, struct ottl_value *tree, const struct ottl_key *keys,
                  unsigned n, const struct ottl_value *v)
{
    struct ottl_value *at = tree;
    for (unsigned i = 0; i < n; i++) {
        int r = make_step(env, at, &keys[i], &at);
        if (r < 0)
            return r;
    }
    if (!ottl_is_any_value(v))
        return err_set(env->err, -EINVAL,
                       "unsupported type %s for set operation; current value type is %s",
                       ottl_kind_name(v->kind), tree_name(at->kind));
    return ottl_value_copy(env->arena, v, at);
}
