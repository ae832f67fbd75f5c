/* What became of the telemetry, in one line at the end. */
#ifndef MOTEL_SUMMARY_H
#define MOTEL_SUMMARY_H

#include "agent/pipeline/host.h"

/* The sum of the counters on a metrics page whose names begin with `prefix` ("otelcol_receiver_accepted_"). */
int64_t summary_total(struct bytes page, const char *prefix);
/* Logs received, refused, sent and lost records of the whole run at level info, or warn when something was lost. */
void summary_log(struct host *h);

#endif
