/* Calls: finds the function, brings the arguments in the order of its parameters and checks those
 * that are known at the start. */
#include <errno.h>

#include "agent/base/suggest.h"
#include "ottl/expr.h"

static bool is_editor(struct bytes name)
{
    return name.len && name.data[0] >= 'a';
}

/* `function` can be called where we are. */
static bool callable(const struct ottl_compiler *c, const struct ottl_function *f)
{
    return !f->contexts || f->contexts & OTTL_CONTEXT_BIT(c->context);
}

static void offer_functions(const struct ottl_compiler *c, struct suggest *s, bool editors)
{
    for (const struct ottl_function *const *table = c->dialect->functions; *table; table++)
        for (const struct ottl_function *f = *table; f->name; f++)
            if (callable(c, f) && is_editor(bytes_str(f->name)) == editors)
                suggest_offer(s, bytes_str(f->name));
}

static int find_function(struct ottl_compiler *c, const struct ottl_node *n,
                         const struct ottl_function **ret)
{
    int len = (int)n->name.len;
    const struct ottl_function *f = ottl_function_find(c->dialect->functions, n->name);
    if (f && callable(c, f)) {
        *ret = f;
        return 0;
    }
    if (f)
        return ottl_compile_error(c, n->at, "undefined function \"%.*s\" in the %s context", len,
                                  n->name.data, ottl_context_name(c->context));
    struct suggest s;
    suggest_init(&s, n->name);
    offer_functions(c, &s, is_editor(n->name));
    if (!s.best.data)
        return ottl_compile_error(c, n->at, "undefined function \"%.*s\"", len, n->name.data);
    return ottl_compile_error(c, n->at, "undefined function \"%.*s\", did you mean \"%.*s\"?", len,
                              n->name.data, (int)s.best.len, s.best.data);
}

/* ---- parameters ---- */

static unsigned count_params(const struct ottl_function *f, unsigned *ret_required)
{
    unsigned n = 0;
    *ret_required = 0;
    for (const struct ottl_param *p = f->params; p && p->name; p++, n++)
        *ret_required += !p->optional;
    return n;
}

/* "a_name" and "aName" are the same parameter. */
static bool same_param(const char *param, struct bytes name)
{
    bool start = true;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];
        if (c == '_') {
            start = true;
            continue;
        }
        bool want_start = *param == '_' || i == 0;
        if (*param == '_')
            param++;
        if (c >= 'A' && c <= 'Z') {
            start = true;
            c |= 0x20;
        }
        if (c != (uint8_t)*param || start != want_start)
            return false;
        param++;
        start = false;
    }
    return !*param;
}

static int find_param(struct ottl_compiler *c, const struct ottl_function *f,
                      const struct ottl_node *n, unsigned *ret)
{
    struct suggest s;
    suggest_init(&s, n->label);
    for (unsigned i = 0; f->params[i].name; i++) {
        if (same_param(f->params[i].name, n->label)) {
            *ret = i;
            return 0;
        }
        suggest_offer(&s, bytes_str(f->params[i].name));
    }
    if (!s.best.data)
        return ottl_compile_error(c, n->at, "no such parameter: %.*s", (int)n->label.len,
                                  n->label.data);
    return ottl_compile_error(c, n->at, "no such parameter: %.*s, did you mean \"%.*s\"?",
                              (int)n->label.len, n->label.data, (int)s.best.len, s.best.data);
}

static const char *param_words(enum ottl_param_kind kind)
{
    switch (kind) {
    case OTTL_P_LITERAL_STRING: return "must be a string";
    case OTTL_P_LITERAL_INT: return "must be an int";
    case OTTL_P_LITERAL_DOUBLE: return "must be a float";
    case OTTL_P_LITERAL_BOOL: return "must be a bool";
    default: return "must be a path";
    }
}

static enum ottl_kind literal_kind(enum ottl_param_kind kind)
{
    switch (kind) {
    case OTTL_P_LITERAL_STRING: return OTTL_STRING;
    case OTTL_P_LITERAL_INT: return OTTL_INT;
    case OTTL_P_LITERAL_DOUBLE: return OTTL_DOUBLE;
    default: return OTTL_BOOL;
    }
}

