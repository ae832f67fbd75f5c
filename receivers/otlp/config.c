/* Keys of the OTLP receiver: the reference's, with their defaults. */
#include "receivers/otlp/config.h"

#include <errno.h>
#include <string.h>

#define NOT_SERVED(what) what " on receivers is not supported"
#define DEFAULT_PING_NS (7200ll * 1000000000)
#define DEFAULT_PING_TIMEOUT_NS (20ll * 1000000000)
#define DEFAULT_MIN_PING_NS (300ll * 1000000000)

/* clang-format off */
static const struct cfg_field keepalive_server_fields[] = {
    {.key = "max_connection_idle", .kind = BIND_DURATION, CFG_AT(struct keepalive_server_config, max_connection_idle_ns),
     .help = "Ends connections without a call for this long; 0 means never."},
    {.key = "max_connection_age", .kind = BIND_DURATION, CFG_AT(struct keepalive_server_config, max_connection_age_ns),
     .help = "Asks clients to reconnect after about this long; 0 means never."},
    {.key = "max_connection_age_grace", .kind = BIND_DURATION, CFG_AT(struct keepalive_server_config, max_connection_age_grace_ns),
     .help = "Time for calls under way after max_connection_age; 0 means no limit."},
    {.key = "time", .kind = BIND_DURATION, CFG_AT(struct keepalive_server_config, time_ns),
     .help = "Pings a silent client after this long; 0 means 2h."},
    {.key = "timeout", .kind = BIND_DURATION, CFG_AT(struct keepalive_server_config, timeout_ns),
     .help = "Time for the answer to a ping; 0 means 20s."},
    {0}};
static const struct cfg_field keepalive_policy_fields[] = {
    {.key = "min_time", .kind = BIND_DURATION, CFG_AT(struct keepalive_policy_config, min_time_ns),
     .help = "Clients that ping more often are sent away; 0 means 5m."},
    {.key = "permit_without_stream", .kind = BIND_BOOL, CFG_AT(struct keepalive_policy_config, permit_without_stream),
     .help = "Lets clients ping without a call."},
    {0}};
static const struct cfg_field keepalive_fields[] = {
    {.key = "server_parameters", .kind = BIND_BLOCK, .def = "{}", CFG_AT(struct keepalive_config, server), .fields = keepalive_server_fields,
     CFG_NESTED(struct keepalive_server_config), .help = "Idle and old connections, pings to clients."},
    {.key = "enforcement_policy", .kind = BIND_BLOCK, .def = "{}", CFG_AT(struct keepalive_config, policy), .fields = keepalive_policy_fields,
     CFG_NESTED(struct keepalive_policy_config), .help = "How often clients may ping."},
    {0}};

static const struct cfg_field grpc_fields[] = {
    {.key = "endpoint", .kind = BIND_STRING, CFG_AT(struct grpc_config, endpoint), .def = "localhost:4317",
     .use = CFG_SERVES_OTLP, .help = "Address to listen on, host:port (\":4317\" is every interface), or a path with transport unix."},
    {.key = "transport", .kind = BIND_STRING, CFG_AT(struct grpc_config, transport), .def = "tcp",
     .help = "tcp, tcp4, tcp6 or unix."},
    {.key = "max_recv_msg_size_mib", .kind = BIND_SIZE_MIB, CFG_AT(struct grpc_config, max_recv_msg_size_bytes), CFG_MORE(.unit = "MiB", .max = 4095), .help = "Largest message, decompressed; 0 means 4."},
    {.key = "max_concurrent_streams", .kind = BIND_INT, CFG_AT(struct grpc_config, max_concurrent_streams),
     CFG_MORE(.max = 4294967295.0), .help = "Calls at a time on one connection; 0 means 100."},
    {.key = "read_buffer_size", .kind = BIND_INT, CFG_AT(struct grpc_config, read_buffer_size), .def = "524288",
     CFG_MORE(.unit = "bytes"), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "write_buffer_size", .kind = BIND_INT, CFG_AT(struct grpc_config, write_buffer_size), CFG_MORE(.unit = "bytes"),
     .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "keepalive", .kind = BIND_BLOCK, .def = "{}", CFG_AT(struct grpc_config, keepalive), .fields = keepalive_fields,
     CFG_NESTED(struct keepalive_config), .help = "Idle and old connections, pings."},
    {.key = "include_metadata", .kind = BIND_BOOL, CFG_AT(struct grpc_config, include_metadata),
     .help = "Accepted; metadata of clients is not kept."},
    {.key = "tls", .kind = BIND_BLOCK, CFG_AT(struct grpc_config, tls), .fields = tls_server_fields,
     CFG_NESTED(struct tls_server_settings), .null_absent = true, .help = "TLS instead of plain text."},
    AUTH_FIELD(struct grpc_config, auth, auth_fields, "Lets in only requests that an authenticator extension knows."),
    {.key = "middlewares", .kind = BIND_REFUSED, .def = "[]", .help = NOT_SERVED("middleware")},
    {0}};

