/*
 * The HTTP/1 carrier: libmicrohttpd, one daemon a loop, polled by the loop. Connections come from
 * our own listeners. What it cannot do is done here: framing that readers understand differently is
 * refused, answers that come before the end of a large body are written to the socket by us (it
 * would close without an answer), and all deadlines are ours (it only knows inactivity).
 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/net/exchange.h"
#include "agent/net/h1_idle.h"
#include "agent/net/h1_layout.h"
#include "agent/net/h1_probe.h"
#include "agent/net/head.h"

#define RUNS_PER_WAKE 4 /* between two looks at everything else */
#define STALLED_NS (25 * NS_PER_MS)
#define READ_STEP_BYTES (8u << 10)
#define PEER_ENDED_NS (100 * NS_PER_MS)
#define MAX_POKES 20

struct h1_exchange {
    struct http_exchange x; /* first */
    struct MHD_Connection *mc;
    struct MHD_Response *response; /* ready, not queued yet */
    struct buf *raw;               /* or, with `early`, the answer as it goes on the wire */
    int status;
    bool http10, chunked, expects_body, early, discard, requested, suspended, aborted;
    uint64_t started_ns;
    const uint8_t *body; /* where it begins when its first bytes stand behind the head */
};

static struct h1_exchange *h1_of(const struct http_exchange *x)
{
    return (struct h1_exchange *)x;
}

static struct conn *conn_of(struct MHD_Connection *mc)
{
    return MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ---- replies ---- */

static void free_body(void *cls)
{
    buf_unref(cls);
}

/* A chunked request is the last one of its connection: libmicrohttpd takes lines of chunks that
 * other readers take for something else, and what is behind them could be a part of the body. */
static bool wants_close(const struct h1_exchange *h, const struct reply *r)
{
    const struct conn *c = h->x.conn;
    return r->close || c->draining || c->limits.no_keepalive || h->chunked;
}

/* "content-type" as HTTP/1 likes to see it: "Content-Type". */
static const char *canonical(const char *name, char *text, size_t size)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++) {
        bool first = i == 0 || name[i - 1] == '-';
        text[i] = first && name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
    }
    text[i] = 0;
    return text;
}

static struct MHD_Response *make_response(struct h1_exchange *h, const struct reply *r)
{
    struct MHD_Response *m;
    char name[64];
    if (r->body)
        m = MHD_create_response_from_buffer_with_free_callback_cls(r->body->len, r->body->data,
                                                                   free_body, r->body);
    else
        m = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!m) {
        buf_unref(r->body);
        return NULL;
    }
    for (unsigned i = 0; i < r->nheaders; i++)
        MHD_add_response_header(m, canonical(r->headers[i].name, name, sizeof(name)),
                                r->headers[i].value);
    if (wants_close(h, r))
        MHD_add_response_header(m, "Connection", "close");
    if (h->http10)
        MHD_set_response_options(m, MHD_RF_HTTP_1_0_SERVER, MHD_RO_END);
    return m;
}

/* The answer to a request whose body will not be read, with `Connection: close`. */
static struct buf *render(const struct h1_exchange *h, const struct reply *r)
{
    char date[40], name[64];
    time_t now = time(NULL);
    struct tm tm;
    struct buf *b = buf_new(0);
    if (!b)
        return NULL;
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
    int bad = buf_printf(b, "HTTP/1.%d %d %s\r\n", h->http10 ? 0 : 1, r->status,
                         MHD_get_reason_phrase_for((unsigned)r->status));
    for (unsigned i = 0; i < r->nheaders; i++)
        bad |= buf_printf(b, "%s: %s\r\n", canonical(r->headers[i].name, name, sizeof(name)),
                          r->headers[i].value);
    bad |= buf_printf(b, "Date: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", date,
                      r->body ? r->body->len : 0);
    if (r->body && !bytes_eq_str(h->x.method, "HEAD"))
        bad |= buf_append(b, r->body->data, r->body->len);
    return bad ? buf_unref(b) : b;
}

static void h1_reply(struct http_exchange *x, struct reply *r)
{
    struct h1_exchange *h = h1_of(x);
    h->status = r->status;
    if (h->early) {
        h->raw = render(h, r);
        buf_unref(r->body);
        return;
    }
    h->response = make_response(h, r);
    if (!h->suspended)
        return;
    h->suspended = false;
    MHD_resume_connection(h->mc);
    x->loop->mhd_dirty = true;
}

