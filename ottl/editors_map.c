/* Editors of maps. The map is read, edited in the arena and written back when something changed. */
#include "ottl/calls.h"

static int write_back(const struct ottl_call *c, struct ottl_env *env, struct ottl_map *m)
{
    struct ottl_value v = ottl_map_value(m);
    return ottl_arg_set(c, 0, env, &v);
}

static int read_target(const struct ottl_call *c, struct ottl_env *env, struct ottl_map **ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    *ret = r < 0 ? NULL : v.map;
    return r;
}

/* ---- keys ---- */

OTTL_FN(delete_key)
{
    struct ottl_map *m = NULL;
    struct bytes key = {0};
    (void)ret;
    int r = read_target(c, env, &m);
    if (r == 0)
        r = ottl_fn_string(c, 1, env, &key);
    if (r < 0 || !ottl_map_remove(m, key))
        return r;
    return write_back(c, env, m);
}

/* Removes what `drop` says, in order; writes back when something went. */
static int remove_if(const struct ottl_call *c, struct ottl_env *env, struct ottl_map *m,
                     bool (*drop)(const void *ctx, struct bytes key), const void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (!drop(ctx, m->items[i].key))
            m->items[n++] = m->items[i];
    if (n == m->n)
        return 0;
    m->n = n;
    return write_back(c, env, m);
}

static bool matches(const void *re, struct bytes key)
{
    return regex_match(re, key);
}

static bool matches_not(const void *re, struct bytes key)
{
    return !regex_match(re, key);
}

static int remove_by_pattern(const struct ottl_call *c, struct ottl_env *env,
                             bool (*drop)(const void *ctx, struct bytes key))
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct ottl_map *m = NULL;
    int r = ottl_fn_pattern(c, 1, env, &p);
    if (r == 0)
        r = read_target(c, env, &m);
    return r < 0 ? r : remove_if(c, env, m, drop, p.re);
}

OTTL_FN(delete_matching_keys)
{
    (void)ret;
    return remove_by_pattern(c, env, matches);
}

OTTL_FN(keep_matching_keys)
{
    (void)ret;
    return remove_by_pattern(c, env, matches_not);
}

static bool in_list(const struct ottl_list *l, struct bytes key)
{
    for (size_t i = 0; i < l->n; i++)
        if (bytes_eq(l->items[i].bytes, key))
            return true;
    return false;
}

static bool is_unlisted(const void *list, struct bytes key)
{
    return !in_list(list, key);
}

OTTL_FN(keep_keys)
{
    struct ottl_map *m = NULL;
    struct ottl_list *keys = NULL;
    (void)ret;
    int r = read_target(c, env, &m);
    if (r == 0)
        r = ottl_arg_list(c, 1, env, &keys);
    return r < 0 ? r : remove_if(c, env, m, is_unlisted, keys);
}

/* ---- limit ---- */

OTTL_PREPARE(limit)
{
    int64_t limit = c->args[1].literal.i;
    size_t priority = c->args[2].literal.list->n;
    if (limit < 0)
        return err_set(reterr, -EINVAL, "invalid limit for limit function, %lld cannot be negative",
                       (long long)limit);
    if ((uint64_t)limit < priority)
        return err_set(reterr, -EINVAL,
                       "invalid limit for limit function, %lld cannot be less than number of "
                       "priority attributes %zu",
                       (long long)limit, priority);
    return 0;
}

OTTL_FN(limit)
{
    const struct ottl_list *priority = c->args[2].literal.list;
    uint64_t limit = (uint64_t)c->args[1].literal.i, kept = 0;
    struct ottl_map *m = NULL;
    (void)ret;
    int r = read_target(c, env, &m);
    if (r < 0 || m->n <= limit)
        return r;
    for (size_t i = 0; i < priority->n; i++)
        kept += ottl_map_find(m, priority->items[i].bytes) != NULL;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        bool listed = in_list(priority, m->items[i].key);
        if (listed || kept < limit)
            m->items[n++] = m->items[i];
        kept += !listed && kept < limit;
    }
    m->n = n;
    return write_back(c, env, m);
}

/* ---- truncate_all ---- */

