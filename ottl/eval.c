/* Runs what was compiled. Nothing here allocates unless a list or map is built. */
#include <errno.h>

#include "ottl/expr.h"
#include "ottl/item.h"

/* ---- keys of a converter's result ---- */

static int eval_key(const struct ottl_key *k, struct ottl_env *env, struct ottl_value *ret)
{
    if (k->is_string) {
        *ret = ottl_string(k->s);
        return 0;
    }
    if (k->is_int) {
        *ret = ottl_int(k->i);
        return 0;
    }
    int r = ottl_expr_peek(k->expr, env, ret);
    if (r < 0 || ret->kind == OTTL_STRING || ret->kind == OTTL_INT)
        return r;
    if (ret->kind == OTTL_NIL)
        return err_set(env->err, -EINVAL, "key expression returned nil, expected an int or string");
    return err_set(env->err, -EINVAL, "key expression must evaluate to string or int, got %s",
                   ottl_kind_name(ret->kind));
}

static int index_map(struct ottl_env *env, struct bytes key, struct ottl_value *v)
{
    if (v->kind != OTTL_MAP)
        return err_set(env->err, -EINVAL, "type %s does not support string indexing",
                       ottl_kind_name(v->kind));
    const struct ottl_value *found = ottl_map_find(v->map, key);
    if (!found)
        return err_set(env->err, -EINVAL, "key not found in map");
    *v = *found;
    return 0;
}

static int index_list(struct ottl_env *env, int64_t i, struct ottl_value *v)
{
    if (v->kind != OTTL_LIST && v->kind != OTTL_BYTES)
        return err_set(env->err, -EINVAL, "type %s does not support int indexing",
                       ottl_kind_name(v->kind));
    size_t n = v->kind == OTTL_LIST ? v->list->n : v->bytes.len;
    if (i < 0 || (uint64_t)i >= n)
        return err_set(env->err, -EINVAL, "index %lld out of bounds", (long long)i);
    *v = v->kind == OTTL_LIST ? v->list->items[i] : ottl_int(v->bytes.data[i]);
    return 0;
}

static int eval_call(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    *ret = ottl_nil();
    int r = x->call->function->call(x->call, env, ret);
    for (unsigned i = 0; i < x->nkeys && r == 0; i++) {
        struct ottl_value key;
        if ((r = eval_key(&x->keys[i], env, &key)) == 0)
            r = key.kind == OTTL_STRING ? index_map(env, key.bytes, ret)
                                        : index_list(env, key.i, ret);
    }
    return r;
}

/* ---- expressions ---- */

static int eval_list(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_list *l = ottl_list_new(env->arena);
    if (!l)
        return -ENOMEM;
    for (size_t i = 0; i < x->nitems; i++) {
        struct ottl_value v;
        int r = ottl_expr_eval(x->items[i], env, &v);
        if (r == 0)
            r = ottl_list_append(env->arena, l, v);
        if (r < 0)
            return r;
    }
    *ret = (struct ottl_value){.kind = OTTL_LIST, .list = l};
    return 0;
}

/* A map is what can be written to telemetry at once: times and the like have no place in it. */
static int check_entry(const struct ottl_value *v, struct ottl_env *env)
{
    if (v->kind <= OTTL_MAP)
        return 0;
    return err_set(env->err, -EINVAL, "<Invalid value type %s>", ottl_kind_name(v->kind));
}

static int eval_map(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_map *m = ottl_map_new(env->arena);
    if (!m)
        return -ENOMEM;
    for (size_t i = 0; i < x->nitems; i++) {
        struct ottl_value v;
        int r = ottl_expr_eval(x->items[i], env, &v);
        if (r == 0)
            r = check_entry(&v, env);
        if (r == 0)
            r = ottl_map_put(env->arena, m, x->names[i], v);
        if (r < 0)
            return r;
    }
    *ret = (struct ottl_value){.kind = OTTL_MAP, .map = m};
    return 0;
}

static int eval_math(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    int r = ottl_expr_peek(x->operands[0].expr, env, ret);
    for (size_t i = 1; i < x->noperands && r == 0; i++) {
        struct ottl_value left = *ret, right;
        if ((r = ottl_expr_peek(x->operands[i].expr, env, &right)) == 0)
            r = ottl_math(env->arena, &left, x->operands[i].op, &right, ret, env->err);
    }
    return r;
}

