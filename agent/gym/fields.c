#include "agent/gym/fields.h"

static const char *const exporters[] = {"otlp", "console", NULL};
static const char *const protocols[] = {"grpc", "http/protobuf", "http/json", NULL};

#define PRODUCERS_ONLY "for Gym's own processes; motel takes what arrives"
#define NO_EFFECT "accepted, without effect"

const struct field gym_fields[GYM_FIELD_COUNT] = {
    [GYM_ENABLED] = {"enabled", KIND_SWITCH, "ENABLED", .def = "false"},
    [GYM_SERVICE_NAME] = {"service_name", KIND_TEXT, .standard = "OTEL_SERVICE_NAME",
                          .def = "nemo-gym"},
    [GYM_SERVICE_NAME_PER_SERVER] = {"service_name_per_server", KIND_SWITCH,
                                     "SERVICE_NAME_PER_SERVER", .def = "true"},
    [GYM_RUN_ID] = {"run_id", KIND_TEXT, "RUN_ID", .last = "SLURM_JOB_ID"},
    [GYM_EXPORTER] = {"exporter", KIND_CHOICE, "EXPORTER", .def = "otlp", .choices = exporters},
    [GYM_TRACES_ENABLED] = {"traces_enabled", KIND_SWITCH, "TRACES_ENABLED", .def = "true"},
    [GYM_METRICS_ENABLED] = {"metrics_enabled", KIND_SWITCH, "METRICS_ENABLED", .def = "true"},
    [GYM_LOGS_ENABLED] = {"logs_enabled", KIND_SWITCH, "LOGS_ENABLED", .def = "false"},
    [GYM_MEMORY_ENABLED] = {"memory_profiling.enabled", KIND_SWITCH, "MEMORY_PROFILING_ENABLED",
                            .def = "false"},
    [GYM_MEMORY_INTERVAL] = {"memory_profiling.interval_seconds", KIND_SECONDS,
                             "MEMORY_PROFILING_INTERVAL_SECONDS", .def = "1"},
    [GYM_SPAN_GROUPS] = {"span_groups", KIND_TEXT, "SPAN_GROUPS", .def = "default",
                         .note = PRODUCERS_ONLY},
    [GYM_INSTRUMENT_AIOHTTP] = {"instrument_aiohttp", KIND_SWITCH, "INSTRUMENT_AIOHTTP",
                                .def = "true", .note = PRODUCERS_ONLY},
    [GYM_EXPORT_STRATEGY] = {"export_strategy", KIND_IGNORED, "EXPORT_STRATEGY", .note = NO_EFFECT},
    [GYM_EXPORT_RANK] = {"export_rank", KIND_IGNORED, "EXPORT_RANK", .note = NO_EFFECT},
};

const struct field gym_otlp_fields[GYM_OTLP_COUNT] = {
    [GYM_OTLP_ENDPOINT] = {"otlp_endpoint", KIND_TEXT, "ENDPOINT"},
    [GYM_OTLP_PROTOCOL] = {"otlp_protocol", KIND_CHOICE, "PROTOCOL", .def = "grpc",
                           .choices = protocols},
    [GYM_OTLP_HEADERS] = {"otlp_headers", KIND_TEXT, "HEADERS"},
    [GYM_OTLP_TIMEOUT] = {"otlp_timeout", KIND_MILLISECONDS, "TIMEOUT", .def = "10000",
                          .no_block = true},
    [GYM_OTLP_COMPRESSION] = {"otlp_compression", KIND_TEXT, "COMPRESSION", .def = "none",
                              .no_block = true},
    [GYM_OTLP_CERTIFICATE] = {"otlp_certificate", KIND_TEXT, "CERTIFICATE", .no_block = true},
    [GYM_OTLP_CLIENT_KEY] = {"otlp_client_key", KIND_TEXT, "CLIENT_KEY", .no_block = true},
    [GYM_OTLP_CLIENT_CERTIFICATE] = {"otlp_client_certificate", KIND_TEXT, "CLIENT_CERTIFICATE",
                                     .no_block = true},
    [GYM_OTLP_INSECURE] = {"otlp_insecure", KIND_SWITCH, "INSECURE", .def = "false",
                           .no_block = true},
};

void field_expects(const struct field *f, char *ret, size_t size)
{
    size_t n = 0;
    switch (f->kind) {
    case KIND_SWITCH: snprintf(ret, size, "1, true, yes, on or 0, false, no, off"); return;
    case KIND_SECONDS: snprintf(ret, size, "seconds above 0 such as 0.5"); return;
    case KIND_MILLISECONDS: snprintf(ret, size, "whole milliseconds such as 10000"); return;
    case KIND_TEXT:
    case KIND_IGNORED: snprintf(ret, size, "a text"); return;
    case KIND_CHOICE: break;
    }
    for (const char *const *c = f->choices; *c && n < size; c++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s",
                              c == f->choices ? ""
                              : c[1]          ? ", "
                                              : " or ",
                              *c);
}

const char *gym_field_name(enum gym_field f)
{
    return gym_fields[f].name;
}

const char *gym_otlp_name(enum gym_otlp f)
{
    return gym_otlp_fields[f].name;
}

const char *gym_field_note(enum gym_field f)
{
    return gym_fields[f].note;
}
