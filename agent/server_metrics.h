/* Self metrics of the servers: connections, those refused, those ended and why. */
#ifndef MOTEL_SERVER_METRICS_H
#define MOTEL_SERVER_METRICS_H

#include "agent/pipeline/host.h"

/* Shows them on the page of own metrics, as long as the host lives. */
void server_metrics_show(struct host *h);

#endif
