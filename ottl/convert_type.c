/* Converters that change or ask for the type of a value. */
#include <math.h>

#include "ottl/calls.h"

/* Int, Double, Bool, String: the parameter's kind does the work. */
OTTL_FN(convert)
{
    return ottl_arg_value(c, 0, env, ret);
}

static int is_kind(const struct ottl_call *c, struct ottl_env *env, enum ottl_kind kind,
                   struct ottl_value *ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        *ret = ottl_bool(v.kind == kind);
    return r;
}

OTTL_FN(is_string)
{
    return is_kind(c, env, OTTL_STRING, ret);
}

OTTL_FN(is_int)
{
    return is_kind(c, env, OTTL_INT, ret);
}

OTTL_FN(is_double)
{
    return is_kind(c, env, OTTL_DOUBLE, ret);
}

OTTL_FN(is_bool)
{
    return is_kind(c, env, OTTL_BOOL, ret);
}

OTTL_FN(is_map)
{
    return is_kind(c, env, OTTL_MAP, ret);
}

OTTL_FN(is_list)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        *ret = ottl_bool(v.kind == OTTL_LIST || v.kind == OTTL_ITEMS);
    return r;
}

static bool all_zero(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i])
            return false;
    return true;
}

/* Nothing in it, or Go's zero value. */
static bool is_empty(const struct ottl_value *v)
{
    switch (v->kind) {
    case OTTL_NIL: return true;
    case OTTL_BOOL: return !v->b;
    case OTTL_INT:
    case OTTL_DURATION: return v->i == 0;
    case OTTL_TIME: return false; /* Go's zero time is in the year 1 */
    case OTTL_DOUBLE: return v->d == 0 && !signbit(v->d);
    case OTTL_STRING:
    case OTTL_BYTES: return v->bytes.len == 0;
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID: return all_zero(v->bytes);
    case OTTL_LIST: return v->list->n == 0;
    case OTTL_MAP: return v->map->n == 0;
    case OTTL_ITEMS: return v->items == 0;
    }
    return false;
}

OTTL_FN(is_empty)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        *ret = ottl_bool(is_empty(&v));
    return r;
}

OTTL_FN(len)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0)
        return r;
    switch (v.kind) {
    case OTTL_STRING:
    case OTTL_BYTES: *ret = ottl_int((int64_t)v.bytes.len); return 0;
    case OTTL_LIST: *ret = ottl_int((int64_t)v.list->n); return 0;
    case OTTL_MAP: *ret = ottl_int((int64_t)v.map->n); return 0;
    case OTTL_ITEMS: *ret = ottl_int(v.items); return 0;
    default: break;
    }
    return err_set(env->err, -EINVAL, "Len: a string, bytes, list or map has a length, got %s",
                   ottl_kind_name(v.kind));
}

/* ---- Coalesce ---- */

OTTL_PREPARE(coalesce)
{
    if (c->args[0].nlist == 0)
        return err_set(reterr, -EINVAL, "Coalesce requires at least one argument");
    return 0;
}

OTTL_FN(coalesce)
{
    int r = 0;
    *ret = ottl_nil();
    for (size_t i = 0; r == 0 && ret->kind == OTTL_NIL && i < c->args[0].nlist; i++)
        r = ottl_arg_element(c, 0, i, env, ret);
    return r;
}

/* ---- Log ---- */

OTTL_FN(log)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0)
        return r;
    if (v.kind == OTTL_NIL)
        return err_set(env->err, -EINVAL, "invalid input: <nil>");
    if (v.d <= 0)
        return err_set(env->err, -EINVAL,
                       "invalid input: expected number greater than zero but got %g", v.d);
    *ret = ottl_double(log(v.d));
    return 0;
}
