/* What a text is compiled to. Read-only once it is made; used by the compiler and the evaluator only. */
#ifndef MOTEL_OTTL_EXPR_H
#define MOTEL_OTTL_EXPR_H

#include "ottl/ast.h"
#include "ottl/ottl.h"

enum ottl_expr_kind {
    OTTL_X_LITERAL,
    OTTL_X_PATH,
    OTTL_X_CALL,
    OTTL_X_LIST,
    OTTL_X_MAP,
    OTTL_X_MINUS,
    OTTL_X_MATH,
};
struct ottl_operand {
    char op; /* + - * / before it; the first one has none */
    const struct ottl_expr *expr;
};
struct ottl_expr {
    enum ottl_expr_kind kind;
    union {
        struct ottl_value literal;
        struct ottl_path path;
        struct {
            const struct ottl_call *call;
            const struct ottl_key *keys; /* of the result */
            unsigned nkeys;
        };
        struct {
            const struct ottl_expr **items; /* elements, or the values of `keys` */
            const struct bytes *names;      /* MAP: the keys */
            size_t nitems;
        };
        const struct ottl_expr *negated;
        struct {
            const struct ottl_operand *operands; /* from left to right */
            size_t noperands;
        };
    };
};

enum ottl_truth_kind { OTTL_B_CONST, OTTL_B_CALL, OTTL_B_COMPARE, OTTL_B_NOT, OTTL_B_AND, OTTL_B_OR };
struct ottl_truth {
    enum ottl_truth_kind kind;
    bool value;                      /* CONST */
    enum ottl_compare_op op;         /* COMPARE */
    const struct ottl_expr *a, *b;   /* COMPARE; CALL: a */
    const struct ottl_truth **parts; /* NOT: one; AND, OR */
    size_t nparts;
};
int ottl_truth_eval(const struct ottl_truth *t, struct ottl_env *env, bool *ret);
/* As ottl_expr_eval(), but lists and maps of literals are lent: the result must not be edited. */
int ottl_expr_peek(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret);
/* a `op` b over numbers, times and durations. 0; -EINVAL with reterr; -ENOMEM. */
int ottl_math(struct arena *a, const struct ottl_value *x, char op, const struct ottl_value *y,
              struct ottl_value *ret, struct err *reterr);
int ottl_minus(const struct ottl_value *x, struct ottl_value *ret, struct err *reterr);
/* Brings a value to what the kind asks for; nil stays nil for the ..._LIKE kinds. 0; -EINVAL with reterr; -ENOMEM. */
int ottl_convert(struct arena *a, enum ottl_param_kind kind, struct ottl_value *v, struct err *reterr);
/* The kind of the elements of a list kind. */
enum ottl_param_kind ottl_element_kind(enum ottl_param_kind list);

/* A compiled call and its place in the list of those to be released. */
struct ottl_made_call {
    struct ottl_call call;
    struct ottl_made_call *next;
};
struct ottl_program {
    struct arena *arena; /* all of it, and this struct */
    struct bytes text;
    enum ottl_context context;
    const struct ottl_expr *editor; /* NULL in a condition */
    const struct ottl_truth *condition;
    struct ottl_made_call *calls;
};
struct ottl_statement {
    struct ottl_program program;
};
struct ottl_condition {
    struct ottl_program program;
};

/* ---- the compiler ---- */

struct ottl_compiler {
    struct ottl_program *program;
    const struct ottl_dialect *dialect;
    enum ottl_context context;
    struct err *err;
};
/* Each: 0; -EINVAL with c->err; -ENOMEM. */
int ottl_compile_expr(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_expr **ret);
int ottl_compile_path(struct ottl_compiler *c, const struct ottl_node *n, struct ottl_path *ret);
int ottl_compile_call(struct ottl_compiler *c, const struct ottl_node *n, const struct ottl_call **ret);
int ottl_compile_truth(struct ottl_compiler *c, const struct ottl_node *n, const struct ottl_truth **ret);
int ottl_compile_enum(struct ottl_compiler *c, const struct ottl_node *n, int64_t *ret);
/* The text, then the place: "… (column 5)". -EINVAL. */
int ottl_compile_error(struct ottl_compiler *c, const struct ottl_token *at, const char *fmt, ...) _printf_(3, 4);
/* "\"a\", \"b\"": the names of a set of contexts, each with ".`path`" behind it when that is not empty. */
const char *ottl_context_list(unsigned contexts, struct bytes path, char *out, size_t size);

/* The lowest context that the texts can be evaluated in; ottl.h. */
int ottl_infer(const struct ottl_ast *texts, size_t n, const struct ottl_dialect *d,
               enum ottl_context *ret, struct err *reterr);

#endif
