/* OTLP/gRPC: the three Export methods over HTTP/2. */
#include <string.h>

#include "receivers/otlp/otlp.h"

#define MAX_MESSAGE 256

static const char *const services[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = "opentelemetry.proto.collector.trace.v1.TraceService",
    [SIGNAL_METRICS] = "opentelemetry.proto.collector.metrics.v1.MetricsService",
    [SIGNAL_LOGS] = "opentelemetry.proto.collector.logs.v1.LogsService",
};

/* grpc-encoding names. "snappy" is the framed format here. */
static const struct {
    const char *name;
    enum codec codec, reply;
} encodings[] = {
    {"identity", CODEC_IDENTITY, CODEC_IDENTITY},
    {"gzip", CODEC_GZIP, CODEC_GZIP},
    {"zstd", CODEC_ZSTD, CODEC_ZSTD},
    {"snappy", CODEC_SNAPPY, CODEC_SNAPPY_FRAMED},
};
#define ACCEPTED "identity,gzip,zstd,snappy"

static void keep_plan(struct http_exchange *x, enum signal s, unsigned encoding)
{
    http_set_user(x, (void *)((uintptr_t)s | (uintptr_t)encoding << 4));
}

/* The content type is echoed as it came, in the bounds of reason. */
static void echo_type(const struct http_exchange *x, char ret[64])
{
    struct bytes t = http_header(x, "content-type");
    if (!http_is_grpc(x) || t.len >= 64)
        t = bytes_str("application/grpc");
    memcpy(ret, t.data, t.len);
    ret[t.len] = 0;
}

/* Trailers-only: everything in the headers. */
static void refuse_with(struct http_exchange *x, int http_status, int code, const char *message,
                        const char *name, const char *value)
{
    char type[64], status[12];
    _cleanup_buf_ struct buf *b = buf_new(0);
    echo_type(x, type);
    snprintf(status, sizeof(status), "%d", code);
    const char *encoded = b && grpc_percent_encode(bytes_str(message), b) == 0 ? buf_str(b) : NULL;
    const struct http_header_out h[] = {{"content-type", type},
                                        {"grpc-status", status},
                                        {"grpc-message", encoded ? encoded : ""},
                                        {name, value}};
    http_reply(x, http_status, h, name ? 4 : 3, NULL, NULL, 0, false);
}

static size_t refuse(struct http_exchange *x, int http_status, int code, const char *fmt, ...)
    _printf_(4, 5);
static size_t refuse(struct http_exchange *x, int http_status, int code, const char *fmt, ...)
{
    char message[MAX_MESSAGE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    refuse_with(x, http_status, code, message, NULL, NULL);
    return 0;
}

/* ---- looking at the head ---- */

static bool metadata_ok(void *ctx, struct bytes name, struct bytes value)
{
    struct bytes *bad = ctx;
    if (name.len < 4 || memcmp(name.data + name.len - 4, "-bin", 4) != 0)
        return true;
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (b && grpc_bin_decode(value, b) == 0)
        return true;
    *bad = name;
    return false;
}

static int clip(struct bytes b)
{
    return (int)(b.len < 100 ? b.len : 100);
}

/* "/service/method": 0, or the refusal was sent. */
static int find_method(const struct otlp *o, struct http_exchange *x, enum signal *ret)
{
    struct bytes path = http_path(x), service = bytes_of(path.data + 1, path.len - 1);
    const uint8_t *slash = path.data[0] == '/' ? memrchr(service.data, '/', service.len) : NULL;
    if (!slash) {
        refuse(x, 200, RPC_UNIMPLEMENTED, "malformed method name: \"%.*s\"", clip(path),
               (const char *)path.data);
        return -1;
    }
    struct bytes method = bytes_of(slash + 1, (size_t)(service.data + service.len - slash - 1));
    service.len = (size_t)(slash - service.data);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (!otlp_serves(o, (enum signal)s) || !bytes_eq_str(service, services[s]))
            continue;
        *ret = (enum signal)s;
        if (bytes_eq_str(method, "Export"))
            return 0;
        refuse(x, 200, RPC_UNIMPLEMENTED, "unknown method %.*s for service %s", clip(method),
               (const char *)method.data, services[s]);
        return -1;
    }
    refuse(x, 200, RPC_UNIMPLEMENTED, "unknown service %.*s", clip(service),
           (const char *)service.data);
    return -1;
}

