/* The metrics of NeMo Gym's memory profiling: the same names, units, descriptions and attributes. */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_POINTS_H
#define MOTEL_RECEIVERS_GYM_MEMORY_POINTS_H

#include "receivers/gym_memory/servers.h"

struct host_sample {
    struct host_memory now;
    int64_t peak; /* of total - available; -1 = never measured: no points */
};
/* One ExportMetricsServiceRequest in `out`; it stays empty when there is nothing to tell. 0 or -ENOMEM. */
int points_encode(const struct host_sample *host, const struct servers *servers, uint64_t time_ns, struct buf *out);

#endif