OTTL_PREPARE(truncate_all)
{
    int64_t limit = c->args[1].literal.i;
    size_t marker = ottl_fn_literal(c, 3, "").len;
    if (limit < 0)
        return err_set(reterr, -EINVAL,
                       "invalid limit for truncate_all function, %lld cannot be negative",
                       (long long)limit);
    if (marker > (uint64_t)limit)
        return err_set(reterr, -EINVAL,
                       "invalid truncation marker for truncate_all function, length of marker %zu "
                       "cannot be greater than limit %lld",
                       marker, (long long)limit);
    return 0;
}

static int truncate_text(struct arena *a, struct ottl_value *v, size_t limit, bool whole_chars,
                         struct bytes marker)
{
    size_t n = limit - marker.len;
    while (whole_chars && n > 0 && (v->bytes.data[n] & 0xc0) == 0x80)
        n--;
    char *p = arena_alloc(a, n + marker.len + 1);
    if (!p)
        return -ENOMEM;
    memcpy(p, v->bytes.data, n);
    memcpy(p + n, marker.data, marker.len);
    v->bytes = bytes_of(p, n + marker.len);
    return 0;
}

OTTL_FN(truncate_all)
{
    uint64_t limit = (uint64_t)c->args[1].literal.i;
    bool whole_chars = ottl_fn_literal_bool(c, 2, true), changed = false;
    struct ottl_map *m = NULL;
    (void)ret;
    int r = read_target(c, env, &m);
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        struct ottl_value *v = &m->items[i].value;
        if (v->kind != OTTL_STRING || v->bytes.len <= limit)
            continue;
        r = truncate_text(env->arena, v, (size_t)limit, whole_chars, ottl_fn_literal(c, 3, ""));
        changed = true;
    }
    return r < 0 || !changed ? r : write_back(c, env, m);
}

/* ---- merge_maps ---- */

OTTL_PREPARE(merge_maps)
{
    struct bytes s = c->args[2].literal.bytes;
    if (bytes_eq_str(s, "insert") || bytes_eq_str(s, "update") || bytes_eq_str(s, "upsert"))
        return 0;
    return err_set(reterr, -EINVAL,
                   "invalid value for strategy, %.*s, must be 'insert', 'update' or 'upsert'",
                   (int)s.len, s.data);
}

static int merge_entry(struct ottl_index *x, const struct ottl_entry *e, struct bytes strategy)
{
    struct ottl_value *there = ottl_index_find(x, e->key);
    if (there && !bytes_eq_str(strategy, "insert"))
        *there = e->value;
    if (!there && !bytes_eq_str(strategy, "update"))
        return ottl_index_append(x, e->key, e->value);
    return 0;
}

OTTL_FN(merge_maps)
{
    struct ottl_map *m = NULL;
    struct ottl_index x;
    struct ottl_value from;
    (void)ret;
    int r = read_target(c, env, &m);
    if (r == 0)
        r = ottl_arg_value(c, 1, env, &from);
    if (r == 0)
        r = ottl_index_init(&x, env->arena, m);
    for (size_t i = 0; r == 0 && i < from.map->n; i++)
        r = merge_entry(&x, &from.map->items[i], c->args[2].literal.bytes);
    return r < 0 ? r : write_back(c, env, m);
}

/* ---- flatten ---- */

struct flattening {
    struct arena *arena;
    struct ottl_map *out;
    int64_t max_depth;
    bool resolve;          /* a key that is there already gets a number */
    struct ottl_map *seen; /* how often, by key; resolve only */
};

OTTL_PREPARE(flatten)
{
    if (c->args[2].given && c->args[2].literal.i < 1)
        return err_set(reterr, -EINVAL,
                       "invalid depth '%lld' for flatten function, must be greater than 0",
                       (long long)c->args[2].literal.i);
    return 0;
}

/* "prefix.key", or the key when there is no prefix. */
static int join_key(struct arena *a, struct bytes prefix, struct bytes key, struct bytes *ret)
{
    *ret = key;
    if (prefix.len == 0)
        return 0;
    char *p = arena_alloc(a, prefix.len + 1 + key.len);
    if (!p)
        return -ENOMEM;
    memcpy(p, prefix.data, prefix.len);
    p[prefix.len] = '.';
    if (key.len)
        memcpy(p + prefix.len + 1, key.data, key.len);
    *ret = bytes_of(p, prefix.len + 1 + key.len);
    return 0;
}

