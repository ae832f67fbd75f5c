/* What the HTTP clients share: set-up of a libcurl handle, headers, bodies, proxies, redirects. */
#include <errno.h>
#include <pthread.h>
#include <strings.h>
#include <sys/mman.h>

#include "agent/base/clock.h"
#include "agent/net/http_client_impl.h"

#define MAX_REDIRECTS 10
/* libcurl takes it anew for every request: malloc() has to find it in its heap, not map it. */
#define UPLOAD_BUFFER_BYTES (252L * 1024)
#define DRAIN_BYTES                                                                                \
    (1024u * 1024) /* a longer rest of a response costs more than a new connection */
#define DEFAULT_IDLE_S 90
#define BELIEVED_BYTES (4L * 1024 * 1024) /* of the length that a response announces */

static bool given(const char *s)
{
    return s && *s;
}

static void curl_init_once(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- set-up */

/* A file in memory with this text; its path in ret_path. */
static int memory_file(const struct buf *text, char ret_path[32])
{
    int fd = memfd_create("pem", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->data + at, text->len - at);
        if (n <= 0) {
            close(fd);
            return -EIO;
        }
        at += (size_t)n;
    }
    snprintf(ret_path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

/* Gives libcurl a file: the one named, or one in memory with the text and, if `system`, what the
 * system trusts. *ret_fd keeps the latter alive. */
static int set_pem(CURL *easy, CURLoption option, const char *file, const char *pem, bool system,
                   int *ret_fd, struct err *reterr)
{
    char path[32];
    if (given(file) && !system && !tls_is_special_file(file))
        return curl_easy_setopt(easy, option, file) == CURLE_OK
                   ? 0
                   : err_set(reterr, -ENOMEM, "out of memory");
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!text)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = given(file)                            ? tls_read_file(file, text, reterr)
            : buf_append_str(text, pem) == -ENOMEM ? err_set(reterr, -ENOMEM, "out of memory")
                                                   : 0;
    if (r == 0 && system) {
        buf_putc(text, '\n');
        r = tls_system_cas(text, reterr);
    }
    if (r < 0)
        return r;
    *ret_fd = memory_file(text, path);
    if (*ret_fd < 0)
        return err_set(reterr, *ret_fd, "memory file: %s", strerror(-*ret_fd));
    return curl_easy_setopt(easy, option, path) == CURLE_OK
               ? 0
               : err_set(reterr, -ENOMEM, "out of memory");
}

static pthread_once_t folders_once = PTHREAD_ONCE_INIT;
static char folders_path[32]; /* "": nothing there to trust, so every verification fails */

static void collect_folders(void)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    struct err err = {0};
    if (text && tls_system_cas(text, &err) == 0 && memory_file(text, folders_path) < 0)
        folders_path[0] = '\0';
}

/* The file with what the system trusts; one in memory, for good, when it is kept in folders. */
static const char *system_cas(void)
{
    if (!tls_system_ca_folders())
        return tls_system_ca_file();
    pthread_once(&folders_once, collect_folders);
    return *folders_path ? folders_path : NULL;
}

static long curl_tls_range(const struct tls_client_settings *t)
{
    static const long min[] = {CURL_SSLVERSION_TLSv1_0, CURL_SSLVERSION_TLSv1_1,
                               CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_TLSv1_3};
    static const long max[] = {CURL_SSLVERSION_MAX_TLSv1_0, CURL_SSLVERSION_MAX_TLSv1_1,
                               CURL_SSLVERSION_MAX_TLSv1_2, CURL_SSLVERSION_MAX_TLSv1_3};
    return min[tls_version(t->min_version, 0x0303) - 0x0301] |
           max[tls_version(t->max_version, 0x0304) - 0x0301];
}

