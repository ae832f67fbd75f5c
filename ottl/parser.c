/*
 * Recursive descent over the tokens. The language needs a second look in one place only: a
 * parenthesis in a condition may open arithmetic or a condition. Of all that did not fit, the
 * furthest place is what the person is told.
 */
#include <errno.h>

#include "agent/base/encode.h"
#include "agent/base/number.h"
#include "ottl/ast.h"

struct parser {
    struct arena *arena;
    const struct ottl_token *t; /* the next token */
    unsigned depth;
    bool final; /* the error is set and trying something else cannot help */
    const struct ottl_token *furthest;
    const char *expected; /* there */
    struct err *err;
};

static int parse_value(struct parser *p, bool argument, struct ottl_node **ret);
static int parse_sum(struct parser *p, struct ottl_node **ret);
static int parse_or(struct parser *p, struct ottl_node **ret);

static int fail(struct parser *p, const char *expected)
{
    if (!p->furthest || p->t > p->furthest) {
        p->furthest = p->t;
        p->expected = expected;
    }
    return -EINVAL;
}

static int fail_at(struct parser *p, const struct ottl_token *at, const char *text)
{
    p->final = true;
    return ottl_syntax_error(p->err, at, "%s", text);
}

static bool accept(struct parser *p, enum ottl_token_kind kind)
{
    if (p->t->kind != kind)
        return false;
    p->t++;
    return true;
}

static int expect(struct parser *p, enum ottl_token_kind kind, const char *what)
{
    return accept(p, kind) ? 0 : fail(p, what);
}

static int enter(struct parser *p)
{
    if (++p->depth > OTTL_DEPTH_MAX)
        return fail_at(p, p->t, "nested more than 64 levels deep");
    return 0;
}

static void leave(struct parser *p)
{
    p->depth--;
}

static struct ottl_node *new_node(struct parser *p, enum ottl_node_kind kind,
                                  const struct ottl_token *at)
{
    struct ottl_node *n = arena_calloc(p->arena, sizeof(*n));
    if (!n) {
        p->final = true;
        return NULL;
    }
    n->kind = kind;
    n->at = at;
    return n;
}

static void add_child(struct ottl_node *n, struct ottl_node *child)
{
    if (n->last)
        n->last->next = child;
    else
        n->first = child;
    n->last = child;
}

/* ---- literals ---- */

/* Go's ParseInt with base 0: a leading zero makes it octal. */
static bool parse_int(struct bytes s, int64_t *ret)
{
    int64_t v = 0;
    if (s.data[0] != '0')
        return number_parse_int(s, ret);
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] > '7' || v > INT64_MAX / 8)
            return false;
        v = v * 8 + (s.data[i] - '0');
    }
    *ret = v;
    return true;
}

static int parse_bytes(struct parser *p, const struct ottl_token *t, struct bytes *ret)
{
    struct bytes hex = bytes_of(t->text.data + 2, t->text.len - 2);
    uint8_t *out = arena_alloc(p->arena, hex.len);
    if (!out) {
        p->final = true;
        return -ENOMEM;
    }
    *ret = bytes_of(out, hex.len / 2);
    if (!decode_hex(hex, out))
        return fail_at(p, t, "byte literals must have an even number of hexadecimal digits");
    return 0;
}

static int literal_value(struct parser *p, const struct ottl_token *t, struct ottl_value *ret)
{
    int r = 0;
    switch (t->kind) {
    case OTTL_T_NIL: *ret = ottl_nil(); return 0;
    case OTTL_T_BOOL: *ret = ottl_bool(t->text.data[0] == 't'); return 0;
    case OTTL_T_INT:
        ret->kind = OTTL_INT;
        return parse_int(t->text, &ret->i) ? 0 : fail_at(p, t, "not a 64-bit integer");
    case OTTL_T_FLOAT:
        ret->kind = OTTL_DOUBLE;
        return number_parse_double(t->text, &ret->d) ? 0 : fail_at(p, t, "not a 64-bit float");
    case OTTL_T_STRING:
        ret->kind = OTTL_STRING;
        if ((r = ottl_unquote(p->arena, t, &ret->bytes, p->err)) < 0)
            p->final = true;
        return r;
    default: ret->kind = OTTL_BYTES; return parse_bytes(p, t, &ret->bytes);
    }
}

