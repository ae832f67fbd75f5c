/* Paths to attributes and other maps of the message, to the body of a log record, and to the cache.
 */
#include <errno.h>

#include "ottl/path.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"

enum { KEY = 1, VALUE = 2 }; /* of a KeyValue */

/* ---- reading ---- */

/* The first KeyValue of that name; *ret_index may be NULL. */
static bool find_attribute(const struct ottl_item *it, uint32_t number, struct bytes key,
                           struct bytes *ret_any, uint32_t *ret_index)
{
    struct ottl_field_iter iter = ottl_fields(it);
    struct key_value kv = {.key = {NULL, 0}};
    struct wire_field f;
    uint32_t index;
    bool found = !it->fields && key_value_seek(&iter.r, number, key, &kv, &index);
    while (it->fields && !found && ottl_field_seek(&iter, number, &f, &index)) {
        kv = key_value_read(f.bytes);
        found = bytes_eq(kv.key, key);
    }
    if (!found)
        return false;
    *ret_any = kv.value;
    if (ret_index)
        *ret_index = index;
    return true;
}

static int get_whole(struct ottl_env *env, struct ottl_item *it, uint32_t number,
                     struct ottl_value *ret)
{
    struct bytes now = it->msg;
    uint32_t n;
    int r = it->changed ? ottl_item_list(it, number, env->arena, &now, &n) : 0;
    ret->kind = OTTL_MAP;
    return r < 0 ? r : ottl_map_decode(env->arena, now, number, &ret->map);
}

static int map_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_item *it;
    struct bytes name, any;
    int r = ottl_path_item(p, env, &it);
    *ret = ottl_nil();
    if (r < 0)
        return r;
    if (self->nkeys == 0)
        return get_whole(env, it, ottl_path_number(p, it), ret);
    r = ottl_key_name(env, &self->keys[0], &name);
    if (r < 0) {
        err_prefix(env->err, "cannot get map value: ");
        return r;
    }
    if (!find_attribute(it, ottl_path_number(p, it), name, &any, NULL))
        return 0;
    return ottl_any_get(env, any, self->keys + 1, self->nkeys - 1, ret);
}

/* ---- writing ---- */

static int set_whole(struct ottl_env *env, struct ottl_item *it, uint32_t number,
                     const struct ottl_value *v)
{
    struct buf *out = it->mem->scratch;
    if (v->kind != OTTL_MAP && v->kind != OTTL_NIL)
        return err_set(env->err, -EINVAL, "unsupported type provided for setting a pcommon.Map: %s",
                       ottl_kind_name(v->kind));
    buf_truncate(out, 0);
    int r = v->kind == OTTL_MAP ? ottl_map_encode(v->map, number, out) : 0;
    if (r < 0)
        return ottl_encode_error(env, r);
    return ottl_item_set_list(it, number, buf_bytes(out));
}

/* Puts the KeyValue of `name` and `v` into the scratch buffer; *ret_any: where the value is in it.
 */
static int encode_attribute(struct ottl_env *env, struct buf *out, struct bytes name,
                            const struct ottl_value *v, struct bytes *ret_any)
{
    size_t mark;
    *ret_any = bytes_of("", 0);
    buf_truncate(out, 0);
    int r = name.len ? ottl_string_encode(name, KEY, out) : 0;
    if (r == 0)
        r = wire_begin(out, VALUE, &mark);
    if (r == 0)
        r = ottl_value_encode(v, out);
    if (r < 0)
        return ottl_encode_error(env, r);
    size_t len = out->len - mark;
    if (wire_end(out, mark) < 0)
        return -ENOMEM;
    *ret_any = bytes_of(out->data + out->len - len, len);
    return 0;
}

static int put_attribute(struct ottl_env *env, struct ottl_item *it, uint32_t number,
                         struct bytes name, const struct ottl_value *v)
{
    struct buf *out = it->mem->scratch;
    struct bytes old, new;
    uint32_t index;
    if (!ottl_is_any_value(v))
        return err_set(env->err, -EINVAL, "unsupported type %s for set operation",
                       ottl_kind_name(v->kind));
    int r = encode_attribute(env, out, name, v, &new);
    if (r < 0)
        return r;
    if (!find_attribute(it, number, name, &old, &index))
        return ottl_item_append(it, number, buf_bytes(out));
    return bytes_eq(old, new) ? 0 : ottl_item_set_at(it, index, buf_bytes(out));
}

/* The value of the first key is made a tree, edited and written back. */
static int put_nested(struct ottl_env *env, struct ottl_item *it, uint32_t number,
                      struct bytes name, const struct ottl_path_self *self,
                      const struct ottl_value *v)
{
    struct ottl_value tree = ottl_nil();
    struct bytes any;
    int r = 0;
    if (find_attribute(it, number, name, &any, NULL))
        r = ottl_value_decode(env->arena, any, &tree);
    if (r == 0)
        r = ottl_tree_set(env, &tree, self->keys + 1, self->nkeys - 1, v);
    return r < 0 ? r : put_attribute(env, it, number, name, &tree);
}

