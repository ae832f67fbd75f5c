/* Glob patterns over attribute names, whose parts are separated by ".". */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_GLOB_H
#define MOTEL_CONNECTORS_SPAN_METRICS_GLOB_H

#include "agent/base/regex.h"

/*
 * `*` any characters but ".", `**` any characters, `?` one character but ".", `[abc]`, `[a-z]`, `[!a-z]` one of (not of) these, `{a,b}` either,
 * `\` takes the next character as it is. 0; -EINVAL with the reason in reterr; -ENOMEM.
 */
int glob_compile(const char *pattern, struct regex **ret, struct err *reterr);

#endif
