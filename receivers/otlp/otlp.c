/*
 * The OTLP receiver: gRPC and HTTP, each on its port as configured, and either protocol on either
 * port, because clients mix them up. What the answers are is in http.c and grpc.c, the way of a
 * request in request.c.
 */
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/pipeline/probe.h"
#include "receivers/otlp/otlp.h"

#define DEFAULT_GRPC_MAX ((size_t)4 << 20)
#define DEFAULT_HTTP_MAX ((size_t)20 << 20)
#define STOP_SHARE_NS                                                                              \
    (5 * NS_PER_S) /* of the time for the whole stop; the rest is for what is downstream */

extern const struct component_type receiver_otlp;

/* ---- the service of both ports ---- */

/* Everything that calls itself gRPC, also what gRPC does not know. */
static bool is_grpc_like(const struct http_exchange *x)
{
    if (http_is_grpc(x))
        return true;
    if (http_carrier(x) != CARRIER_HTTP2)
        return false;
    struct bytes t = http_header(x, "content-type");
    return t.len >= 16 && memcmp(t.data, "application/grpc", 16) == 0;
}

static size_t on_headers(void *ctx, struct http_exchange *x)
{
    return (is_grpc_like(x) ? otlp_grpc_headers : otlp_http_headers)(ctx, x);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    (http_is_grpc(x) ? otlp_grpc_request : otlp_http_request)(ctx, x);
}

static void on_too_large(void *ctx, struct http_exchange *x)
{
    (http_is_grpc(x) ? otlp_grpc_too_large : otlp_http_too_large)(ctx, x);
}

static void on_no_room(void *ctx, struct http_exchange *x)
{
    (http_is_grpc(x) ? otlp_grpc_no_room : otlp_http_no_room)(ctx, x);
}

/* ---- life ---- */