static int find_encoding(struct http_exchange *x, unsigned *ret)
{
    char message[MAX_MESSAGE];
    struct bytes name = http_header(x, "grpc-encoding");
    *ret = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(encodings); i++)
        if (bytes_eq_str(name, encodings[i].name))
            *ret = i;
    if (*ret || name.len == 0 || bytes_eq_str(name, "identity"))
        return 0;
    snprintf(message, sizeof(message),
             "grpc: Decompressor is not installed for grpc-encoding \"%.*s\"", clip(name),
             (const char *)name.data);
    refuse_with(x, 200, RPC_UNIMPLEMENTED, message, "grpc-accept-encoding", ACCEPTED);
    return -1;
}

static void note_port(struct otlp_port *p, struct http_exchange *x)
{
    if (!p->grpc && !atomic_flag_test_and_set(&p->mixed))
        log_info(&p->o->c.logger, "gRPC requests arrive on the HTTP port; they are served",
                 LOG_STR("endpoint", http_listener_address(x)));
}

/* False when the call was refused. */
static bool admit(struct otlp_port *p, struct http_exchange *x, size_t *max)
{
    const char *reason;
    const enum admission a = auth_guard_admit(&p->guard, x, &reason);
    if (a == ADMIT_REFUSE || a == ADMIT_BUSY) {
        refuse(x, 200, a == ADMIT_BUSY ? RPC_UNAVAILABLE : RPC_UNAUTHENTICATED, "%s", reason);
        return false;
    }
    if (a == ADMIT_LATER && *max > AUTH_UNKNOWN_BYTES)
        *max = AUTH_UNKNOWN_BYTES;
    return true;
}

size_t otlp_grpc_headers(struct otlp_port *p, struct http_exchange *x)
{
    struct otlp *o = p->o;
    struct bytes method = http_method(x), bad = {NULL, 0};
    enum signal s;
    unsigned encoding;
    size_t max = o->grpc_max;
    if (!http_is_grpc(x)) { /* application/grpc-web and the like */
        struct bytes t = http_header(x, "content-type");
        return refuse(x, 415, RPC_INVALID_ARGUMENT, "invalid gRPC request content-type \"%.*s\"",
                      clip(t), (const char *)t.data);
    }
    if (!bytes_eq_str(method, "POST"))
        return refuse(x, 405, RPC_INTERNAL,
                      "received a HEADERS frame with :method \"%.*s\" which should be POST",
                      clip(method), (const char *)method.data);
    http_each_header(x, metadata_ok, &bad);
    if (bad.data)
        return refuse(x, 400, RPC_INTERNAL,
                      "malformed binary metadata in header \"%.*s\": illegal base64 data",
                      clip(bad), (const char *)bad.data);
    if (find_method(o, x, &s) < 0 || find_encoding(x, &encoding) < 0 || !admit(p, x, &max))
        return 0;
    note_port(p, x);
    if (host_stopping(o->c.host))
        return refuse(x, 200, RPC_UNAVAILABLE, "the receiver is shutting down");
    if (!otlp_admit(o, x, true, s, 0))
        return refuse(x, 200, RPC_UNAVAILABLE, MEMORY_REFUSED);
    keep_plan(x, s, encoding);
    return max;
}

void otlp_grpc_no_room(struct otlp_port *p, struct http_exchange *x)
{
    memory_gate_refused(&p->o->memory[1][(uintptr_t)http_user(x) & 15]);
    refuse(x, 200, RPC_UNAVAILABLE, MEMORY_REFUSED);
}

void otlp_grpc_too_large(struct otlp_port *p, struct http_exchange *x)
{
    struct auth_check *k = http_take_ticket(x);
    if (k) { /* with known credentials it may be large */
        k->drop(k);
        refuse(x, 200, RPC_UNAVAILABLE, AUTH_RETRY_TEXT);
        return;
    }
    refuse(x, 200, RPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (%llu vs. %zu)",
           (unsigned long long)http_announced(x), p->o->grpc_max);
}

