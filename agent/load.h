/* From the command line to a checked configuration. */
#ifndef MOTEL_LOAD_H
#define MOTEL_LOAD_H

#include <sys/types.h>

#include "agent/commands.h"
#include "agent/pipeline/settings.h"

struct loaded {
    struct config *config; /* its arena holds all of it */
    struct service_settings *service;
    struct motel_settings motel;
    const struct gym_telemetry *gym; /* of --gym-config, in the arena of the config; NULL = none, or it is off */
    const char *idle; /* why there is nothing to do */
    bool measures_memory; /* of a job's servers */
};
/* Loads what the command line names, or the built-in configuration when it names nothing. 0; 1 when there is nothing to do, since only
 * --gym-config was given and telemetry is off; or -EINVAL with every mistake in errs: then only ret->config is of use, for its
 * warnings, unless it is NULL. loaded_done() in any case. */
int load(const struct command_line *cl, struct loaded *ret, struct cfg_errors *errs);
/* The same for the pipeline of `motel run`, whose command is process `job`: what it prints is read, and the built-in configuration is
 * another one (agent/gym/run_wire.h). */
int load_for_job(const struct command_line *cl, pid_t job, struct loaded *ret, struct cfg_errors *errs);
void loaded_done(struct loaded *l);

/* What `motel` without --config runs: a collector for the programs of this machine. */
extern const char load_default_config[];

#endif
