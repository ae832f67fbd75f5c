/* One request and its reply, over either carrier. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/net/endpoint.h"
#include "agent/net/exchange.h"

#define BODY_STEP_BYTES                                                                            \
    (256u << 10) /* no more is allocated on the strength of an announcement alone */

/* The exchange whose callback runs on this thread: its reply needs no detour. */
static __thread struct http_exchange *in_callback;
/* Bytes of bodies that no service has taken yet. */
static atomic_size_t receiving;

void *exchange_new(const struct carrier *carrier, struct conn *c, size_t size)
{
    struct http_exchange *x = calloc(1, size);
    if (!x)
        return NULL;
    struct listener *l = c->listener;
    pthread_mutex_lock(&l->lock);
    x->service = l->service;
    if (x->service) {
        atomic_fetch_add(&x->service->refs, 1);
        x->service->inflight++;
    }
    pthread_mutex_unlock(&l->lock);
    x->carrier = carrier;
    x->loop = c->loop;
    x->conn = c;
    x->listener = l;
    atomic_init(&x->refs, 2); /* the carrier's and the service's */
    return x;
}

/* What was received is somebody else's now, or nobody's. */
static struct buf *release_body(struct http_exchange *x)
{
    atomic_fetch_sub(&receiving, x->receiving);
    x->receiving = 0;
    if (x->body)
        buf_bound(x->body, 0);
    return TAKE_PTR(x->body);
}

static void drop_body(struct http_exchange *x)
{
    buf_unref(release_body(x));
}

static void exchange_unref(struct http_exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    drop_body(x);
    if (x->ticket)
        x->ticket_drop(x->ticket);
    buf_unref(x->late.body);
    free(x->late_headers);
    free(x->late_trailers);
    free(x);
}

static void leave_service(struct http_exchange *x)
{
    struct service_ref *s = x->service;
    if (!s)
        return;
    x->service = NULL;
    pthread_mutex_lock(&x->listener->lock);
    if (--s->inflight == 0)
        pthread_cond_broadcast(&x->listener->changed);
    pthread_mutex_unlock(&x->listener->lock);
    service_unref(s);
}

static bool has_service(const struct http_exchange *x)
{
    return x->service && !atomic_load(&x->service->dead);
}

void exchange_release(struct http_exchange *x)
{
    int open = PHASE_OPEN;
    if (atomic_compare_exchange_strong(&x->phase, &open, PHASE_ABANDONED)) {
        bool handed = x->handed;
        if (has_service(x) && x->service->svc.gone)
            x->service->svc.gone(x->service->svc.ctx, x);
        if (!handed) /* the service never had it */
            exchange_unref(x);
    } else if (!x->reply_seen) { /* its task is still to run on this loop */
        x->detached = true;
        x->loop->owed++;
    }
    leave_service(x);
    x->conn = NULL;
    exchange_unref(x);
}

/* ---- calls into the service, and what the server answers itself ---- */

static void reply_text(struct http_exchange *x, int status, const char *text, bool close)
{
    struct buf *body = buf_new(0);
    const struct http_header_out headers[] = {{"content-type", "text/plain; charset=utf-8"}};
    if (body && buf_append_str(body, text) < 0)
        body = buf_unref(body);
    http_reply(x, status, headers, 1, body, NULL, 0, close);
}

static void reply_unavailable(struct http_exchange *x, const char *why)
{
    const struct http_header_out grpc[] = {
        {"content-type", "application/grpc"}, {"grpc-status", "14"}, {"grpc-message", why}};
    if (x->grpc)
        http_reply(x, 200, grpc, 3, NULL, NULL, 0, false);
    else
        reply_text(x, 503, "503 Service Unavailable", true);
}

static struct http_exchange *enter(struct http_exchange *x)
{
    struct http_exchange *outer = in_callback;
    in_callback = x;
    return outer;
}

void exchange_reply_text(struct http_exchange *x, int status, const char *text, bool close)
{
    struct http_exchange *outer = enter(x);
    x->handed = true;
    reply_text(x, status, text, close);
    in_callback = outer;
}

