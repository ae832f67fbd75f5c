/* The targets of a configuration, looked at once for `doctor`. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_PROBE_H
#define MOTEL_RECEIVERS_PROMETHEUS_PROBE_H

#include "agent/pipeline/probe.h"
#include "receivers/prometheus/prometheus.h"

/* Fetches one page of each target of `s` and says how many samples it has. */
void prom_probe(struct probe *p, const struct scraper *s);

#endif
