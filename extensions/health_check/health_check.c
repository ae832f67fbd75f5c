/*
 * The health_check extension: answers 200 on its path while all pipelines run, 503 while they start
 * or stop. Before its start the port refuses connections.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/net/tls_server.h"
#include "agent/pipeline/auth.h"
#include "agent/pipeline/listen.h"
#include "agent/pipeline/probe.h"

#define MAX_BODY_BYTES 65536u     /* of a request whose credentials are being checked */
#define STOP_NS (200 * NS_PER_MS) /* an answer under way may be taken */

extern const struct component_type extension_health_check;

struct body_config {
    const char *healthy, *unhealthy;
};
struct keepalive_config {
    int64_t idle_timeout_ns;
};
struct health_config {
    const char *endpoint, *transport, *path;
    struct body_config *response_body;
    int64_t read_timeout_ns, read_header_timeout_ns, write_timeout_ns, idle_timeout_ns;
    struct keepalive_config *keepalive;
    struct auth_settings *auth;
    bool keep_alives_enabled;
    struct tls_server_settings *tls;
    const struct cfg_value *ignored;
};

struct health {
    struct component c; /* first */
    const struct health_config *config;
    struct served *served;
    struct auth_guard guard;
    char *path, *healthy, *unhealthy; /* the bodies NULL = JSON */
    atomic_bool ready;
    _Atomic uint64_t up_wall_ns, up_ns; /* when it became ready */
};

/* ---- answers ---- */

/* As Go writes a time in JSON: RFC 3339, as many digits as there are, the local zone. */
static int put_time(struct buf *b, uint64_t wall_ns)
{
    char text[32];
    time_t s = (time_t)(wall_ns / NS_PER_S);
    unsigned ns = (unsigned)(wall_ns % NS_PER_S);
    struct tm tm;
    localtime_r(&s, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    int r = buf_append_str(b, text);
    if (ns) {
        int n = snprintf(text, sizeof(text), ".%09u", ns);
        while (text[n - 1] == '0')
            n--;
        r |= buf_append(b, text, (size_t)n);
    }
    long minutes = tm.tm_gmtoff / 60, size = minutes < 0 ? -minutes : minutes;
    return r |
           (minutes ? buf_printf(b, "%c%02ld:%02ld", minutes < 0 ? '-' : '+', size / 60, size % 60)
                    : buf_putc(b, 'Z'));
}

static int put_json(const struct health *h, bool ready, struct buf *b)
{
    char uptime[32];
    if (!ready)
        return buf_append_str(b,
                              "{\"status\":\"Server not "
                              "available\",\"upSince\":\"0001-01-01T00:00:00Z\",\"uptime\":\"\"}");
    cfg_format_duration((int64_t)(clock_now_ns() - atomic_load(&h->up_ns)), uptime);
    int r = buf_append_str(b, "{\"status\":\"Server available\",\"upSince\":\"");
    r |= put_time(b, atomic_load(&h->up_wall_ns));
    return r | buf_printf(b, "\",\"uptime\":\"%s\"}", uptime);
}

static void reply(struct http_exchange *x, int status, const char *type, struct buf *body)
{
    const struct http_header_out headers[] = {{"content-type", type},
                                              {"x-content-type-options", "nosniff"}};
    http_reply(x, status, headers, status == 404 ? 2 : 1, body, NULL, 0, false);
}

static bool path_matches(const struct health *h, struct bytes path)
{
    size_t n = strlen(h->path);
    if (h->path[n - 1] == '/')
        return path.len >= n && memcmp(path.data, h->path, n) == 0;
    return bytes_eq_str(path, h->path);
}

static void tell(const struct health *h, struct http_exchange *x)
{
    bool ready = atomic_load(&h->ready);
    struct buf *b = buf_new(0);
    if (!path_matches(h, http_path(x))) {
        if (b && buf_append_str(b, "404 page not found\n") < 0)
            b = buf_unref(b);
        reply(x, 404, "text/plain; charset=utf-8", b);
        return;
    }
    int r = !b           ? 0
            : h->healthy ? buf_append_str(b, ready ? h->healthy : h->unhealthy)
                         : put_json(h, ready, b);
    if (r)
        b = buf_unref(b);
    reply(x, ready ? 200 : 503, h->healthy ? "text/plain; charset=utf-8" : "application/json", b);
}

static void refuse(const struct health *h, struct http_exchange *x, bool busy, const char *reason)
{
    struct buf *b = buf_new(0);
    const struct http_header_out headers[] = {
        {"content-type", "text/plain; charset=utf-8"},
        {"x-content-type-options", "nosniff"},
        {busy ? "retry-after" : "www-authenticate", busy ? "1" : h->guard.auth->challenge},
    };
    if (b && buf_printf(b, "%s\n", reason) < 0)
        b = buf_unref(b);
    http_reply(x, busy ? 503 : 401, headers, ARRAY_SIZE(headers), b, NULL, 0, false);
}

/* Any method is answered, a body is not looked at. */
static size_t on_headers(void *ctx, struct http_exchange *x)
{
    struct health *h = ctx;
    const char *reason;
    switch (auth_guard_admit(&h->guard, x, &reason)) {
    case ADMIT_PASS: tell(h, x); return 0;
    case ADMIT_REFUSE: refuse(h, x, false, reason); return 0;
    case ADMIT_BUSY: refuse(h, x, true, reason); return 0;
    case ADMIT_LATER: break;
    }
    return MAX_BODY_BYTES;
}

/* A request whose credentials take longer to check. */
struct waiting {
    struct health *h;
    struct http_exchange *x;
};

static void on_checked(void *ctx, const char *refused)
{
    struct waiting *w = ctx;
    if (refused) {
        auth_guard_refused(&w->h->guard, http_peer(w->x), refused);
        refuse(w->h, w->x, false, refused);
    } else {
        tell(w->h, w->x);
    }
    free(w);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct health *h = ctx;
    struct auth_check *k = http_take_ticket(x);
    struct waiting *w = malloc(sizeof(*w));
    if (w && k) {
        *w = (struct waiting){h, x};
        k->then(k, on_checked, w);
        return;
    }
    free(w);
    if (k)
        k->drop(k);
    refuse(h, x, true, "out of memory");
}

static void on_too_large(void *ctx, struct http_exchange *x)
{
    struct auth_check *k = http_take_ticket(x);
    if (k)
        k->drop(k);
    refuse(ctx, x, true, AUTH_RETRY_TEXT);
}

/* ---- life ---- */

static void health_destroy(struct component *c)
{
    struct health *h = (struct health *)c;
    if (!h)
        return;
    served_free(h->served);
    free(h->path);
    free(h->healthy);
    free(h->unhealthy);
    free(h);
}

static int health_create(const struct component_args *args, struct component **ret,
                         struct err *reterr)
{
    const struct health_config *config = args->config;
    struct health *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&h->c, &extension_health_check, args);
    h->config = config;
    h->path = strdup(config->path);
    if (config->response_body) {
        h->healthy = strdup(config->response_body->healthy);
        h->unhealthy = strdup(config->response_body->unhealthy);
    }
    if (!h->path || (config->response_body && (!h->healthy || !h->unhealthy))) {
        health_destroy(&h->c);
        return err_set(reterr, -ENOMEM, "out of memory");
    }
    *ret = &h->c;
    return 0;
}

