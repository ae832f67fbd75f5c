/* Time zones of the system's database (/usr/share/zoneinfo or $TZDIR; RFC 8536). */
#ifndef MOTEL_OTTL_ZONE_H
#define MOTEL_OTTL_ZONE_H

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"
#include "agent/base/err.h"

struct zone; /* read-only: any number of threads may ask it */
/* "America/New_York", "UTC". 0; -EINVAL with reterr when there is none of that name; -ENOMEM. */
int zone_load(struct bytes name, struct zone **ret, struct err *reterr);
struct zone *zone_free(struct zone *z); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct zone *, zone_free)
/* Seconds that the zone is ahead of UTC at a time (seconds since 1970). */
int32_t zone_offset(const struct zone *z, int64_t at);
/* The same outside of summer time, nowadays. */
int32_t zone_standard_offset(const struct zone *z);
/* Seconds since 1970 of a local time that is counted as if it were UTC. Of a time that is there twice, or not at all, around a change
 * of the offset, Go's choice. */
int64_t zone_to_utc(const struct zone *z, int64_t local);

#endif
