/* The otlp_grpc exporter: OTLP over gRPC, https://opentelemetry.io/docs/specs/otlp/#otlpgrpc */
#include <ctype.h>
#include <errno.h>

#include "agent/base/clock.h"
#include "agent/net/grpc_client.h"
#include "agent/pipeline/auth.h"
#include "agent/pipeline/otlp_client.h"
#include "agent/pipeline/queue.h"
#include "exporters/otlp_grpc/probe.h"
#include "proto/wire_order.h"

#define KEEPALIVE_MIN_NS 10000000000 /* gRPC's own lower bound for pings */

extern const struct component_type exporter_otlp_grpc;

struct keepalive_config {
    int64_t time_ns, timeout_ns;
    bool permit_without_stream;
};

struct otlp_grpc_config {
    struct exporter_settings exporter;
    const char *endpoint, *compression;
    struct compression_params compression_params;
    struct tls_client_settings tls;
    struct cfg_map headers;
    const char *authority, *user_agent, *balancer_name;
    bool wait_for_ready;
    struct keepalive_config *keepalive;
    struct auth_settings *auth;
    int64_t read_buffer_size, write_buffer_size;
};

struct otlp_grpc {
    struct component base;
    const struct otlp_grpc_config *config;
    struct http_metadata *metadata;
    unsigned nmetadata;
    struct grpc_client *client;
    const struct client_auth *auth; /* NULL = none */
};

/* ---- configuration */

static int check(const void *config, struct err *reterr)
{
    const struct otlp_grpc_config *c = config;
    struct err e = {""};
    int r = exporter_settings_check(&c->exporter, reterr);
    if (r == 0 && grpc_client_check_endpoint(c->endpoint, &e) < 0)
        r = err_at(reterr, "endpoint", "%s", e.text);
    if (r == 0)
        r = compression_check(c->compression, &c->compression_params, true, reterr);
    if (r == 0)
        r = client_headers_check(&c->headers, reterr);
    if (r == 0 && *c->balancer_name && strcmp(c->balancer_name, "round_robin") != 0 &&
        strcmp(c->balancer_name, "pick_first") != 0)
        r = err_at(reterr, "balancer_name",
                   "invalid balancer_name: %s (expected round_robin or pick_first)",
                   c->balancer_name);
    return r == 0 ? tls_client_check(&c->tls, reterr) : r;
}

static const struct exporter_settings *settings(const void *config)
{
    return &((const struct otlp_grpc_config *)config)->exporter;
}

/* ---- life cycle */

static void destroy(struct component *c)
{
    struct otlp_grpc *g = (struct otlp_grpc *)c;
    if (!g)
        return;
    grpc_client_free(g->client);
    for (unsigned i = 0; i < g->nmetadata; i++)
        free((char *)g->metadata[i].name);
    free(g->metadata);
    free(g);
}

/* Names that gRPC sets itself; metadata cannot replace them. */
static bool reserved(const char *lower)
{
    static const char *const names[] = {"content-type", "te",   "user-agent",
                                        "connection",   "host", "transfer-encoding"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], lower) == 0)
            return true;
    return strncmp(lower, "grpc-", 5) == 0;
}

