/* What the files of settings.c share while a configuration is bound; not for others. */
#ifndef MOTEL_PIPELINE_SETTINGS_BUILD_H
#define MOTEL_PIPELINE_SETTINGS_BUILD_H

#include "agent/pipeline/settings.h"

struct settings_build {
    struct config *config;
    const struct component_type *const *types;
    struct cfg_errors *errs;
    struct cfg_binder binder;
    struct service_settings *out; /* in the arena of the config */
    bool no_memory;               /* something could not be allocated; reported once, at the end */
};

struct pipeline_config {
    struct cfg_list receivers, processors, exporters; /* of struct cfg_id */
    enum cfg_presence receivers_given, exporters_given;
};
struct log_sampling {
    int64_t tick_ns, initial, thereafter;
};
struct telemetry_logs {
    int level, encoding;
    bool development, disable_caller, disable_stacktrace, disable_zap_resource;
    struct log_sampling *sampling;
    struct cfg_list output_paths, error_output_paths; /* of const char * */
    const struct cfg_value *initial_fields;
};
struct prometheus_reader {
    const char *host;
    int64_t port;
    bool without_scope_info, without_type_suffix, without_units, without_target_info;
    const char *translation_strategy;
    const struct cfg_value *constant_labels;
};
struct reader_exporter {
    struct prometheus_reader *prometheus;
};
struct reader_pull {
    struct reader_exporter exporter;
};
struct metric_reader {
    struct reader_pull *pull;
};
struct telemetry_metrics {
    int level;
    const char *address;
    struct cfg_list readers; /* of struct metric_reader */
};
struct telemetry_traces {
    int level;
    struct cfg_list propagators;
    const struct cfg_value *sampler;
};
struct telemetry_config {
    struct telemetry_logs logs;
    struct telemetry_metrics metrics;
    struct telemetry_traces traces;
    const struct cfg_value *resource;
};
struct service_config {
    struct cfg_list extensions; /* of struct cfg_id */
    struct cfg_map pipelines;   /* of struct pipeline_config */
    struct telemetry_config telemetry;
};
extern const struct cfg_field telemetry_fields[];

/* Cleared memory in the arena of the config; NULL, noted in `b`, when there is none. */
void *settings_alloc(struct settings_build *b, size_t bytes);
/* A text in the arena of the config; "", noted in `b`, when out of memory. */
const char *settings_text(struct settings_build *b, const char *fmt, ...) _printf_(2, 3);

/* A component by its id as written; NULL when there is none. */
const struct component_settings *settings_find(const struct service_settings *s, enum component_kind kind, const char *id);
/* A type by its name or alias; NULL when there is none. */
const struct component_type *settings_find_type(struct settings_build *b, enum component_kind kind, const char *name,
                                                bool *ret_alias);
/* The type of a component id; NULL after an error was added that says what it could have been. */
const struct component_type *settings_type(struct settings_build *b, enum component_kind kind, const char *id,
                                           struct cfg_pos pos, bool *ret_alias);
/* Resolves service::extensions and service::pipelines; the components are bound already. */
void settings_resolve(struct settings_build *b, const struct service_config *s, struct cfg_pos pos);
/* Fills out->telemetry. */
void settings_telemetry(struct settings_build *b, const struct telemetry_config *t);

#endif
