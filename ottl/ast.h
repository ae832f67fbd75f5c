/* What a statement or condition says, before it is known what its names mean. Everything lives in the arena of the parse. */
#ifndef MOTEL_OTTL_AST_H
#define MOTEL_OTTL_AST_H

#include "ottl/lexer.h"
#include "ottl/value.h"

enum ottl_node_kind {
    OTTL_N_LITERAL,  /* value: nil, bool, int, double, string, bytes */
    OTTL_N_ENUM,     /* name */
    OTTL_N_FUNCTION, /* name of a converter, as an argument */
    OTTL_N_PATH,     /* children: segments */
    OTTL_N_SEGMENT,  /* name; keys */
    OTTL_N_CALL,     /* name; children: arguments, `label` = the argument's name or empty; keys */
    OTTL_N_LIST,     /* children: elements */
    OTTL_N_MAP,      /* children: values, `label` = their keys */
    OTTL_N_MINUS,    /* child */
    OTTL_N_MATH,     /* children: operands, `op` of each but the first; worked out from left to right */
    OTTL_N_COMPARE,  /* two children; compare */
    OTTL_N_NOT,      /* child */
    OTTL_N_AND,      /* children */
    OTTL_N_OR,
};
struct ottl_node {
    enum ottl_node_kind kind;
    bool wrapped; /* in parentheses or behind a sign: no longer a bare literal or path, which some parameters ask for */
    char op;
    enum ottl_compare_op compare;
    const struct ottl_token *at;
    struct bytes name, label;
    struct ottl_value value;
    struct ottl_node *first, *last; /* children */
    struct ottl_node *keys;         /* expressions in brackets, as children of a list node; NULL = none */
    struct ottl_node *next;
};
struct ottl_ast {
    struct ottl_node *call;      /* the editor; NULL in a condition */
    struct ottl_node *condition; /* NULL = always */
};

/* `text` must live as long as `a`. 0; -EINVAL with text and column: the furthest place that makes no sense; -ENOMEM. */
int ottl_parse(struct arena *a, struct bytes text, bool statement, struct ottl_ast *ret, struct err *reterr);
/* Nesting of parentheses, calls, lists, maps and keys; deeper is refused, so that no text can exhaust the stack. */
#define OTTL_DEPTH_MAX 64

#endif