/* Writes the early answer; MHD_NO then makes libmicrohttpd close, and the connection lingers. */
static enum MHD_Result answer_early(struct h1_exchange *h)
{
    struct conn *c = h->x.conn;
    c->linger =
        h->raw && send(c->fd, h->raw->data, h->raw->len, MSG_NOSIGNAL) == (ssize_t)h->raw->len;
    return MHD_NO;
}

static enum MHD_Result queue(struct h1_exchange *h)
{
    struct conn *c = h->x.conn;
    struct MHD_Response *m = TAKE_PTR(h->response);
    if (!m)
        return MHD_NO;
    conn_deadline_for(c, clock_now_ns() + timeout_ns(c->limits.write_timeout_ns),
                      CLOSED_WRITE_TIMEOUT);
    enum MHD_Result r = MHD_queue_response(h->mc, (unsigned)h->status, m);
    MHD_destroy_response(m);
    return r;
}

/* ---- requests ---- */

struct visit {
    bool (*each)(void *ctx, struct bytes name, struct bytes value);
    void *ctx;
};

static enum MHD_Result visit_one(void *cls, _unused_ enum MHD_ValueKind kind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct visit *v = cls;
    return v->each(v->ctx, bytes_of(name, name_len), bytes_of(value, value_len)) ? MHD_YES : MHD_NO;
}

static void h1_each(const struct http_exchange *x,
                    bool (*each)(void *ctx, struct bytes name, struct bytes value), void *ctx)
{
    struct visit v = {each, ctx};
    MHD_get_connection_values_n(h1_of(x)->mc, MHD_HEADER_KIND, visit_one, &v);
}

static const struct carrier h1_carrier = {CARRIER_HTTP1, h1_each, h1_reply};

struct framing {
    struct head_framing f;
    struct h1_layout layout;
    struct h1_exchange *h;
    bool ok, expect;
};

static bool look_at_field(void *ctx, struct bytes name, struct bytes value)
{
    struct framing *g = ctx;
    g->ok =
        g->ok && h1_layout_field(&g->layout, name, value) && http_head_field(&g->f, name, value);
    if (name.len == 14 && strncasecmp((const char *)name.data, "content-length", 14) == 0 && g->ok)
        g->h->x.announced = strtoull((const char *)value.data, NULL, 10);
    else if (name.len == 17 && strncasecmp((const char *)name.data, "transfer-encoding", 17) == 0)
        g->h->chunked = true;
    else if (name.len == 6 && strncasecmp((const char *)name.data, "expect", 6) == 0)
        g->expect = true;
    return g->ok;
}

/* Looks at the framing of a request; the peek phase saw only the first one of a connection. The
 * status of a refusal, or 0. */
static int look_at_framing(struct h1_exchange *h, const char *version)
{
    const struct bytes head = h1_layout_head(h->mc, (const char *)h->x.method.data);
    struct framing g = {.h = h, .layout.anywhere = !h1_layout_known()};
    g.ok = h1_layout_line(&g.layout, h->x.method, h->x.conn->url, bytes_str(version));
    h1_each(&h->x, look_at_field, &g);
    h->expects_body = h->chunked || h->x.announced > 0;
    h->early = h->chunked || h->x.announced > DISCARD_KEEP_BYTES || (g.expect && h->expects_body);
    if (!g.ok || !h1_layout_end(&g.layout, head, &h->body) ||
        !http_head_framing_ok(&g.f, h->http10))
        return 400;
    return head.len > (size_t)server_limits_get().max_header_bytes ? 431 : 0;
}

/* "http://host/path" (RFC 9112 3.2.2) is seen as "/path". */
static struct bytes path_of(const char *url)
{
    if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) {
        const char *slash = strchr(strchr(url, ':') + 3, '/');
        return bytes_str(slash ? slash : "/");
    }
    return bytes_str(url);
}

static void body_deadline(struct h1_exchange *h, bool first)
{
    struct conn *c = h->x.conn;
    if (c->peer_ended || !(first || c->limits.read_timeout_ns <= 0))
        return;
    const uint64_t now = clock_now_ns(), at = now + timeout_ns(c->limits.read_timeout_ns);
    const uint64_t last = h->started_ns + (uint64_t)server_limits_get().request_timeout_ns;
    conn_deadline_for(c, at < last ? at : last,
                      at < last ? CLOSED_READ_TIMEOUT : CLOSED_REQUEST_TIMEOUT);
}

static enum MHD_Result refuse(struct h1_exchange *h, int status)
{
    const bool large = status == 431;
    server_count(large ? CLOSED_HEADER_SIZE : CLOSED_MALFORMED);
    h->early = true;
    exchange_reply_text(&h->x, status,
                        large ? "431 Request Header Fields Too Large" : "400 Bad Request", true);
    return answer_early(h);
}

