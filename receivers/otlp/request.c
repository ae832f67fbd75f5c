/* One export request: decoded here or on a worker, offered to the pipelines, answered from wherever
 * the verdict comes. */
#include <errno.h>
#include <string.h>

#include "proto/json.h"
#include "receivers/otlp/otlp.h"

#define INLINE_BYTES (256u << 10)          /* more goes to a worker */
#define FREE_RATIO_BYTES ((size_t)1 << 20) /* whatever the ratio */
#define INLINE_COSTLY_BYTES (64u << 10)    /* the same for JSON and compressed bodies */

struct otlp_request *request_new(struct otlp_port *p, struct http_exchange *x, enum signal s)
{
    struct otlp_request *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    atomic_fetch_add(&p->o->refs, 1);
    q->o = p->o;
    q->port = p;
    q->x = x;
    q->signal = s;
    q->body = http_take_body(x);
    return q;
}

/* Uses q up. */
static void finish(struct otlp_request *q, const struct answer *a)
{
    (q->grpc ? otlp_grpc_answer : otlp_http_answer)(q, a);
    buf_unref(q->body);
    otlp_unref(q->o);
    free(q);
}

static void fail(struct otlp_request *q, int code, int http_status, const char *fmt, ...)
    _printf_(4, 5);
static void fail(struct otlp_request *q, int code, int http_status, const char *fmt, ...)
{
    struct answer a = {.status.code = code, .http_status = http_status};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a.status.message, sizeof(a.status.message), fmt, ap);
    va_end(ap);
    finish(q, &a);
}

/* ---- verdicts ---- */

static void count(struct otlp_request *q, enum verdict v, uint32_t rejected)
{
    const struct receiver_metrics *m = &q->o->metrics[q->grpc][q->signal];
    uint32_t accepted = v != VERDICT_OK ? 0 : rejected < q->records ? q->records - rejected : 0;
    if (accepted)
        metric_add(m->accepted, accepted);
    if (q->records - accepted)
        metric_add(m->refused, q->records - accepted);
}

static void answer(struct otlp_request *q, enum verdict v, const struct outcome *out)
{
    struct answer a = {0};
    count(q, v, out->rejected);
    if (v == VERDICT_OK) {
        a.ps.rejected = out->rejected;
        snprintf(a.ps.message, sizeof(a.ps.message), "%s", out->rejected ? out->message : "");
        finish(q, &a);
        return;
    }
    a.status.code = out->status ? out->status : v == VERDICT_RETRY ? RPC_UNAVAILABLE : RPC_INTERNAL;
    a.http_status = http_status_of_grpc(a.status.code);
    a.status.has_retry = out->retry_after_ms > 0;
    a.status.retry_after_ms = out->retry_after_ms;
    const char *text = v == VERDICT_RETRY ? "the pipeline does not take data now"
                                          : "the pipeline refused the data";
    snprintf(a.status.message, sizeof(a.status.message), "%s",
             out->message[0] ? out->message : text);
    finish(q, &a);
}

static void on_ack(struct ack *ack, enum verdict v, const struct outcome *out)
{
    static const struct outcome none;
    answer(container_of(ack, struct otlp_request, ack), v, out ? out : &none);
}

static void offer(struct otlp_request *q, struct batch *b)
{
    struct answer a = {0};
    q->records = b->records;
    if (b->records == 0) {
        batch_unref(b);
        finish(q, &a);
        return;
    }
    q->ack = (struct ack){.done = on_ack, .owed = ACK_ALL};
    enum verdict v = component_emit(&q->o->c, b, &q->ack);
    if (v != VERDICT_PENDING)
        answer(q, v, &q->ack.now);
}

/* ---- decoding ---- */

/* What `len` bytes may decompress to, when that is less than `max`: little is free, then the ratio
 * counts. */
static size_t limit_of_ratio(const struct otlp_request *q, size_t len, size_t max)
{
    const int64_t ratio = host_settings(q->o->c.host)->max_decompression_ratio;
    if (ratio <= 0 || len > max / (size_t)ratio)
        return max;
    const size_t most = len * (size_t)ratio;
    return most > FREE_RATIO_BYTES ? most : FREE_RATIO_BYTES < max ? FREE_RATIO_BYTES : max;
}

static void fail_ratio(struct otlp_request *q, size_t len, size_t limit)
{
    fail(q, q->grpc ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT, q->grpc ? 429 : 400,
         "%s: %zu bytes decompress to more than %zu, which is beyond max_decompression_ratio",
         q->grpc ? "grpc: message too large" : "http: request body too large", len, limit);
}

static void fail_for_memory(struct otlp_request *q)
{
    memory_gate_refused(&q->o->memory[q->grpc][q->signal]);
    fail(q, RPC_UNAVAILABLE, 503, "%s", MEMORY_REFUSED);
}

