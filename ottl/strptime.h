/*
 * Times by the directives of strptime, with the reference's additions: %Y %y, month %m %o %q %b %h %B, day %d %e %g, weekday %a %A,
 * hour %H %I %l with %p %P, %M %S, fraction %L %f %s behind a dot or comma, zone %z %w %i %j %k %Z, and %D %x %F %T %X %r %R %c %n %t %%.
 */
#ifndef MOTEL_OTTL_STRPTIME_H
#define MOTEL_OTTL_STRPTIME_H

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "ottl/zone.h"

/* 0, or -EINVAL with what is wrong with the format. */
int strptime_check(struct bytes format, struct err *reterr);
/*
 * Reads `text` by a checked format. Without a zone in it the time is of `zone`, or of the system's zone when that is NULL. A time without
 * a year is of this year, or of the last one when it would be more than a week ahead of `now_ns`. 0; -EINVAL with reterr; -ENOMEM.
 */
int strptime_parse(struct bytes format, struct bytes text, const struct zone *zone, int64_t now_ns, int64_t *ret_ns, struct err *reterr);
/* Appends the time in UTC by a checked format. 0, -ENOMEM or -EMSGSIZE. */
int strptime_format(struct bytes format, int64_t ns, struct buf *out);

#endif
