/* RE2 syntax to PCRE2 syntax; the front half of agent/base/regex.c. */
#ifndef MOTEL_BASE_RE2_H
#define MOTEL_BASE_RE2_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

struct re2_names {
    char **items; /* of the groups in order; "" = unnamed */
    unsigned n;
};
/* Appends the translation of `pattern` to `out` and the group names to `names` (also when it fails:
 * free them). 0; -EINVAL with the reason and the character position in reterr; -ENOMEM. */
int re2_translate(struct bytes pattern, struct buf *out, struct re2_names *names,
                  struct err *reterr);
void re2_names_done(struct re2_names *names);

#endif
