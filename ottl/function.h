/* What functions (editors and converters) are made of, and how they get at their arguments. */
#ifndef MOTEL_OTTL_FUNCTION_H
#define MOTEL_OTTL_FUNCTION_H

#include "ottl/env.h"

struct ottl_expr; /* a compiled expression: literal, path, converter call, arithmetic, list, map */
/* 0; -EINVAL with env->err; -ENOMEM. */
int ottl_expr_eval(const struct ottl_expr *x, struct ottl_env *env, struct ottl_value *ret);
/* The constant value of a literal; false when it is no literal. */
bool ottl_expr_literal(const struct ottl_expr *x, struct ottl_value *ret);

enum ottl_param_kind {
    OTTL_P_ANY,         /* any value, evaluated */
    OTTL_P_STRING,      /* a string, evaluated; anything else is an error at run time (or at the start when it is a literal) */
    OTTL_P_STRING_LIKE, /* evaluated and made text */
    OTTL_P_INT,         /* an int, evaluated */
    OTTL_P_INT_LIKE,
    OTTL_P_DOUBLE,
    OTTL_P_DOUBLE_LIKE,
    OTTL_P_BOOL,
    OTTL_P_BOOL_LIKE,
    OTTL_P_MAP,         /* a map, evaluated */
    OTTL_P_LIST,        /* a list, evaluated */
    OTTL_P_TIME,
    OTTL_P_DURATION,
    OTTL_P_BYTES_LIKE,
    OTTL_P_LITERAL_STRING, /* constants: the value is in arg->literal */
    OTTL_P_LITERAL_INT,
    OTTL_P_LITERAL_DOUBLE,
    OTTL_P_LITERAL_BOOL,
    OTTL_P_ENUM,
    OTTL_P_LIST_OF_ANY,    /* [a, b, c]: each evaluated, arg->list */
    OTTL_P_LIST_OF_STRINGS,/* [..] of OTTL_P_STRING */
    OTTL_P_LIST_OF_LITERAL_STRINGS, /* [..] of string constants: the values are in arg->literal, an OTTL_LIST of OTTL_STRING */
    OTTL_P_LIST_OF_STRING_LIKE,     /* [..] of OTTL_P_STRING_LIKE, or one expression that gives a list; read it by ottl_arg_list() */
    OTTL_P_TARGET,         /* a path that is written by ottl_arg_set(); ottl_arg_value() reads it as it is */
    OTTL_P_TARGET_MAP,     /* the same, and ottl_arg_value() wants a map */
    OTTL_P_FUNCTION,       /* the name of a converter of one argument, for replace_pattern(…, function) */
};
struct ottl_param {
    const char *name; /* "target"; for named arguments */
    enum ottl_param_kind kind;
    bool optional;
};
struct ottl_arg {
    bool given;
    const struct ottl_expr *expr;        /* evaluated kinds; NULL: the value is `literal` (a converter called by a function) */
    struct ottl_value literal;           /* literal kinds, enums */
    const struct ottl_expr *const *list; /* LIST_OF_* */
    size_t nlist;
    struct ottl_path path;               /* targets */
    const struct ottl_function *function;
};
struct ottl_call {
    const struct ottl_function *function;
    const struct ottl_arg *args; /* one per param, in their order */
    void *data;                  /* what prepare() made: a compiled regex … */
    unsigned column;
};
struct ottl_function {
    const char *name;               /* "set", "IsMatch" */
    const struct ottl_param *params; /* ended by a NULL name; NULL = none */
    unsigned contexts;              /* where it may be called; 0 = everywhere */
    /* At the start, when the arguments are known: checks and compiles. NULL = nothing to do. 0, -EINVAL with reterr, -ENOMEM. */
    int (*prepare)(struct ottl_call *c, struct err *reterr);
    void (*release)(void *data);
    /* Editors leave *ret nil. 0; -EINVAL with env->err; -ENOMEM. */
    int (*call)(const struct ottl_call *c, struct ottl_env *env, struct ottl_value *ret);
};
/* A function is an editor when its name begins with a lower-case letter. */

/* Evaluated arguments, checked and converted as their param kind says. An optional argument not given: `ret` is nil / *ret_given
 * false. 0; -EINVAL with env->err ("expected string but got int64"); -ENOMEM. */
int ottl_arg_value(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct ottl_value *ret);
/* The same for one element of a list argument. */
int ottl_arg_element(const struct ottl_call *c, unsigned i, size_t element, struct ottl_env *env, struct ottl_value *ret);
/* All elements of a list argument, evaluated and checked (nil where a StringLike is nil); however it was written. An optional argument
 * not given: NULL. */
int ottl_arg_list(const struct ottl_call *c, unsigned i, struct ottl_env *env, struct ottl_list **ret);
/* Writes through a target argument. */
int ottl_arg_set(const struct ottl_call *c, unsigned i, struct ottl_env *env, const struct ottl_value *v);

/* Function tables. */
extern const struct ottl_function ottl_editors[];        /* set, delete_key, replace_pattern … */
extern const struct ottl_function ottl_converters[];     /* Concat, IsMatch … */
extern const struct ottl_function ottl_metric_editors[]; /* convert_sum_to_gauge … */
/* The function of a name in the tables; NULL when there is none. */
const struct ottl_function *ottl_function_find(const struct ottl_function *const *tables, struct bytes name);

#endif
