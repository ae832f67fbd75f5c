/* The keys of the otlp_http exporter, and what has to fit together. */
#include "exporters/otlp_http/config.h"

#include <errno.h>

#include "agent/net/http_client.h"

static bool http_url(const char *url)
{
    size_t n = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    const char *bad = url;
    while ((unsigned char)*bad > ' ' && *bad != 0x7f)
        bad++;
    return n && !*bad && url[n] && !strchr("/?#", url[n]);
}

static int check_url(const char *key, const char *url, struct err *reterr)
{
    char safe[300];
    if (!*url || http_url(url))
        return 0;
    http_url_redact(url, safe, sizeof(safe));
    return err_at(
        reterr, key,
        "endpoint must be a valid URL: expected http://host[:port][/path] or https://…, got \"%s\"",
        safe);
}

static int check_endpoints(const struct otlp_http_config *c, struct err *reterr)
{
    static const char *const keys[] = {"traces_endpoint", "metrics_endpoint", "logs_endpoint"};
    bool any = *c->endpoint || *c->profiles_endpoint;
    int r = check_url("endpoint", c->endpoint, reterr);
    for (int s = 0; r == 0 && s < SIGNAL_COUNT; s++) {
        r = check_url(keys[s], c->signal_endpoints[s], reterr);
        any = any || *c->signal_endpoints[s];
    }
    if (r == 0 && !any)
        return err_set(reterr, -EINVAL, "at least one endpoint must be specified");
    return r;
}

bool otlp_http_old_keepalive(const struct otlp_http_config *c)
{
    return c->idle_conn_timeout_given || c->max_idle_conns_given ||
           c->max_idle_conns_per_host_given || c->disable_keep_alives_given;
}

int otlp_http_check(const void *config, struct err *reterr)
{
    const struct otlp_http_config *c = config;
    int r = exporter_settings_check(&c->exporter, reterr);
    if (r == 0)
        r = check_endpoints(c, reterr);
    if (r == 0)
        r = compression_check(c->compression, &c->compression_params, false, reterr);
    if (r == 0)
        r = client_headers_check(&c->headers, reterr);
    if (r == 0 && *c->proxy_url && !strstr(c->proxy_url, "://"))
        r = err_at(reterr, "proxy_url", "expected a URL such as http://proxy:3128");
    if (r == 0 && c->keepalive_given && otlp_http_old_keepalive(c))
        r = err_at(reterr, "keepalive",
                   "cannot be used together with idle_conn_timeout, max_idle_conns, "
                   "max_idle_conns_per_host or "
                   "disable_keep_alives, which it replaces");
    return r == 0 ? tls_client_check(&c->tls, reterr) : r;
}

int otlp_http_check_signal(const void *config, enum signal s, struct err *reterr)
{
    const struct otlp_http_config *c = config;
    if (*c->endpoint || *c->signal_endpoints[s])
        return 0;
    return err_set(reterr, -EINVAL, "either endpoint or %s_endpoint must be specified",
                   signal_name(s));
}

/* ---- keys */

static const struct cfg_field keepalive_fields[] = {
    {.key = "idle_conn_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct keepalive_config, idle_conn_timeout_ns),
     .def = "90s",
     .help = "An unused connection is closed after this time."},
    {.key = "max_idle_conns",
     .kind = BIND_INT,
     CFG_AT(struct keepalive_config, max_idle_conns),
     .def = "100",
     .use = CFG_NO_EFFECT,
     .help = "Accepted; all connections go to one host, so max_idle_conns_per_host counts."},
    {.key = "max_idle_conns_per_host",
     .kind = BIND_INT,
     CFG_AT(struct keepalive_config, max_idle_conns_per_host),
     .help = "Unused connections that are kept; 0 means 2."},
    {0},
};

static const char *const encodings[] = {"proto", "json", NULL};