void otlp_grpc_request(struct otlp_port *p, struct http_exchange *x)
{
    uintptr_t plan = (uintptr_t)http_user(x);
    unsigned encoding = (unsigned)(plan >> 4);
    if (http_truncated(x)) {
        refuse(x, 200, RPC_INTERNAL, "unexpected EOF");
        return;
    }
    if (http_grpc_compressed(x) && encodings[encoding].codec == CODEC_IDENTITY) {
        refuse(x, 200, RPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
        return;
    }
    struct otlp_request *q = request_new(p, x, (enum signal)(plan & 15));
    if (!q) {
        refuse(x, 200, RPC_UNAVAILABLE, "out of memory");
        return;
    }
    q->grpc = true;
    q->coding = http_grpc_compressed(x) ? encodings[encoding].codec : CODEC_IDENTITY;
    q->encoding = encoding;
    echo_type(x, q->content_type);
    request_start(q);
}

/* ---- the answer to a request ---- */

/* Prefix and message, compressed when `c` says so; where that fails, plain (*c is then
 * CODEC_IDENTITY). */
static struct buf *frame(struct bytes message, enum codec *c)
{
    uint8_t prefix[GRPC_PREFIX_BYTES] = {0};
    struct buf *b = buf_new(0);
    if (!b || buf_append(b, prefix, sizeof(prefix)) < 0)
        return buf_unref(b);
    if (*c != CODEC_IDENTITY && codec_compress(*c, 0, &message, 1, b) < 0) {
        buf_truncate(b, sizeof(prefix));
        *c = CODEC_IDENTITY;
    }
    if (*c == CODEC_IDENTITY && buf_append(b, message.data, message.len) < 0)
        return buf_unref(b);
    grpc_frame_prefix(*c != CODEC_IDENTITY, (uint32_t)(b->len - sizeof(prefix)), b->data);
    return b;
}

/* "partial_success {}", which nearly every request is answered with. */
static struct buf *usual_success(struct otlp *o, enum codec *c)
{
    struct buf *b = atomic_load(&o->grpc_success[*c]), *none = NULL;
    if (b)
        return buf_ref(b);
    enum codec asked = *c;
    b = frame(bytes_of("\n\0", 2), c);
    if (b && *c == asked) {
        buf_ref(b);
        if (!atomic_compare_exchange_strong(&o->grpc_success[asked], &none, b))
            buf_unref(b);
    }
    return b;
}

static struct buf *success_message(struct otlp_request *q, const struct answer *a, enum codec *c)
{
    if (!a->ps.rejected)
        return usual_success(q->o, c);
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b || response_write(q->signal, &a->ps, false, b) < 0)
        return NULL;
    return frame(buf_bytes(b), c);
}

static void answer_success(struct otlp_request *q, const struct answer *a)
{
    enum codec c = encodings[q->encoding].reply;
    struct buf *body = success_message(q, a, &c);
    const struct http_header_out headers[] = {{"content-type", q->content_type},
                                              {"grpc-encoding", encodings[q->encoding].name}};
    const struct http_header_out trailers[] = {{"grpc-status", "0"}, {"grpc-message", ""}};
    http_reply(q->x, 200, headers, c == CODEC_IDENTITY ? 1 : 2, body, trailers, 2, false);
}

static const char *details_of(const struct rpc_status *st, struct buf *out)
{
    _cleanup_buf_ struct buf *raw = buf_new(0);
    if (!st->has_retry || !raw || status_write(st, false, raw) < 0 ||
        grpc_bin_encode(buf_bytes(raw), out) < 0)
        return NULL;
    return buf_str(out);
}

void otlp_grpc_answer(struct otlp_request *q, const struct answer *a)
{
    if (a->status.code == RPC_OK) {
        answer_success(q, a);
        return;
    }
    char status[12];
    _cleanup_buf_ struct buf *message = buf_new(0), *details = buf_new(0);
    const char *text = message && grpc_percent_encode(bytes_str(a->status.message), message) == 0
                           ? buf_str(message)
                           : NULL;
    const char *bin = details ? details_of(&a->status, details) : NULL;
    snprintf(status, sizeof(status), "%d", a->status.code);
    const struct http_header_out h[] = {{"content-type", q->content_type},
                                        {"grpc-status", status},
                                        {"grpc-message", text ? text : ""},
                                        {"grpc-status-details-bin", bin}};
    http_reply(q->x, 200, h, bin ? 4 : 3, NULL, NULL, 0, false);
}