static void server_settings_of(const struct health_config *config, struct server_settings *ret)
{
    *ret = (struct server_settings){
        .endpoint = config->endpoint,
        .transport = config->transport,
        .tls_keys = config->tls,
        .read_timeout_ns = config->read_timeout_ns,
        .read_header_timeout_ns = config->read_header_timeout_ns,
        .write_timeout_ns = config->write_timeout_ns,
        .idle_timeout_ns =
            config->keepalive ? config->keepalive->idle_timeout_ns : config->idle_timeout_ns,
        .no_keepalive = !config->keep_alives_enabled && !config->keepalive,
    };
}

static int health_start(struct component *c, struct err *reterr)
{
    struct health *h = (struct health *)c;
    const struct health_config *config = h->config;
    const struct http_service service = {on_headers, on_request, on_too_large, NULL, h};
    struct server_settings s;
    server_settings_of(config, &s);
    int r = auth_guard_start(&h->guard, c, "http", config->auth, reterr);
    if (r < 0)
        return r;
    r = served_start(c, "", &s, &service, &h->served, reterr);
    if (r < 0)
        err_prefix(reterr, "failed to bind to address %s: ", config->endpoint);
    return r;
}

static void health_stop(struct component *c, uint64_t deadline_ns)
{
    struct health *h = (struct health *)c;
    uint64_t most = clock_now_ns() + STOP_NS;
    served_stop(h->served, deadline_ns < most ? deadline_ns : most);
}

static void health_ready(struct component *c, bool ready)
{
    struct health *h = (struct health *)c;
    if (ready && !atomic_load(&h->ready)) {
        atomic_store(&h->up_wall_ns, clock_wall_ns());
        atomic_store(&h->up_ns, clock_now_ns());
    }
    atomic_store(&h->ready, ready);
    log_info(&c->logger, "Health Check state change",
             LOG_STR("status", ready ? "ready" : "unavailable"));
}

static void health_probe(struct component *c, struct probe *p)
{
    const struct health_config *config = ((struct health *)c)->config;
    struct server_settings s;
    server_settings_of(config, &s);
    probe_server(p, "", &s, true); /* it tells nothing but that it runs */
}

/* ---- configuration ---- */

