/* From what a text says to what it means: names are looked up, constants are worked out, types are
 * checked where they are known. */
#include <errno.h>
#include <stdarg.h>

#include "agent/base/suggest.h"
#include "ottl/expr.h"

int ottl_compile_error(struct ottl_compiler *c, const struct ottl_token *at, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (at->line > 1)
        err_set(c->err, -EINVAL, "%s (line %u, column %u)", text, at->line, at->column);
    else
        err_set(c->err, -EINVAL, "%s (column %u)", text, at->column);
    if (c->err)
        c->err->column = (int)at->column;
    return -EINVAL;
}

static void *alloc(struct ottl_compiler *c, size_t n, size_t size)
{
    return arena_calloc(c->program->arena, n * size + 1);
}

static size_t count(const struct ottl_node *n)
{
    size_t k = 0;
    for (const struct ottl_node *i = n ? n->first : NULL; i; i = i->next)
        k++;
    return k;
}

/* ---- paths ---- */

const char *ottl_context_list(unsigned contexts, struct bytes path, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (unsigned i = 0; i < OTTL_CONTEXT_COUNT && n < size; i++)
        if (contexts & OTTL_CONTEXT_BIT(i))
            n += (size_t)snprintf(out + n, size - n, "%s\"%s%s%.*s\"", n ? ", " : "",
                                  ottl_context_name((enum ottl_context)i), path.len ? "." : "",
                                  (int)path.len, (const char *)path.data);
    return out;
}

/* Whose path it is; *ret_named: its first segment is the name of the context. */
static int path_context(struct ottl_compiler *c, const struct ottl_node *n, int *ret,
                        bool *ret_named)
{
    const struct ottl_node *first = n->first;
    unsigned reach = ottl_context_reach(c->context);
    char list[256];
    bool prefixed = first->next && !first->keys;
    *ret = prefixed ? ottl_context_find(first->name) : -1;
    *ret_named = *ret >= 0;
    if (*ret >= 0 && reach & OTTL_CONTEXT_BIT(*ret))
        return 0;
    if (*ret >= 0 || (prefixed && c->dialect->prefix_required))
        return ottl_compile_error(
            c, n->at,
            "context \"%.*s\" from path \"%.*s\" is not valid, it must be replaced by one of: %s",
            (int)first->name.len, first->name.data, (int)n->name.len, n->name.data,
            ottl_context_list(reach, bytes_of(NULL, 0), list, sizeof(list)));
    if (c->dialect->prefix_required)
        return ottl_compile_error(
            c, n->at, "missing context name for path \"%.*s\", possibly valid options are: %s",
            (int)n->name.len, n->name.data, ottl_context_list(reach, n->name, list, sizeof(list)));
    *ret = (int)c->context;
    return 0;
}

static int compile_keys(struct ottl_compiler *c, const struct ottl_node *keys,
                        const struct ottl_key **ret, unsigned *ret_n)
{
    *ret = NULL;
    *ret_n = (unsigned)count(keys);
    if (!keys)
        return 0;
    struct ottl_key *k = alloc(c, *ret_n, sizeof(*k));
    if (!k)
        return -ENOMEM;
    *ret = k;
    for (const struct ottl_node *n = keys->first; n; n = n->next, k++) {
        bool literal = n->kind == OTTL_N_LITERAL && !n->wrapped;
        k->is_int = literal && n->value.kind == OTTL_INT;
        k->is_string = literal && n->value.kind == OTTL_STRING;
        if (k->is_int)
            k->i = n->value.i;
        else if (k->is_string)
            k->s = n->value.bytes;
        if (k->is_int || k->is_string)
            continue;
        struct ottl_expr *x;
        int r = ottl_compile_expr(c, n, &x);
        if (r < 0)
            return r;
        k->expr = x;
    }
    return 0;
}