static int literal_argument(struct ottl_compiler *c, const struct ottl_node *n,
                            enum ottl_param_kind kind, struct ottl_value *ret)
{
    if (n->kind != OTTL_N_LITERAL || n->wrapped || n->value.kind != literal_kind(kind))
        return ottl_compile_error(c, n->at, "%s", param_words(kind));
    *ret = n->value;
    return 0;
}

/* A literal of the wrong type is refused at once, not record by record. */
static int value_argument(struct ottl_compiler *c, const struct ottl_node *n,
                          enum ottl_param_kind kind, const struct ottl_expr **ret)
{
    struct ottl_expr *x;
    struct err why;
    int r = ottl_compile_expr(c, n, &x);
    if (r < 0)
        return r;
    *ret = x;
    if (x->kind != OTTL_X_LITERAL)
        return 0;
    if ((r = ottl_convert(c->program->arena, kind, &x->literal, &why)) == -EINVAL)
        return ottl_compile_error(c, n->at, "%s", why.text);
    return r;
}

static int element_error(struct ottl_compiler *c, size_t index, int r)
{
    if (r == -EINVAL)
        err_prefix(c->err, "error while parsing list argument at index %zu: ", index);
    return r;
}

static int list_argument(struct ottl_compiler *c, const struct ottl_node *n,
                         enum ottl_param_kind kind, struct ottl_arg *arg)
{
    const struct ottl_expr **list;
    if (n->kind != OTTL_N_LIST && kind == OTTL_P_LIST_OF_STRING_LIKE)
        return value_argument(c, n, OTTL_P_ANY, &arg->expr);
    if (n->kind != OTTL_N_LIST)
        return ottl_compile_error(c, n->at, "must be a list");
    for (const struct ottl_node *i = n->first; i; i = i->next)
        arg->nlist++;
    if (!(list = arena_alloc(c->program->arena, arg->nlist * sizeof(*list) + 1)))
        return -ENOMEM;
    arg->list = list;
    size_t at = 0;
    for (const struct ottl_node *i = n->first; i; i = i->next, at++) {
        int r = value_argument(c, i, ottl_element_kind(kind), &list[at]);
        if (r < 0)
            return element_error(c, at, r);
    }
    return 0;
}

static int literal_list_argument(struct ottl_compiler *c, const struct ottl_node *n,
                                 struct ottl_value *ret)
{
    struct ottl_list *l = ottl_list_new(c->program->arena);
    if (!l)
        return -ENOMEM;
    if (n->kind != OTTL_N_LIST)
        return ottl_compile_error(c, n->at, "must be a list of type string");
    *ret = (struct ottl_value){.kind = OTTL_LIST, .list = l};
    for (const struct ottl_node *i = n->first; i; i = i->next) {
        struct ottl_value v;
        int r = literal_argument(c, i, OTTL_P_LITERAL_STRING, &v);
        if (r == 0)
            r = ottl_list_append(c->program->arena, l, v);
        if (r < 0)
            return element_error(c, l->n, r);
    }
    return 0;
}

static int target_argument(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_arg *arg)
{
    if (n->kind != OTTL_N_PATH || n->wrapped)
        return ottl_compile_error(c, n->at, "must be a path");
    return ottl_compile_path(c, n, &arg->path);
}

static int function_argument(struct ottl_compiler *c, const struct ottl_node *n,
                             struct ottl_arg *arg)
{
    if (n->kind != OTTL_N_FUNCTION && n->kind != OTTL_N_ENUM)
        return ottl_compile_error(c, n->at, "invalid function name given");
    return find_function(c, n, &arg->function);
}

static int enum_argument(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_arg *arg)
{
    arg->literal = ottl_int(0);
    if (n->kind != OTTL_N_ENUM)
        return ottl_compile_error(c, n->at, "must be an Enum");
    return ottl_compile_enum(c, n, &arg->literal.i);
}