static int map_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_item *it;
    struct bytes name;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    uint32_t number = ottl_path_number(p, it);
    if (self->nkeys == 0)
        return set_whole(env, it, number, v);
    r = ottl_key_name(env, &self->keys[0], &name);
    if (r < 0) {
        err_prefix(env->err, "cannot set map value: ");
        return r;
    }
    if (self->nkeys > 1)
        return put_nested(env, it, number, name, self, v);
    return put_attribute(env, it, number, name, v);
}

const struct ottl_path_ops ottl_map_ops = {map_get, map_set};

/* ---- body ---- */

static struct bytes body_of(const struct ottl_item *it)
{
    struct wire_field f;
    return ottl_item_find(it, LOG_BODY, &f) ? f.bytes : bytes_of("", 0);
}

static int check_indexable(struct ottl_env *env, struct bytes body, const struct ottl_key *key,
                           const char *verb)
{
    static const char *const names[] = {
        [ANY_EMPTY] = "Empty", [ANY_STRING] = "Str",    [ANY_BOOL] = "Bool",
        [ANY_INT] = "Int",     [ANY_DOUBLE] = "Double", [ANY_BYTES] = "Bytes",
    };
    enum any_kind kind = any_value_read(body).kind;
    if (kind == ANY_KVLIST && !key->is_string && !key->expr)
        return err_set(
            env->err, -EINVAL,
            "cannot %s map value: unable to resolve a string index in map: invalid key type", verb);
    if (kind == ANY_KVLIST || kind == ANY_ARRAY)
        return 0;
    return err_set(env->err, -EINVAL, "log bodies of type %s cannot be indexed", names[kind]);
}

static int body_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    struct bytes body = body_of(it);
    r = self->nkeys ? check_indexable(env, body, self->keys, "get") : 0;
    return r < 0 ? r : ottl_any_get(env, body, self->keys, self->nkeys, ret);
}

static int set_body(struct ottl_env *env, struct ottl_item *it, const struct ottl_value *v)
{
    struct buf *out = it->mem->scratch;
    buf_truncate(out, 0);
    int r = ottl_value_encode(v, out);
    if (r < 0)
        return ottl_encode_error(env, r);
    return ottl_item_set(it, LOG_BODY, WIRE_LEN, 0, buf_bytes(out));
}

static int body_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_value tree = ottl_nil();
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r == 0 && self->nkeys)
        r = check_indexable(env, body_of(it), self->keys, "set");
    if (r == 0 && self->nkeys)
        r = ottl_value_decode(env->arena, body_of(it), &tree);
    if (r == 0)
        r = ottl_tree_set(env, &tree, self->keys, self->nkeys, v);
    return r < 0 ? r : set_body(env, it, &tree);
}

const struct ottl_path_ops ottl_body_ops = {body_get, body_set};

static int body_string_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!text || any_value_text(body_of(it), text) < 0)
        return -ENOMEM;
    char *copy = arena_strndup(env->arena, (const char *)text->data, text->len);
    if (!copy)
        return -ENOMEM;
    *ret = ottl_string(bytes_of(copy, text->len));
    return 0;
}

static int body_string_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    return v->kind == OTTL_STRING ? set_body(env, it, v) : ottl_expects(env, "string", v);
}

const struct ottl_path_ops ottl_body_string_ops = {body_string_get, body_string_set};

/* ---- cache ---- */

static int cache_tree(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    if (!env->cache[p->context] && !(env->cache[p->context] = ottl_map_new(env->arena)))
        return -ENOMEM;
    *ret = (struct ottl_value){OTTL_MAP, {.map = env->cache[p->context]}, 0};
    return 0;
}

static int cache_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_value tree;
    int r = cache_tree(p, env, &tree);
    return r < 0 ? r : ottl_tree_get(env, &tree, self->keys, self->nkeys, ret);
}

static int cache_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    const struct ottl_path_self *self = p->self;
    struct ottl_value tree;
    int r = cache_tree(p, env, &tree);
    if (r < 0)
        return r;
    if (self->nkeys == 0 && v->kind != OTTL_MAP && v->kind != OTTL_NIL)
        return err_set(env->err, -EINVAL, "unsupported type provided for setting a pcommon.Map: %s",
                       ottl_kind_name(v->kind));
    r = ottl_tree_set(env, &tree, self->keys, self->nkeys, v);
    if (r == 0 && self->nkeys == 0)
        env->cache[p->context] = tree.kind == OTTL_MAP ? tree.map : NULL;
    return r;
}

const struct ottl_path_ops ottl_cache_ops = {cache_get, cache_set};
