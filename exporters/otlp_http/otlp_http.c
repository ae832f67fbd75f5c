/* The otlp_http exporter: OTLP over HTTP, in protobuf or JSON,
 * https://opentelemetry.io/docs/specs/otlp/#otlphttp */
#include <errno.h>

#include "agent/base/clock.h"
#include "agent/net/http_pool.h"
#include "agent/net/retry_after.h"
#include "exporters/otlp_http/config.h"
#include "exporters/otlp_http/probe.h"
#include "proto/json.h"
#include "proto/wire_order.h"

#define RESPONSE_BYTES 65536 /* of an answer that are looked at */
#define IDLE_PER_HOST 2      /* Go's default for connections kept while unused */

extern const struct component_type exporter_otlp_http;

struct otlp_http {
    struct component base;
    const struct otlp_http_config *config;
    enum codec codec;
    char *urls[SIGNAL_COUNT]; /* NULL = no endpoint for the signal */
    char **headers;           /* "name: value", NULL ended */
    struct http_pool *pool;
    const struct client_auth *auth; /* NULL = none */
};

static const struct exporter_settings *settings(const void *config)
{
    return &((const struct otlp_http_config *)config)->exporter;
}

/* ---- life cycle */

static void destroy(struct component *c)
{
    struct otlp_http *h = (struct otlp_http *)c;
    if (!h)
        return;
    http_pool_free(h->pool);
    for (int s = 0; s < SIGNAL_COUNT; s++)
        free(h->urls[s]);
    for (char **p = h->headers; p && *p; p++)
        free(*p);
    free(h->headers);
    free(h);
}

static int make_url(const struct otlp_http_config *c, enum signal s, char **ret)
{
    const char *own = c->signal_endpoints[s], *slash = "/";
    size_t n = strlen(c->endpoint);
    if (*own)
        return (*ret = strdup(own)) ? 0 : -ENOMEM;
    if (!n)
        return 0;
    if (c->endpoint[n - 1] == '/')
        slash = "";
    return asprintf(ret, "%s%sv1/%s", c->endpoint, slash, signal_name(s)) < 0
               ? (*ret = NULL, -ENOMEM)
               : 0;
}

/* A configured header replaces the exporter's own of the same name. */
static int add_header(struct otlp_http *h, size_t *n, const char *name, const char *value, bool own)
{
    if (own && client_headers_get(&h->config->headers, name))
        return 0;
    if (asprintf(&h->headers[*n], "%s: %s", name, value) < 0) {
        h->headers[*n] = NULL;
        return -ENOMEM;
    }
    (*n)++;
    return 0;
}

static int make_headers(struct otlp_http *h)
{
    const struct otlp_http_config *c = h->config;
    size_t n = 0;
    h->headers = calloc(c->headers.n + 3, sizeof(*h->headers));
    if (!h->headers)
        return -ENOMEM;
    int r = add_header(h, &n, "Content-Type",
                       c->encoding == ENCODING_JSON ? "application/json" : "application/x-protobuf",
                       true);
    if (r == 0 && h->codec != CODEC_IDENTITY)
        r = add_header(h, &n, "Content-Encoding", c->compression, true);
    for (size_t i = 0; r == 0 && i < c->headers.n; i++)
        r = add_header(h, &n, c->headers.keys[i], ((const char *const *)c->headers.values)[i],
                       false);
    return r;
}

static struct http_client_settings client_settings(const struct otlp_http_config *c)
{
    int64_t idle_ns = c->keepalive ? c->keepalive->idle_conn_timeout_ns : 0;
    if (c->idle_conn_timeout_given)
        idle_ns = c->idle_conn_timeout_ns;
    return (struct http_client_settings){
        .tls = &c->tls,
        .proxy_url = c->proxy_url,
        .user_agent = client_headers_get(&c->headers, "User-Agent") ? NULL : OTLP_USER_AGENT,
        .max_conns_per_host = c->max_conns_per_host,
        .idle_timeout_ns = idle_ns,
        .http2 = c->force_attempt_http2,
        .no_keepalive = !c->keepalive || c->disable_keep_alives,
    };
}

static int make_pool(struct otlp_http *h, struct err *reterr)
{
    const struct otlp_http_config *c = h->config;
    const struct http_client_settings s = client_settings(c);
    int64_t per_host = c->keepalive ? c->keepalive->max_idle_conns_per_host : 0;
    if (c->max_idle_conns_per_host_given)
        per_host = c->max_idle_conns_per_host;
    h->pool = http_pool_new(&s, per_host > 0 ? (unsigned)per_host : IDLE_PER_HOST, reterr);
    return h->pool ? 0 : -ENOMEM;
}