static enum MHD_Result begin(struct h1_exchange *h, const char *version)
{
    const int refused = look_at_framing(h, version);
    if (refused)
        return refuse(h, refused);
    exchange_headers(&h->x);
    if (!exchange_has_reply(&h->x) && h->x.announced > h->x.limit)
        exchange_too_large(&h->x);
    if (exchange_has_reply(&h->x) && h->early)
        return answer_early(h);
    h->discard = exchange_has_reply(&h->x);
    h->early = false;
    body_deadline(h, true);
    return MHD_YES;
}

static enum MHD_Result take_body(struct h1_exchange *h, const char *data, size_t *len)
{
    body_deadline(h, false);
    if ((const uint8_t *)data + 1 == h->body) { /* the head ended with a bare line feed */
        buf_unref(TAKE_PTR(h->raw));
        return exchange_has_reply(&h->x) ? MHD_NO : refuse(h, 400);
    }
    h->early = true; /* an answer from here on is one in the middle of the body */
    if (!h->discard && !exchange_body_append(&h->x, data, *len))
        return answer_early(h);
    h->early = false;
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result finish(struct h1_exchange *h)
{
    if (h->aborted)
        return MHD_NO;
    if (!exchange_has_reply(&h->x) && !h->requested) {
        h->requested = true;
        h->x.conn->deadline_ns = UINT64_MAX; /* the time until the answer is the service's */
        exchange_request(&h->x);
        if (!exchange_has_reply(&h->x)) {
            h->suspended = true;
            MHD_suspend_connection(h->mc);
            return MHD_YES;
        }
    }
    return queue(h);
}

static enum MHD_Result on_request(_unused_ void *cls, struct MHD_Connection *mc, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **state)
{
    struct h1_exchange *h = *state;
    struct conn *c = conn_of(mc);
    c->loop->mhd_calls++;
    if (h)
        return *len ? take_body(h, data, len) : finish(h);
    h = exchange_new(&h1_carrier, c, sizeof(*h));
    if (!h)
        return MHD_NO;
    *state = h;
    c->x = &h->x;
    c->idle_ns = 0;
    c->had_request = true;
    h1_idle_ends(c, method);
    h->started_ns = clock_now_ns();
    h->mc = mc;
    h->http10 = strcmp(version, "HTTP/1.0") == 0;
    h->x.method = bytes_str(method);
    h->x.path = path_of(url);
    return begin(h, version);
}

/* The target as it came; on_request() gets it cut in pieces. */
static void *on_target(_unused_ void *cls, const char *target, struct MHD_Connection *mc)
{
    conn_of(mc)->url = h1_layout_target(target);
    return NULL;
}

/* ---- connections ---- */

static uint64_t idle_timeout(const struct conn *c)
{
    return c->limits.idle_timeout_ns > 0 ? (uint64_t)c->limits.idle_timeout_ns : DEFAULT_IDLE_NS;
}

static void on_completed(_unused_ void *cls, struct MHD_Connection *mc, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct h1_exchange *h = *state;
    struct conn *c = conn_of(mc);
    c->loop->mhd_calls++;
    if (!h)
        return;
    *state = NULL;
    c->x = NULL;
    if (why != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        h1_idle_forget(c);
    if (h->response)
        MHD_destroy_response(h->response);
    buf_unref(h->raw);
    h->response = NULL;
    h->raw = NULL;
    exchange_release(&h->x);
    if (c->draining || c->peer_ended) {
        shutdown(c->fd, SHUT_RDWR);
        return;
    }
    c->idle_ns = clock_now_ns();
    conn_deadline_for(c, c->idle_ns + idle_timeout(c), CLOSED_IDLE);
    h1_idle_begins(c);
}

static void on_connection(void *cls, _unused_ struct MHD_Connection *mc, void **context,
                          enum MHD_ConnectionNotificationCode why)
{
    struct loop *l = cls;
    struct conn *c = *context;
    l->mhd_calls++;
    if (why == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = TAKE_PTR(l->adding);
        return;
    }
    if (!c)
        return;
    h1_idle_forget(c);
    loop_unwatch(l, c->fd);
    int fd = c->linger && !c->draining ? fcntl(c->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0) {
        conn_forget(c); /* libmicrohttpd closes the descriptor after this */
        return;
    }
    c->fd = fd;
    conn_charge(c, sizeof(*c));
    conn_linger(c);
}

static bool is_requested(const struct conn *c)
{
    return c->x && h1_of(c->x)->requested;
}

static void h1_expired(struct conn *c, uint64_t now_ns)
{
    c->deadline_ns = UINT64_MAX;
    if (!c->peer_ended)
        server_count(c->why);
    if (c->peer_ended && !is_requested(c) && c->pokes++ < MAX_POKES) {
        shutdown(c->fd, SHUT_RD); /* an event, and what has arrived can still be read */
        conn_deadline(c, now_ns + PEER_ENDED_NS);
        return;
    }
    if (c->x)
        conn_abortive(c);
    shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
}

/*
 * The peer sends no more. libmicrohttpd would miss it when it came together with data
 * (edge-triggered, and a short read counts as the end of what there is), so it is told again a
 * moment later. A request that is whole gets its answer first. Or: something has come.
 */
static void h1_event(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    if (events & EPOLLIN && c->idle_ns && c->why == CLOSED_IDLE)
        h1_look_later(c);
    if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        return;
    c->peer_ended = true;
    h1_idle_forget(c);
    if (!is_requested(c))
        conn_deadline(c, clock_now_ns() + PEER_ENDED_NS);
}

static void h1_drain(struct conn *c)
{
    if (!c->x)
        shutdown(c->fd, SHUT_RDWR);
}

static void h1_cut(struct conn *c)
{
    struct h1_exchange *h = c->x ? h1_of(c->x) : NULL;
    if (h && h->suspended) {
        h->suspended = false;
        h->aborted = true;
        MHD_resume_connection(h->mc);
    }
    shutdown(c->fd, SHUT_RDWR);
    c->loop->mhd_dirty = true;
}

static const struct conn_ops h1_ops = {h1_expired, h1_drain, h1_cut};

static size_t keep_escapes(_unused_ void *cls, _unused_ struct MHD_Connection *mc, char *s)
{
    return strlen(s);
}

static void on_mhd(struct watch *w, _unused_ uint32_t events)
{
    container_of(w, struct loop, mhd_watch)->mhd_dirty = true;
}

static size_t pool_bytes(void)
{
    const size_t twice = 2 * (size_t)server_limits_get().max_header_bytes;
    return twice > H1_MEMORY_BYTES ? twice : H1_MEMORY_BYTES;
}

static int start_daemon(struct loop *l)
{
    l->pool_bytes = pool_bytes();
    const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
    l->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, NULL, MHD_OPTION_CONNECTION_LIMIT, 1u << 20,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, l->pool_bytes, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        NULL, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)READ_STEP_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, h1_layout_known() ? 0 : 1, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        l, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_END);
    if (!l->mhd)
        return -ENOMEM;
    l->mhd_watch.event = on_mhd;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? loop_watch(l, info->epoll_fd, EPOLLIN, &l->mhd_watch) : -EINVAL;
}

