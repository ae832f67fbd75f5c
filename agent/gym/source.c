#include "agent/gym/source.h"

#include <errno.h>

#include "agent/config/tree.h"
#include "agent/pipeline/settings.h"

static struct cfg_value *nothing_to_do(struct gym_source *g, struct arena *a, const char *why,
                                       const struct gym_value *because)
{
    char origin[300];
    gym_origin(because, origin, sizeof(origin));
    g->off = arena_printf(a, "NeMo Gym telemetry is off: %s (%s)", why, origin);
    return g->off ? cfg_new(a, CFG_MAP, (struct cfg_pos){0}) : NULL;
}

struct cfg_value *gym_source_make(void *ctx, struct arena *a, struct cfg_errors *errs)
{
    struct gym_source *g = ctx;
    struct gym_value enabled;
    struct gym_telemetry *t = arena_alloc(a, sizeof(*t));
    g->telemetry = NULL;
    g->off = NULL;
    const struct cfg_value *block = t ? gym_block_read(a, g->files, g->nfiles, errs) : NULL;
    if (!block || gym_enabled_read(a, block, g->environment, errs, &enabled) < 0)
        return NULL;
    if (!enabled.on)
        return nothing_to_do(g, a, "enabled is false", &enabled);
    if (gym_telemetry_read(a, block, g->environment, errs, t) < 0)
        return NULL;
    if (!t->fields[GYM_TRACES_ENABLED].on && !t->fields[GYM_METRICS_ENABLED].on &&
        !t->fields[GYM_LOGS_ENABLED].on)
        return nothing_to_do(g, a, "traces, metrics and logs are switched off",
                             &t->fields[GYM_TRACES_ENABLED]);
    g->telemetry = t;
    return gym_pipeline(a, t, errs);
}

int gym_source_finish(const struct gym_source *g, struct config *c, struct cfg_errors *errs)
{
    if (g->off)
        config_warn(c, "%s; only --config counts", g->off);
    if (!g->telemetry)
        return 0;
    for (size_t i = 0; i < g->telemetry->nwarnings; i++)
        config_warn(c, "%s", g->telemetry->warnings[i]);
    return gym_pipeline_check(c, errs);
}