static int find_auth(struct otlp_http *h, struct err *reterr)
{
    int r = client_auth_find(h->base.host, h->config->auth, "HTTP", &h->auth, reterr);
    return r < 0 ? err_about(reterr, r, "auth") : 0;
}

static int create(const struct component_args *args, struct component **ret, struct err *reterr)
{
    struct otlp_http *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(reterr, -ENOMEM, "out of memory");
    component_init(&h->base, &exporter_otlp_http, args);
    h->config = args->config;
    h->codec = compression_codec(h->config->compression, false);
    int r = 0;
    for (int s = 0; r == 0 && s < SIGNAL_COUNT; s++)
        r = make_url(h->config, s, &h->urls[s]);
    if (r == 0)
        r = make_headers(h);
    r = r < 0 ? err_set(reterr, r, "out of memory") : make_pool(h, reterr);
    if (r == 0)
        r = find_auth(h, reterr);
    if (r < 0) {
        destroy(&h->base);
        return r;
    }
    *ret = &h->base;
    return 0;
}

/* Nothing is connected yet: a backend may come later. Certificates are looked at, since they do
 * not. */
static int start(struct component *c, struct err *reterr)
{
    struct otlp_http *h = (struct otlp_http *)c;
    if (otlp_http_old_keepalive(h->config))
        log_warn(&c->logger, "idle_conn_timeout, max_idle_conns, max_idle_conns_per_host and "
                             "disable_keep_alives are deprecated; use the "
                             "keepalive block instead");
    return tls_client_test(&h->config->tls, reterr);
}

static void stop(struct component *c, uint64_t deadline_ns _unused_)
{
    http_pool_interrupt(((struct otlp_http *)c)->pool);
}

/* ---- data path */

/* A request body and who owns its memory. */
struct body {
    struct bytes bytes;
    struct wire_order *order;
    struct buf *buf;
};

static void body_done(struct body *b)
{
    wire_order_free(b->order);
    buf_unref(b->buf);
}

static int make_json(const struct otlp_http *h, const struct batch *b, struct buf *out)
{
    if (h->codec == CODEC_IDENTITY)
        return json_write_batch(b, 0, out);
    _cleanup_buf_ struct buf *plain = buf_new(0);
    int r = plain ? json_write_batch(b, 0, plain) : -ENOMEM;
    if (r < 0)
        return r;
    struct bytes part = buf_bytes(plain);
    return codec_compress(h->codec, (int)h->config->compression_params.level, &part, 1, out);
}

static int make_body(const struct otlp_http *h, const struct batch *b, struct body *ret)
{
    bool json = h->config->encoding == ENCODING_JSON;
    if (!json && h->codec == CODEC_IDENTITY)
        return otlp_client_request(b, &ret->order, &ret->bytes);
    if (!(ret->buf = buf_new(0)))
        return -ENOMEM;
    int r = json ? make_json(h, b, ret->buf)
                 : otlp_client_request_compressed(
                       b, h->codec, (int)h->config->compression_params.level, ret->buf);
    ret->bytes = buf_bytes(ret->buf);
    return r;
}

static bool media_is(const char *content_type, const char *type)
{
    return strcmp(content_type, type) == 0;
}

/* A 2xx means delivered, whatever follows; a body of our type that does not parse is reported, and
 * the data not sent again. */
static enum verdict read_success(const struct otlp_http *h, enum signal s,
                                 const struct http_client_response *res, struct outcome *out)
{
    struct partial_success ps = {0};
    bool json = media_is(res->content_type, "application/json");
    if (!json && !media_is(res->content_type, "application/x-protobuf"))
        return VERDICT_OK;
    if (response_read(s, buf_bytes(res->body), json, &ps) < 0) {
        out->status = RPC_INTERNAL;
        outcome_message(out, "error parsing %s response: unexpected EOF or invalid data",
                        json ? "json" : "protobuf");
        return VERDICT_REJECT;
    }
    client_headers_scrub(&h->config->headers, ps.message);
    partial_success_note(&h->base.logger, s, &ps, out);
    return VERDICT_OK;
}

static enum verdict read_failure(const struct otlp_http *h, const char *url,
                                 const struct http_client_response *res, struct outcome *out)
{
    struct rpc_status st = {0};
    uint32_t retry_ms = retry_after_parse(res->retry_after, clock_wall_ns());
    bool told = status_read(buf_bytes(res->body), &st) == 0;
    client_headers_scrub(&h->config->headers, st.message);
    outcome_message(out,
                    told
                        ? "error exporting items, request to %s responded with HTTP Status Code "
                          "%d, Message=%s, Details=[]"
                        : "error exporting items, request to %s responded with HTTP Status Code %d",
                    url, res->status, st.message);
    return verdict_of_http(res->status, retry_ms, out);
}