static int make_metadata(struct otlp_grpc *g)
{
    const struct cfg_map *h = &g->config->headers;
    g->metadata = calloc(h->n + 1, sizeof(*g->metadata));
    if (!g->metadata)
        return -ENOMEM;
    for (size_t i = 0; i < h->n; i++) {
        char *name = strdup(h->keys[i]);
        if (!name)
            return -ENOMEM;
        for (char *p = name; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        if (reserved(name)) {
            log_warn(&g->base.logger, "header is set by gRPC itself and was left out",
                     LOG_STR("header", name));
            free(name);
            continue;
        }
        g->metadata[g->nmetadata++] =
            (struct http_metadata){name, ((const char *const *)h->values)[i]};
    }
    return 0;
}

static int make_client(struct otlp_grpc *g, struct err *reterr)
{
    const struct otlp_grpc_config *c = g->config;
    const struct keepalive_config *k = c->keepalive;
    const struct grpc_client_settings s = {
        .endpoint = c->endpoint,
        .tls = &c->tls,
        .authority = c->authority,
        .user_agent = *c->user_agent ? c->user_agent : OTLP_USER_AGENT,
        .compression = compression_codec(c->compression, true),
        .compression_level = (int)c->compression_params.level,
        .keepalive_time_ns = !k                              ? 0
                             : k->time_ns < KEEPALIVE_MIN_NS ? KEEPALIVE_MIN_NS
                                                             : k->time_ns,
        .keepalive_timeout_ns = k ? k->timeout_ns : 0,
        .keepalive_permit_without_stream = k && k->permit_without_stream,
        .wait_for_ready = c->wait_for_ready,
        .metadata = g->metadata,
        .nmetadata = g->nmetadata,
    };
    return grpc_client_new(&s, &g->client, reterr);
}

static int find_auth(struct otlp_grpc *g, struct err *reterr)
{
    int r = client_auth_find(g->base.host, g->config->auth, "gRPC", &g->auth, reterr);
    if (r == 0 && g->auth && !grpc_client_is_secure(g->client))
        r = err_set(reterr, -EINVAL,
                    "grpc: the credentials require transport level security (auth needs TLS: the "
                    "endpoint begins with http://, or tls::insecure is set)");
    return r < 0 ? err_about(reterr, r, "auth") : 0;
}

static int create(const struct component_args *args, struct component **ret, struct err *reterr)
{
    struct otlp_grpc *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&g->base, &exporter_otlp_grpc, args);
    g->config = args->config;
    int r =
        make_metadata(g) < 0 ? err_set(reterr, -ENOMEM, "out of memory") : make_client(g, reterr);
    if (r == 0)
        r = find_auth(g, reterr);
    if (r < 0) {
        destroy(&g->base);
        return r;
    }
    *ret = &g->base;
    return 0;
}

/* Nothing is connected yet: a backend may come later. Certificates are looked at, since they do
 * not. */
static int start(struct component *c, struct err *reterr)
{
    struct otlp_grpc *g = (struct otlp_grpc *)c;
    return tls_client_test(&g->config->tls, reterr);
}

static void stop(struct component *c, uint64_t deadline_ns _unused_)
{
    grpc_client_stop(((struct otlp_grpc *)c)->client);
}

/* ---- data path */

static enum verdict read_success(const struct otlp_grpc *g, enum signal s,
                                 const struct grpc_response *res, struct outcome *out)
{
    struct partial_success ps = {0};
    struct bytes body = res->message_bytes ? buf_bytes(res->message_bytes) : bytes_of("", 0);
    if (response_read(s, body, false, &ps) < 0) {
        out->status = RPC_INTERNAL;
        outcome_message(out,
                        "grpc: error unmarshalling the response: unexpected EOF or invalid data");
        return VERDICT_REJECT;
    }
    client_headers_scrub(&g->config->headers, ps.message);
    partial_success_note(&g->base.logger, s, &ps, out);
    return VERDICT_OK;
}

/* As Go writes them, and so the logs of the reference. */
static const char *code_name(int code)
{
    static const char *const names[] = {
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    };
    return code >= 0 && code < (int)ARRAY_SIZE(names) ? names[code] : "Unknown";
}

static enum verdict read_failure(const struct otlp_grpc *g, struct grpc_response *res,
                                 struct outcome *out)
{
    struct rpc_status details = {0};
    bool told = res->details && status_read(buf_bytes(res->details), &details) == 0;
    client_headers_scrub(&g->config->headers, res->message);
    outcome_message(out, "rpc error: code = %s desc = %s", code_name(res->code), res->message);
    return verdict_of_grpc(res->code, told ? &details : NULL, out);
}

static const char *const methods[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    [SIGNAL_METRICS] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    [SIGNAL_LOGS] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
};

