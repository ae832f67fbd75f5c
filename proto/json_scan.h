/* JSON text token by token (RFC 8259), without a tree; for proto only. */
#ifndef MOTEL_PROTO_JSON_SCAN_H
#define MOTEL_PROTO_JSON_SCAN_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

#define JSON_MAX_SKIP_DEPTH 10000 /* of values that are skipped; the reference's limit */

struct json_scan {
    const uint8_t *start, *p, *end;
    struct buf *scratch; /* strings with escapes are put together here */
    struct err *err;     /* may be NULL */
    bool python;         /* NaN, Infinity and -Infinity are numbers, as Python writes them */
};

/* Sets the error "line L, column C: TEXT" about the place `at` and returns -EBADMSG, or -EILSEQ
 * where a byte that is not ASCII stands outside of a string (a byte order mark, say). */
int json_scan_fail(struct json_scan *s, const uint8_t *at, const char *fmt, ...) _printf_(3, 4);
/* The same with "expected WHAT, got ..." in words for the next byte. */
int json_scan_unexpected(struct json_scan *s, const char *what);

/* Skips white space; the next byte, or 0 at the end. */
static inline uint8_t json_scan_peek(struct json_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
    return s->p < s->end ? *s->p : 0;
}

/* Each reads one token that starts at the next byte: 0, -EBADMSG, -EILSEQ or -ENOMEM. */
/* A string. *ret is valid until the next string is read. Bytes that are not UTF-8 stay as they are;
 * lone surrogates become U+FFFD. */
int json_scan_string(struct json_scan *s, struct bytes *ret);
/* The text of a number. */
int json_scan_number(struct json_scan *s, struct bytes *ret);
/* true, false or null. */
int json_scan_word(struct json_scan *s, const char *word);
int json_scan_char(struct json_scan *s, char c);
/* The key of the next member of an object that is open, with its colon: 1, or 0 at the closing
 * brace. *first: set before the first call. */
int json_scan_key(struct json_scan *s, bool *first, struct bytes *ret);
/* Whether an open array has another element: 1, or 0 at the closing bracket. */
int json_scan_element(struct json_scan *s, bool *first);
/* A whole value of any kind, checked. */
int json_scan_skip(struct json_scan *s);

#endif
