/*
 * Regular expressions in RE2 syntax (https://github.com/google/re2/wiki/Syntax, as Go's regexp takes it): Perl-like,
 * leftmost-first, no look-around, no back-references, \d \w \s \b are ASCII. The pattern is checked by grammar, translated
 * and run by PCRE2. A compiled expression is read-only: any number of threads may match with it.
 */
#ifndef MOTEL_BASE_REGEX_H
#define MOTEL_BASE_REGEX_H

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"
#include "agent/base/err.h"

struct regex;
/* 0; -EINVAL with the reason and the character position in reterr; -ENOMEM. */
int regex_new(struct bytes pattern, struct regex **ret, struct err *reterr);
struct regex *regex_free(struct regex *re); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct regex *, regex_free)

/* Capturing groups, without the whole match. */
unsigned regex_groups(const struct regex *re);
/* Name of group 1..regex_groups(); "" when it has none. */
const char *regex_group_name(const struct regex *re, unsigned group);

struct regex_span {
    size_t from, to; /* byte offsets in the subject; from = REGEX_UNSET: the group took no part in the match */
};
#define REGEX_UNSET SIZE_MAX
/*
 * Searches `subject` (valid UTF-8) from byte `start` on; `^` and `\b` see what stands before it. True when there is a
 * match; then spans[0] is the whole match and spans[1..n-1] are the groups (n may be 0; what does not exist is unset).
 * A search that backtracks without end is cut off and counts as no match (regex_cut_off() says how often).
 */
bool regex_search(const struct regex *re, struct bytes subject, size_t start, struct regex_span *spans, unsigned n);
static inline bool regex_match(const struct regex *re, struct bytes subject)
{
    return regex_search(re, subject, 0, (struct regex_span *)0, 0);
}
unsigned long regex_cut_off(void);

#endif
