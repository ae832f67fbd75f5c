/* The editors: their table, and those that set values and edit lists. */
#include "ottl/calls.h"

/* ---- set ---- */

OTTL_FN(set)
{
    struct ottl_value v;
    (void)ret;
    int r = ottl_arg_value(c, 1, env, &v);
    return r < 0 ? r : ottl_arg_set(c, 0, env, &v);
}

/* ---- lists ---- */

OTTL_PREPARE(append)
{
    if (!c->args[1].given && !c->args[2].given)
        return err_set(reterr, -EINVAL,
                       "at least one of the optional arguments ('value' or 'values') must be "
                       "provided");
    return 0;
}

/* The target's elements as a list; one value is a list of one, nil an empty one. */
static int list_of_target(const struct ottl_call *c, struct ottl_env *env, struct ottl_list **ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0)
        return r;
    if (v.kind == OTTL_LIST) {
        *ret = v.list;
        return 0;
    }
    *ret = ottl_list_new(env->arena);
    if (!*ret)
        return -ENOMEM;
    return v.kind == OTTL_NIL ? 0 : ottl_list_append(env->arena, *ret, v);
}

OTTL_FN(append)
{
    struct ottl_list *l = NULL, *more = NULL;
    struct ottl_value v;
    (void)ret;
    int r = list_of_target(c, env, &l);
    if (r == 0 && c->args[1].given) {
        r = ottl_arg_value(c, 1, env, &v);
        if (r == 0)
            r = ottl_list_append(env->arena, l, v);
    }
    if (r == 0 && c->args[2].given)
        r = ottl_arg_list(c, 2, env, &more);
    for (size_t i = 0; r == 0 && more && i < more->n; i++)
        r = ottl_list_append(env->arena, l, more->items[i]);
    v = ottl_list_value(l);
    return r < 0 ? r : ottl_arg_set(c, 0, env, &v);
}

static int check_range(struct ottl_env *env, int64_t from, int64_t to, int64_t n)
{
    if (from < 0 || from >= n)
        return err_set(env->err, -EINVAL, "startIndex %lld out of bounds for slice of length %lld",
                       (long long)from, (long long)n);
    if (to < from)
        return err_set(env->err, -EINVAL, "endIndex %lld cannot be less than startIndex %lld",
                       (long long)to, (long long)from);
    if (to > n)
        return err_set(env->err, -EINVAL,
                       "deletion range [%lld:%lld] out of bounds for slice of length %lld",
                       (long long)from, (long long)to, (long long)n);
    return 0;
}

OTTL_FN(delete_index)
{
    struct ottl_value v;
    int64_t from = 0, to = 0;
    (void)ret;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0 && v.kind != OTTL_LIST)
        r = err_set(env->err, -EINVAL, "expected pcommon.Slice but got %s", ottl_kind_name(v.kind));
    if (r == 0)
        r = ottl_fn_int(c, 1, env, &from);
    to = from + 1;
    if (r == 0)
        r = ottl_fn_int(c, 2, env, &to);
    if (r < 0)
        return r;
    struct ottl_list *l = v.list;
    if (from != 0 || to != (int64_t)l->n)
        r = check_range(env, from, to, (int64_t)l->n);
    if (r < 0)
        return r;
    for (size_t i = (size_t)to; i < l->n; i++)
        l->items[i - (size_t)(to - from)] = l->items[i];
    l->n -= (size_t)(to - from);
    return ottl_arg_set(c, 0, env, &v);
}

/* ---- the table ---- */

const struct ottl_function ottl_editors[] = {
    {"append", PARAMS(P("target", TARGET), OPTIONAL("value", ANY), OPTIONAL("values", LIST_OF_ANY)),
     .prepare = ottl_prepare_append, .call = ottl_fn_append},
    {"delete_index", PARAMS(P("target", TARGET), P("start_index", INT), OPTIONAL("end_index", INT)),
     .call = ottl_fn_delete_index},
    {"delete_key", PARAMS(P("target", TARGET_MAP), P("key", STRING)), .call = ottl_fn_delete_key},
    {"delete_matching_keys", PARAMS(P("target", TARGET_MAP), P("pattern", STRING)),
     .prepare = ottl_prepare_pattern_1, .release = ottl_release_pattern,
     .call = ottl_fn_delete_matching_keys},
    {"flatten",
     PARAMS(P("target", TARGET_MAP), OPTIONAL("prefix", LITERAL_STRING),
            OPTIONAL("depth", LITERAL_INT), OPTIONAL("resolve_conflicts", LITERAL_BOOL)),
     .prepare = ottl_prepare_flatten, .call = ottl_fn_flatten},
    {"keep_keys", PARAMS(P("target", TARGET_MAP), P("keys", LIST_OF_STRINGS)),
     .call = ottl_fn_keep_keys},
    {"keep_matching_keys", PARAMS(P("target", TARGET_MAP), P("pattern", STRING)),
     .prepare = ottl_prepare_pattern_1, .release = ottl_release_pattern,
     .call = ottl_fn_keep_matching_keys},
    {"limit",
     PARAMS(P("target", TARGET_MAP), P("limit", LITERAL_INT),
            P("priority_keys", LIST_OF_LITERAL_STRINGS)),
     .prepare = ottl_prepare_limit, .call = ottl_fn_limit},
    {"merge_maps", PARAMS(P("target", TARGET_MAP), P("source", MAP), P("strategy", LITERAL_STRING)),
     .prepare = ottl_prepare_merge_maps, .call = ottl_fn_merge_maps},
    {"replace_all_matches",
     PARAMS(P("target", TARGET_MAP), P("pattern", STRING), P("replacement", STRING),
            OPTIONAL("function", FUNCTION), OPTIONAL("replacement_format", STRING)),
     .prepare = ottl_prepare_glob_1, .release = ottl_release_pattern,
     .call = ottl_fn_replace_all_matches},
    {"replace_all_patterns",
     PARAMS(P("target", TARGET_MAP), P("mode", LITERAL_STRING), P("regex_pattern", STRING),
            P("replacement", STRING), OPTIONAL("function", FUNCTION),
            OPTIONAL("replacement_format", STRING)),
     .prepare = ottl_prepare_replace_all_patterns, .release = ottl_release_pattern,
     .call = ottl_fn_replace_all_patterns},
    {"replace_match",
     PARAMS(P("target", TARGET), P("pattern", STRING), P("replacement", STRING),
            OPTIONAL("function", FUNCTION), OPTIONAL("replacement_format", STRING)),
     .prepare = ottl_prepare_glob_1, .release = ottl_release_pattern,
     .call = ottl_fn_replace_match},
    {"replace_pattern",
     PARAMS(P("target", TARGET), P("regex_pattern", STRING), P("replacement", STRING),
            OPTIONAL("function", FUNCTION), OPTIONAL("replacement_format", STRING)),
     .prepare = ottl_prepare_pattern_1, .release = ottl_release_pattern,
     .call = ottl_fn_replace_pattern},
    {"set", PARAMS(P("target", TARGET), P("value", ANY)), .call = ottl_fn_set},
    {"truncate_all",
     PARAMS(P("target", TARGET_MAP), P("limit", LITERAL_INT), OPTIONAL("utf8_safe", LITERAL_BOOL),
            OPTIONAL("truncation_marker", LITERAL_STRING)),
     .prepare = ottl_prepare_truncate_all, .call = ottl_fn_truncate_all},
    {0},
};