static int compile_argument(struct ottl_compiler *c, const struct ottl_node *n,
                            enum ottl_param_kind kind, struct ottl_arg *arg)
{
    arg->given = true;
    switch (kind) {
    case OTTL_P_LITERAL_STRING:
    case OTTL_P_LITERAL_INT:
    case OTTL_P_LITERAL_DOUBLE:
    case OTTL_P_LITERAL_BOOL: return literal_argument(c, n, kind, &arg->literal);
    case OTTL_P_ENUM: return enum_argument(c, n, arg);
    case OTTL_P_LIST_OF_ANY:
    case OTTL_P_LIST_OF_STRINGS:
    case OTTL_P_LIST_OF_STRING_LIKE: return list_argument(c, n, kind, arg);
    case OTTL_P_LIST_OF_LITERAL_STRINGS: return literal_list_argument(c, n, &arg->literal);
    case OTTL_P_TARGET:
    case OTTL_P_TARGET_MAP: return target_argument(c, n, arg);
    case OTTL_P_FUNCTION: return function_argument(c, n, arg);
    default: return value_argument(c, n, kind, &arg->expr);
    }
}

/* ---- calls ---- */

static int check_arguments(struct ottl_compiler *c, const struct ottl_node *n,
                           const struct ottl_function *f)
{
    unsigned given = 0, required, total = count_params(f, &required);
    bool named = false;
    for (const struct ottl_node *i = n->first; i; i = i->next, given++) {
        if (named && !i->label.len)
            return ottl_compile_error(c, i->at, "unnamed argument used after named argument");
        named |= i->label.len > 0;
    }
    if (given < required || given > total)
        return ottl_compile_error(
            c, n->at, "incorrect number of arguments. Expected: %u Received: %u", total, given);
    return 0;
}

static int compile_arguments(struct ottl_compiler *c, const struct ottl_node *n,
                             const struct ottl_function *f, struct ottl_arg *args)
{
    int r = check_arguments(c, n, f);
    unsigned position = 0;
    for (const struct ottl_node *i = n->first; i && r == 0; i = i->next, position++) {
        unsigned at = position;
        if (i->label.len && (r = find_param(c, f, i, &at)) < 0)
            break;
        args[at] = (struct ottl_arg){.given = false};
        r = compile_argument(c, i, f->params[at].kind, &args[at]);
        if (r == -EINVAL)
            err_prefix(c->err, "invalid argument at position %u: ", position);
    }
    for (unsigned i = 0; r == 0 && f->params && f->params[i].name; i++)
        if (!args[i].given && !f->params[i].optional)
            r = ottl_compile_error(c, n->at, "the argument \"%s\" is missing", f->params[i].name);
    if (r == -EINVAL)
        err_prefix(c->err, "error while parsing arguments for call to \"%s\": ", f->name);
    return r;
}

static int prepare(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_made_call *made)
{
    struct err why = {.text = ""};
    int r = made->call.function->prepare(&made->call, &why);
    if (r == -EINVAL)
        return ottl_compile_error(c, n->at, "couldn't create function: %s", why.text);
    return r;
}

int ottl_compile_call(struct ottl_compiler *c, const struct ottl_node *n,
                      const struct ottl_call **ret)
{
    const struct ottl_function *f;
    unsigned required;
    int r = find_function(c, n, &f);
    if (r < 0)
        return r;
    struct arena *a = c->program->arena;
    struct ottl_made_call *made = arena_calloc(a, sizeof(*made));
    struct ottl_arg *args = arena_calloc(a, (count_params(f, &required) + 1) * sizeof(*args));
    if (!made || !args)
        return -ENOMEM;
    made->call = (struct ottl_call){.function = f, .args = args, .column = n->at->column};
    if ((r = compile_arguments(c, n, f, args)) < 0)
        return r;
    made->next = c->program->calls;
    c->program->calls = made;
    *ret = &made->call;
    return f->prepare ? prepare(c, n, made) : 0;
}