static int set_tls(struct http_easy *c, const struct tls_client_settings *t, struct err *reterr)
{
    int r = 0;
    curl_easy_setopt(c->curl, CURLOPT_SSLVERSION, curl_tls_range(t));
    if (t->insecure_skip_verify) {
        curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    /* else libcurl trusts the system's directory as well */
    curl_easy_setopt(c->curl, CURLOPT_CAPATH, NULL);
    c->trusts_system = !tls_client_has_ca(t);
    if (!c->trusts_system)
        r = set_pem(c->curl, CURLOPT_CAINFO, t->ca_file, t->ca_pem, t->include_system_ca_certs_pool,
                    &c->ca_fd, reterr);
    if (r == 0 && (given(t->cert_file) || given(t->cert_pem)))
        r = set_pem(c->curl, CURLOPT_SSLCERT, t->cert_file, t->cert_pem, false, &c->cert_fd,
                    reterr);
    if (r == 0 && (given(t->key_file) || given(t->key_pem)))
        r = set_pem(c->curl, CURLOPT_SSLKEY, t->key_file, t->key_pem, false, &c->key_fd, reterr);
    return r;
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx);
static size_t on_header(char *data, size_t one, size_t n, void *ctx);
static size_t on_read(char *to, size_t one, size_t n, void *ctx);
static int on_request(void *ctx, char *to, char *from, int to_port, int from_port);

/* What stays the same for all requests of the client. */
static void set_common(struct http_easy *c)
{
    const struct http_client_settings *s = &c->settings;
    int64_t idle_s = s->idle_timeout_ns > 0
                         ? (s->idle_timeout_ns + (int64_t)NS_PER_S - 1) / (int64_t)NS_PER_S
                         : DEFAULT_IDLE_S;
    CURL *e = c->curl;
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a stop does not wait for the name resolver */
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long)idle_s);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, s->no_keepalive ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                     s->http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    if (given(s->user_agent))
        curl_easy_setopt(e, CURLOPT_USERAGENT, s->user_agent);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_request);
}

int http_easy_init(struct http_easy *c, const struct http_client_settings *s, struct err *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const struct tls_client_settings no_tls;
    pthread_once(&once, curl_init_once);
    memset((void *)c, 0, sizeof(*c));
    memcpy((void *)&c->settings, s, sizeof(*s));
    c->ca_fd = c->cert_fd = c->key_fd = -1;
    c->curl = curl_easy_init();
    if (!c->curl)
        return err_set(reterr, -ENOMEM, "out of memory");
    set_common(c);
    if (given(s->unix_socket) &&
        curl_easy_setopt(c->curl, CURLOPT_UNIX_SOCKET_PATH, s->unix_socket) != CURLE_OK)
        return err_set(reterr, -ENOTSUP, "unix socket %s: not possible with this libcurl",
                       s->unix_socket);
    return set_tls(c, s->tls ? s->tls : &no_tls, reterr);
}

void http_easy_done(struct http_easy *c)
{
    if (!c->curl)
        return;
    curl_easy_cleanup(c->curl);
    c->curl = NULL;
    cleanup_close(&c->ca_fd);
    cleanup_close(&c->cert_fd);
    cleanup_close(&c->key_fd);
}

/* ---- callbacks */

/* Room for the length that the response announces, or for the expected one, so that it is not
 * copied as it grows; what a server only says is not believed beyond a bound. */
