/* Statements and conditions as wholes: parse, infer, compile; and what is asked of them later. */
#include "ottl/ottl.h"

#include <errno.h>

#include "ottl/expr.h"

#define QUOTED_MAX 240

/* The text between quotes, as it goes into errors; cut when it is long. */
static const char *quoted(struct bytes s, char *out)
{
    size_t n = 0, i = 0;
    out[n++] = '"';
    for (; i < s.len && n < QUOTED_MAX; i++) {
        uint8_t c = s.data[i];
        if (c == '"' || c == '\\')
            out[n++] = '\\';
        else if (c < ' ')
            out[n++] = '\\';
        out[n++] = c == '\n' ? 'n' : c == '\t' ? 't' : c < ' ' ? '?' : (char)c;
    }
    while (i < s.len && n > 1 && ((uint8_t)out[n - 1] & 0xc0) == 0x80)
        n--;
    if (i < s.len && n > 1 && (uint8_t)out[n - 1] >= 0xc0)
        n--;
    snprintf(out + n, 8, "%s\"", i < s.len ? "…" : "");
    return out;
}

static void about(struct err *e, const char *what, struct bytes text)
{
    char q[QUOTED_MAX + 16];
    err_prefix(e, "unable to parse OTTL %s %s: ", what, quoted(text, q));
}

static struct ottl_program *program_new(struct bytes text)
{
    struct arena *a = arena_new(0);
    struct ottl_program *p = a ? arena_calloc(a, sizeof(*p)) : NULL;
    char *copy = p ? arena_strndup(a, (const char *)text.data, text.len) : NULL;
    if (!copy) {
        arena_free(a);
        return NULL;
    }
    p->arena = a;
    p->text = bytes_of(copy, text.len);
    return p;
}

static void program_free(struct ottl_program *p)
{
    for (struct ottl_made_call *m = p->calls; m; m = m->next)
        if (m->call.function->release && m->call.data)
            m->call.function->release(m->call.data);
    arena_free(p->arena);
}

static int choose_context(const struct ottl_ast *ast, const struct ottl_dialect *d,
                          enum ottl_context *ret, struct err *reterr)
{
    if (d->context < 0)
        return ottl_infer(ast, 1, d, ret, reterr);
    *ret = (enum ottl_context)d->context;
    return 0;
}

static int check_editor(struct ottl_compiler *c, const struct ottl_node *n)
{
    int len = (int)n->name.len;
    if (n->name.data[0] < 'a')
        return ottl_compile_error(c, n->at,
                                  "editor names must start with a lowercase letter but got '%.*s'",
                                  len, n->name.data);
    if (n->keys)
        return ottl_compile_error(
            c, n->at, "only paths and converters may be indexed, not editors, but got %.*s", len,
            n->name.data);
    return 0;
}

static int compile_editor(struct ottl_compiler *c, const struct ottl_node *n)
{
    struct ottl_expr *x = arena_calloc(c->program->arena, sizeof(*x));
    if (!x)
        return -ENOMEM;
    x->kind = OTTL_X_CALL;
    c->program->editor = x;
    int r = check_editor(c, n);
    return r < 0 ? r : ottl_compile_call(c, n, &x->call);
}

static int compile(struct ottl_program *p, bool statement, const struct ottl_dialect *d,
                   struct err *reterr)
{
    struct ottl_ast ast;
    int r = ottl_parse(p->arena, p->text, statement, &ast, reterr);
    if (r == 0)
        r = choose_context(&ast, d, &p->context, reterr);
    struct ottl_compiler c = {p, d, p->context, reterr};
    if (r == 0 && statement)
        r = compile_editor(&c, ast.call);
    if (r == 0 && ast.condition)
        r = ottl_compile_truth(&c, ast.condition, &p->condition);
    return r;
}

static int program_make(struct bytes text, bool statement, const struct ottl_dialect *d,
                        struct ottl_program **ret, struct err *reterr)
{
    struct ottl_program *p = program_new(text);
    if (!p)
        return -ENOMEM;
    int r = compile(p, statement, d, reterr);
    if (r == -EINVAL)
        about(reterr, statement ? "statement" : "condition", text);
    if (r < 0)
        program_free(p);
    else
        *ret = p;
    return r;
}

int ottl_statement_parse(struct bytes text, const struct ottl_dialect *d,
                         struct ottl_statement **ret, struct err *reterr)
{
    struct ottl_program *p;
    int r = program_make(text, true, d, &p, reterr);
    if (r == 0)
        *ret = container_of(p, struct ottl_statement, program);
    return r;
}

int ottl_condition_parse(struct bytes text, const struct ottl_dialect *d,
                         struct ottl_condition **ret, struct err *reterr)
{
    struct ottl_program *p;
    int r = program_make(text, false, d, &p, reterr);
    if (r == 0)
        *ret = container_of(p, struct ottl_condition, program);
    return r;
}

struct ottl_statement *ottl_statement_free(struct ottl_statement *s)
{
    if (s)
        program_free(&s->program);
    return NULL;
}

struct ottl_condition *ottl_condition_free(struct ottl_condition *c)
{
    if (c)
        program_free(&c->program);
    return NULL;
}

enum ottl_context ottl_statement_context(const struct ottl_statement *s)
{
    return s->program.context;
}

enum ottl_context ottl_condition_context(const struct ottl_condition *c)
{
    return c->program.context;
}

struct bytes ottl_statement_text(const struct ottl_statement *s)
{
    return s->program.text;
}

struct bytes ottl_condition_text(const struct ottl_condition *c)
{
    return c->program.text;
}

/* ---- inference over a group ---- */

static int parse_all(struct arena *a, const struct bytes *texts, size_t n, bool statements,
                     struct ottl_ast *ret, struct err *reterr)
{
    for (size_t i = 0; i < n; i++) {
        int r = ottl_parse(a, texts[i], statements, &ret[i], reterr);
        if (r == -EINVAL)
            about(reterr, statements ? "statement" : "condition", texts[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

int ottl_infer_context(const struct bytes *statements, size_t nstatements,
                       const struct bytes *conditions, size_t nconditions,
                       const struct ottl_dialect *d, enum ottl_context *ret, struct err *reterr)
{
    size_t n = nstatements + nconditions;
    _cleanup_(arena_freep) struct arena *a = arena_new(0);
    struct ottl_ast *asts = a ? arena_alloc(a, n * sizeof(*asts) + 1) : NULL;
    if (!asts)
        return -ENOMEM;
    int r = parse_all(a, statements, nstatements, true, asts, reterr);
    if (r == 0)
        r = parse_all(a, conditions, nconditions, false, asts + nstatements, reterr);
    if (r == 0 && (r = ottl_infer(asts, n, d, ret, reterr)) == -EINVAL && n)
        about(reterr, nstatements ? "statement" : "condition",
              *(nstatements ? statements : conditions));
    return r;
}
