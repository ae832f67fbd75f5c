/* Replacing what a regular expression matches, as Go's Regexp.ReplaceAllString does. */
#ifndef MOTEL_BASE_REGEX_REPLACE_H
#define MOTEL_BASE_REGEX_REPLACE_H

#include "agent/base/buf.h"
#include "agent/base/regex.h"

/* One match: spans[0] is all of it, the others are the groups. */
struct regex_found {
    const struct regex *re;
    struct bytes subject;
    const struct regex_span *spans;
    unsigned n;
};
/*
 * Appends `text` with $1, ${1}, $name and ${name} replaced by the groups of the match and $$ by $. The name behind a $ is as long
 * as it can be ($1x is the group "1x"); a group that does not exist or took no part is empty; a $ without a name stays. 0, -ENOMEM
 * or -EMSGSIZE.
 */
int regex_expand(const struct regex_found *m, struct bytes text, struct buf *out);
/* Appends `subject` with each match replaced by what put() appends; its first negative answer ends it and is returned. */
int regex_replace(const struct regex *re, struct bytes subject,
                  int (*put)(void *ctx, const struct regex_found *m, struct buf *out), void *ctx, struct buf *out);
/* The same with regex_expand() of `text`. */
int regex_replace_text(const struct regex *re, struct bytes subject, struct bytes text, struct buf *out);

#endif