int ottl_expr_peek(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_value v;
    int r;
    switch (x->kind) {
    case OTTL_X_LITERAL: *ret = x->literal; return 0;
    case OTTL_X_PATH: return x->path.ops->get(&x->path, env, ret);
    case OTTL_X_CALL: return eval_call(x, env, ret);
    case OTTL_X_LIST: return eval_list(x, env, ret);
    case OTTL_X_MAP: return eval_map(x, env, ret);
    case OTTL_X_MINUS:
        r = ottl_expr_peek(x->negated, env, &v);
        return r < 0 ? r : ottl_minus(&v, ret, env->err);
    case OTTL_X_MATH: return eval_math(x, env, ret);
    }
    return -EINVAL;
}

int ottl_expr_eval(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret)
{
    int r = ottl_expr_peek(x, env, ret);
    if (r < 0 || x->kind != OTTL_X_LITERAL || (ret->kind != OTTL_LIST && ret->kind != OTTL_MAP))
        return r;
    struct ottl_value lent = *ret;
    return ottl_value_copy(env->arena, &lent, ret);
}

bool ottl_expr_literal(const struct ottl_expr *x, struct ottl_value *ret)
{
    if (x->kind != OTTL_X_LITERAL)
        return false;
    *ret = x->literal;
    return true;
}

/* ---- conditions ---- */

static int eval_alone(const struct ottl_truth *t, struct ottl_env *env, bool *ret)
{
    struct ottl_value v;
    int r = ottl_expr_peek(t->a, env, &v);
    if (r < 0)
        return r;
    if (v.kind != OTTL_BOOL)
        return err_set(
            env->err, -EINVAL,
            "value returned from Converter in constant expression must be bool but got %s",
            ottl_kind_name(v.kind));
    *ret = v.b;
    return 0;
}

static int eval_compare(const struct ottl_truth *t, struct ottl_env *env, bool *ret)
{
    struct ottl_value a, b;
    int r = ottl_expr_peek(t->a, env, &a);
    if (r == 0)
        r = ottl_expr_peek(t->b, env, &b);
    if (r == 0)
        *ret = ottl_compare(&a, t->op, &b);
    return r;
}

static int eval_joined(const struct ottl_truth *t, struct ottl_env *env, bool *ret)
{
    bool decides = t->kind == OTTL_B_OR;
    for (size_t i = 0; i < t->nparts; i++) {
        int r = ottl_truth_eval(t->parts[i], env, ret);
        if (r < 0 || *ret == decides)
            return r;
    }
    *ret = !decides;
    return 0;
}

int ottl_truth_eval(const struct ottl_truth *t, struct ottl_env *env, bool *ret)
{
    int r;
    switch (t->kind) {
    case OTTL_B_CONST: *ret = t->value; return 0;
    case OTTL_B_CALL: return eval_alone(t, env, ret);
    case OTTL_B_COMPARE: return eval_compare(t, env, ret);
    case OTTL_B_NOT:
        r = ottl_truth_eval(t->parts[0], env, ret);
        *ret = r == 0 && !*ret;
        return r;
    case OTTL_B_AND:
    case OTTL_B_OR: return eval_joined(t, env, ret);
    }
    return -EINVAL;
}

/* Memory that the limit of a visit refused is a mistake of the statement or its data, which will
 * not pass when it is tried again. */
static int judge(const struct ottl_env *env, int r)
{
    if (r != -ENOMEM && r != -EMSGSIZE)
        return r;
    bool refused = r == -EMSGSIZE || arena_refused(env->arena);
    for (int c = 0; c < OTTL_CONTEXT_COUNT; c++)
        refused = refused || (env->items[c] && arena_refused(env->items[c]->mem->arena));
    return refused ? err_set(env->err, -EINVAL,
                             "the values made for one record take more memory than is allowed")
                   : -ENOMEM;
}

int ottl_statement_run(const struct ottl_statement *s, struct ottl_env *env, bool *ret_ran)
{
    const struct ottl_program *p = &s->program;
    struct ottl_value nothing;
    bool holds = true;
    int r = p->condition ? ottl_truth_eval(p->condition, env, &holds) : 0;
    if (ret_ran)
        *ret_ran = r == 0 && holds;
    if (r == 0 && holds)
        r = eval_call(p->editor, env, &nothing);
    return judge(env, r);
}

int ottl_condition_eval(const struct ottl_condition *c, struct ottl_env *env, bool *ret)
{
    return judge(env, ottl_truth_eval(c->program.condition, env, ret));
}