void exchange_reply_headers(struct http_exchange *x, int status,
                            const struct http_header_out *headers, unsigned n)
{
    struct http_exchange *outer = enter(x);
    x->handed = true;
    http_reply(x, status, headers, n, NULL, NULL, 0, false);
    in_callback = outer;
}

void exchange_headers(struct http_exchange *x)
{
    struct http_exchange *outer = enter(x);
    if (has_service(x))
        x->limit = x->service->svc.headers(x->service->svc.ctx, x);
    else
        reply_unavailable(x, "the server is stopping");
    in_callback = outer;
}

void exchange_request(struct http_exchange *x)
{
    struct http_exchange *outer = enter(x);
    x->handed = true;
    if (has_service(x))
        x->service->svc.request(x->service->svc.ctx, x);
    else
        reply_unavailable(x, "the server is stopping");
    in_callback = outer;
}

void exchange_too_large(struct http_exchange *x)
{
    struct http_exchange *outer = enter(x);
    drop_body(x);
    x->handed = true;
    if (has_service(x))
        x->service->svc.too_large(x->service->svc.ctx, x);
    else
        reply_unavailable(x, "the server is stopping");
    in_callback = outer;
}

static void no_room(struct http_exchange *x)
{
    struct http_exchange *outer = enter(x);
    drop_body(x);
    x->handed = true;
    if (has_service(x) && x->service->svc.no_room)
        x->service->svc.no_room(x->service->svc.ctx, x);
    else
        reply_unavailable(x, "too much is being received");
    in_callback = outer;
}

bool exchange_body_announced(struct http_exchange *x)
{
    if (!x->memory_limit || mem_room(x->memory_limit, (size_t)x->announced))
        return true;
    no_room(x);
    return false;
}

/* Room for `len` more bytes, and for some of those that are announced. */
static int make_room(struct http_exchange *x, size_t len)
{
    struct buf *b = x->body;
    size_t want = len;
    if (b->cap - b->len >= len)
        return 0;
    if (x->announced > b->len && x->announced <= x->limit) {
        size_t left = x->announced - b->len,
               step = b->len > BODY_STEP_BYTES ? b->len : BODY_STEP_BYTES;
        want = left < step ? left : step;
    }
    size_t before = b->cap;
    int r = buf_reserve(b, want > len ? want : len);
    x->receiving += b->cap - before;
    size_t all = atomic_fetch_add(&receiving, b->cap - before);
    return r < 0 ? r : all > RECEIVING_MAX_BYTES ? -ENOBUFS : 0;
}

static int append(struct http_exchange *x, const void *data, size_t len)
{
    if (!x->body && !(x->body = buf_new(x->limit ? x->limit : 1)))
        return -ENOMEM;
    buf_bound(x->body, x->memory_limit);
    if (len > x->limit - x->body->len)
        return -EMSGSIZE;
    int r = make_room(x, len);
    return r < 0 ? r : buf_append(x->body, data, len);
}

bool exchange_body_append(struct http_exchange *x, const void *data, size_t len)
{
    int r = append(x, data, len);
    if (r == -EMSGSIZE) {
        exchange_too_large(x);
    } else if (r < 0) {
        no_room(x);
    }
    return r == 0;
}

/* ---- replies ---- */

static size_t copied_size(const struct http_header_out *h, unsigned n)
{
    size_t size = n * sizeof(*h);
    for (unsigned i = 0; i < n; i++)
        size += strlen(h[i].name) + strlen(h[i].value) + 2;
    return size;
}

static char *copy_string(char **at, const char *s)
{
    char *to = *at;
    size_t n = strlen(s) + 1;
    memcpy(to, s, n);
    *at += n;
    return to;
}

static void copy_fields(struct http_header_out *to, char **at, const struct http_header_out *from,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        to[i].name = copy_string(at, from[i].name);
        to[i].value = copy_string(at, from[i].value);
    }
}

struct http_header_out *http_fields_copy(const struct http_header_out *from, unsigned n)
{
    struct http_header_out *to = malloc(copied_size(from, n) + 1);
    char *at = (char *)(to + n);
    if (to)
        copy_fields(to, &at, from, n);
    return to;
}

