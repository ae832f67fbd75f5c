/* What the functions of the language share. */
#include "ottl/functions.h"

#include "ottl/glob.h"

static const struct ottl_function *find_in(const struct ottl_function *table, struct bytes name)
{
    for (; table->name; table++)
        if (bytes_eq_str(name, table->name))
            return table;
    return NULL;
}

const struct ottl_function *ottl_function_find(const struct ottl_function *const *tables,
                                               struct bytes name)
{
    const struct ottl_function *f = NULL;
    for (; *tables && !f; tables++)
        f = find_in(*tables, name);
    return f;
}

/* ---- arguments ---- */

int ottl_fn_string(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct bytes *ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, i, env, &v);
    if (r == 0 && v.kind != OTTL_NIL)
        *ret = v.bytes;
    return r;
}

int ottl_fn_int(const struct ottl_call *c, unsigned i, struct ottl_env *env, int64_t *ret)
{
    struct ottl_value v;
    int r = ottl_arg_value(c, i, env, &v);
    if (r == 0 && v.kind != OTTL_NIL)
        *ret = v.i;
    return r;
}

struct bytes ottl_fn_literal(const struct ottl_call *c, unsigned i, const char *def)
{
    return c->args[i].given ? c->args[i].literal.bytes : bytes_str(def);
}

bool ottl_fn_literal_bool(const struct ottl_call *c, unsigned i, bool def)
{
    return c->args[i].given ? c->args[i].literal.b : def;
}

/* ---- results ---- */

struct buf *ottl_fn_buf(const struct ottl_env *env)
{
    const size_t room = arena_room(env->arena);
    return buf_new(room == SIZE_MAX ? 0 : room ? room : 1);
}

int ottl_fn_text(struct ottl_env *env, const struct buf *b, struct ottl_value *ret)
{
    char *p = arena_strndup(env->arena, b->len ? (const char *)b->data : "", b->len);
    if (!p)
        return -ENOMEM;
    *ret = ottl_string(bytes_of(p, b->len));
    return 0;
}

struct ottl_value ottl_map_value(struct ottl_map *m)
{
    return (struct ottl_value){.kind = OTTL_MAP, .map = m};
}

struct ottl_value ottl_list_value(struct ottl_list *l)
{
    return (struct ottl_value){.kind = OTTL_LIST, .list = l};
}

struct ottl_value ottl_time_value(int64_t ns)
{
    return (struct ottl_value){.kind = OTTL_TIME, .i = ns};
}

struct ottl_value ottl_duration_value(int64_t ns)
{
    return (struct ottl_value){.kind = OTTL_DURATION, .i = ns};
}

/* ---- patterns ---- */

static int compile_for(const struct ottl_call *c,
                       int (*compile)(struct bytes, struct regex **, struct err *),
                       struct bytes pattern, struct regex **ret, struct err *reterr)
{
    int r = compile(pattern, ret, reterr);
    if (r == -EINVAL)
        err_prefix(reterr, "the regex pattern supplied to %s '\"%.*s\"' is not a valid pattern: ",
                   c->function->name, (int)pattern.len, pattern.data);
    return r;
}

static int prepare(struct ottl_call *c, unsigned i,
                   int (*compile)(struct bytes, struct regex **, struct err *), struct err *reterr)
{
    struct ottl_value v;
    if (!ottl_expr_literal(c->args[i].expr, &v) || v.kind != OTTL_STRING)
        return 0;
    struct regex *re = NULL;
    int r = compile_for(c, compile, v.bytes, &re, reterr);
    c->data = re;
    return r;
}

int ottl_prepare_pattern_1(struct ottl_call *c, struct err *reterr)
{
    return prepare(c, 1, regex_new, reterr);
}

int ottl_prepare_pattern_2(struct ottl_call *c, struct err *reterr)
{
    return prepare(c, 2, regex_new, reterr);
}

int ottl_prepare_glob_1(struct ottl_call *c, struct err *reterr)
{
    return prepare(c, 1, ottl_glob_new, reterr);
}

void ottl_release_pattern(void *data)
{
    regex_free(data);
}

static int pattern(const struct ottl_call *c, unsigned i,
                   int (*compile)(struct bytes, struct regex **, struct err *),
                   struct ottl_env *env, struct ottl_pattern *ret)
{
    struct bytes text = {0};
    *ret = (struct ottl_pattern){c->data, NULL};
    if (ret->re)
        return 0;
    int r = ottl_fn_string(c, i, env, &text);
    if (r == 0)
        r = compile_for(c, compile, text, &ret->own, env->err);
    ret->re = ret->own;
    return r;
}

int ottl_fn_pattern(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                    struct ottl_pattern *ret)
{
    return pattern(c, i, regex_new, env, ret);
}

int ottl_fn_glob(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                 struct ottl_pattern *ret)
{
    return pattern(c, i, ottl_glob_new, env, ret);
}
