/* The page of motel's own metrics (service::telemetry::metrics), served over HTTP. */
#ifndef MOTEL_SELF_METRICS_H
#define MOTEL_SELF_METRICS_H

#include "agent/pipeline/host.h"

struct self_metrics;
/* Serves the host's metrics at "/metrics" of `endpoint` ("localhost:8888"). 0 or -errno with a text that names the address. */
int self_metrics_start(struct host *h, const char *endpoint, struct self_metrics **ret, struct err *reterr);
const char *self_metrics_endpoint(const struct self_metrics *m); /* as given */
struct self_metrics *self_metrics_stop(struct self_metrics *m);  /* NULL ok; returns NULL */

#endif
