/* The words of a statement or condition. */
#ifndef MOTEL_OTTL_LEXER_H
#define MOTEL_OTTL_LEXER_H

#include "agent/base/arena.h"
#include "agent/base/bytes.h"
#include "agent/base/err.h"

enum ottl_token_kind {
    OTTL_T_END, /* the end of the text; always the last token */
    OTTL_T_BYTES,
    OTTL_T_FLOAT,
    OTTL_T_INT,
    OTTL_T_STRING, /* with its quotes */
    OTTL_T_NIL,
    OTTL_T_NOT,
    OTTL_T_OR,
    OTTL_T_AND,
    OTTL_T_BOOL,
    OTTL_T_COMPARISON, /* == != < <= > >= */
    OTTL_T_ARROW,      /* => */
    OTTL_T_SIGN,       /* + - */
    OTTL_T_FACTOR,     /* * / */
    OTTL_T_EQUAL,
    OTTL_T_LPAREN,
    OTTL_T_RPAREN,
    OTTL_T_LBRACE,
    OTTL_T_RBRACE,
    OTTL_T_COLON,
    OTTL_T_COMMA,
    OTTL_T_DOT,
    OTTL_T_LBRACKET,
    OTTL_T_RBRACKET,
    OTTL_T_UPPER,      /* [A-Z][A-Z0-9_]* : an enum symbol, or the beginning of a name like "IsMatch" */
    OTTL_T_LOWER,      /* [a-z][a-z0-9_]* */
    OTTL_T_UNDERSCORE,
};
struct ottl_token {
    enum ottl_token_kind kind;
    unsigned line, column; /* 1-based; columns are characters */
    struct bytes text;     /* a part of the statement */
};

/*
 * All tokens of `text`, made in `a`; they point into the text. 0; -EINVAL: a character that begins no token, or a string without an
 * end; -ENOMEM.
 */
int ottl_lex(struct arena *a, struct bytes text, const struct ottl_token **ret, struct err *reterr);
/*
 * What a string token means: the escapes of Go (\n, \", \\, \x41, \101, \u00e9, \U0001f600 …). What is not UTF-8 becomes U+FFFD, as
 * everywhere else in telemetry. 0, -EINVAL for an escape that does not exist, -ENOMEM.
 */
int ottl_unquote(struct arena *a, const struct ottl_token *t, struct bytes *ret, struct err *reterr);
/* Fills the text ("invalid syntax at 1:5 near `…`: " and what `fmt` says) and the column; -EINVAL. */
int ottl_syntax_error(struct err *e, const struct ottl_token *at, const char *fmt, ...) _printf_(3, 4);

#endif
