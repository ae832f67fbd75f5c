/* How functions get at their arguments: evaluated, and checked and converted as their parameter
 * says. */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/number.h"
#include "ottl/expr.h"

/* ---- strict kinds ---- */

static int must_be(struct ottl_value *v, enum ottl_kind kind, const char *name, struct err *reterr)
{
    if (v->kind == kind)
        return 0;
    return err_set(reterr, -EINVAL, "expected %s but got %s", name, ottl_kind_name(v->kind));
}

/* ---- the ..._LIKE kinds; nil stays ---- */

static int unsupported(const struct ottl_value *v, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "unsupported type: %s", ottl_kind_name(v->kind));
}

static int not_a(const char *function, struct bytes text, struct err *reterr)
{
    return err_set(reterr, -EINVAL, "strconv.%s: parsing \"%.*s\": invalid syntax", function,
                   text.len > 200 ? 200 : (int)text.len, (const char *)text.data);
}

static int to_string(struct arena *a, struct ottl_value *v, struct err *reterr)
{
    struct bytes text;
    bool nil;
    if (v->kind == OTTL_STRING)
        return 0;
    int r = ottl_value_text(a, v, &text, &nil);
    if (r == -EINVAL)
        return unsupported(v, reterr);
    if (r == 0)
        *v = nil ? ottl_nil() : ottl_string(text);
    return r;
}

static int to_int(struct ottl_value *v, struct err *reterr)
{
    int64_t i = v->i;
    switch (v->kind) {
    case OTTL_NIL:
    case OTTL_INT: return 0;
    case OTTL_STRING:
        if (!number_parse_int(v->bytes, &i))
            return not_a("ParseInt", v->bytes, reterr);
        break;
    case OTTL_DOUBLE: i = number_double_to_int(v->d); break;
    case OTTL_BOOL: i = v->b; break;
    default: return unsupported(v, reterr);
    }
    *v = ottl_int(i);
    return 0;
}

static int to_double(struct ottl_value *v, struct err *reterr)
{
    double d = 0;
    switch (v->kind) {
    case OTTL_NIL:
    case OTTL_DOUBLE: return 0;
    case OTTL_STRING:
        if (!number_parse_double(v->bytes, &d))
            return not_a("ParseFloat", v->bytes, reterr);
        break;
    case OTTL_INT: d = (double)v->i; break;
    case OTTL_BOOL: d = v->b; break;
    default: return unsupported(v, reterr);
    }
    *v = ottl_double(d);
    return 0;
}

