/* Editors that replace texts: replace_pattern() and its relatives. */
#include "agent/base/regex_replace.h"
#include "ottl/calls.h"

/* What the matches are replaced by. */
struct replacement {
    struct ottl_env *env;
    struct bytes text;
    const struct ottl_function *function; /* applied to the text; NULL = none */
    struct bytes format;                  /* applied to the result; .data NULL = none */
};

/* ---- function and format ---- */

enum { MOST_PARAMS = 8 };

static unsigned count_params(const struct ottl_function *f)
{
    unsigned n = 0;
    while (f->params && f->params[n].name)
        n++;
    return n;
}

/* Calls the converter with one string. */
static int apply_function(const struct ottl_function *f, struct ottl_env *env, struct bytes text,
                          struct bytes *ret)
{
    struct ottl_arg args[MOST_PARAMS] = {{.given = true, .literal = ottl_string(text)}};
    struct ottl_call call = {.function = f, .args = args};
    struct ottl_value v = ottl_nil();
    unsigned n = count_params(f);
    if (n != 1)
        return err_set(env->err, -EINVAL, "incorrect number of arguments. Expected: %u Received: 1",
                       n);
    int r = f->call(&call, env, &v);
    if (r == 0 && v.kind != OTTL_STRING)
        return err_set(env->err, -EINVAL, "the replacement value must be a string");
    *ret = v.bytes;
    return r;
}

/* Where the one %s is; false when there is none or another directive. */
static bool find_directive(struct bytes format, size_t *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < format.len; i++)
        if (format.data[i] == '%') {
            if (i + 1 == format.len || format.data[i + 1] != 's')
                return false;
            found++;
            *ret = i++;
        }
    return found == 1;
}

static int apply_format(struct ottl_env *env, struct bytes format, struct bytes text,
                        struct bytes *ret)
{
    size_t at;
    if (!find_directive(format, &at))
        return err_set(env->err, -EINVAL,
                       "replacementFormat must be format string containing a single %%s and no "
                       "other format specifiers");
    char *p = arena_alloc(env->arena, format.len + text.len);
    if (!p)
        return -ENOMEM;
    memcpy(p, format.data, at);
    if (text.len)
        memcpy(p + at, text.data, text.len);
    memcpy(p + at + text.len, format.data + at + 2, format.len - at - 2);
    *ret = bytes_of(p, format.len + text.len - 2);
    return 0;
}

static int finish(const struct replacement *rp, struct bytes text, struct bytes *ret)
{
    *ret = text;
    if (!rp->function)
        return 0;
    int r = apply_function(rp->function, rp->env, text, ret);
    return r < 0 || !rp->format.data ? r : apply_format(rp->env, rp->format, *ret, ret);
}

/* Arguments `i` to `i` + 2: the text, the function, the format. */
static int read_replacement(const struct ottl_call *c, unsigned i, struct ottl_env *env,
                            struct replacement *ret)
{
    *ret = (struct replacement){.env = env, .text = bytes_of("", 0)};
    if (c->args[i + 1].given)
        ret->function = c->args[i + 1].function;
    int r = ottl_fn_string(c, i, env, &ret->text);
    return r < 0 ? r : ottl_fn_string(c, i + 2, env, &ret->format);
}

/* ---- by regular expression ---- */

static int put_match(void *ctx, const struct regex_found *m, struct buf *out)
{
    const struct replacement *rp = ctx;
    _cleanup_buf_ struct buf *expanded = ottl_fn_buf(rp->env);
    struct bytes text;
    if (!expanded)
        return -ENOMEM;
    int r = regex_expand(m, rp->text, expanded);
    if (r == 0)
        r = finish(rp, buf_bytes(expanded), &text);
    return r < 0 ? r : buf_append(out, text.data, text.len);
}

/* The text with its matches replaced; *ret_matched says whether there was any. */
static int replace_text(const struct regex *re, struct replacement *rp, struct bytes text,
                        struct ottl_value *ret, bool *ret_matched)
{
    *ret_matched = regex_match(re, text);
    if (!*ret_matched)
        return 0;
    _cleanup_buf_ struct buf *out = ottl_fn_buf(rp->env);
    if (!out)
        return -ENOMEM;
    int r = rp->function ? regex_replace(re, text, put_match, rp, out)
                         : regex_replace_text(re, text, rp->text, out);
    return r < 0 ? r : ottl_fn_text(rp->env, out, ret);
}

