/* Go's fmt.Sprintf for values of the language. */
#ifndef MOTEL_OTTL_FORMAT_H
#define MOTEL_OTTL_FORMAT_H

#include "ottl/value.h"

/*
 * Appends `format` with its verbs filled in: %v %s %q %d %x %X %o %O %b %c %U %t %e %E %f %F %g %G %T %%, flags "+-# 0", width and
 * precision (also *), [n]. What does not fit is shown as Go shows it: "%!d(string=x)", "%!s(MISSING)", "%!(EXTRA int64=1)".
 * 0, -ENOMEM or -EMSGSIZE.
 */
int ottl_format(struct bytes format, const struct ottl_value *args, size_t n, struct buf *out);

#endif