/* Makes the message and calls; -ENOMEM when it cannot be made. */
static int call(struct otlp_grpc *g, const struct batch *b, struct grpc_call_options *o,
                struct grpc_response *ret)
{
    enum codec codec = compression_codec(g->config->compression, true);
    int level = (int)g->config->compression_params.level;
    if (codec == CODEC_IDENTITY) {
        _cleanup_(wire_order_freep) struct wire_order *owner = NULL;
        struct bytes message;
        int r = otlp_client_request(b, &owner, &message);
        if (r == 0)
            grpc_client_call_with(g->client, methods[b->signal], &message, 1, o, ret);
        return r;
    }
    _cleanup_buf_ struct buf *packed = buf_new(0);
    int r = packed ? otlp_client_request_compressed(b, codec, level, packed) : -ENOMEM;
    o->compressed = true;
    if (r == 0)
        grpc_client_call_with(g->client, methods[b->signal],
                              &(struct bytes){packed->data, packed->len}, 1, o, ret);
    return r;
}

/* The call with the credentials of this moment. 0, or RETRY was answered. */
static int call_as(struct otlp_grpc *g, const struct batch *b, uint64_t deadline_ns,
                   struct grpc_response *ret, struct outcome *out)
{
    struct err e = {0};
    _cleanup_(auth_headers_done) struct auth_headers auth;
    if (auth_headers_get(g->auth, true, &auth, &e) < 0) {
        out->status = RPC_UNAVAILABLE;
        outcome_message(out, "failed to get credentials: %s", e.text);
        return -1;
    }
    struct http_metadata m[AUTH_HEADERS_MAX];
    struct grpc_call_options o = {m, 0, false, deadline_ns};
    for (; o.nmetadata < auth.n; o.nmetadata++)
        m[o.nmetadata] =
            (struct http_metadata){auth.items[o.nmetadata].name, auth.items[o.nmetadata].value};
    int r = call(g, b, &o, ret);
    if (r < 0)
        outcome_message(out, "out of memory while the request was made");
    return r;
}

static enum verdict otlp_grpc_send(struct component *c, const struct batch *b, uint64_t deadline_ns,
                                   struct outcome *out)
{
    struct otlp_grpc *g = (struct otlp_grpc *)c;
    struct grpc_response res;
    if (call_as(g, b, deadline_ns, &res, out) < 0)
        return VERDICT_RETRY;
    enum verdict v =
        res.code == RPC_OK ? read_success(g, b->signal, &res, out) : read_failure(g, &res, out);
    buf_unref(res.message_bytes);
    buf_unref(res.details);
    return v;
}

/* ---- doctor */

static void probe_export(struct otlp_grpc *g, struct probe *p, enum signal s,
                         const struct probe_peer *peer)
{
    struct grpc_response res = {0};
    struct outcome out = {0};
    char took[32];
    const char *const subject = signal_name(s);
    const bool credentials = g->auth || g->nmetadata;
    const uint64_t begin = clock_now_ns();
    _cleanup_batch_ struct batch *b = batch_new(s, NULL, 0, 0);
    if (!b || call_as(g, b, begin + p->timeout_ns, &res, &out) < 0) {
        probe_fail(p, "export", subject, "", "%s", *out.message ? out.message : "out of memory");
        return;
    }
    client_headers_scrub(&g->config->headers, res.message);
    otlp_grpc_explain(p, peer, subject, credentials, code_name(res.code), &res,
                      probe_took(begin, took));
    buf_unref(res.message_bytes);
    buf_unref(res.details);
}

static void probe(struct component *c, struct probe *p)
{
    struct otlp_grpc *g = (struct otlp_grpc *)c;
    struct probe_peer peer = {.grpc = true};
    if (p->step != PROBE_OUTSIDE)
        return;
    grpc_client_target(g->client, &peer.host, &peer.port, &peer.unix_path);
    if (grpc_client_is_secure(g->client))
        peer.tls = &g->config->tls;
    if (peer.tls && !probe_client_tls(p, peer.tls))
        return;
    if (!probe_reach(p, &peer))
        return;
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        if (p->signals & SIGNAL_BIT(s))
            probe_export(g, p, s, &peer);
}

/* ---- keys */