const struct cfg_field otlp_http_fields[] = {
    {.key = "endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, endpoint),
     .use = CFG_SENDS_OTLP_HTTP,
     .help = "Base URL; /v1/traces, /v1/metrics or /v1/logs is appended."},
    {.key = "traces_endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, signal_endpoints[SIGNAL_TRACES]),
     .use = CFG_SENDS_OTLP_HTTP,
     .help = "Whole URL for traces, used as it is."},
    {.key = "metrics_endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, signal_endpoints[SIGNAL_METRICS]),
     .use = CFG_SENDS_OTLP_HTTP,
     .help = "Whole URL for metrics, used as it is."},
    {.key = "logs_endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, signal_endpoints[SIGNAL_LOGS]),
     .use = CFG_SENDS_OTLP_HTTP,
     .help = "Whole URL for logs, used as it is."},
    {.key = "profiles_endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, profiles_endpoint),
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used: profiles are not served."},
    {.key = "encoding",
     .kind = BIND_ENUM,
     CFG_AT(struct otlp_http_config, encoding),
     .values = encodings,
     .def = "proto",
     .help = "proto or json."},
    {.key = "compression",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, compression),
     .def = "gzip",
     .help = "gzip, zstd, snappy, x-snappy-framed, zlib, deflate, lz4, none or \"\"."},
    {.key = "compression_params",
     .kind = BIND_STRUCT,
     CFG_AT(struct otlp_http_config, compression_params),
     .fields = compression_params_fields,
     CFG_NESTED(struct compression_params),
     .help = "Details of the compression."},
    EXPORTER_FIELDS(struct otlp_http_config, exporter, "30s", "{}"),
    {.key = "headers",
     .kind = BIND_MAP,
     CFG_AT(struct otlp_http_config, headers),
     .elem = &cfg_elem_opaque,
     .pairs = true,
     .help = "Headers of every request, as a map or a list of name and value; they replace the "
             "exporter's own."},
    AUTH_FIELD(struct otlp_http_config, auth, auth_fields,
               "An authenticator extension gives the credentials of every request; they replace "
               "`headers` of the same name."),
    {.key = "proxy_url",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_http_config, proxy_url),
     .use = CFG_SENDS_TO_PROXY,
     .help = "Proxy for all requests; else HTTP_PROXY, HTTPS_PROXY and NO_PROXY count."},
    {.key = "tls",
     .kind = BIND_STRUCT,
     CFG_AT(struct otlp_http_config, tls),
     .fields = tls_client_fields,
     CFG_NESTED(struct tls_client_settings),
     .help = "TLS; the scheme of the endpoint decides whether it is used."},
    {.key = "read_buffer_size",
     .kind = BIND_INT,
     CFG_AT(struct otlp_http_config, read_buffer_size),
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used."},
    {.key = "write_buffer_size",
     .kind = BIND_INT,
     CFG_AT(struct otlp_http_config, write_buffer_size),
     .def = "524288",
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used."},
    {.key = "max_conns_per_host",
     .kind = BIND_INT,
     CFG_AT(struct otlp_http_config, max_conns_per_host),
     CFG_MORE(.min = 0, .max = 1e6),
     .help = "Most requests at the same time, each on a connection of its own; 0 means no limit "
             "but num_consumers."},
    {.key = "keepalive",
     .kind = BIND_BLOCK,
     CFG_AT(struct otlp_http_config, keepalive),
     .def = "{}",
     .fields = keepalive_fields,
     CFG_NESTED(struct keepalive_config),
     CFG_MORE(CFG_PRESENCE(struct otlp_http_config, keepalive_given)),
     .help = "Connections are kept between requests; enabled: false makes a new one for each."},
    {.key = "idle_conn_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct otlp_http_config, idle_conn_timeout_ns),
     .def = "90s",
     CFG_MORE(CFG_PRESENCE(struct otlp_http_config, idle_conn_timeout_given)),
     .help = "Older spelling of keepalive::idle_conn_timeout."},
    {.key = "max_idle_conns",
     .kind = BIND_INT,
     CFG_AT(struct otlp_http_config, max_idle_conns),
     .def = "100",
     CFG_MORE(CFG_PRESENCE(struct otlp_http_config, max_idle_conns_given)),
     .help = "Older spelling of keepalive::max_idle_conns."},
    {.key = "max_idle_conns_per_host",
     .kind = BIND_INT,
     CFG_AT(struct otlp_http_config, max_idle_conns_per_host),
     CFG_MORE(CFG_PRESENCE(struct otlp_http_config, max_idle_conns_per_host_given)),
     .help = "Older spelling of keepalive::max_idle_conns_per_host."},
    {.key = "disable_keep_alives",
     .kind = BIND_BOOL,
     CFG_AT(struct otlp_http_config, disable_keep_alives),
     CFG_MORE(CFG_PRESENCE(struct otlp_http_config, disable_keep_alives_given)),
     .help = "Older spelling of keepalive::enabled: false."},
    {.key = "force_attempt_http2",
     .kind = BIND_BOOL,
     CFG_AT(struct otlp_http_config, force_attempt_http2),
     .def = "true",
     .help = "Offer HTTP/2 on https connections."},
    {.key = "http2_read_idle_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct otlp_http_config, http2_read_idle_timeout_ns),
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used: a dead connection ends with the time-out of the request."},
    {.key = "http2_ping_timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct otlp_http_config, http2_ping_timeout_ns),
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used."},
    {.key = "cookies", .kind = BIND_REFUSED, .help = "cookies of the backend are not kept"},
    {.key = "middlewares",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "client middlewares are not available"},
    {0},
};
