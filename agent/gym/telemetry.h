/*
 * The telemetry settings of a NeMo Gym run: the `telemetry:` block of Gym's config, and the environment over it.
 *
 * Of every field the first source that is set and not blank counts: NEMO_GYM_OTEL_X, NEMO_LENS_X (or the standard variable
 * of OpenTelemetry where the field has one), the block, the default
 * (https://docs.nvidia.com/nemo/gym/main/observability/configuration).
 */
#ifndef MOTEL_GYM_TELEMETRY_H
#define MOTEL_GYM_TELEMETRY_H

#include "agent/config/errors.h"
#include "proto/batch.h"

enum gym_field {
    GYM_ENABLED,
    GYM_SERVICE_NAME,
    GYM_SERVICE_NAME_PER_SERVER,
    GYM_RUN_ID,
    GYM_EXPORTER,
    GYM_TRACES_ENABLED,
    GYM_METRICS_ENABLED,
    GYM_LOGS_ENABLED,
    GYM_MEMORY_ENABLED,
    GYM_MEMORY_INTERVAL,
    GYM_SPAN_GROUPS,
    GYM_INSTRUMENT_AIOHTTP,
    GYM_EXPORT_STRATEGY,
    GYM_EXPORT_RANK,
    GYM_FIELD_COUNT
};

/* OTEL_EXPORTER_OTLP_X and OTEL_EXPORTER_OTLP_SIGNAL_X. */
enum gym_otlp {
    GYM_OTLP_ENDPOINT,
    GYM_OTLP_PROTOCOL,
    GYM_OTLP_HEADERS,
    GYM_OTLP_TIMEOUT,
    GYM_OTLP_COMPRESSION,
    GYM_OTLP_CERTIFICATE,
    GYM_OTLP_CLIENT_KEY,
    GYM_OTLP_CLIENT_CERTIFICATE,
    GYM_OTLP_INSECURE,
    GYM_OTLP_COUNT
};

struct gym_value {
    const char *text;   /* NULL = not set. Switches are "true" or "false". */
    struct cfg_pos pos; /* where it came from: a variable (no line), a place in a file, or nothing (the default) */
    bool on;            /* switches */
    double number;      /* seconds of an interval, milliseconds of a time-out */
};

struct gym_telemetry {
    struct gym_value fields[GYM_FIELD_COUNT];
    struct gym_value otlp[GYM_OTLP_COUNT];                      /* of all signals */
    struct gym_value signal_otlp[SIGNAL_COUNT][GYM_OTLP_COUNT]; /* of one; text NULL = that of all counts */
    const char *warnings[16];                                   /* to be logged */
    size_t nwarnings;
};

/* The `telemetry:` blocks of NeMo Gym configs, merged in order: a map, or null when no file has one. Nothing else of the files
 * is looked at. NULL when a file cannot be read or is no YAML; errs says why. All memory is of `a`, as below. */
const struct cfg_value *gym_block_read(struct arena *a, const char *const *files, size_t n, struct cfg_errors *errs);
/* Only GYM_ENABLED, so that mistakes in the settings of telemetry that is off hurt nobody. 0 or -EINVAL. */
int gym_enabled_read(struct arena *a, const struct cfg_value *block, char *const *environment, struct cfg_errors *errs,
                     struct gym_value *ret);
/* Everything. Mistakes go to errs, and the field keeps its default; 0 or -EINVAL. */
int gym_telemetry_read(struct arena *a, const struct cfg_value *block, char *const *environment, struct cfg_errors *errs,
                       struct gym_telemetry *ret);
/* The setting that counts for one signal. */
const struct gym_value *gym_otlp_of(const struct gym_telemetry *t, enum signal s, enum gym_otlp field);

/* "enabled", "memory_profiling.interval_seconds"; "otlp_endpoint" and, for one signal, "otlp_traces_endpoint". */
const char *gym_field_name(enum gym_field f);
const char *gym_otlp_name(enum gym_otlp f);
/* What to say of a field beyond its value, or NULL. */
const char *gym_field_note(enum gym_field f);
/* "NEMO_GYM_OTEL_ENABLED", "gym.yaml:3:12", "default" or "not set". Returns `ret`. */
const char *gym_origin(const struct gym_value *v, char *ret, size_t size);
/* All fields, their values and where they came from, as a table. What is secret is not shown. Nothing when out of memory. */
void gym_explain(FILE *f, const struct gym_telemetry *t);
/* The same, a row a call; `note` may be NULL. */
void gym_explain_each(const struct gym_telemetry *t,
                      void (*each)(void *ctx, const char *name, const char *value, const char *origin, const char *note), void *ctx);

#endif