static void reserve_body(const struct http_transfer *x)
{
    const curl_off_t limit = (curl_off_t)x->q->max_response_bytes,
                     expected = (curl_off_t)x->q->expected_bytes;
    const curl_off_t most = expected > BELIEVED_BYTES ? expected : BELIEVED_BYTES;
    curl_off_t length = -1;
    curl_easy_getinfo(x->easy->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    length = length < 0 ? expected : length < most ? length : most;
    length = length < limit ? length : limit;
    if (length > 0)
        buf_reserve(x->res->body, (size_t)length);
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
    struct http_transfer *x = ctx;
    size_t len = one * n, room = x->q->max_response_bytes - x->res->body->len,
           take = len < room ? len : room;
    if (x->res->body->len == 0)
        reserve_body(x);
    if (buf_append(x->res->body, data, take) < 0)
        return 0;
    x->dropped += len - take;
    x->enough = x->dropped > DRAIN_BYTES;
    return x->enough ? 0 : len;
}

/* Takes the value of a header line when its name fits; the first one counts. */
static void take_header(struct bytes line, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);
    if (line.len <= n || line.data[n] != ':' ||
        strncasecmp((const char *)line.data, name, n) != 0 || *ret)
        return;
    const char *value = (const char *)line.data + n + 1;
    size_t len = line.len - n - 1;
    while (len && (*value == ' ' || *value == '\t')) {
        value++;
        len--;
    }
    while (len && strchr(" \t\r\n", value[len - 1]))
        len--;
    snprintf(ret, size, "%.*s", (int)(len < size ? len : 0), value);
}

static size_t on_header(char *data, size_t one, size_t n, void *ctx)
{
    struct http_transfer *x = ctx;
    struct bytes line = bytes_of(data, one * n);
    struct http_client_response *r = x->res;
    if (line.len >= 5 && memcmp(line.data, "HTTP/", 5) == 0)
        /* a new header section, after a 1xx or a proxy's */
        r->content_type[0] = r->content_encoding[0] = r->retry_after[0] = r->location[0] = 0;
    take_header(line, "content-type", r->content_type, sizeof(r->content_type));
    take_header(line, "content-encoding", r->content_encoding, sizeof(r->content_encoding));
    take_header(line, "retry-after", r->retry_after, sizeof(r->retry_after));
    take_header(line, "location", r->location, sizeof(r->location));
    return line.len;
}

static size_t on_read(char *to, size_t one, size_t n, void *ctx)
{
    struct http_transfer *x = ctx;
    size_t room = one * n, done = 0;
    while (done < room && x->part < x->q->nbody) {
        struct bytes part = x->q->body[x->part];
        size_t take = part.len - x->offset < room - done ? part.len - x->offset : room - done;
        memcpy(to + done, part.data + x->offset, take);
        done += take;
        x->offset += take;
        if (x->offset == part.len) {
            x->part++;
            x->offset = 0;
        }
    }
    return done;
}

/* Called before each time that the request goes out. libcurl would send it again when a kept-alive
 * connection ended without an answer, but the server may have acted on it: who made the request
 * decides. */
static int on_request(void *ctx, char *to _unused_, char *from _unused_, int to_port _unused_,
                      int from_port _unused_)
{
    struct http_transfer *x = ctx;
    return x->tries++ && !x->q->repeatable ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void set_proxy(struct http_easy *c, const char *scheme, const char *host)
{
    const char *except, *proxy = http_proxy_of(&c->settings, scheme, host, &except);
    curl_easy_setopt(c->curl, CURLOPT_PROXY,
                     proxy); /* "" = none, and no look into the environment */
    curl_easy_setopt(c->curl, CURLOPT_NOPROXY, except ? except : "");
    if (strncasecmp(proxy, "https:", 6) == 0) {
        curl_easy_setopt(c->curl, CURLOPT_PROXY_CAPATH, NULL);
        curl_easy_setopt(c->curl, CURLOPT_PROXY_CAINFO, system_cas());
    }
}

/* Only where TLS is spoken: reading folders of certificates takes tens of milliseconds, and some
 * MiB. */
static void set_trust(struct http_easy *c, const char *scheme)
{
    if (c->trusts_system && strcmp(scheme, "https") == 0)
        curl_easy_setopt(c->curl, CURLOPT_CAINFO, system_cas());
}

/* ---- one hop */

struct url_parts {
    char *scheme, *host, *port;
};

static void url_parts_done(struct url_parts *p)
{
    curl_free(p->scheme);
    curl_free(p->host);
    curl_free(p->port);
}

static void free_curlu(CURLU **u)
{
    curl_url_cleanup(*u);
}
static void free_slist(struct curl_slist **l)
{
    curl_slist_free_all(*l);
}
static void free_curl(char **p)
{
    curl_free(*p);
}

static int url_split(CURLU *u, const char *url, struct url_parts *ret)
{
    if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_HOST, &ret->host, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) != CURLUE_OK)
        return -EINVAL;
    return 0;
}