static int join_number(struct arena *a, struct bytes prefix, const char *between, uint64_t number,
                       struct bytes *ret)
{
    char *p = arena_printf(a, "%.*s%s%llu", (int)prefix.len, prefix.data, between,
                           (unsigned long long)number);
    *ret = bytes_str(p ? p : "");
    return p ? 0 : -ENOMEM;
}

/* Under the key, or under "key.0", "key.1" … when that is taken. */
static int put_resolved(struct flattening *f, struct bytes key, const struct ottl_value *v)
{
    if (!ottl_map_find(f->out, key)) {
        int r = ottl_map_put(f->arena, f->seen, key, ottl_int(0));
        return r < 0 ? r : ottl_map_append(f->arena, f->out, key, *v);
    }
    struct ottl_value *count = ottl_map_find(f->seen, key);
    int64_t n = count ? count->i : 0;
    struct bytes numbered = {0};
    int r = join_number(f->arena, key, ".", (uint64_t)n, &numbered);
    if (r == 0)
        r = ottl_map_put(f->arena, f->seen, key, ottl_int(n + 1));
    return r < 0 ? r : ottl_map_put(f->arena, f->out, numbered, *v);
}

static int put_flat(struct flattening *f, struct bytes key, const struct ottl_value *v)
{
    return f->resolve ? put_resolved(f, key, v) : ottl_map_put(f->arena, f->out, key, *v);
}

static int flatten_value(struct flattening *f, struct bytes key, const struct ottl_value *v,
                         int64_t depth);

static int flatten_map(struct flattening *f, const struct ottl_map *m, struct bytes prefix,
                       int64_t depth)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        struct bytes key;
        r = join_key(f->arena, prefix, m->items[i].key, &key);
        if (r == 0)
            r = flatten_value(f, key, &m->items[i].value, depth);
    }
    return r;
}

/* A list in a list: the reference puts no dot between the two numbers. */
static int flatten_inner_list(struct flattening *f, const struct ottl_list *l, struct bytes prefix,
                              int64_t depth)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        struct bytes key = {0};
        r = join_number(f->arena, prefix, "", i, &key);
        if (r == 0)
            r = flatten_value(f, key, &l->items[i], depth);
    }
    return r;
}

/* One element: a list counts as a level of its own, and so do its elements. */
static int flatten_element(struct flattening *f, struct bytes list_key, size_t i,
                           const struct ottl_value *v, int64_t depth)
{
    bool deeper = depth + 1 < f->max_depth;
    bool opens = deeper && (v->kind == OTTL_MAP || v->kind == OTTL_LIST);
    if (!opens && f->resolve)
        return put_flat(f, list_key, v);
    struct bytes key = {0};
    int r = join_number(f->arena, list_key, ".", i, &key);
    if (r < 0 || !opens)
        return r < 0 ? r : put_flat(f, key, v);
    if (v->kind == OTTL_MAP)
        return flatten_map(f, v->map, key, depth + 2);
    return flatten_inner_list(f, v->list, key, depth + 3);
}

static int flatten_value(struct flattening *f, struct bytes key, const struct ottl_value *v,
                         int64_t depth)
{
    int r = 0;
    if (depth >= f->max_depth || (v->kind != OTTL_MAP && v->kind != OTTL_LIST))
        return put_flat(f, key, v);
    if (v->kind == OTTL_MAP)
        return flatten_map(f, v->map, key, depth + 1);
    for (size_t i = 0; r == 0 && i < v->list->n; i++)
        r = flatten_element(f, key, i, &v->list->items[i], depth);
    return r;
}

OTTL_FN(flatten)
{
    struct flattening f = {
        .arena = env->arena,
        .out = ottl_map_new(env->arena),
        .seen = ottl_map_new(env->arena),
        .max_depth = c->args[2].given ? c->args[2].literal.i : INT64_MAX,
        .resolve = ottl_fn_literal_bool(c, 3, false),
    };
    struct ottl_map *m = NULL;
    (void)ret;
    if (!f.out || !f.seen)
        return -ENOMEM;
    int r = read_target(c, env, &m);
    if (r == 0)
        r = flatten_map(&f, m, ottl_fn_literal(c, 1, ""), 0);
    return r < 0 ? r : write_back(c, env, f.out);
}