static int parse_literal(struct parser *p, struct ottl_node **ret)
{
    struct ottl_node *n = new_node(p, OTTL_N_LITERAL, p->t);
    if (!n)
        return -ENOMEM;
    int r = literal_value(p, p->t++, &n->value);
    *ret = n;
    return r;
}

/* ---- names, paths, calls ---- */

static bool is_name_part(const struct ottl_token *t)
{
    return t->kind == OTTL_T_UPPER || t->kind == OTTL_T_LOWER;
}

/* The name of a function is made of pieces ("I" "s" "M" "atch"), between which there may even be
 * space. */
static const struct ottl_token *name_end(const struct ottl_token *t)
{
    while (is_name_part(t))
        t++;
    return t;
}

static int join_name(struct parser *p, const struct ottl_token *from, const struct ottl_token *to,
                     struct bytes *ret)
{
    size_t n = 0;
    for (const struct ottl_token *t = from; t < to; t++)
        n += t->text.len;
    if (from->text.data + n == to[-1].text.data + to[-1].text.len) {
        *ret = bytes_of(from->text.data, n);
        return 0;
    }
    uint8_t *out = arena_alloc(p->arena, n);
    if (!out) {
        p->final = true;
        return -ENOMEM;
    }
    *ret = bytes_of(out, n);
    for (; from < to; out += from->text.len, from++)
        memcpy(out, from->text.data, from->text.len);
    return 0;
}

static int parse_key(struct parser *p, struct ottl_node **ret)
{
    if (p->t->kind == OTTL_T_STRING || p->t->kind == OTTL_T_INT)
        return parse_literal(p, ret);
    int r = enter(p);
    if (r == 0)
        r = parse_sum(p, ret);
    leave(p);
    return r;
}

static int parse_keys(struct parser *p, struct ottl_node *n)
{
    while (p->t->kind == OTTL_T_LBRACKET) {
        struct ottl_node *key;
        if (!n->keys && !(n->keys = new_node(p, OTTL_N_LIST, p->t)))
            return -ENOMEM;
        p->t++;
        int r = parse_key(p, &key);
        if (r == 0)
            r = expect(p, OTTL_T_RBRACKET, "\"]\"");
        if (r < 0)
            return r;
        add_child(n->keys, key);
    }
    return 0;
}

static int parse_argument(struct parser *p, struct ottl_node **ret)
{
    const struct ottl_token *from = p->t, *end = name_end(from);
    struct bytes label = {NULL, 0};
    int r = 0;
    if (from->kind == OTTL_T_LOWER && end->kind == OTTL_T_EQUAL) {
        r = join_name(p, from, end, &label);
        p->t = end + 1;
    }
    if (r == 0)
        r = parse_value(p, true, ret);
    if (r == 0)
        (*ret)->label = label;
    return r;
}

static int parse_arguments(struct parser *p, struct ottl_node *call)
{
    struct ottl_node *argument;
    int r;
    if (accept(p, OTTL_T_RPAREN))
        return 0;
    do {
        if ((r = parse_argument(p, &argument)) < 0)
            return r;
        add_child(call, argument);
    } while (accept(p, OTTL_T_COMMA));
    return expect(p, OTTL_T_RPAREN, "\",\" or \")\"");
}

/* `end`: the parenthesis behind the name. */
static int parse_call(struct parser *p, const struct ottl_token *end, struct ottl_node **ret)
{
    struct ottl_node *n = new_node(p, OTTL_N_CALL, p->t);
    if (!n)
        return -ENOMEM;
    int r = join_name(p, p->t, end, &n->name);
    p->t = end + 1;
    if (r == 0 && (r = enter(p)) == 0)
        r = parse_arguments(p, n);
    leave(p);
    *ret = n;
    return r < 0 ? r : parse_keys(p, n);
}