OTTL_FN(replace_pattern)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct replacement rp;
    struct ottl_value v;
    bool matched = false;
    (void)ret;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r < 0 || v.kind == OTTL_NIL)
        return r;
    r = read_replacement(c, 2, env, &rp);
    if (r < 0 || v.kind != OTTL_STRING)
        return r;
    r = ottl_fn_pattern(c, 1, env, &p);
    if (r == 0)
        r = replace_text(p.re, &rp, v.bytes, &v, &matched);
    return r < 0 || !matched ? r : ottl_arg_set(c, 0, env, &v);
}

OTTL_PREPARE(replace_all_patterns)
{
    struct bytes mode = c->args[1].literal.bytes;
    if (!bytes_eq_str(mode, "key") && !bytes_eq_str(mode, "value"))
        return err_set(reterr, -EINVAL, "invalid mode %.*s, must be either 'key' or 'value'",
                       (int)mode.len, mode.data);
    return ottl_prepare_pattern_2(c, reterr);
}

/* A value whose function fails stays as it is. */
static int replace_values(const struct regex *re, struct replacement *rp, struct ottl_map *m,
                          bool *changed)
{
    int r = 0;
    bool matched;
    for (size_t i = 0; r >= 0 && i < m->n; i++) {
        struct ottl_value *v = &m->items[i].value;
        if (v->kind != OTTL_STRING)
            continue;
        r = replace_text(re, rp, v->bytes, v, &matched);
        *changed = *changed || matched;
        if (r == -EINVAL)
            r = 0;
    }
    return r;
}

/* An entry whose function fails is gone. */
static int replace_keys(const struct regex *re, struct replacement *rp, struct ottl_map *m,
                        bool *changed)
{
    struct ottl_map *out = ottl_map_new(rp->env->arena);
    int r = out ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        struct ottl_value key = ottl_string(m->items[i].key);
        bool matched;
        r = replace_text(re, rp, key.bytes, &key, &matched);
        *changed = *changed || matched;
        if (r == 0)
            r = ottl_map_put(rp->env->arena, out, key.bytes, m->items[i].value);
        else if (r == -EINVAL)
            r = 0;
    }
    if (r == 0)
        *m = *out;
    return r;
}

OTTL_FN(replace_all_patterns)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    bool keys = bytes_eq_str(c->args[1].literal.bytes, "key"), changed = false;
    struct replacement rp;
    struct ottl_value v;
    (void)ret;
    int r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        r = read_replacement(c, 3, env, &rp);
    if (r == 0)
        r = ottl_fn_pattern(c, 2, env, &p);
    if (r == 0)
        r = keys ? replace_keys(p.re, &rp, v.map, &changed)
                 : replace_values(p.re, &rp, v.map, &changed);
    return r < 0 || !changed ? r : ottl_arg_set(c, 0, env, &v);
}

/* ---- by glob ---- */

/* The whole text is replaced; the function gets the replacement, which stays the same for all. */
static int read_whole(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret)
{
    struct replacement rp;
    struct bytes text;
    int r = read_replacement(c, 2, env, &rp);
    if (r == 0)
        r = finish(&rp, rp.text, &text);
    if (r == 0)
        *ret = ottl_string(text);
    return r;
}

OTTL_FN(replace_match)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct ottl_value v, text = ottl_nil();
    (void)ret;
    int r = ottl_fn_glob(c, 1, env, &p);
    if (r == 0)
        r = ottl_arg_value(c, 0, env, &v);
    if (r == 0)
        r = read_whole(c, env, &text);
    if (r < 0 || v.kind != OTTL_STRING || !regex_match(p.re, v.bytes))
        return r;
    return ottl_arg_set(c, 0, env, &text);
}

OTTL_FN(replace_all_matches)
{
    _cleanup_(ottl_pattern_done) struct ottl_pattern p = {0};
    struct ottl_value m, text = ottl_nil();
    bool changed = false;
    (void)ret;
    int r = ottl_fn_glob(c, 1, env, &p);
    if (r == 0)
        r = ottl_arg_value(c, 0, env, &m);
    if (r == 0)
        r = read_whole(c, env, &text);
    for (size_t i = 0; r == 0 && i < m.map->n; i++) {
        struct ottl_value *v = &m.map->items[i].value;
        if (v->kind != OTTL_STRING || !regex_match(p.re, v->bytes))
            continue;
        *v = text;
        changed = true;
    }
    return r < 0 || !changed ? r : ottl_arg_set(c, 0, env, &m);
}