static int add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer)
        return -ENOMEM;
    *list = longer;
    return 0;
}

static bool header_is(const char *line, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(line, name, n) == 0 && line[n] == ':';
}

static bool header_goes_along(const char *line, const struct http_hop *h)
{
    if (!h->body && strncasecmp(line, "content-", 8) == 0)
        return false;
    return !h->foreign || !(header_is(line, "authorization") || header_is(line, "cookie") ||
                            header_is(line, "www-authenticate"));
}

static int make_headers(const struct http_client_request *q, const struct http_hop *h,
                        struct curl_slist **ret)
{
    int r = add_header(ret, "Expect:"); /* no 100-continue */
    for (const char *const *p = q->headers; r == 0 && p && *p; p++)
        if (header_goes_along(*p, h)) {
            /* libcurl takes "name:" as a request to send none; an empty value is "name;" */
            size_t n = strcspn(*p, ":");
            bool empty = (*p)[n] && strspn(*p + n + 1, " \t") == strlen(*p + n + 1);
            _cleanup_free_ char *text = empty ? strndup(*p, n + 1) : NULL;
            if (text)
                text[n] = ';';
            r = add_header(ret, text ? text : *p);
        }
    return r;
}

/* server_name_override: the URL names the override, the connection goes to the true host, and so
 * does the Host header. */
static int override_name(struct http_easy *c, CURLU *u, const struct url_parts *p,
                         struct curl_slist **headers, struct curl_slist **connect)
{
    const char *name = c->settings.tls ? c->settings.tls->server_name_override : NULL;
    char line[600];
    if (!given(name) || strcmp(p->scheme, "https") != 0)
        return 0;
    if (curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK)
        return -EINVAL;
    snprintf(line, sizeof(line), "%s:%s:%s:%s", name, p->port, p->host, p->port);
    int r = add_header(connect, line);
    snprintf(line, sizeof(line), strcmp(p->port, "443") == 0 ? "Host: %s" : "Host: %s:%s", p->host,
             p->port);
    return r < 0 ? r : add_header(headers, line);
}

static void set_body(const struct http_transfer *x)
{
    CURL *e = x->easy->curl;
    const struct http_hop *h = &x->hop;
    if (!h->body) {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(e, CURLOPT_NOBODY, strcmp(h->method, "HEAD") == 0 ? 1L : 0L);
        curl_easy_setopt(
            e, CURLOPT_CUSTOMREQUEST,
            strcmp(h->method, "GET") == 0 || strcmp(h->method, "HEAD") == 0 ? NULL : h->method);
        return;
    }
    curl_off_t total = 0;
    for (unsigned i = 0; i < x->q->nbody; i++)
        total += (curl_off_t)x->q->body[i].len;
    curl_easy_setopt(e, CURLOPT_NOBODY, 0L);
    curl_easy_setopt(e, CURLOPT_POST, 1L);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, strcmp(h->method, "POST") == 0 ? NULL : h->method);
    curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, total);
    /* One part goes out as it is, small ones together with the head in one write. */
    curl_easy_setopt(e, CURLOPT_POSTFIELDS,
                     x->q->nbody == 1 ? (const char *)x->q->body[0].data
                     : total == 0     ? ""
                                      : NULL);
}