static int parse_path(struct parser *p, struct ottl_node **ret)
{
    struct ottl_node *n = new_node(p, OTTL_N_PATH, p->t);
    if (!n)
        return -ENOMEM;
    do {
        if (p->t->kind != OTTL_T_LOWER)
            return fail(p, "the name of a field");
        struct ottl_node *segment = new_node(p, OTTL_N_SEGMENT, p->t);
        if (!segment)
            return -ENOMEM;
        segment->name = p->t++->text;
        add_child(n, segment);
        int r = parse_keys(p, segment);
        if (r < 0)
            return r;
    } while (accept(p, OTTL_T_DOT));
    n->name = bytes_of(n->at->text.data,
                       (size_t)(p->t[-1].text.data - n->at->text.data) + p->t[-1].text.len);
    *ret = n;
    return 0;
}

/* ---- arithmetic ---- */

static int parse_group(struct parser *p, struct ottl_node **ret)
{
    int r = enter(p);
    p->t++;
    if (r == 0)
        r = parse_sum(p, ret);
    leave(p);
    if (r == 0)
        r = expect(p, OTTL_T_RPAREN, "\")\"");
    if (r == 0)
        (*ret)->wrapped = true;
    return r;
}

static int parse_unsigned(struct parser *p, struct ottl_node **ret)
{
    if (p->t->kind == OTTL_T_LPAREN)
        return parse_group(p, ret);
    if (p->t->kind == OTTL_T_INT || p->t->kind == OTTL_T_FLOAT)
        return parse_literal(p, ret);
    if (!is_name_part(p->t))
        return fail(p, "a number, a path, a converter or \"(\"");
    const struct ottl_token *end = name_end(p->t);
    if (end->kind == OTTL_T_LPAREN)
        return parse_call(p, end, ret);
    if (p->t->kind == OTTL_T_LOWER)
        return parse_path(p, ret);
    return fail(p, "a number, a path, a converter or \"(\"");
}

static int negate(struct parser *p, const struct ottl_token *at, struct ottl_node **n)
{
    struct ottl_node *child = *n;
    if (child->kind == OTTL_N_LITERAL && !child->wrapped && child->value.kind == OTTL_INT) {
        child->value.i = (int64_t)(0 - (uint64_t)child->value.i);
    } else if (child->kind == OTTL_N_LITERAL && !child->wrapped) {
        child->value.d = -child->value.d;
    } else {
        if (!(*n = new_node(p, OTTL_N_MINUS, at)))
            return -ENOMEM;
        add_child(*n, child);
    }
    (*n)->wrapped = true;
    return 0;
}

static int parse_operand(struct parser *p, struct ottl_node **ret)
{
    const struct ottl_token *sign = p->t;
    bool is_signed = accept(p, OTTL_T_SIGN);
    int r = parse_unsigned(p, ret);
    if (r < 0 || !is_signed)
        return r;
    (*ret)->at = sign;
    if (sign->text.data[0] == '-')
        return negate(p, sign, ret);
    (*ret)->wrapped = true;
    return 0;
}

/* operand {op operand}: one operand stays what it is. */
static int parse_chain(struct parser *p, enum ottl_token_kind op,
                       int (*operand)(struct parser *, struct ottl_node **), struct ottl_node **ret)
{
    const struct ottl_token *from = p->t;
    struct ottl_node *n;
    int r = operand(p, ret);
    if (r < 0 || p->t->kind != op)
        return r;
    if (!(n = new_node(p, OTTL_N_MATH, from)))
        return -ENOMEM;
    add_child(n, *ret);
    while (p->t->kind == op) {
        char sign = (char)p->t++->text.data[0];
        if ((r = operand(p, ret)) < 0)
            return r;
        (*ret)->op = sign;
        add_child(n, *ret);
    }
    *ret = n;
    return 0;
}

static int parse_product(struct parser *p, struct ottl_node **ret)
{
    return parse_chain(p, OTTL_T_FACTOR, parse_operand, ret);
}

static int parse_sum(struct parser *p, struct ottl_node **ret)
{
    return parse_chain(p, OTTL_T_SIGN, parse_product, ret);
}

/* ---- values ---- */

static int parse_list(struct parser *p, struct ottl_node *n)
{
    struct ottl_node *element;
    int r;
    if (accept(p, OTTL_T_RBRACKET))
        return 0;
    do {
        if ((r = parse_value(p, false, &element)) < 0)
            return r;
        add_child(n, element);
    } while (accept(p, OTTL_T_COMMA));
    return expect(p, OTTL_T_RBRACKET, "\",\" or \"]\"");
}