static enum verdict exchange(struct otlp_http *h, enum signal s,
                             const struct http_client_request *q, struct outcome *out)
{
    struct http_client_response res;
    struct err e = {""};
    char url[160];
    http_url_redact(q->url, url, sizeof(url));
    log_debug(&h->base.logger, "Preparing to make HTTP request", LOG_STR("url", url));
    if (http_pool_send(h->pool, q, &res, &e) < 0) {
        out->status = RPC_UNAVAILABLE;
        outcome_message(out, "failed to make an HTTP request: Post \"%s\": %s", url, e.text);
        return VERDICT_RETRY;
    }
    bool good = res.status >= 200 && res.status < 300;
    enum verdict v = good ? read_success(h, s, &res, out) : read_failure(h, url, &res, out);
    buf_unref(res.body);
    return v;
}

/* The headers of one request: the configured ones, and the credentials of this moment. */
struct request_headers {
    const char **lines; /* NULL ended */
    char *own[AUTH_HEADERS_MAX];
    unsigned nown;
};

static void request_headers_done(struct request_headers *q)
{
    for (unsigned i = 0; i < q->nown; i++) {
        explicit_bzero(q->own[i], strlen(q->own[i]));
        free(q->own[i]);
    }
    free(q->lines);
}

/* "name: value" of a header that the credentials replace. */
static bool is_replaced(const char *line, const struct auth_headers *auth)
{
    char name[256];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, ":"), line);
    return auth_headers_have(auth, name);
}

static int join_headers(const struct otlp_http *h, const struct auth_headers *auth,
                        struct request_headers *ret)
{
    size_t n = 0, at = 0;
    while (h->headers[n])
        n++;
    if (!(ret->lines = calloc(n + auth->n + 1, sizeof(*ret->lines))))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!is_replaced(h->headers[i], auth))
            ret->lines[at++] = h->headers[i];
    for (unsigned i = 0; i < auth->n; i++) {
        if (asprintf(&ret->own[i], "%s: %s", auth->items[i].name, auth->items[i].value) < 0)
            return -ENOMEM;
        ret->nown++;
        ret->lines[at++] = ret->own[i];
    }
    return 0;
}

static int make_request_headers(const struct otlp_http *h, struct request_headers *ret,
                                struct outcome *out)
{
    struct err e = {0};
    _cleanup_(auth_headers_done) struct auth_headers auth;
    int r = auth_headers_get(h->auth, false, &auth, &e);
    if (r < 0) {
        out->status = RPC_UNAVAILABLE;
        outcome_message(out, "failed to get credentials: %s", e.text);
        return r;
    }
    r = join_headers(h, &auth, ret);
    if (r < 0)
        outcome_message(out, "out of memory while the request was made");
    return r;
}

static enum verdict otlp_http_send(struct component *c, const struct batch *b, uint64_t deadline_ns,
                                   struct outcome *out)
{
    struct otlp_http *h = (struct otlp_http *)c;
    _cleanup_(body_done) struct body body = {{NULL, 0}};
    if (make_body(h, b, &body) < 0) {
        outcome_message(out, "out of memory while the request was made");
        return VERDICT_RETRY;
    }
    _cleanup_(request_headers_done) struct request_headers headers = {NULL};
    if (make_request_headers(h, &headers, out) < 0)
        return VERDICT_RETRY;
    const struct http_client_request q = {
        .method = "POST",
        .url = h->urls[b->signal],
        .headers = headers.lines,
        .body = &body.bytes,
        .nbody = 1,
        .deadline_ns = deadline_ns,
        .max_response_bytes = RESPONSE_BYTES,
    };
    return exchange(h, b->signal, &q, out);
}

/* ---- doctor */

/* One server of those that the signals go to. */
struct probed {
    struct probe_peer peer;
    struct http_url room;
    char at[300]; /* "https://host:port" */
    bool good;
};

