/* What `motel run` changes in a configuration: the command's output as a source, and a log that is quiet on the command's stderr. */
#ifndef MOTEL_GYM_RUN_WIRE_H
#define MOTEL_GYM_RUN_WIRE_H

#include <sys/types.h>

#include "agent/config/config.h"
#include "agent/gym/telemetry.h"

/*
 * After all sources were merged. When no pipeline has a console receiver, one of its own ("console/motel_run") is added to the pipelines that
 * have an otlp receiver, else to the first one of each signal. Logs are at level warn and there is no metrics page unless the configuration
 * speaks of them. With `t` (NULL = no --gym-config): with memory profiling in it the servers at and below `job` are measured; ports that
 * were not chosen are free ones. 0 or a negative errno.
 */
int run_wire(struct config *c, const struct gym_telemetry *t, pid_t job, struct cfg_errors *errs);
/* Whether run_wire() has motel measure memory. */
bool run_measures(const struct gym_telemetry *t);

/* The name of the file that telemetry goes to when there is no configuration, "motel-RUNID.jsonl". 0 or -ENOMEM. */
int run_default_file(const char *run_id, char **ret);
/* The configuration then, to be freed; NULL when out of memory. */
char *run_default_config(const char *file);

#endif
