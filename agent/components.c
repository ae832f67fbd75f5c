/* The table of all component types, alphabetical within a kind. A new one adds two lines here. */
#include "agent/pipeline/component.h"

/* receivers */
extern const struct component_type receiver_console;
extern const struct component_type receiver_gym_memory;
extern const struct component_type receiver_nop;
extern const struct component_type receiver_otlp;
extern const struct component_type receiver_prometheus;
/* processors */
extern const struct component_type processor_attributes, processor_batch, processor_filter,
    processor_gym, processor_memory_limiter, processor_resource, processor_transform;
/* connectors */
extern const struct component_type connector_forward, connector_span_metrics;
/* exporters */
extern const struct component_type exporter_console;
extern const struct component_type exporter_debug;
extern const struct component_type exporter_file;
extern const struct component_type exporter_nop;
extern const struct component_type exporter_otlp_grpc;
extern const struct component_type exporter_otlp_http;
/* extensions */
extern const struct component_type extension_basicauth;
extern const struct component_type extension_bearertokenauth;
extern const struct component_type extension_file_storage;
extern const struct component_type extension_health_check;

const struct component_type *const component_types[] = {
    /* receivers */
    &receiver_console,
    &receiver_gym_memory,
    &receiver_nop,
    &receiver_otlp,
    &receiver_prometheus,
    /* processors */
    &processor_attributes,
    &processor_batch,
    &processor_filter,
    &processor_gym,
    &processor_memory_limiter,
    &processor_resource,
    &processor_transform,
    /* connectors */
    &connector_forward,
    &connector_span_metrics,
    /* exporters */
    &exporter_console,
    &exporter_debug,
    &exporter_file,
    &exporter_nop,
    &exporter_otlp_grpc,
    &exporter_otlp_http,
    /* extensions */
    &extension_basicauth,
    &extension_bearertokenauth,
    &extension_file_storage,
    &extension_health_check,
    NULL,
};