/* The comma between entries may be left out, and one may stand behind the last. */
static int parse_map(struct parser *p, struct ottl_node *n)
{
    while (!accept(p, OTTL_T_RBRACE)) {
        struct ottl_node *key, *value;
        if (p->t->kind != OTTL_T_STRING)
            return fail(p, "a string as key, or \"}\"");
        int r = parse_literal(p, &key);
        if (r == 0)
            r = expect(p, OTTL_T_COLON, "\":\"");
        if (r == 0)
            r = parse_value(p, false, &value);
        if (r < 0)
            return r;
        value->label = key->value.bytes;
        add_child(n, value);
        accept(p, OTTL_T_COMMA);
    }
    return 0;
}

static int parse_collection(struct parser *p, struct ottl_node **ret)
{
    bool list = p->t->kind == OTTL_T_LBRACKET;
    struct ottl_node *n = new_node(p, list ? OTTL_N_LIST : OTTL_N_MAP, p->t);
    if (!n)
        return -ENOMEM;
    int r = enter(p);
    p->t++;
    if (r == 0)
        r = list ? parse_list(p, n) : parse_map(p, n);
    leave(p);
    *ret = n;
    return r;
}

static bool is_lambda(const struct ottl_token *t)
{
    do
        t++;
    while (t->kind == OTTL_T_LOWER || t->kind == OTTL_T_UNDERSCORE || t->kind == OTTL_T_COMMA);
    return t->kind == OTTL_T_RPAREN && t[1].kind == OTTL_T_ARROW;
}

/* An enum symbol, or (as an argument) the bare name of a function. */
static int parse_symbol(struct parser *p, const struct ottl_token *end, bool argument,
                        struct ottl_node **ret)
{
    bool symbol = p->t[1].kind != OTTL_T_LOWER;
    if (!symbol && !argument)
        return fail(p, "an enum symbol, or \"(\" behind the name of a converter");
    struct ottl_node *n = new_node(p, symbol ? OTTL_N_ENUM : OTTL_N_FUNCTION, p->t);
    if (!n)
        return -ENOMEM;
    *ret = n;
    const struct ottl_token *from = p->t;
    p->t = symbol ? from + 1 : end;
    return join_name(p, from, p->t, &n->name);
}

static int parse_value(struct parser *p, bool argument, struct ottl_node **ret)
{
    switch (p->t->kind) {
    case OTTL_T_NIL:
    case OTTL_T_BOOL:
    case OTTL_T_STRING:
    case OTTL_T_BYTES: return parse_literal(p, ret);
    case OTTL_T_LBRACKET:
    case OTTL_T_LBRACE: return parse_collection(p, ret);
    case OTTL_T_LPAREN:
        if (is_lambda(p->t))
            return fail_at(p, p->t, "lambda expressions are not supported");
        return parse_sum(p, ret);
    case OTTL_T_UPPER: {
        const struct ottl_token *end = name_end(p->t);
        if (end->kind != OTTL_T_LPAREN)
            return parse_symbol(p, end, argument, ret);
        return parse_sum(p, ret);
    }
    case OTTL_T_LOWER:
    case OTTL_T_INT:
    case OTTL_T_FLOAT:
    case OTTL_T_SIGN: return parse_sum(p, ret);
    default: return fail(p, "a value");
    }
}

/* ---- conditions ---- */

static enum ottl_compare_op compare_op(struct bytes s)
{
    switch (s.data[0]) {
    case '=': return OTTL_EQ;
    case '!': return OTTL_NE;
    case '<': return s.len == 2 ? OTTL_LE : OTTL_LT;
    default: return s.len == 2 ? OTTL_GE : OTTL_GT;
    }
}

static int parse_comparison(struct parser *p, struct ottl_node *left, struct ottl_node **ret)
{
    struct ottl_node *n = new_node(p, OTTL_N_COMPARE, p->t), *right;
    if (!n)
        return -ENOMEM;
    n->compare = compare_op(p->t++->text);
    int r = parse_value(p, false, &right);
    if (r < 0)
        return r;
    add_child(n, left);
    add_child(n, right);
    *ret = n;
    return 0;
}

static bool stands_alone(const struct ottl_node *n)
{
    return !n->wrapped &&
           (n->kind == OTTL_N_CALL || (n->kind == OTTL_N_LITERAL && n->value.kind == OTTL_BOOL));
}