/* libcurl's text leaves out why: refused, unreachable. */
static int connect_failure(const struct http_easy *c, const char *text, struct err *reterr)
{
    long number = 0;
    char reason[80] = "";
    if (curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number) == CURLE_OK && number > 0)
        snprintf(reason, sizeof(reason), " (%s)", strerror((int)number));
    return err_set(reterr, -ECONNREFUSED, "%s%s", text, reason);
}

/* Names what is trusted; libcurl's text does so with the path of a file that may be one in memory,
 * or not at all. */
static int untrusted(const struct http_easy *c, const char *text, struct err *reterr)
{
    const struct tls_client_settings *t = c->settings.tls;
    const char *end = strstr(text, " CAfile:"), *trusted = tls_system_ca_file();
    const int len = end ? (int)(end - text) : (int)strlen(text);
    if (t && tls_client_has_ca(t))
        trusted = given(t->ca_file) ? t->ca_file : "ca_pem";
    else if (tls_system_ca_folders())
        trusted = "the certificates of this machine";
    return err_set(reterr, -EPROTO, "TLS: %.*s (trusted: %s)", len, text, trusted);
}

static int curl_failure(const struct http_easy *c, CURLcode code, struct err *reterr)
{
    const char *text = c->error[0] ? c->error : curl_easy_strerror(code);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return err_set(reterr, -EHOSTUNREACH, "%s", text);
    case CURLE_COULDNT_CONNECT: return connect_failure(c, text, reterr);
    case CURLE_OPERATION_TIMEDOUT: return err_set(reterr, -ETIMEDOUT, "%s", text);
    case CURLE_OUT_OF_MEMORY: return err_set(reterr, -ENOMEM, "%s", text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE: return untrusted(c, text, reterr);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM: return err_set(reterr, -EPROTO, "TLS: %s", text);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_ABORTED_BY_CALLBACK: /* of on_request() */
        return err_set(reterr, -ECONNRESET,
                       "EOF (the server closed the connection without an answer)");
    default: return err_set(reterr, -EIO, "%s", text);
    }
}

