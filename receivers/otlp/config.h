/* Keys of the OTLP receiver. */
#ifndef MOTEL_RECEIVERS_OTLP_CONFIG_H
#define MOTEL_RECEIVERS_OTLP_CONFIG_H

#include "agent/net/tls_server.h"
#include "agent/pipeline/auth.h"
#include "proto/batch.h"

struct keepalive_server_config {
    int64_t max_connection_idle_ns, max_connection_age_ns, max_connection_age_grace_ns, time_ns, timeout_ns;
};
struct keepalive_policy_config {
    int64_t min_time_ns;
    bool permit_without_stream;
};
struct keepalive_config {
    struct keepalive_server_config *server;
    struct keepalive_policy_config *policy;
};
struct grpc_config {
    const char *endpoint, *transport;
    int64_t max_recv_msg_size_bytes, max_concurrent_streams, read_buffer_size, write_buffer_size;
    struct keepalive_config *keepalive;
    struct auth_settings *auth;
    bool include_metadata;
    struct tls_server_settings *tls;
};
struct cors_config {
    struct cfg_list allowed_origins, allowed_headers, exposed_headers;
    int64_t max_age_s;
};
struct http_keepalive_config {
    int64_t idle_timeout_ns;
};
struct http_config {
    const char *endpoint, *transport, *paths[SIGNAL_COUNT];
    int64_t max_request_body_bytes, read_timeout_ns, read_header_timeout_ns, write_timeout_ns, idle_timeout_ns;
    struct cors_config *cors;
    struct auth_settings *auth;
    struct cfg_map response_headers;
    struct cfg_list compression_algorithms;
    enum cfg_presence compression_given, keepalive_given, idle_given, enabled_given;
    struct http_keepalive_config *keepalive;
    bool keep_alives_enabled, include_metadata;
    struct tls_server_settings *tls;
};
struct otlp_protocols_config {
    struct grpc_config *grpc;
    struct http_config *http;
};
struct otlp_config {
    struct otlp_protocols_config protocols;
};

extern const struct cfg_field otlp_fields[];
int otlp_check_config(const void *config, struct err *reterr);
void otlp_grpc_settings(const struct grpc_config *g, struct server_settings *ret);
void otlp_http_settings(const struct http_config *h, struct server_settings *ret);

#endif
