/* Patterns of replace_match() and replace_all_matches(): * any text, ? one character, [abc] [!abc] [a-z], {a,b*}, \ takes the meaning away. */
#ifndef MOTEL_OTTL_GLOB_H
#define MOTEL_OTTL_GLOB_H

#include "agent/base/regex.h"

/* The expression that matches the whole of what the pattern does. 0; -EINVAL with the reason in reterr; -ENOMEM. */
int ottl_glob_new(struct bytes pattern, struct regex **ret, struct err *reterr);

#endif
