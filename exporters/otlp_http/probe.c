#include "exporters/otlp_http/probe.h"

#include <string.h>
#include <strings.h>

/* An answer, and what is said of it. */
struct answer {
    struct probe *p;
    const struct otlp_http_config *c;
    enum signal signal;
    const char *url; /* without secrets */
    const struct http_client_response *res;
    const char *took;
    char message[200]; /* the backend's own words: " (…)", or "" */
};

static bool sends_credentials(const struct otlp_http_config *c)
{
    return c->auth || client_headers_get(&c->headers, "Authorization") || c->headers.n > 0;
}

static void refused(const struct answer *a)
{
    const int status = a->res->status;
    if (sends_credentials(a->c))
        probe_fail(a->p, "export", a->url,
                   status == 401 ? "the token (header) is wrong, expired, or misses its scheme, "
                                   "such as \"Bearer \""
                                 : "the token is known but may not write here: another project, "
                                   "tenant or scope?",
                   "the backend refused the credentials: status %d%s", status, a->message);
    else
        probe_fail(a->p, "export", a->url,
                   "set headers::Authorization, or auth, to what the backend expects",
                   "the backend wants credentials, and none are configured: status %d%s", status,
                   a->message);
}

/* "/v1/traces/v1/traces": the endpoint had the path already. */
static bool path_is_doubled(const char *url, enum signal s)
{
    char path[32];
    snprintf(path, sizeof(path), "/v1/%s", signal_name(s));
    const char *first = strstr(url, path);
    return first && strstr(first + 1, path);
}

static void wrong_path(const struct answer *a)
{
    char advice[300];
    if (path_is_doubled(a->url, a->signal))
        snprintf(advice, sizeof(advice),
                 "/v1/%s is appended to endpoint: take it off there, or give the whole URL as "
                 "%s_endpoint",
                 signal_name(a->signal), signal_name(a->signal));
    else
        snprintf(advice, sizeof(advice),
                 "is there a path before /v1/%s, such as /otlp, that is missing in endpoint? Is it "
                 "the right port?",
                 signal_name(a->signal));
    probe_fail(a->p, "export", a->url, advice, "the backend knows no such path: status %d%s",
               a->res->status, a->message);
}

static void redirected(const struct answer *a)
{
    char to[300];
    const int status = a->res->status;
    http_url_redact(a->res->location, to, sizeof(to));
    if (status == 307 || status == 308)
        probe_warn(a->p, "export", a->url, "put that address into endpoint",
                   "every request is sent twice: status %d leads to \"%s\"", status, to);
    else
        probe_fail(a->p, "export", a->url,
                   "put that address into endpoint, if it is the backend's; a login page means "
                   "that credentials are missing",
                   "status %d leads to \"%s\", and what is sent there has no data in it", status,
                   to);
}

static void proxied(const struct answer *a)
{
    probe_fail(a->p, "export", a->url,
               "the proxy or gateway answers, the backend behind it does not: is it running?",
               "status %d%s", a->res->status, a->message);
}

/* Web servers answer without TLS to who comes without, and say what the matter is. */
static bool wants_tls(const struct answer *a)
{
    const struct buf *b = a->res->body;
    return strncmp(a->url, "http://", 7) == 0 && b->len && memmem(b->data, b->len, "HTTPS", 5);
}

static void not_taken(const struct answer *a)
{
    switch (a->res->status) {
    case 401:
    case 403: refused(a); break;
    case 404: wrong_path(a); break;
    case 405:
        probe_fail(a->p, "export", a->url,
                   "is this the OTLP port and path of the backend, and not that of its web page?",
                   "nothing can be sent (POST) there: status 405%s", a->message);
        break;
    case 407:
        probe_fail(a->p, "export", a->url,
                   "put user and password into the URL of the proxy (HTTPS_PROXY, proxy_url)",
                   "the proxy wants credentials: status 407%s", a->message);
        break;
    case 415:
        probe_fail(a->p, "export", a->url,
                   a->c->encoding == ENCODING_JSON ? "set encoding: proto, or compression: none"
                                                   : "set encoding: json, or compression: none",
                   "the backend does not take this encoding or compression (%s, %s): status 415%s",
                   a->c->encoding == ENCODING_JSON ? "json" : "proto",
                   *a->c->compression ? a->c->compression : "none", a->message);
        break;
    case 400:
        if (wants_tls(a)) {
            probe_fail(a->p, "export", a->url, "use https:// in the endpoint",
                       "the server speaks TLS on this port (status 400)");
            break;
        }
        probe_warn(a->p, "export", a->url, "",
                   "reached; the backend does not take an empty request: status 400%s", a->message);
        break;
    case 429:
        probe_warn(a->p, "export", a->url, "",
                   "reached; the backend has too much to do now: status 429%s", a->message);
        break;
    case 502:
    case 503:
    case 504: proxied(a); break;
    default:
        probe_fail(a->p, "export", a->url, "look at the log of the backend", "status %d%s",
                   a->res->status, a->message);
        break;
    }
}

static bool media_begins(const struct answer *a, const char *type)
{
    return strncasecmp(a->res->content_type, type, strlen(type)) == 0;
}

/* 2xx counts as delivered for the exporter, so what is no OTLP server would swallow everything. */
static void taken(const struct answer *a)
{
    if (media_begins(a, "text/html"))
        probe_fail(a->p, "export", a->url,
                   "is this the OTLP port and path of the backend, and not that of its web page?",
                   "a web page answers (status %d, text/html): data sent there would be lost",
                   a->res->status);
    else if (media_begins(a, "application/grpc"))
        probe_fail(a->p, "export", a->url,
                   "use the otlp_grpc exporter for this port, or the backend's HTTP port, often "
                   "4318",
                   "a gRPC server answers");
    else
        probe_ok(a->p, "export", a->url, "the backend took an empty request: status %d (%s)",
                 a->res->status, a->took);
}

/* The backend's text, one line of it, without what it repeats of our headers. */
static void read_message(struct answer *a)
{
    struct rpc_status st = {0};
    if (status_read(buf_bytes(a->res->body), &st) < 0 || !st.message[0])
        return;
    client_headers_scrub(&a->c->headers, st.message);
    snprintf(a->message, sizeof(a->message), " (%.*s)", (int)strcspn(st.message, "\r\n"),
             st.message);
}

void otlp_http_explain(struct probe *p, const struct otlp_http_config *c, enum signal s,
                       const char *url, const struct http_client_response *res, const char *took)
{
    struct answer a = {p, c, s, url, res, took, ""};
    if (res->status >= 200 && res->status < 300) {
        taken(&a);
        return;
    }
    read_message(&a);
    if (res->status >= 300 && res->status < 400 && *res->location)
        redirected(&a);
    else
        not_taken(&a);
}