/* Go's ParseBool. */
static int parse_bool(struct bytes s, bool *ret)
{
    static const char *const words[] = {"1", "t", "T", "true",  "TRUE",  "True",
                                        "0", "f", "F", "false", "FALSE", "False"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (bytes_eq_str(s, words[i])) {
            *ret = i < ARRAY_SIZE(words) / 2;
            return 0;
        }
    return -EINVAL;
}

static int to_bool(struct ottl_value *v, struct err *reterr)
{
    bool b = false;
    switch (v->kind) {
    case OTTL_NIL:
    case OTTL_BOOL: return 0;
    case OTTL_STRING:
        if (parse_bool(v->bytes, &b) < 0)
            return not_a("ParseBool", v->bytes, reterr);
        break;
    case OTTL_INT: b = v->i != 0; break;
    case OTTL_DOUBLE: b = v->d != 0; break;
    default: return unsupported(v, reterr);
    }
    *v = ottl_bool(b);
    return 0;
}

/* Numbers are big-endian, a bool is one byte. */
static int to_bytes(struct arena *a, struct ottl_value *v, struct err *reterr)
{
    uint8_t *p;
    uint64_t bits;
    size_t n = v->kind == OTTL_BOOL ? 1 : 8;
    if (v->kind == OTTL_STRING || v->kind == OTTL_BYTES || v->kind == OTTL_NIL) {
        v->kind = v->kind == OTTL_NIL ? OTTL_NIL : OTTL_BYTES;
        return 0;
    }
    if (v->kind != OTTL_BOOL && v->kind != OTTL_INT && v->kind != OTTL_DOUBLE)
        return unsupported(v, reterr);
    if (!(p = arena_alloc(a, n)))
        return -ENOMEM;
    if (v->kind == OTTL_BOOL)
        bits = v->b;
    else
        memcpy(&bits, &v->i, sizeof(bits)); /* or the double in the same place */
    for (size_t i = n; i-- > 0; bits >>= 8)
        p[i] = (uint8_t)bits;
    *v = (struct ottl_value){.kind = OTTL_BYTES, .bytes = bytes_of(p, n)};
    return 0;
}

int ottl_convert(struct arena *a, enum ottl_param_kind kind, struct ottl_value *v,
                 struct err *reterr)
{
    switch (kind) {
    case OTTL_P_STRING: return must_be(v, OTTL_STRING, "string", reterr);
    case OTTL_P_INT: return must_be(v, OTTL_INT, "int64", reterr);
    case OTTL_P_DOUBLE: return must_be(v, OTTL_DOUBLE, "float64", reterr);
    case OTTL_P_BOOL: return must_be(v, OTTL_BOOL, "bool", reterr);
    case OTTL_P_MAP:
    case OTTL_P_TARGET_MAP: return must_be(v, OTTL_MAP, "pcommon.Map", reterr);
    case OTTL_P_LIST: return must_be(v, OTTL_LIST, "pcommon.Slice", reterr);
    case OTTL_P_TIME: return must_be(v, OTTL_TIME, "time", reterr);
    case OTTL_P_DURATION: return must_be(v, OTTL_DURATION, "duration", reterr);
    case OTTL_P_STRING_LIKE: return to_string(a, v, reterr);
    case OTTL_P_INT_LIKE: return to_int(v, reterr);
    case OTTL_P_DOUBLE_LIKE: return to_double(v, reterr);
    case OTTL_P_BOOL_LIKE: return to_bool(v, reterr);
    case OTTL_P_BYTES_LIKE: return to_bytes(a, v, reterr);
    default: return 0;
    }
}

enum ottl_param_kind ottl_element_kind(enum ottl_param_kind list)
{
    switch (list) {
    case OTTL_P_LIST_OF_STRINGS: return OTTL_P_STRING;
    case OTTL_P_LIST_OF_STRING_LIKE: return OTTL_P_STRING_LIKE;
    default: return OTTL_P_ANY;
    }
}

/* ---- what functions call ---- */

static int eval_as(const struct ottl_expr *x, enum ottl_param_kind kind, struct ottl_env *env,
                   struct ottl_value *ret)
{
    int r = ottl_expr_eval(x, env, ret);
    return r < 0 ? r : ottl_convert(env->arena, kind, ret, env->err);
}

int ottl_arg_value(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                   struct ottl_value *ret)
{
    const struct ottl_arg *arg = &c->args[i];
    enum ottl_param_kind kind = c->function->params[i].kind;
    struct ottl_list *list;
    int r;
    *ret = arg->literal;
    if (!arg->given)
        *ret = ottl_nil();
    else if (arg->path.ops)
        return (r = arg->path.ops->get(&arg->path, env, ret)) < 0
                   ? r
                   : ottl_convert(env->arena, kind, ret, env->err);
    else if (arg->list || kind == OTTL_P_LIST_OF_STRING_LIKE) {
        r = ottl_arg_list(c, i, env, &list);
        *ret = (struct ottl_value){.kind = OTTL_LIST, .list = list};
        return r;
    } else if (arg->expr)
        return eval_as(arg->expr, kind, env, ret);
    return arg->given ? ottl_convert(env->arena, kind, ret, env->err) : 0;
}

int ottl_arg_element(const struct ottl_call *c, unsigned i, size_t element, struct ottl_env *env,
                     struct ottl_value *ret)
{
    const struct ottl_arg *arg = &c->args[i];
    return eval_as(arg->list[element], ottl_element_kind(c->function->params[i].kind), env, ret);
}

/* An element of a list that telemetry or a function gave, made text: nothing is "", bytes are
 * base64. */
static int element_text(struct arena *a, struct ottl_value *v, struct err *reterr)
{
    if (v->kind == OTTL_NIL)
        *v = ottl_string(bytes_of("", 0));
    if (v->kind != OTTL_BYTES)
        return to_string(a, v, reterr);
    size_t n = base64_size(v->bytes.len);
    char *text = arena_alloc(a, n + 1);
    if (!text)
        return -ENOMEM;
    encode_base64(v->bytes, text);
    *v = ottl_string(bytes_of(text, n));
    return 0;
}

static int evaluated_list(const struct ottl_arg *arg, struct ottl_env *env, struct ottl_list **ret)
{
    struct ottl_value v;
    int r = ottl_expr_eval(arg->expr, env, &v);
    if (r < 0)
        return r;
    if (v.kind == OTTL_NIL)
        return (*ret = ottl_list_new(env->arena)) ? 0 : -ENOMEM;
    if (v.kind != OTTL_LIST)
        return err_set(env->err, -EINVAL, "expected a slice, got %s", ottl_kind_name(v.kind));
    for (size_t i = 0; i < v.list->n && r == 0; i++)
        r = element_text(env->arena, &v.list->items[i], env->err);
    *ret = v.list;
    return r;
}

int ottl_arg_list(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                  struct ottl_list **ret)
{
    const struct ottl_arg *arg = &c->args[i];
    *ret = NULL;
    if (!arg->given)
        return 0;
    if (arg->literal.kind == OTTL_LIST) {
        *ret = arg->literal.list;
        return 0;
    }
    if (!arg->list)
        return evaluated_list(arg, env, ret);
    if (!(*ret = ottl_list_new(env->arena)))
        return -ENOMEM;
    for (size_t k = 0; k < arg->nlist; k++) {
        struct ottl_value v;
        int r = ottl_arg_element(c, i, k, env, &v);
        if (r == 0)
            r = ottl_list_append(env->arena, *ret, v);
        if (r < 0)
            return r;
    }
    return 0;
}

int ottl_arg_set(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                 const struct ottl_value *v)
{
    const struct ottl_path *p = &c->args[i].path;
    if (!p->ops->set)
        return err_set(env->err, -EINVAL, "the path \"%.*s\" cannot be written", (int)p->text.len,
                       (const char *)p->text.data);
    return p->ops->set(p, env, v);
}
