/* What span metrics need of a span, read in one pass over its bytes. */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_SPAN_H
#define MOTEL_CONNECTORS_SPAN_METRICS_SPAN_H

#include "connectors/span_metrics/attributes.h"

#define SPAN_KIND_LAST 5
#define SPAN_STATUS_LAST 2

struct span {
    struct bytes scope; /* the InstrumentationScope message around it; only where it is needed */
    struct bytes name, trace_id, span_id, tracestate;
    uint32_t kind, status; /* SPAN_KIND_LAST + 1 and SPAN_STATUS_LAST + 1: unknown ones */
    uint64_t start_ns, end_ns;
};

/* Reads the checked message `msg`. Attributes are appended to `attributes`: all whose names have a length (modulo 64) that is in the set
 * `lengths`, and maybe some more. 0 or -ENOMEM. */
int span_read(struct bytes msg, uint64_t lengths, struct span *ret, struct attributes *attributes);
/* "SPAN_KIND_SERVER", "STATUS_CODE_OK"; "" for unknown ones. */
const char *span_kind_name(uint32_t kind);
const char *span_status_name(uint32_t status);

#endif