static const struct cfg_field keepalive_fields[] = {
    {.key = "time",
     .kind = BIND_DURATION,
     CFG_AT(struct keepalive_config, time_ns),
     .def = "10s",
     .help = "A ping is sent after so much silence; at least 10s."},
    {.key = "timeout",
     .kind = BIND_DURATION,
     CFG_AT(struct keepalive_config, timeout_ns),
     .def = "10s",
     .help = "Without an answer the connection is closed after this time."},
    {.key = "permit_without_stream",
     .kind = BIND_BOOL,
     CFG_AT(struct keepalive_config, permit_without_stream),
     .help = "Ping also while no request is under way."},
    {0},
};

static const struct cfg_field fields[] = {
    {.key = "endpoint",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_grpc_config, endpoint),
     .use = CFG_SENDS_OTLP_GRPC,
     .help = "host:port; http:// means without TLS, https:// with TLS; also dns:///host:port and "
             "unix:///path."},
    {.key = "compression",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_grpc_config, compression),
     .def = "gzip",
     .help = "gzip, zstd, snappy, none or \"\"."},
    {.key = "compression_params",
     .kind = BIND_STRUCT,
     CFG_AT(struct otlp_grpc_config, compression_params),
     .fields = compression_params_fields,
     CFG_NESTED(struct compression_params),
     .help = "Details of the compression."},
    EXPORTER_FIELDS(struct otlp_grpc_config, exporter, "5s", "{}"),
    {.key = "tls",
     .kind = BIND_STRUCT,
     CFG_AT(struct otlp_grpc_config, tls),
     .fields = tls_client_fields,
     CFG_NESTED(struct tls_client_settings),
     .help = "TLS, which is on unless `insecure: true` or the endpoint begins with http://."},
    {.key = "headers",
     .kind = BIND_MAP,
     CFG_AT(struct otlp_grpc_config, headers),
     .elem = &cfg_elem_opaque,
     .pairs = true,
     .help = "Metadata of every request, as a map or a list of name and value."},
    AUTH_FIELD(struct otlp_grpc_config, auth, auth_fields,
               "An authenticator extension gives the credentials of every request; needs TLS."),
    {.key = "authority",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_grpc_config, authority),
     .help = "The :authority to send instead of the endpoint's."},
    {.key = "user_agent",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_grpc_config, user_agent),
     .help = "The user-agent to send."},
    {.key = "wait_for_ready",
     .kind = BIND_BOOL,
     CFG_AT(struct otlp_grpc_config, wait_for_ready),
     .help = "An attempt waits for a connection up to its time-out instead of failing at once."},
    {.key = "keepalive",
     .kind = BIND_BLOCK,
     CFG_AT(struct otlp_grpc_config, keepalive),
     .fields = keepalive_fields,
     CFG_NESTED(struct keepalive_config),
     .help = "HTTP/2 pings; off unless given."},
    {.key = "balancer_name",
     .kind = BIND_STRING,
     CFG_AT(struct otlp_grpc_config, balancer_name),
     .def = "round_robin",
     .help = "Accepted (round_robin, pick_first); there is one connection, to the first address "
             "that answers."},
    {.key = "read_buffer_size",
     .kind = BIND_INT,
     CFG_AT(struct otlp_grpc_config, read_buffer_size),
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used."},
    {.key = "write_buffer_size",
     .kind = BIND_INT,
     CFG_AT(struct otlp_grpc_config, write_buffer_size),
     .def = "524288",
     .use = CFG_NO_EFFECT,
     .help = "Accepted and not used."},
    {.key = "middlewares",
     .kind = BIND_REFUSED,
     .def = "[]",
     .help = "client middlewares are not available"},
    {0},
};

static const char *const aliases[] = {"otlp", NULL};

const struct component_type exporter_otlp_grpc = {
    .kind = KIND_EXPORTER,
    .name = "otlp_grpc",
    .aliases = aliases,
    .accepts = SIGNALS_ALL,
    .stability = {"stable", "stable", "stable"},
    .help = "Sends OTLP over gRPC.",
    .fields = fields,
    .config_size = sizeof(struct otlp_grpc_config),
    .check = check,
    .settings = settings,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
    .send = otlp_grpc_send,
    .probe = probe,
};