/* Reaches the server of `url`, unless that of an earlier signal is the same. */
static const struct probed *probe_server_of(struct otlp_http *h, struct probe *p,
                                            const struct http_client_settings *s, const char *url,
                                            struct probed *seen)
{
    struct http_url u;
    char at[300];
    http_url_split(url, &u);
    snprintf(at, sizeof(at), "%s://%s:%s", u.scheme, u.host, u.port);
    struct probed *d = seen;
    for (; d->at[0]; d++)
        if (strcmp(d->at, at) == 0)
            return d;
    snprintf(d->at, sizeof(d->at), "%s", at);
    d->good = (!u.tls || probe_client_tls(p, &h->config->tls)) &&
              probe_reach_url(p, s, url, &d->peer, &d->room);
    return d;
}

/* A redirect that keeps the request is followed by a run, so what answers at its end counts. */
static void probe_redirected(struct otlp_http *h, struct probe *p, enum signal s,
                             const struct http_client_request *first, const char *url)
{
    const struct http_client_settings settings = client_settings(h->config);
    struct http_client_request q = *first;
    struct http_client_response res;
    struct err e = {0};
    char took[32];
    const uint64_t begin = clock_now_ns();
    _cleanup_(http_client_freep) struct http_client *client = http_client_new(&settings, &e);
    q.deadline_ns = begin + p->timeout_ns;
    if (!client || http_client_send(client, &q, &res, &e) < 0) {
        probe_fail(p, "export", url, "put the address of the backend itself into endpoint",
                   "nothing answers at the end of the redirects: %s", e.text);
        return;
    }
    otlp_http_explain(p, h->config, s, url, &res, probe_took(begin, took));
    buf_unref(res.body);
}

/* An empty request as a run would send it, but for redirects, which are looked at. */
static void probe_export(struct otlp_http *h, struct probe *p, struct http_client *client,
                         enum signal s, const struct probe_peer *peer)
{
    struct http_client_response res;
    struct outcome out = {0};
    struct err e = {0};
    char url[300], took[32];
    _cleanup_(body_done) struct body body = {{NULL, 0}};
    _cleanup_(request_headers_done) struct request_headers headers = {NULL};
    _cleanup_batch_ struct batch *b = batch_new(s, NULL, 0, 0);
    http_url_redact(h->urls[s], url, sizeof(url));
    if (!b || make_body(h, b, &body) < 0 || make_request_headers(h, &headers, &out) < 0) {
        probe_fail(p, "export", url, "", "%s", *out.message ? out.message : "out of memory");
        return;
    }
    const uint64_t begin = clock_now_ns();
    const struct http_client_request q = {.method = "POST",
                                          .url = h->urls[s],
                                          .headers = headers.lines,
                                          .body = &body.bytes,
                                          .nbody = 1,
                                          .deadline_ns = begin + p->timeout_ns,
                                          .max_response_bytes = RESPONSE_BYTES};
    if (http_client_send(client, &q, &res, &e) < 0) {
        probe_unanswered(p, peer, "export", url, e.text);
        return;
    }
    otlp_http_explain(p, h->config, s, url, &res, probe_took(begin, took));
    if ((res.status == 307 || res.status == 308) && *res.location)
        probe_redirected(h, p, s, &q, url);
    buf_unref(res.body);
}

static void probe(struct component *c, struct probe *p)
{
    struct otlp_http *h = (struct otlp_http *)c;
    struct probed seen[SIGNAL_COUNT + 1] = {{{NULL}}};
    struct http_client_settings s = client_settings(h->config);
    struct err e = {0};
    s.no_redirects = true;
    if (p->step != PROBE_OUTSIDE)
        return;
    _cleanup_(http_client_freep) struct http_client *client = NULL;
    for (enum signal i = 0; i < SIGNAL_COUNT; i++) {
        if (!h->urls[i] || !(p->signals & SIGNAL_BIT(i)))
            continue;
        const struct probed *d = probe_server_of(h, p, &s, h->urls[i], seen);
        if (!d->good)
            continue;
        if (!client && !(client = http_client_new(&s, &e))) {
            probe_fail(p, "export", d->at, "", "%s", e.text);
            return;
        }
        probe_export(h, p, client, i, &d->peer);
    }
}

static const char *const aliases[] = {"otlphttp", NULL};

const struct component_type exporter_otlp_http = {
    .kind = KIND_EXPORTER,
    .name = "otlp_http",
    .aliases = aliases,
    .accepts = SIGNALS_ALL,
    .stability = {"stable", "stable", "stable"},
    .help = "Sends OTLP over HTTP.",
    .fields = otlp_http_fields,
    .config_size = sizeof(struct otlp_http_config),
    .check = otlp_http_check,
    .check_signal = otlp_http_check_signal,
    .settings = settings,
    .create = create,
    .start = start,
    .stop = stop,
    .destroy = destroy,
    .send = otlp_http_send,
    .probe = probe,
};
