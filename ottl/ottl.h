/*
 * Statements and conditions of the OpenTelemetry Transformation Language: compiled once, run on many records. A compiled
 * statement is read-only: any number of threads may run it, each with an environment of its own.
 */
#ifndef MOTEL_OTTL_H
#define MOTEL_OTTL_H

#include "ottl/env.h"
#include "ottl/function.h"

struct ottl_statement; /* editor(arguments) [where condition] */
struct ottl_condition; /* a boolean expression */

struct ottl_dialect {
    int context;                          /* enum ottl_context; -1 = inferred from the paths, the enums and the functions used */
    unsigned allowed;                     /* contexts that may be inferred or used, as OTTL_CONTEXT_BIT()s */
    bool prefix_required;                 /* paths of the own context need their prefix too (flat style) */
    const struct ottl_function *const *functions; /* tables, NULL ended; each table ends with a NULL name */
};

/* 0; -EINVAL: text says what was expected and what was found, reterr->column (1-based, characters) where in the statement; an
 * unknown name suggests the nearest. -ENOMEM. `text` is copied. */
int ottl_statement_parse(struct bytes text, const struct ottl_dialect *d, struct ottl_statement **ret, struct err *reterr);
int ottl_condition_parse(struct bytes text, const struct ottl_dialect *d, struct ottl_condition **ret, struct err *reterr);
struct ottl_statement *ottl_statement_free(struct ottl_statement *s); /* NULL ok; returns NULL */
struct ottl_condition *ottl_condition_free(struct ottl_condition *c);
DEFINE_CLEANUP(struct ottl_statement *, ottl_statement_free)
DEFINE_CLEANUP(struct ottl_condition *, ottl_condition_free)
enum ottl_context ottl_statement_context(const struct ottl_statement *s);
enum ottl_context ottl_condition_context(const struct ottl_condition *c);
/*
 * The lowest context that all of the texts (statements, then conditions) can be evaluated in, for configurations that name none: e.g.
 * span + resource -> span. 0 or -EINVAL: nothing to infer from, or paths that do not go together.
 */
int ottl_infer_context(const struct bytes *statements, size_t nstatements, const struct bytes *conditions, size_t nconditions,
                       const struct ottl_dialect *d, enum ottl_context *ret, struct err *reterr);
/* The text as given, for logs. */
struct bytes ottl_statement_text(const struct ottl_statement *s);
struct bytes ottl_condition_text(const struct ottl_condition *c);

/* Runs the statement when its condition holds. 0; -EINVAL with env->err; -ENOMEM. `ret_ran` may be NULL. */
int ottl_statement_run(const struct ottl_statement *s, struct ottl_env *env, bool *ret_ran);
int ottl_condition_eval(const struct ottl_condition *c, struct ottl_env *env, bool *ret);
/* Puts "…" in place of what the error of a run quotes, unless it is in the statement too: for logs and clients, who are not to see the
 * values of attributes. */
void ottl_hide_values(struct err *e, struct bytes statement);
/* For a mistake in a text that holds the value of a variable, which may be a secret: `e` tells the column alone. */
void ottl_hide_text(struct err *e);

#endif
