/* NeMo Gym configs as a source of motel's configuration: `--gym-config FILE`. */
#ifndef MOTEL_GYM_SOURCE_H
#define MOTEL_GYM_SOURCE_H

#include "agent/gym/pipeline.h"

struct gym_source {
    const char *const *files;
    size_t nfiles;
    char *const *environment; /* "NAME=value", NULL ended */
    /* Set by gym_source_make(), in the arena that it was given. */
    const struct gym_telemetry *telemetry; /* NULL while telemetry is off */
    const char *off;                       /* why it is, for a person; NULL while it is on */
};
/* For struct config_source: `ctx` is a struct gym_source. The pipeline that the telemetry block and the environment ask for, or an empty
 * map when telemetry is off. */
struct cfg_value *gym_source_make(void *ctx, struct arena *a, struct cfg_errors *errs);
/* After everything was merged: gym_pipeline_check(), and what is to be warned of goes to `c`. 0 or a negative errno. */
int gym_source_finish(const struct gym_source *g, struct config *c, struct cfg_errors *errs);

#endif
