/* Numbers of OTLP/JSON; only proto/json_*.c use it. All: 0, -EINVAL (no such number), -ERANGE (too
 * large), -ENOMEM. */
#ifndef MOTEL_PROTO_JSON_NUMBER_H
#define MOTEL_PROTO_JSON_NUMBER_H

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"

/* Digits only. */
int json_parse_uint(struct bytes text, uint64_t max, uint64_t *ret);
/* A sign may stand before the digits. */
int json_parse_int(struct bytes text, int64_t min, int64_t max, int64_t *ret);
/* A JSON number, or what stands in quotes for one: also NaN, Infinity, Inf and Go's other forms. */
int json_parse_double(struct bytes text, double *ret);

#endif