static const struct cfg_field cors_fields[] = {
    {.key = "allowed_origins", .kind = BIND_LIST, CFG_AT(struct cors_config, allowed_origins), .elem = &cfg_elem_string,
     .help = "Origins that browsers may send from; each may have one \"*\"."},
    {.key = "allowed_headers", .kind = BIND_LIST, CFG_AT(struct cors_config, allowed_headers), .elem = &cfg_elem_string,
     .help = "Request headers that browsers may send; \"*\" is all."},
    {.key = "exposed_headers", .kind = BIND_LIST, CFG_AT(struct cors_config, exposed_headers), .elem = &cfg_elem_string,
     .help = "Response headers that scripts may read."},
    {.key = "max_age", .kind = BIND_INT, CFG_AT(struct cors_config, max_age_s), CFG_MORE(.unit = "seconds"),
     .help = "How long browsers may keep the answer to a preflight request."},
    {0}};
static const struct cfg_field http_keepalive_fields[] = {
    {.key = "idle_timeout", .kind = BIND_DURATION, CFG_AT(struct http_keepalive_config, idle_timeout_ns),
     .help = "Time between two requests on a connection; 0 means 65s."},
    {0}};

static const struct cfg_field http_fields[] = {
    {.key = "endpoint", .kind = BIND_STRING, CFG_AT(struct http_config, endpoint), .def = "localhost:4318",
     .use = CFG_SERVES_OTLP, .help = "Address to listen on, host:port (\":4318\" is every interface), or a path with transport unix."},
    {.key = "transport", .kind = BIND_STRING, CFG_AT(struct http_config, transport), .def = "tcp",
     .help = "tcp, tcp4, tcp6 or unix."},
    {.key = "traces_url_path", .kind = BIND_STRING, CFG_AT(struct http_config, paths[SIGNAL_TRACES]), .def = "/v1/traces",
     .help = "Path of trace requests."},
    {.key = "metrics_url_path", .kind = BIND_STRING, CFG_AT(struct http_config, paths[SIGNAL_METRICS]), .def = "/v1/metrics",
     .help = "Path of metric requests."},
    {.key = "logs_url_path", .kind = BIND_STRING, CFG_AT(struct http_config, paths[SIGNAL_LOGS]), .def = "/v1/logs",
     .help = "Path of log requests."},
    {.key = "max_request_body_size", .kind = BIND_INT, CFG_AT(struct http_config, max_request_body_bytes), CFG_MORE(.unit = "bytes"),
     .help = "Largest body, both as it comes and decompressed; 0 means 20 MiB."},
    {.key = "compression_algorithms", .kind = BIND_LIST, CFG_AT(struct http_config, compression_algorithms),
     .elem = &cfg_elem_string, CFG_MORE(CFG_PRESENCE(struct http_config, compression_given)),
     .help = "Content-Encodings taken, \"\" is none; absent: \"\", gzip, zstd, zlib, snappy, deflate, lz4, x-snappy-framed."},
    {.key = "cors", .kind = BIND_BLOCK, CFG_AT(struct http_config, cors), .fields = cors_fields, CFG_NESTED(struct cors_config),
     .null_absent = true, .help = "Cross-origin requests of browsers."},
    {.key = "response_headers", .kind = BIND_MAP, CFG_AT(struct http_config, response_headers), .elem = &cfg_elem_opaque,
     .pairs = true, .help = "Headers added to every answer."},
    {.key = "read_timeout", .kind = BIND_DURATION, CFG_AT(struct http_config, read_timeout_ns),
     .help = "Time for a whole request; 0 means 60s without progress."},
    {.key = "read_header_timeout", .kind = BIND_DURATION, CFG_AT(struct http_config, read_header_timeout_ns),
     .help = "Time for the head of a request; 0 means read_timeout, or 60s."},
    {.key = "write_timeout", .kind = BIND_DURATION, CFG_AT(struct http_config, write_timeout_ns),
     .help = "Time for an answer to be taken; 0 means 60s."},
    {.key = "keepalive", .kind = BIND_BLOCK, CFG_AT(struct http_config, keepalive), .fields = http_keepalive_fields,
     CFG_NESTED(struct http_keepalive_config), CFG_MORE(CFG_PRESENCE(struct http_config, keepalive_given)), .null_absent = true,
     .help = "Several requests on one connection; `enabled: false` switches them off."},
    {.key = "idle_timeout", .kind = BIND_DURATION, CFG_AT(struct http_config, idle_timeout_ns),
     CFG_MORE(CFG_PRESENCE(struct http_config, idle_given)), .help = "Deprecated: keepalive::idle_timeout."},
    {.key = "keep_alives_enabled", .kind = BIND_BOOL, CFG_AT(struct http_config, keep_alives_enabled), .def = "true",
     CFG_MORE(CFG_PRESENCE(struct http_config, enabled_given)), .help = "Deprecated: keepalive::enabled."},
    {.key = "include_metadata", .kind = BIND_BOOL, CFG_AT(struct http_config, include_metadata),
     .help = "Accepted; metadata of clients is not kept."},
    {.key = "tls", .kind = BIND_BLOCK, CFG_AT(struct http_config, tls), .fields = tls_server_fields,
     CFG_NESTED(struct tls_server_settings), .null_absent = true, .help = "TLS instead of plain text."},
    AUTH_FIELD(struct http_config, auth, auth_http_fields, "Lets in only requests that an authenticator extension knows."),
    {.key = "middlewares", .kind = BIND_REFUSED, .def = "[]", .help = NOT_SERVED("middleware")},
    {0}};