static int parse_subcondition(struct parser *p, struct ottl_node **ret)
{
    int r = enter(p);
    p->t++;
    if (r == 0)
        r = parse_or(p, ret);
    leave(p);
    return r < 0 ? r : expect(p, OTTL_T_RPAREN, "\")\"");
}

static int parse_truth(struct parser *p, struct ottl_node **ret)
{
    const struct ottl_token *from = p->t;
    int r = parse_value(p, false, ret);
    if (r == 0 && p->t->kind == OTTL_T_COMPARISON)
        return parse_comparison(p, *ret, ret);
    if (r == 0 && stands_alone(*ret))
        return 0;
    if (r == 0)
        r = fail(p, "a comparison such as \"==\"");
    if (p->final || from->kind != OTTL_T_LPAREN)
        return r;
    p->t = from;
    return parse_subcondition(p, ret);
}

static int parse_not(struct parser *p, struct ottl_node **ret)
{
    const struct ottl_token *at = p->t;
    if (!accept(p, OTTL_T_NOT))
        return parse_truth(p, ret);
    struct ottl_node *child, *n = new_node(p, OTTL_N_NOT, at);
    if (!n)
        return -ENOMEM;
    int r = parse_truth(p, &child);
    if (r < 0)
        return r;
    add_child(n, child);
    *ret = n;
    return 0;
}

static int parse_joined(struct parser *p, enum ottl_token_kind word, enum ottl_node_kind kind,
                        int (*part)(struct parser *, struct ottl_node **), struct ottl_node **ret)
{
    const struct ottl_token *from = p->t;
    struct ottl_node *n;
    int r = part(p, ret);
    if (r < 0 || p->t->kind != word)
        return r;
    if (!(n = new_node(p, kind, from)))
        return -ENOMEM;
    add_child(n, *ret);
    while (accept(p, word)) {
        if ((r = part(p, ret)) < 0)
            return r;
        add_child(n, *ret);
    }
    *ret = n;
    return 0;
}

static int parse_and(struct parser *p, struct ottl_node **ret)
{
    return parse_joined(p, OTTL_T_AND, OTTL_N_AND, parse_not, ret);
}

static int parse_or(struct parser *p, struct ottl_node **ret)
{
    return parse_joined(p, OTTL_T_OR, OTTL_N_OR, parse_and, ret);
}

/* ---- whole texts ---- */

static int parse_editor(struct parser *p, struct ottl_node **ret)
{
    const struct ottl_token *end = name_end(p->t);
    if (!is_name_part(p->t))
        return fail(p, "the name of an editor, such as \"set\"");
    if (end->kind != OTTL_T_LPAREN) {
        p->t = end;
        return fail(p, "\"(\"");
    }
    return parse_call(p, end, ret);
}

static int parse_statement(struct parser *p, struct ottl_ast *ret)
{
    int r = parse_editor(p, &ret->call);
    if (r < 0)
        return r;
    if (p->t->kind == OTTL_T_LOWER && bytes_eq_str(p->t->text, "where")) {
        p->t++;
        r = parse_or(p, &ret->condition);
    }
    return r < 0 || accept(p, OTTL_T_END) ? r : fail(p, "the end, or \"where\" and a condition");
}

static int parse_condition(struct parser *p, struct ottl_ast *ret)
{
    int r = parse_or(p, &ret->condition);
    return r < 0 || accept(p, OTTL_T_END) ? r : fail(p, "\"and\", \"or\" or the end");
}

int ottl_parse(struct arena *a, struct bytes text, bool statement, struct ottl_ast *ret,
               struct err *reterr)
{
    struct parser p = {.arena = a, .err = reterr};
    *ret = (struct ottl_ast){NULL, NULL};
    int r = ottl_lex(a, text, &p.t, reterr);
    if (r == 0) {
        r = statement ? parse_statement(&p, ret) : parse_condition(&p, ret);
        if (r == -EINVAL && !p.final)
            ottl_syntax_error(reterr, p.furthest, "expected %s", p.expected);
    }
    if (r == -EINVAL)
        err_prefix(reterr, "%s has ", statement ? "statement" : "condition");
    return r;
}