static void transfer_release(struct http_transfer *x)
{
    curl_easy_setopt(x->easy->curl, CURLOPT_CURLU, NULL);
    curl_easy_setopt(x->easy->curl, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(x->easy->curl, CURLOPT_CONNECT_TO, NULL);
    free_curlu(&x->target);
    free_slist(&x->headers);
    free_slist(&x->connect);
    x->target = NULL;
    x->headers = x->connect = NULL;
}

static int transfer_prepare(struct http_transfer *x, struct url_parts *parts, struct err *reterr)
{
    struct http_easy *c = x->easy;
    x->target = curl_url();
    if (url_split(x->target, x->hop.url, parts) < 0)
        return err_set(reterr, -EINVAL, "not an http or https URL");
    if (make_headers(x->q, &x->hop, &x->headers) < 0 ||
        override_name(c, x->target, parts, &x->headers, &x->connect) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    c->error[0] = 0;
    curl_easy_setopt(c->curl, CURLOPT_CURLU, x->target);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(c->curl, CURLOPT_CONNECT_TO, x->connect);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(c->curl, CURLOPT_READDATA, x);
    curl_easy_setopt(c->curl, CURLOPT_PREREQDATA, x);
    set_trust(c, parts->scheme);
    set_proxy(c, parts->scheme, parts->host);
    set_body(x);
    return 0;
}

/* A new hop starts with an empty response. */
static int transfer_reset(struct http_transfer *x)
{
    struct http_client_response *res = x->res;
    buf_unref(res->body);
    memset(res, 0, sizeof(*res));
    res->body = buf_new(x->q->max_response_bytes ? x->q->max_response_bytes : 1);
    if (res->body)
        buf_bound(res->body, x->q->memory_limit);
    x->part = 0;
    x->offset = x->dropped = 0;
    x->tries = 0;
    x->enough = false;
    return res->body ? 0 : -ENOMEM;
}

int http_transfer_begin(struct http_transfer *x, struct err *reterr)
{
    _cleanup_(url_parts_done) struct url_parts parts = {NULL};
    if (transfer_reset(x) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = transfer_prepare(x, &parts, reterr);
    if (r < 0)
        transfer_release(x);
    return r;
}

void http_transfer_end(struct http_transfer *x)
{
    long status = 0;
    curl_easy_getinfo(x->easy->curl, CURLINFO_RESPONSE_CODE, &status);
    x->res->status = (int)status;
    transfer_release(x);
}

int http_transfer_result(const struct http_transfer *x, CURLcode code, struct err *reterr)
{
    return code == CURLE_OK || (x->enough && code == CURLE_WRITE_ERROR)
               ? 0
               : curl_failure(x->easy, code, reterr);
}

int http_transfer_init(struct http_transfer *x, struct http_easy *e,
                       const struct http_client_request *q, struct http_client_response *res,
                       struct err *reterr)
{
    memset(res, 0, sizeof(*res));
    *x = (struct http_transfer){
        .easy = e,
        .q = q,
        .res = res,
        .hop = {.method = q->method,
                .url = strdup(q->url),
                .body = q->nbody > 0 || strcmp(q->method, "POST") == 0},
    };
    return x->hop.url ? 0 : err_set(reterr, -ENOMEM, "out of memory");
}

void http_transfer_done(struct http_transfer *x)
{
    free(x->hop.url);
    x->hop.url = NULL;
}

/* ---- redirects */

static bool same_or_sub_domain(const char *host, const char *parent)
{
    size_t n = strlen(host), m = strlen(parent);
    if (strcasecmp(host, parent) == 0)
        return true;
    return n > m && host[n - m - 1] == '.' && strcasecmp(host + n - m, parent) == 0 &&
           host[0] != '[';
}

/* Go's Client: 301, 302 and 303 turn all but HEAD into GET without a body, 307 and 308 repeat the
 * request. 1 = followed, 0 = `res` is the answer. */
int http_transfer_follow(struct http_transfer *x, struct err *reterr)
{
    struct http_hop *h = &x->hop;
    const struct http_client_response *res = x->res;
    bool rewrite = res->status == 301 || res->status == 302 || res->status == 303,
         repeat = res->status == 307 || res->status == 308;
    if ((!rewrite && !repeat) || !res->location[0] || x->easy->settings.no_redirects)
        return 0;
    if (++h->count > MAX_REDIRECTS)
        return err_set(reterr, -ELOOP, "stopped after %d redirects", MAX_REDIRECTS);
    _cleanup_(free_curlu) CURLU *u = curl_url();
    _cleanup_(free_curlu) CURLU *first = curl_url();
    _cleanup_(url_parts_done) struct url_parts to = {NULL}, from = {NULL};
    _cleanup_(free_curl) char *url = NULL;
    if (url_split(first, x->q->url, &from) < 0 || url_split(u, h->url, &to) < 0)
        return err_set(reterr, -EINVAL, "not an http or https URL");
    url_parts_done(&to);
    to = (struct url_parts){NULL};
    if (url_split(u, res->location, &to) < 0 ||
        curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK)
        return err_set(reterr, -EIO, "failed to parse Location header of a redirect");
    h->foreign = h->foreign || !same_or_sub_domain(to.host, from.host);
    if (rewrite) {
        h->method = strcmp(h->method, "HEAD") == 0 ? "HEAD" : "GET";
        h->body = false;
    }
    free(h->url);
    h->url = strdup(url);
    return h->url ? 1 : err_set(reterr, -ENOMEM, "out of memory");
}

void http_url_redact(const char *url, char *ret, size_t size)
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    size_t host_end = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', host_end);
    const char *host = at ? at + 1 : start;
    size_t tail = strcspn(host, "?#");
    snprintf(ret, size, "%.*s%s%.*s%s", (int)(start - url), url, at ? "***@" : "", (int)tail, host,
             host[tail] == '?' ? "?***" : "");
}