static const struct cfg_field protocol_fields[] = {
    {.key = "grpc", .kind = BIND_BLOCK, CFG_AT(struct otlp_protocols_config, grpc), .fields = grpc_fields,
     CFG_NESTED(struct grpc_config), .help = "OTLP over gRPC; null takes the defaults."},
    {.key = "http", .kind = BIND_BLOCK, CFG_AT(struct otlp_protocols_config, http), .fields = http_fields,
     CFG_NESTED(struct http_config), .help = "OTLP over HTTP, protobuf and JSON; null takes the defaults."},
    {0}};

const struct cfg_field otlp_fields[] = {
    {.key = "protocols", .kind = BIND_STRUCT, CFG_AT(struct otlp_config, protocols), .fields = protocol_fields,
     CFG_NESTED(struct otlp_protocols_config), .help = "At least one of grpc and http."},
    {0}};
/* clang-format on */

/* ---- cross-field rules ---- */

static int check_address(const char *protocol, const char *transport, const char *endpoint,
                         struct err *reterr)
{
    char path[64];
    struct err e;
    snprintf(path, sizeof(path), "protocols::%s::transport", protocol);
    bool is_unix = strcmp(transport, "unix") == 0;
    if (!is_unix && transport[0] && strcmp(transport, "tcp") != 0 &&
        strcmp(transport, "tcp4") != 0 && strcmp(transport, "tcp6") != 0)
        return err_at(reterr, path, "expected tcp, tcp4, tcp6 or unix, got \"%s\"", transport);
    snprintf(path, sizeof(path), "protocols::%s::endpoint", protocol);
    if (is_unix)
        return endpoint[0] ? 0
                           : err_at(reterr, path, "expected the path of a unix socket, got \"\"");
    return endpoint_check(endpoint, &e) < 0 ? err_at(reterr, path, "%s", e.text) : 0;
}

/* The key of the error is below that of the protocol. */
static int check_tls(const char *protocol, const struct tls_server_settings *s, struct err *reterr)
{
    struct err e;
    char path[160];
    if (!s || tls_server_check(s, &e) == 0)
        return 0;
    snprintf(path, sizeof(path), "protocols::%s::%.100s", protocol, e.path);
    return err_at(reterr, path, "%s", e.text);
}

/* A header value with a line break would let it write headers of its own. */
static int check_response_headers(const struct http_config *h, struct err *reterr)
{
    const char *const *values = h->response_headers.values;
    for (size_t i = 0; i < h->response_headers.n; i++) {
        const char *key = h->response_headers.keys[i];
        if (strpbrk(values[i], "\r\n") || strpbrk(key, "\r\n: ") || !key[0])
            return err_at(reterr, "protocols::http::response_headers",
                          "header \"%s\" has a name or a value that cannot be sent", key);
    }
    return 0;
}