static int health_check(const void *config, struct err *reterr)
{
    const struct health_config *c = config;
    struct err e;
    bool is_unix = strcmp(c->transport, "unix") == 0;
    if (c->endpoint[0] == 0)
        return err_at(reterr, "endpoint", "http endpoint required");
    if (c->path[0] != '/')
        return err_at(reterr, "path", "path must start with /, got \"%s\"", c->path);
    if (!is_unix && strcmp(c->transport, "tcp") != 0 && strcmp(c->transport, "tcp4") != 0 &&
        strcmp(c->transport, "tcp6") != 0)
        return err_at(reterr, "transport", "expected tcp, tcp4, tcp6 or unix, got \"%s\"",
                      c->transport);
    if (!is_unix && endpoint_check(c->endpoint, &e) < 0)
        return err_at(reterr, "endpoint", "%s", e.text);
    return c->tls ? tls_server_check(c->tls, reterr) : 0;
}

#define NOT_SERVED(what) what " on this server is not supported"
#define V2                                                                                         \
    "v2 healthcheck configuration (http/grpc fields) is not supported; the server is set by "      \
    "endpoint and path"

/* clang-format off */
static const struct cfg_field body_fields[] = {
    {.key = "healthy", .kind = BIND_STRING, CFG_AT(struct body_config, healthy), .help = "Body of a 200."},
    {.key = "unhealthy", .kind = BIND_STRING, CFG_AT(struct body_config, unhealthy), .help = "Body of a 503."},
    {0}};
static const struct cfg_field keepalive_fields[] = {
    {.key = "idle_timeout", .kind = BIND_DURATION, CFG_AT(struct keepalive_config, idle_timeout_ns),
     .help = "Time between two requests on a connection; 0 means 65s."},
    {0}};
static const struct cfg_field health_fields[] = {
    {.key = "endpoint", .kind = BIND_STRING, CFG_AT(struct health_config, endpoint), .def = "localhost:13133",
     .use = CFG_SERVES_HTTP, .help = "Address to listen on, host:port, or a path with transport unix."},
    {.key = "transport", .kind = BIND_STRING, CFG_AT(struct health_config, transport), .def = "tcp",
     .help = "tcp, tcp4, tcp6 or unix."},
    {.key = "path", .kind = BIND_STRING, CFG_AT(struct health_config, path), .def = "/",
     .help = "Path that answers; one that ends with a slash takes everything below it."},
    {.key = "response_body", .kind = BIND_BLOCK, CFG_AT(struct health_config, response_body), .fields = body_fields,
     CFG_NESTED(struct body_config), .null_absent = true, .help = "Bodies instead of the JSON text."},
    {.key = "read_timeout", .kind = BIND_DURATION, CFG_AT(struct health_config, read_timeout_ns),
     .help = "Time for a whole request; 0 means 60s without progress."},
    {.key = "read_header_timeout", .kind = BIND_DURATION, CFG_AT(struct health_config, read_header_timeout_ns),
     .help = "Time for the head of a request; 0 means 60s."},
    {.key = "write_timeout", .kind = BIND_DURATION, CFG_AT(struct health_config, write_timeout_ns),
     .help = "Time for an answer to be taken; 0 means 60s."},
    {.key = "keepalive", .kind = BIND_BLOCK, CFG_AT(struct health_config, keepalive), .fields = keepalive_fields,
     CFG_NESTED(struct keepalive_config), .null_absent = true, .help = "Several requests on one connection; off without this block."},
    {.key = "idle_timeout", .kind = BIND_DURATION, CFG_AT(struct health_config, idle_timeout_ns),
     .help = "Deprecated: keepalive::idle_timeout."},
    {.key = "keep_alives_enabled", .kind = BIND_BOOL, CFG_AT(struct health_config, keep_alives_enabled),
     .help = "Deprecated: keepalive."},
    {.key = "check_collector_pipeline", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "cors", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "response_headers", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "max_request_body_size", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "compression_algorithms", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "include_metadata", .kind = BIND_ANY, CFG_AT(struct health_config, ignored), .use = CFG_NO_EFFECT, .help = "Accepted, has no effect."},
    {.key = "tls", .kind = BIND_BLOCK, CFG_AT(struct health_config, tls), .fields = tls_server_fields,
     CFG_NESTED(struct tls_server_settings), .null_absent = true, .help = "TLS instead of plain text."},
    AUTH_FIELD(struct health_config, auth, auth_http_fields, "Answers only requests that an authenticator extension knows."),
    {.key = "middlewares", .kind = BIND_REFUSED, .def = "[]", .help = NOT_SERVED("middleware")},
    {.key = "http", .kind = BIND_REFUSED, .help = V2},
    {.key = "grpc", .kind = BIND_REFUSED, .help = V2},
    {.key = "component_health", .kind = BIND_REFUSED, .help = V2},
    {0}};
/* clang-format on */

const struct component_type extension_health_check = {
    .kind = KIND_EXTENSION,
    .name = "health_check",
    .help = "Tells over HTTP whether all pipelines run.",
    .fields = health_fields,
    .config_size = sizeof(struct health_config),
    .check = health_check,
    .create = health_create,
    .start = health_start,
    .stop = health_stop,
    .destroy = health_destroy,
    .ready = health_ready,
    .probe = health_probe,
};
