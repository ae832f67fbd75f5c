/*
 * The whole configuration bound to component types: sections, service, references. Everything lives in the arena of the struct config.
 */
#ifndef MOTEL_PIPELINE_SETTINGS_H
#define MOTEL_PIPELINE_SETTINGS_H

#include "agent/config/config.h"
#include "agent/pipeline/component.h"

extern const struct cfg_field service_fields[]; /* the `service:` section */

struct component_settings {
    const char *id;                     /* as written */
    const struct component_type *type;
    const void *bound;                  /* by type->fields; type->check() passed */
    const struct cfg_value *value;
    struct cfg_pos pos;                 /* of its key */
    bool alias;                         /* written under a deprecated alias */
};
struct pipeline_settings {
    const char *name; /* "traces/2" */
    enum signal signal;
    struct cfg_pos pos;
    size_t nreceivers, nprocessors, nexporters; /* connectors stand among receivers and exporters */
    const struct component_settings **receivers, **processors, **exporters;
};
struct telemetry_settings {
    struct log_options logs;
    int metrics_level;            /* 0 none … 3 detailed */
    const char *metrics_endpoint; /* "localhost:8888"; NULL = not served */
    const char *const *resource;  /* name, value, name, value, …, NULL: what motel says of itself, defaults included, by name */
};
struct service_settings {
    struct component_settings *components[KIND_COUNT]; /* all that are defined, used or not */
    size_t ncomponents[KIND_COUNT];
    struct pipeline_settings *pipelines;
    size_t npipelines;
    const struct component_settings **extensions; /* service::extensions, in order */
    size_t nextensions;
    struct telemetry_settings telemetry;
    const struct service_config *service; /* as bound, for service_settings_print() */
    const struct cfg_value *motel; /* the `motel:` section, for agent/motel_settings.c; NULL = absent */
};
/* Whether a component is in a list of a pipeline or of the extensions. */
bool component_listed(const struct component_settings *const *list, size_t n, const struct component_settings *c);
/* Binds, checks and resolves (the collector's rules: unknown types, undefined references, pipelines without receivers, connectors used on one
 * side only, signals not supported …). All mistakes at once. 0 or -EINVAL. */
int service_settings_bind(struct config *c, const struct component_type *const *types, struct cfg_errors *errs,
                          struct service_settings **ret);
/* Adds to the warnings of a configuration, which are logged once when it is put to use. */
void config_warn(struct config *c, const char *fmt, ...) _printf_(2, 3);
/* service::telemetry for who walks over all settings: its table, and the struct that was bound by it. */
const struct cfg_field *service_settings_telemetry(const struct service_settings *s, const void **ret_bound, size_t *ret_size);
/* Prints all sections but `motel` as YAML, with all defaults; secrets as [REDACTED]. */
void service_settings_print(FILE *f, const struct service_settings *s);

#endif