int ottl_compile_path(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_path *ret)
{
    int context;
    bool named;
    int r = path_context(c, n, &context, &named);
    if (r < 0)
        return r;
    unsigned total = (unsigned)count(n) - named;
    struct ottl_segment *segments = alloc(c, total, sizeof(*segments)), *s = segments;
    if (!segments)
        return -ENOMEM;
    for (const struct ottl_node *i = named ? n->first->next : n->first; i; i = i->next, s++) {
        s->name = i->name;
        s->column = i->at->column;
        if ((r = compile_keys(c, i->keys, &s->keys, &s->nkeys)) < 0)
            return r;
    }
    struct ottl_path_text text = {(enum ottl_context)context, segments, total, n->name};
    r = ottl_path_resolve(&text, c->program->arena, ret, c->err);
    if (r == -EINVAL && c->err && !c->err->column)
        c->err->column = (int)n->at->column;
    return r;
}

/* ---- expressions ---- */

int ottl_compile_enum(struct ottl_compiler *c, const struct ottl_node *n, int64_t *ret)
{
    struct suggest s;
    const char *name;
    if (ottl_enum_find(n->name, ret))
        return 0;
    suggest_init(&s, n->name);
    for (size_t i = 0; (name = ottl_enum_symbol(i)); i++)
        suggest_offer(&s, bytes_str(name));
    if (!s.best.data)
        return ottl_compile_error(c, n->at, "enum symbol, %.*s, not found", (int)n->name.len,
                                  n->name.data);
    return ottl_compile_error(c, n->at, "enum symbol, %.*s, not found, did you mean %.*s?",
                              (int)n->name.len, n->name.data, (int)s.best.len, s.best.data);
}

/* Children of a list or map; *ret_constant: all of them are literals. */
static int compile_items(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr *x,
                         bool *ret_constant)
{
    size_t i = 0;
    x->nitems = count(n);
    x->items = alloc(c, x->nitems, sizeof(*x->items));
    struct bytes *names = alloc(c, x->nitems, sizeof(*names));
    x->names = names;
    if (!x->items || !names)
        return -ENOMEM;
    *ret_constant = true;
    for (const struct ottl_node *child = n->first; child; child = child->next, i++) {
        struct ottl_expr *item;
        int r = ottl_compile_expr(c, child, &item);
        if (r < 0)
            return r;
        x->items[i] = item;
        names[i] = child->label;
        *ret_constant &= item->kind == OTTL_X_LITERAL;
    }
    return 0;
}

static int compile_collection(struct ottl_compiler *c, const struct ottl_node *n,
                              struct ottl_expr *x)
{
    bool constant;
    struct ottl_value v;
    struct ottl_env env = {.arena = c->program->arena, .err = c->err};
    x->kind = n->kind == OTTL_N_LIST ? OTTL_X_LIST : OTTL_X_MAP;
    int r = compile_items(c, n, x, &constant);
    if (r < 0 || !constant)
        return r;
    if ((r = ottl_expr_eval(x, &env, &v)) < 0)
        return r;
    *x = (struct ottl_expr){.kind = OTTL_X_LITERAL, .literal = v};
    return 0;
}

static int compile_math(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr *x)
{
    x->kind = OTTL_X_MATH;
    x->noperands = count(n);
    struct ottl_operand *operand = alloc(c, x->noperands, sizeof(*operand));
    x->operands = operand;
    if (!operand)
        return -ENOMEM;
    for (const struct ottl_node *i = n->first; i; i = i->next, operand++) {
        struct ottl_expr *value;
        int r = ottl_compile_expr(c, i, &value);
        if (r < 0)
            return r;
        *operand = (struct ottl_operand){i->op, value};
    }
    return 0;
}

static int compile_converter(struct ottl_compiler *c, const struct ottl_node *n,
                             struct ottl_expr *x)
{
    x->kind = OTTL_X_CALL;
    if (n->name.data[0] >= 'a')
        return ottl_compile_error(
            c, n->at, "converter names must start with an uppercase letter but got '%.*s'",
            (int)n->name.len, n->name.data);
    int r = ottl_compile_call(c, n, &x->call);
    return r < 0 ? r : compile_keys(c, n->keys, &x->keys, &x->nkeys);
}

static int compile_minus(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr *x)
{
    struct ottl_expr *child;
    int r = ottl_compile_expr(c, n->first, &child);
    x->kind = OTTL_X_MINUS;
    x->negated = child;
    return r;
}

