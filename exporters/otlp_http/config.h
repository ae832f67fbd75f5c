/* The configuration of the otlp_http exporter. */
#ifndef MOTEL_EXPORTERS_OTLP_HTTP_CONFIG_H
#define MOTEL_EXPORTERS_OTLP_HTTP_CONFIG_H

#include "agent/net/tls.h"
#include "agent/pipeline/auth.h"
#include "agent/pipeline/otlp_client.h"
#include "agent/pipeline/queue.h"

struct keepalive_config {
    int64_t idle_conn_timeout_ns, max_idle_conns, max_idle_conns_per_host;
};

struct otlp_http_config {
    struct exporter_settings exporter;
    const char *endpoint, *signal_endpoints[SIGNAL_COUNT], *profiles_endpoint;
    int encoding;
    const char *compression;
    struct compression_params compression_params;
    struct cfg_map headers;
    const char *proxy_url;
    struct tls_client_settings tls;
    struct auth_settings *auth;
    int64_t read_buffer_size, write_buffer_size, max_conns_per_host;
    struct keepalive_config *keepalive;
    enum cfg_presence keepalive_given;
    /* Older spellings at the top level. */
    int64_t idle_conn_timeout_ns, max_idle_conns, max_idle_conns_per_host;
    enum cfg_presence idle_conn_timeout_given, max_idle_conns_given, max_idle_conns_per_host_given,
        disable_keep_alives_given;
    bool disable_keep_alives;
    bool force_attempt_http2;
    int64_t http2_read_idle_timeout_ns, http2_ping_timeout_ns;
};

enum { ENCODING_PROTO, ENCODING_JSON };

extern const struct cfg_field otlp_http_fields[];
/* As struct component_type says. */
int otlp_http_check(const void *config, struct err *reterr);
int otlp_http_check_signal(const void *config, enum signal s, struct err *reterr);
/* Whether the older spellings of `keepalive` are used. */
bool otlp_http_old_keepalive(const struct otlp_http_config *c);

#endif