void h1_start(struct conn *c, uint8_t first)
{
    struct loop *l = c->loop;
    if (!l->mhd && start_daemon(l) < 0) {
        conn_close(c);
        return;
    }
    c->watch.event = h1_event;
    loop_rewatch(l, c->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, &c->watch);
    c->why = CLOSED_HEADER_TIMEOUT;
    conn_charge(c, sizeof(*c) + l->pool_bytes);
    c->ops = &h1_ops;
    c->pool_first = first != '\r'; /* empty lines may come before it */
    l->adding = c;
    const struct sockaddr pair = {.sa_family = AF_UNIX};
    if (c->secure)
        MHD_add_connection(l->mhd, c->fd, &pair, sizeof(sa_family_t));
    else
        MHD_add_connection(l->mhd, c->fd, &c->peer.any, c->peer_len);
    if (TAKE_PTR(l->adding)) /* refused; the descriptor is closed */
        conn_forget(c);
    l->mhd_dirty = true;
}

/* libmicrohttpd never waits while it holds input that it can neither use nor add to, as a line of a
 * chunk's size that is longer than its buffer. Such a connection has its deadline; until then it is
 * not worth a processor. */
void h1_run(struct loop *l)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    const unsigned calls = l->mhd_calls;
    l->mhd_at_ns = UINT64_MAX;
    for (int i = 0; i < RUNS_PER_WAKE; i++) {
        MHD_run(l->mhd);
        if (MHD_get_timeout(l->mhd, &wait_ms) != MHD_YES || wait_ms > 0)
            return;
    }
    if (l->mhd_calls != calls)
        l->mhd_dirty = true;
    else
        l->mhd_at_ns = clock_now_ns() + STALLED_NS;
}

void h1_stop(struct loop *l)
{
    if (l->mhd)
        MHD_stop_daemon(l->mhd);
    l->mhd = NULL;
}