/* Runs on the loop: the reply from another thread has arrived. */
static void late_reply(struct task *t)
{
    struct http_exchange *x = container_of(t, struct http_exchange, task);
    if (x->detached) {
        x->loop->owed--;
    } else {
        struct reply r = x->late;
        x->late.body = NULL;
        x->reply_seen = true;
        x->carrier->reply(x, &r);
    }
    exchange_unref(x);
}

static void send_late(struct http_exchange *x, const struct reply *r)
{
    x->late = *r;
    x->late.headers = x->late_headers = http_fields_copy(r->headers, r->nheaders);
    x->late.trailers = x->late_trailers = http_fields_copy(r->trailers, r->ntrailers);
    if (!x->late_headers ||
        !x->late_trailers) { /* out of memory: what needs none, and may be tried again */
        x->late = (struct reply){.status = 503, .close = true};
        buf_unref(r->body);
    }
    x->task.run = late_reply;
    loop_post(x->loop, &x->task);
}

void http_reply(struct http_exchange *x, int status, const struct http_header_out *headers,
                unsigned nheaders, struct buf *body, const struct http_header_out *trailers,
                unsigned ntrailers, bool close)
{
    struct reply r = {status, close, nheaders, ntrailers, headers, trailers, body};
    if (in_callback == x) {
        atomic_store(&x->phase, PHASE_REPLIED);
        x->reply_seen = true;
        x->carrier->reply(x, &r);
        exchange_unref(x);
        return;
    }
    int open = PHASE_OPEN;
    if (atomic_compare_exchange_strong(&x->phase, &open, PHASE_REPLIED)) {
        send_late(x, &r);
        return;
    }
    buf_unref(body); /* the peer is gone */
    exchange_unref(x);
}

/* ---- what came ---- */

enum http_carrier http_carrier(const struct http_exchange *x)
{
    return x->carrier->kind;
}

struct bytes http_method(const struct http_exchange *x)
{
    return x->method;
}

struct bytes http_path(const struct http_exchange *x)
{
    return x->path;
}

void http_each_header(const struct http_exchange *x,
                      bool (*each)(void *ctx, struct bytes name, struct bytes value), void *ctx)
{
    x->carrier->each(x, each, ctx);
}

struct wanted {
    const char *name;
    size_t len;
    struct bytes value;
};

static bool match_header(void *ctx, struct bytes name, struct bytes value)
{
    struct wanted *w = ctx;
    if (name.len != w->len || strncasecmp((const char *)name.data, w->name, w->len) != 0)
        return true;
    w->value = bytes_of(value.data ? value.data : (const uint8_t *)"", value.len);
    return false;
}

struct bytes http_header(const struct http_exchange *x, const char *lower)
{
    struct wanted w = {lower, strlen(lower), {NULL, 0}};
    x->carrier->each(x, match_header, &w);
    return w.value;
}

const char *http_peer(struct http_exchange *x)
{
    if (!x->peer_text[0] && x->conn)
        endpoint_format(&x->conn->peer.any, x->conn->peer_len, x->peer_text, sizeof(x->peer_text));
    return x->peer_text;
}

const char *http_listener_address(struct http_exchange *x)
{
    return listener_address(x->listener);
}

bool http_is_grpc(const struct http_exchange *x)
{
    return x->grpc;
}

bool http_grpc_compressed(const struct http_exchange *x)
{
    return x->grpc_compressed;
}

bool http_truncated(const struct http_exchange *x)
{
    return x->truncated;
}

uint64_t http_announced(const struct http_exchange *x)
{
    return x->announced;
}

struct buf *http_take_body(struct http_exchange *x)
{
    return release_body(x);
}

void http_bound_memory(struct http_exchange *x, size_t limit)
{
    x->memory_limit = limit;
}

void *http_user(const struct http_exchange *x)
{
    return x->user;
}

void http_set_user(struct http_exchange *x, void *user)
{
    x->user = user;
}

void http_set_ticket(struct http_exchange *x, void *ticket, void (*drop)(void *ticket))
{
    x->ticket = ticket;
    x->ticket_drop = drop;
}

void *http_take_ticket(struct http_exchange *x)
{
    return TAKE_PTR(x->ticket);
}
