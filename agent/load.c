#include "agent/load.h"

#include <errno.h>

#include "agent/gym/run_id.h"
#include "agent/gym/run_wire.h"
#include "agent/gym/source.h"

const char load_default_config[] = "# Receives OTLP from programs on this machine and prints it.\n"
                                   "receivers:\n"
                                   "  otlp:\n"
                                   "    protocols:\n"
                                   "      grpc: {endpoint: 127.0.0.1:4317}\n"
                                   "      http: {endpoint: 127.0.0.1:4318}\n"
                                   "exporters:\n"
                                   "  console:\n"
                                   "extensions:\n"
                                   "  health_check: {endpoint: 127.0.0.1:13133}\n"
                                   "service:\n"
                                   "  extensions: [health_check]\n"
                                   "  telemetry:\n"
                                   "    logs: {level: warn}\n"
                                   "    metrics: {level: none}\n"
                                   "  pipelines:\n"
                                   "    traces: {receivers: [otlp], exporters: [console]}\n"
                                   "    metrics: {receivers: [otlp], exporters: [console]}\n"
                                   "    logs: {receivers: [otlp], exporters: [console]}\n";

extern char **environ;

/* The sources of the command line behind `first`, which lies below them. */
static struct config *read_over(const struct command_line *cl, struct config_source first,
                                struct cfg_errors *errs)
{
    _cleanup_free_ struct config_source *sources = calloc(cl->nsources + 1, sizeof(*sources));
    if (!sources)
        return NULL;
    sources[0] = first;
    for (size_t i = 0; i < cl->nsources; i++)
        sources[i + 1] = cl->sources[i];
    return config_load(sources, cl->nsources + 1, errs);
}

/* --set without --config changes the built-in configuration, `normal`. */
static struct config *read_sources(const struct command_line *cl, struct gym_source *gym,
                                   const char *normal, struct cfg_errors *errs)
{
    if (cl->ngym_configs)
        return read_over(cl, (struct config_source){.make = gym_source_make, .ctx = gym}, errs);
    if (cl->nsources == 0)
        return config_load_text("built-in", normal, errs);
    if (cl->nconfigs)
        return config_load(cl->sources, cl->nsources, errs);
    _cleanup_free_ char *uri = NULL;
    if (asprintf(&uri, "yaml:%s", normal) < 0)
        return NULL;
    return read_over(cl, (struct config_source){.uri = uri}, errs);
}

static int bind(const struct command_line *cl, struct config *c, struct loaded *ret,
                struct cfg_errors *errs)
{
    int r = service_settings_bind(c, component_types, errs, &ret->service);
    if (motel_settings_bind(c, cfg_get(c->root, "motel"), environ, cl->flags, cl->nflags, errs,
                            &ret->motel) < 0)
        r = -EINVAL;
    return r;
}

/* `job`: the process of motel run's command; 0 = there is none. */
static int load_over(const struct command_line *cl, const char *normal, pid_t job,
                     struct loaded *ret, struct cfg_errors *errs)
{
    struct gym_source gym = {cl->gym_configs, cl->ngym_configs, environ, NULL, NULL};
    *ret = (struct loaded){0};
    struct config *c = ret->config = read_sources(cl, &gym, normal, errs);
    if (!c)
        return -EINVAL;
    if (gym.off && cl->nconfigs == 0) {
        ret->idle = gym.off;
        return 1;
    }
    int r = 0;
    ret->gym = gym.telemetry;
    if (job) {
        ret->measures_memory = run_measures(gym.telemetry);
        r = run_wire(c, gym.telemetry, job, errs);
    }
    if (r == 0)
        r = gym_source_finish(&gym, c, errs);
    return r < 0 ? r : bind(cl, c, ret, errs);
}

int load(const struct command_line *cl, struct loaded *ret, struct cfg_errors *errs)
{
    return load_over(cl, load_default_config, 0, ret, errs);
}

int load_for_job(const struct command_line *cl, pid_t job, struct loaded *ret,
                 struct cfg_errors *errs)
{
    _cleanup_free_ char *id = gym_run_id(NULL), *file = NULL, *normal = NULL;
    *ret = (struct loaded){0};
    if (!id || run_default_file(id, &file) < 0 || !(normal = run_default_config(file)))
        return -ENOMEM;
    return load_over(cl, normal, job, ret, errs);
}

void loaded_done(struct loaded *l)
{
    config_free(l->config);
    *l = (struct loaded){0};
}