static int compile_into(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr *x)
{
    switch (n->kind) {
    case OTTL_N_LITERAL:
        *x = (struct ottl_expr){.kind = OTTL_X_LITERAL, .literal = n->value};
        return 0;
    case OTTL_N_ENUM:
        *x = (struct ottl_expr){.kind = OTTL_X_LITERAL, .literal = ottl_int(0)};
        return ottl_compile_enum(c, n, &x->literal.i);
    case OTTL_N_PATH: x->kind = OTTL_X_PATH; return ottl_compile_path(c, n, &x->path);
    case OTTL_N_CALL: return compile_converter(c, n, x);
    case OTTL_N_LIST:
    case OTTL_N_MAP: return compile_collection(c, n, x);
    case OTTL_N_MINUS: return compile_minus(c, n, x);
    case OTTL_N_MATH: return compile_math(c, n, x);
    default: return ottl_compile_error(c, n->at, "expected a value, not the name of a function");
    }
}

int ottl_compile_expr(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr **ret)
{
    struct ottl_expr *x = arena_calloc(c->program->arena, sizeof(*x));
    if (!x)
        return -ENOMEM;
    *ret = x;
    return compile_into(c, n, x);
}

/* ---- conditions ---- */

static int compile_comparison(struct ottl_compiler *c, const struct ottl_node *n,
                              struct ottl_truth *t)
{
    struct ottl_expr *a, *b;
    int r = ottl_compile_expr(c, n->first, &a);
    if (r == 0)
        r = ottl_compile_expr(c, n->first->next, &b);
    if (r < 0)
        return r;
    *t = (struct ottl_truth){.kind = OTTL_B_COMPARE, .op = n->compare, .a = a, .b = b};
    if (a->kind != OTTL_X_LITERAL || b->kind != OTTL_X_LITERAL)
        return 0;
    t->kind = OTTL_B_CONST;
    t->value = ottl_compare(&a->literal, n->compare, &b->literal);
    return 0;
}

static int compile_alone(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_truth *t)
{
    struct ottl_expr *x;
    int r = ottl_compile_expr(c, n, &x);
    *t = (struct ottl_truth){.kind = OTTL_B_CALL, .a = x};
    return r;
}

static int compile_not(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_truth *t)
{
    const struct ottl_truth *part;
    int r = ottl_compile_truth(c, n->first, &part);
    if (r < 0)
        return r;
    *t = (struct ottl_truth){.kind = OTTL_B_NOT, .nparts = 1};
    if (part->kind == OTTL_B_CONST) {
        *t = (struct ottl_truth){.kind = OTTL_B_CONST, .value = !part->value};
        return 0;
    }
    if (!(t->parts = alloc(c, 1, sizeof(*t->parts))))
        return -ENOMEM;
    t->parts[0] = part;
    return 0;
}

/* A constant that decides makes the whole constant; one that does not is left out. */
static int compile_joined(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_truth *t)
{
    bool decides = n->kind == OTTL_N_OR, decided = false;
    int r;
    *t = (struct ottl_truth){.kind = decides ? OTTL_B_OR : OTTL_B_AND};
    if (!(t->parts = alloc(c, count(n), sizeof(*t->parts))))
        return -ENOMEM;
    for (const struct ottl_node *i = n->first; i; i = i->next) {
        const struct ottl_truth *part;
        if ((r = ottl_compile_truth(c, i, &part)) < 0)
            return r;
        if (part->kind != OTTL_B_CONST)
            t->parts[t->nparts++] = part;
        else
            decided |= part->value == decides;
    }
    if (decided || !t->nparts)
        *t = (struct ottl_truth){.kind = OTTL_B_CONST, .value = decided == decides};
    return 0;
}

int ottl_compile_truth(struct ottl_compiler *c, const struct ottl_node *n,
                       const struct ottl_truth **ret)
{
    struct ottl_truth *t = arena_calloc(c->program->arena, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *ret = t;
    switch (n->kind) {
    case OTTL_N_COMPARE: return compile_comparison(c, n, t);
    case OTTL_N_NOT: return compile_not(c, n, t);
    case OTTL_N_AND:
    case OTTL_N_OR: return compile_joined(c, n, t);
    case OTTL_N_LITERAL:
        *t = (struct ottl_truth){.kind = OTTL_B_CONST, .value = n->value.b};
        return 0;
    default: return compile_alone(c, n, t);
    }
}