void otlp_unref(struct otlp *o)
{
    if (atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        free(o->paths[s]);
    for (unsigned i = 0; i < CODEC_UNKNOWN; i++)
        buf_unref(atomic_load(&o->grpc_success[i]));
    for (unsigned i = 0; i < o->nresponse_headers; i++) {
        free((char *)o->response_headers[i].name);
        free((char *)o->response_headers[i].value);
    }
    free(o->response_headers);
    cors_free(o->cors);
    pool_free(o->pool);
    free(o);
}

/* "v1/traces" is "/v1/traces". */
static int copy_paths(struct otlp *o, const char *const *paths)
{
    static const char *const usual[SIGNAL_COUNT] = {"/v1/traces", "/v1/metrics", "/v1/logs"};
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        const char *p = paths && paths[s][0] ? paths[s] : usual[s];
        if (asprintf(&o->paths[s], "%s%s", p[0] == '/' ? "" : "/", p) < 0) {
            o->paths[s] = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

static int copy_response_headers(struct otlp *o, const struct cfg_map *m)
{
    const char *const *values = m->values;
    if (m->n && !(o->response_headers = calloc(m->n, sizeof(*o->response_headers))))
        return -ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        o->response_headers[i] = (struct http_header_out){strdup(m->keys[i]), strdup(values[i])};
        o->nresponse_headers++;
        if (!o->response_headers[i].name || !o->response_headers[i].value)
            return -ENOMEM;
        for (char *c = (char *)o->response_headers[i].name; *c; c++) /* as HTTP/2 has it */
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    }
    return 0;
}

static int configure(struct otlp *o)
{
    const struct grpc_config *g = o->config->protocols.grpc;
    const struct http_config *h = o->config->protocols.http;
    o->grpc_max =
        g && g->max_recv_msg_size_bytes > 0 ? (size_t)g->max_recv_msg_size_bytes : DEFAULT_GRPC_MAX;
    o->http_max =
        h && h->max_request_body_bytes > 0 ? (size_t)h->max_request_body_bytes : DEFAULT_HTTP_MAX;
    o->encodings = OTLP_ALL_ENCODINGS;
    if (h && (h->compression_given == CFG_GIVEN || h->compression_given == CFG_GIVEN_EMPTY))
        o->encodings = otlp_http_encodings(&h->compression_algorithms);
    int r = copy_paths(o, h ? h->paths : NULL);
    if (r == 0 && h)
        r = copy_response_headers(o, &h->response_headers);
    return r == 0 && h ? cors_new(h->cors, &o->cors) : r;
}

/* Whether there are the authenticators that both ports name. */
static int check_auth(struct otlp *o, struct err *reterr)
{
    const struct grpc_config *g = o->config->protocols.grpc;
    const struct http_config *h = o->config->protocols.http;
    const struct server_auth *found;
    int r = server_auth_find(o->c.host, g ? g->auth : NULL, &found, reterr);
    if (r < 0)
        return err_about(reterr, r, "protocols::grpc::auth");
    r = server_auth_find(o->c.host, h ? h->auth : NULL, &found, reterr);
    return r < 0 ? err_about(reterr, r, "protocols::http::auth") : 0;
}

static int otlp_create(const struct component_args *args, struct component **ret,
                       struct err *reterr)
{
    struct otlp *o = calloc(1, sizeof(*o));
    if (!o)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&o->c, &receiver_otlp, args);
    atomic_init(&o->refs, 1);
    o->config = args->config;
    o->grpc_port = (struct otlp_port){.o = o, .grpc = true, .mixed = ATOMIC_FLAG_INIT};
    o->http_port = (struct otlp_port){.o = o, .mixed = ATOMIC_FLAG_INIT};
    o->pool = pool_new();
    if (!o->pool || configure(o) < 0) {
        otlp_unref(o);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    int r = check_auth(o, reterr);
    if (r < 0) {
        otlp_unref(o);
        return r;
    }
    *ret = &o->c;
    return 0;
}

static void warn_settings(const struct otlp *o)
{
    const struct grpc_config *g = o->config->protocols.grpc;
    const struct http_config *h = o->config->protocols.http;
    if ((g && g->include_metadata) || (h && h->include_metadata))
        log_warn(&o->c.logger, "include_metadata is set, but metadata of clients is not kept");
    if (h && h->idle_timeout_ns)
        log_warn(&o->c.logger,
                 "'idle_timeout' is deprecated; use 'keepalive::idle_timeout' instead");
    if (h && !h->keep_alives_enabled)
        log_warn(&o->c.logger, "'keep_alives_enabled' is deprecated; set 'keepalive::enabled' to "
                               "false to disable keep-alives");
    if (h && h->cors && h->cors->allowed_origins.n == 0 && h->cors->allowed_headers.n > 0)
        log_warn(&o->c.logger, "The CORS configuration specifies allowed headers but no allowed "
                               "origins, and is therefore ignored.");
}

static int serve(struct otlp *o, struct otlp_port *p, const struct server_settings *s,
                 const struct auth_settings *auth, struct err *reterr)
{
    const struct http_service service = {.headers = on_headers,
                                         .request = on_request,
                                         .too_large = on_too_large,
                                         .ctx = p,
                                         .no_room = on_no_room};
    const char *name = p->grpc ? "grpc" : "http";
    int r = auth_guard_start(&p->guard, &o->c, name, auth, reterr);
    if (r == 0)
        r = served_start(&o->c, name, s, &service, &p->served, reterr);
    if (r < 0)
        return r;
    log_info(&o->c.logger, p->grpc ? "Starting GRPC server" : "Starting HTTP server",
             LOG_STR("endpoint", served_address(p->served)));
    const struct tls_server_settings *tls = s->tls_keys;
    auth_guard_warn_open(&p->guard, served_address(p->served),
                         tls && (*tls->client_ca_file || *tls->client_ca_pem));
    return 0;
}

static void otlp_stop(struct component *c, uint64_t deadline_ns)
{
    struct otlp *o = (struct otlp *)c;
    uint64_t most = clock_now_ns() + STOP_SHARE_NS;
    deadline_ns = deadline_ns < most ? deadline_ns : most;
    served_stop(o->grpc_port.served, deadline_ns);
    served_stop(o->http_port.served, deadline_ns);
    pool_stop(o->pool);
}

static int otlp_start(struct component *c, struct err *reterr)
{
    struct otlp *o = (struct otlp *)c;
    struct server_settings s;
    int r = 0;
    for (int sig = 0; sig < SIGNAL_COUNT; sig++) {
        receiver_metrics_get(c->host, c->id, "http", (enum signal)sig, &o->metrics[0][sig]);
        receiver_metrics_get(c->host, c->id, "grpc", (enum signal)sig, &o->metrics[1][sig]);
        memory_gate_get(c, (enum signal)sig, "http", &o->memory[0][sig]);
        memory_gate_get(c, (enum signal)sig, "grpc", &o->memory[1][sig]);
    }
    warn_settings(o);
    if (o->config->protocols.grpc) {
        otlp_grpc_settings(o->config->protocols.grpc, &s);
        r = serve(o, &o->grpc_port, &s, o->config->protocols.grpc->auth, reterr);
    }
    if (r == 0 && o->config->protocols.http) {
        otlp_http_settings(o->config->protocols.http, &s);
        r = serve(o, &o->http_port, &s, o->config->protocols.http->auth, reterr);
    }
    if (r < 0)
        otlp_stop(c, 0);
    return r;
}

static void otlp_destroy(struct component *c)
{
    struct otlp *o = (struct otlp *)c;
    if (!o)
        return;
    otlp_stop(c, 0);
    served_free(o->grpc_port.served);
    served_free(o->http_port.served);
    otlp_unref(o);
}

/* ---- doctor ---- */

static void otlp_probe(struct component *c, struct probe *p)
{
    const struct otlp_protocols_config *protocols = &((struct otlp *)c)->config->protocols;
    struct server_settings s;
    if (protocols->grpc) {
        otlp_grpc_settings(protocols->grpc, &s);
        probe_server(p, "grpc", &s, protocols->grpc->auth != NULL);
    }
    if (protocols->http) {
        otlp_http_settings(protocols->http, &s);
        probe_server(p, "http", &s, protocols->http->auth != NULL);
    }
}

const struct component_type receiver_otlp = {
    .kind = KIND_RECEIVER,
    .name = "otlp",
    .emits = SIGNALS_ALL,
    .stability = {"stable", "stable", "stable"},
    .help = "Receives OTLP over gRPC and HTTP.",
    .fields = otlp_fields,
    .config_size = sizeof(struct otlp_config),
    .check = otlp_check_config,
    .create = otlp_create,
    .start = otlp_start,
    .stop = otlp_stop,
    .destroy = otlp_destroy,
    .probe = otlp_probe,
};