static bool has_keepalive_block(const struct http_config *h)
{
    return h->keepalive_given != CFG_ABSENT && h->keepalive_given != CFG_GIVEN_NULL;
}

static int check_http(const struct http_config *h, struct err *reterr)
{
    int r = check_address("http", h->transport, h->endpoint, reterr);
    if (r == 0)
        r = check_response_headers(h, reterr);
    if (r == 0)
        r = check_tls("http", h->tls, reterr);
    if (r < 0)
        return r;
    bool old = h->idle_timeout_ns || !h->keep_alives_enabled;
    if (old && has_keepalive_block(h))
        return err_at(reterr, "protocols::http",
                      "cannot use deprecated keepalive fields (idle_timeout, keep_alives_enabled) "
                      "alongside the 'keepalive' section; migrate to the 'keepalive' section");
    for (int a = 0; a < SIGNAL_COUNT; a++)
        for (int b = a + 1; b < SIGNAL_COUNT; b++)
            if (strcmp(h->paths[a], h->paths[b]) == 0)
                return err_at(
                    reterr, "protocols::http", "%s_url_path and %s_url_path are the same: \"%s\"",
                    signal_name((enum signal)a), signal_name((enum signal)b), h->paths[a]);
    return 0;
}

int otlp_check_config(const void *config, struct err *reterr)
{
    const struct otlp_config *c = config;
    const struct grpc_config *g = c->protocols.grpc;
    if (!g && !c->protocols.http)
        return err_set(reterr, -EINVAL,
                       "must specify at least one protocol when using the OTLP receiver");
    int r = g ? check_address("grpc", g->transport, g->endpoint, reterr) : 0;
    if (r == 0 && g)
        r = check_tls("grpc", g->tls, reterr);
    return r < 0 || !c->protocols.http ? r : check_http(c->protocols.http, reterr);
}

static int64_t or_default(int64_t v, int64_t def)
{
    return v > 0 ? v : def;
}

void otlp_grpc_settings(const struct grpc_config *g, struct server_settings *ret)
{
    static const struct keepalive_server_config no_server;
    static const struct keepalive_policy_config no_policy;
    const struct keepalive_config *both = g->keepalive;
    const struct keepalive_server_config *k = both && both->server ? both->server : &no_server;
    const struct keepalive_policy_config *p = both && both->policy ? both->policy : &no_policy;
    *ret = (struct server_settings){
        .endpoint = g->endpoint,
        .transport = g->transport,
        .tls_keys = g->tls,
        .max_concurrent_streams = g->max_concurrent_streams,
        .max_connection_idle_ns = k->max_connection_idle_ns,
        .max_connection_age_ns = k->max_connection_age_ns,
        .max_connection_age_grace_ns = k->max_connection_age_grace_ns,
        .keepalive_time_ns = or_default(k->time_ns, DEFAULT_PING_NS),
        .keepalive_timeout_ns = or_default(k->timeout_ns, DEFAULT_PING_TIMEOUT_NS),
        .keepalive_min_time_ns = or_default(p->min_time_ns, DEFAULT_MIN_PING_NS),
        .keepalive_permit_without_stream = p->permit_without_stream,
    };
}

void otlp_http_settings(const struct http_config *h, struct server_settings *ret)
{
    int64_t idle = h->keepalive && h->keepalive->idle_timeout_ns ? h->keepalive->idle_timeout_ns
                                                                 : h->idle_timeout_ns;
    *ret = (struct server_settings){
        .endpoint = h->endpoint,
        .transport = h->transport,
        .tls_keys = h->tls,
        .read_timeout_ns = h->read_timeout_ns,
        .read_header_timeout_ns =
            h->read_header_timeout_ns ? h->read_header_timeout_ns : h->read_timeout_ns,
        .write_timeout_ns = h->write_timeout_ns,
        .idle_timeout_ns = idle,
        .no_keepalive = has_keepalive_block(h) ? !h->keepalive : !h->keep_alives_enabled,
        .keepalive_time_ns = DEFAULT_PING_NS,
        .keepalive_timeout_ns = DEFAULT_PING_TIMEOUT_NS,
    };
}