/* A buffer for what a request decodes to: it grows while there is memory. */
static struct buf *bounded(const struct otlp_request *q, size_t max)
{
    struct buf *b = buf_new(max);
    if (b)
        buf_bound(b, q->o->memory[q->grpc][q->signal].limit);
    return b;
}

/* Undoes the coding; on failure the request is answered. */
static int decompress(struct otlp_request *q)
{
    struct err e = {0};
    struct bytes in = q->body ? buf_bytes(q->body) : bytes_of("", 0);
    const size_t max = q->grpc ? q->o->grpc_max : q->o->http_max;
    const size_t limit = limit_of_ratio(q, in.len, max);
    struct buf *plain = bounded(q, limit);
    int r = plain ? codec_decompress(q->coding, in, plain, &e) : -ENOMEM;
    if (r == 0) {
        buf_unref(q->body);
        buf_bound(plain, 0);
        q->body = plain;
        return 0;
    }
    buf_unref(plain);
    if (r == -ENOMEM)
        fail_for_memory(q);
    else if (r == -EMSGSIZE && limit < max)
        fail_ratio(q, in.len, limit);
    else if (q->grpc && r == -EMSGSIZE)
        fail(q, RPC_RESOURCE_EXHAUSTED, 429,
             "grpc: message after decompression larger than max %zu", max);
    else if (q->grpc)
        fail(q, RPC_INTERNAL, 500, "grpc: failed to decompress the received message: %s", e.text);
    else
        fail(q, RPC_INVALID_ARGUMENT, 400, "%s",
             r == -EMSGSIZE ? "http: request body too large" : e.text);
    return r;
}

/* JSON to protobuf; on failure the request is answered. */
static int transcode(struct otlp_request *q)
{
    struct err e = {0};
    struct buf *out = bounded(q, 0);
    struct bytes in = q->body ? buf_bytes(q->body) : bytes_of("", 0);
    int r = out ? json_read(schema_request(q->signal), in, out, &e) : -ENOMEM;
    if (r == 0) {
        buf_unref(q->body);
        buf_bound(out, 0);
        q->body = out;
        return 0;
    }
    buf_unref(out);
    if (r == -EILSEQ) {
        struct answer a = {.status.code = RPC_INTERNAL, .unmarshalable = true};
        finish(q, &a);
    } else if (r == -ENOMEM) {
        fail_for_memory(q);
    } else {
        fail(q, RPC_INVALID_ARGUMENT, 400, "%s", e.text);
    }
    return r;
}

static void run(struct otlp_request *q)
{
    struct err e = {0};
    struct batch *b = NULL;
    if (q->coding != CODEC_IDENTITY && decompress(q) < 0)
        return;
    if (q->json && transcode(q) < 0)
        return;
    if (!q->body && !(q->body = buf_new(0))) {
        fail(q, RPC_UNAVAILABLE, 503, "out of memory");
        return;
    }
    int r = batch_from_wire(q->signal, TAKE_PTR(q->body), &b, &e);
    if (r == -ENOMEM)
        fail(q, RPC_UNAVAILABLE, 503, "out of memory");
    else if (r < 0 && q->grpc)
        fail(q, RPC_INTERNAL, 500, "grpc: error unmarshalling request: %s", e.text);
    else if (r < 0)
        fail(q, RPC_INVALID_ARGUMENT, 400, "%s", e.text);
    else
        offer(q, b);
}

static void run_item(struct pool_item *i)
{
    run(container_of(i, struct otlp_request, work));
}

static void start_on_worker(struct otlp_request *q)
{
    q->work = (struct pool_item){.run = run_item, .bytes = q->body ? q->body->len : 0};
    if (!pool_add(q->o->pool, &q->work))
        fail(q, RPC_UNAVAILABLE, 503, "too many large requests wait already");
}

static void start(struct otlp_request *q)
{
    size_t n = q->body ? q->body->len : 0;
    bool costly = q->json || q->coding != CODEC_IDENTITY;
    if (n <= (costly ? INLINE_COSTLY_BYTES : INLINE_BYTES))
        run(q);
    else
        start_on_worker(q);
}

/* The slow comparison of the credentials has ended, perhaps on a thread of the authenticator and
 * while we stop: the pool knows what is too late. */
static void on_checked(void *ctx, const char *refused)
{
    struct otlp_request *q = ctx;
    if (!refused) {
        start_on_worker(q);
        return;
    }
    struct answer a = {.status.code = RPC_UNAUTHENTICATED, .http_status = 401};
    auth_guard_refused(&q->port->guard, http_peer(q->x), refused);
    a.challenge = q->port->guard.auth->challenge;
    snprintf(a.status.message, sizeof(a.status.message), "%s", refused);
    finish(q, &a);
}

void request_start(struct otlp_request *q)
{
    struct auth_check *k = http_take_ticket(q->x);
    if (k)
        k->then(k, on_checked, q);
    else
        start(q);
}
