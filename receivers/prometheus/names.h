/* Names of metrics and units as the reference turns them. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_NAMES_H
#define MOTEL_RECEIVERS_PROMETHEUS_NAMES_H

#include "agent/base/buf.h"

bool name_ends(struct bytes name, const char *suffix);
/* `name` without one of _bucket, _count, _sum, _total, _info, _created; itself when it has none or is only that. */
struct bytes name_trim(struct bytes name);
/* `name` without its "_total" (of a `counter`) and then without its `unit`: trim_metric_suffixes. */
struct bytes name_trim_type_and_unit(struct bytes name, bool counter, struct bytes unit);
/* Appends a unit by words ("seconds", "bytes_per_second") as UCUM ("s", "By/s"); unknown words stay. 0, -ENOMEM or -EMSGSIZE. */
int unit_to_ucum(struct bytes unit, struct buf *out);

#endif
