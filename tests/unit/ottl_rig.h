/* For tests of the language: a few functions of all parameter kinds, and an environment of a log record that has a cache only. */
#ifndef MOTEL_TESTS_OTTL_RIG_H
#define MOTEL_TESTS_OTTL_RIG_H

#include <errno.h>

#include "agent/base/encode.h"
#include "ottl/ottl.h"

/* ---- functions ---- */

static int put_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_value v;
    (void)ret;
    int r = ottl_arg_value(c, 1, env, &v);
    return r < 0 ? r : ottl_arg_set(c, 0, env, &v);
}
static struct ottl_value given; /* by the last give() */
static int give_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    (void)ret;
    return ottl_arg_value(c, 0, env, &given);
}
/* Gives its first argument as the parameter took it. */
static int same_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    return ottl_arg_value(c, 0, env, ret);
}
static int boom_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    (void)c;
    (void)ret;
    return err_set(env->err, -EINVAL, "boom");
}
static int pair_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_list *l = ottl_list_new(env->arena);
    if (!l)
        return -ENOMEM;
    for (unsigned i = 0; i < 2; i++) {
        struct ottl_value v;
        int r = ottl_arg_value(c, i, env, &v);
        if (r == 0)
            r = ottl_list_append(env->arena, l, v);
        if (r < 0)
            return r;
    }
    *ret = (struct ottl_value){.kind = OTTL_LIST, .list = l};
    return 0;
}
/* A time or duration of so many nanoseconds. */
static int time_call(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    int r = ottl_arg_value(c, 0, env, ret);
    ret->kind = c->function->name[0] == 'T' ? OTTL_TIME : OTTL_DURATION;
    return r;
}
static unsigned prepared, released; /* how many calls of "Prepared" */
static int prepared_prepare(struct ottl_call *c, struct err *reterr)
{
    if (c->args[0].literal.bytes.len == 0)
        return err_set(reterr, -EINVAL, "it is empty");
    if (!(c->data = malloc(1)))
        return -ENOMEM;
    prepared++;
    return 0;
}
static void prepared_release(void *data)
{
    free(data);
    released++;
}

#define PARAMS(...)                                                                                \
    (const struct ottl_param[])                                                                    \
    {                                                                                              \
        __VA_ARGS__, { 0 }                                                                         \
    }
#define TAKES(id, kind)                                                                            \
    {                                                                                              \
        .name = id, .params = PARAMS({"value", kind, false}), .call = same_call                    \
    }

static const struct ottl_function rig_functions[] = {
    {.name = "put", .params = PARAMS({"target", OTTL_P_TARGET, false}, {"value", OTTL_P_ANY, false}), .call = put_call},
    {.name = "give", .params = PARAMS({"value", OTTL_P_ANY, false}), .call = give_call},
    {.name = "boom", .call = boom_call},
    {.name = "metric_only", .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC), .call = boom_call},
    {.name = "Boom", .call = boom_call},
    {.name = "Pair", .params = PARAMS({"first", OTTL_P_ANY, false}, {"the_other", OTTL_P_ANY, true}), .call = pair_call},
    {.name = "Tm", .params = PARAMS({"ns", OTTL_P_INT, false}), .call = time_call},
    {.name = "Dur", .params = PARAMS({"ns", OTTL_P_INT, false}), .call = time_call},
    {.name = "Prepared", .params = PARAMS({"pattern", OTTL_P_LITERAL_STRING, false}), .prepare = prepared_prepare,
     .release = prepared_release, .call = same_call},
    {.name = "Mapper", .params = PARAMS({"function", OTTL_P_FUNCTION, false}), .call = same_call},
    TAKES("Any", OTTL_P_ANY),
    TAKES("Str", OTTL_P_STRING),
    TAKES("StrLike", OTTL_P_STRING_LIKE),
    TAKES("Int", OTTL_P_INT),
    TAKES("IntLike", OTTL_P_INT_LIKE),
    TAKES("Dbl", OTTL_P_DOUBLE),
    TAKES("DblLike", OTTL_P_DOUBLE_LIKE),
    TAKES("Bool", OTTL_P_BOOL),
    TAKES("BoolLike", OTTL_P_BOOL_LIKE),
    TAKES("Map", OTTL_P_MAP),
    TAKES("List", OTTL_P_LIST),
    TAKES("Time", OTTL_P_TIME),
    TAKES("Duration", OTTL_P_DURATION),
    TAKES("Bytes", OTTL_P_BYTES_LIKE),
    TAKES("LitStr", OTTL_P_LITERAL_STRING),
    TAKES("LitInt", OTTL_P_LITERAL_INT),
    TAKES("LitDbl", OTTL_P_LITERAL_DOUBLE),
    TAKES("LitBool", OTTL_P_LITERAL_BOOL),
    TAKES("Enum", OTTL_P_ENUM),
    TAKES("Anys", OTTL_P_LIST_OF_ANY),
    TAKES("Strs", OTTL_P_LIST_OF_STRINGS),
    TAKES("StrLikes", OTTL_P_LIST_OF_STRING_LIKE),
    TAKES("LitStrs", OTTL_P_LIST_OF_LITERAL_STRINGS),
    TAKES("TargetMap", OTTL_P_TARGET_MAP),
    {0},
};
static const struct ottl_function *const rig_tables[] = {rig_functions, NULL};
static const struct ottl_dialect rig_log = {.context = OTTL_LOG, .allowed = OTTL_CONTEXT_BIT(OTTL_LOG), .functions = rig_tables};

/* ---- values in words ---- */

static void show(const struct ottl_value *v, struct buf *out);

static void show_list(const struct ottl_list *l, struct buf *out)
{
    buf_append_str(out, "[");
    for (size_t i = 0; i < l->n; i++) {
        buf_append_str(out, i ? ", " : "");
        show(&l->items[i], out);
    }
    buf_append_str(out, "]");
}

static void show_map(const struct ottl_map *m, struct buf *out)
{
    buf_append_str(out, "{");
    for (size_t i = 0; i < m->n; i++) {
        buf_printf(out, "%s%.*s: ", i ? ", " : "", (int)m->items[i].key.len, m->items[i].key.data);
        show(&m->items[i].value, out);
    }
    buf_append_str(out, "}");
}

static void show_hex(struct bytes b, struct buf *out)
{
    buf_append_str(out, "0x");
    buf_reserve(out, 2 * b.len);
    encode_hex(b, buf_tail(out));
    buf_commit(out, 2 * b.len);
}

/* nil, true, 5, 5.5, "text", 0x0102, [1, 2], {a: 1}, time 5, duration 5 */
static void show(const struct ottl_value *v, struct buf *out)
{
    switch (v->kind) {
    case OTTL_NIL: buf_append_str(out, "nil"); break;
    case OTTL_BOOL: buf_append_str(out, v->b ? "true" : "false"); break;
    case OTTL_INT: buf_printf(out, "%lld", (long long)v->i); break;
    case OTTL_DOUBLE: buf_printf(out, "%#.17g", v->d); break;
    case OTTL_STRING: buf_printf(out, "\"%.*s\"", (int)v->bytes.len, v->bytes.data); break;
    case OTTL_LIST: show_list(v->list, out); break;
    case OTTL_MAP: show_map(v->map, out); break;
    case OTTL_TIME: buf_printf(out, "time %lld", (long long)v->i); break;
    case OTTL_DURATION: buf_printf(out, "duration %lld", (long long)v->i); break;
    default: show_hex(v->bytes, out);
    }
}

#endif
