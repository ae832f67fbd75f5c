/* OTLP/HTTP: which requests are taken, in the reference's order of looking, and how answers read.
 */
#include <string.h>

#include "receivers/otlp/media_type.h"
#include "receivers/otlp/otlp.h"

#define MAX_HEADERS 56
#define NOT_FOUND "404 page not found\n"
#define BAD_METHOD "405 method not allowed, supported: [POST]"
#define BAD_TYPE "415 unsupported media type, supported: [application/json, application/x-protobuf]"
#define TOO_LARGE "http: request body too large"
#define UNMARSHALABLE "{\"code\": 13, \"message\": \"failed to marshal error message\"}"

static const char type_json[] = "application/json", type_protobuf[] = "application/x-protobuf";

/* Content codings by name; the names of compression_algorithms. */
static const struct {
    const char *name;
    enum codec codec;
} codings[] = {
    {"", CODEC_IDENTITY},     {"gzip", CODEC_GZIP},
    {"zstd", CODEC_ZSTD},     {"zlib", CODEC_ZLIB},
    {"snappy", CODEC_SNAPPY}, {"deflate", CODEC_ZLIB},
    {"lz4", CODEC_LZ4},       {"x-snappy-framed", CODEC_SNAPPY_FRAMED},
};

unsigned otlp_http_encodings(const struct cfg_list *list)
{
    const char *const *items = list->items;
    unsigned bits = 0;
    for (size_t i = 0; i < list->n; i++)
        for (unsigned k = 0; k < ARRAY_SIZE(codings); k++)
            if (strcmp(items[i], codings[k].name) == 0)
                bits |= 1u << k;
    return bits;
}

/* What headers() found out, kept in the exchange. */
struct plan {
    enum signal signal;
    enum codec coding;
    bool json;
};

static void keep_plan(struct http_exchange *x, struct plan p)
{
    http_set_user(
        x, (void *)((uintptr_t)p.signal | (uintptr_t)p.coding << 4 | (uintptr_t)p.json << 12));
}

static struct plan plan_of(const struct http_exchange *x)
{
    uintptr_t u = (uintptr_t)http_user(x);
    return (struct plan){(enum signal)(u & 15), (enum codec)(u >> 4 & 255), (bool)(u >> 12 & 1)};
}

/* ---- answers ---- */

struct http_answer {
    int status;
    const char *type;         /* NULL = no content-type */
    struct buf *body;         /* taken */
    const char *name, *value; /* one more header; NULL = none */
    bool close;
};

static void send(const struct otlp *o, struct http_exchange *x, const struct cors_reply *cors,
                 struct http_answer a)
{
    struct http_header_out h[MAX_HEADERS];
    unsigned n = 0;
    if (a.type)
        h[n++] = (struct http_header_out){"content-type", a.type};
    if (a.name)
        h[n++] = (struct http_header_out){a.name, a.value};
    for (unsigned i = 0; i < cors->n; i++)
        h[n++] = cors->headers[i];
    for (unsigned i = 0; i < o->nresponse_headers && n < MAX_HEADERS; i++)
        h[n++] = o->response_headers[i];
    http_reply(x, a.status, h, n, a.body, NULL, 0, a.close);
}

static struct buf *text(const char *s)
{
    struct buf *b = buf_new(0);
    if (b && buf_append_str(b, s) < 0)
        b = buf_unref(b);
    return b;
}

/* An answer before there is a request. */
static void send_now(const struct otlp *o, struct http_exchange *x, struct http_answer a)
{
    struct cors_reply cors;
    cors_actual(o->cors, x, &cors);
    send(o, x, &cors, a);
}

static void set_message(struct rpc_status *st, int code, const char *message)
{
    *st = (struct rpc_status){.code = code};
    snprintf(st->message, sizeof(st->message), "%s", message);
}

/* A google.rpc.Status. */
static void send_status(const struct otlp *o, struct http_exchange *x, bool json, int status,
                        const char *message, bool close)
{
    struct rpc_status st;
    struct buf *b = buf_new(0);
    set_message(&st, otlp_code_of_http(status), message);
    if (b && status_write(&st, json, b) < 0)
        b = buf_unref(b);
    send_now(o, x,
             (struct http_answer){status, json ? type_json : type_protobuf, b, .close = close});
}

/* Who may not pass: a Status in the type of the request, or in JSON. */
static void refuse_stranger(const struct otlp_port *p, struct http_exchange *x, bool busy,
                            const char *reason)
{
    char type[MEDIA_TYPE_BYTES];
    struct rpc_status st;
    struct buf *b = buf_new(0);
    media_type_parse(http_header(x, "content-type"), type);
    const bool json = strcmp(type, type_protobuf) != 0;
    set_message(&st, busy ? RPC_UNAVAILABLE : RPC_UNAUTHENTICATED, reason);
    if (b && status_write(&st, json, b) < 0)
        b = buf_unref(b);
    send_now(p->o, x,
             (struct http_answer){
                 .status = busy ? 503 : 401,
                 .type = json ? type_json : type_protobuf,
                 .body = b,
                 .name = busy ? "retry-after" : "www-authenticate",
                 .value = busy ? "1" : p->guard.auth->challenge,
             });
}

/* False when the request was refused. */
static bool admit(struct otlp_port *p, struct http_exchange *x, size_t *max)
{
    const char *reason;
    const enum admission a = auth_guard_admit(&p->guard, x, &reason);
    if (a == ADMIT_REFUSE || a == ADMIT_BUSY) {
        refuse_stranger(p, x, a == ADMIT_BUSY, reason);
        return false;
    }
    if (a == ADMIT_LATER && *max > AUTH_UNKNOWN_BYTES)
        *max = AUTH_UNKNOWN_BYTES;
    return true;
}

/* An unknown content coding. Its answer looks at the content type before anybody has. */
static size_t refuse_coding(const struct otlp *o, struct http_exchange *x, struct bytes coding)
{
    char type[MEDIA_TYPE_BYTES], message[160];
    struct bytes given = http_header(x, "content-type");
    media_type_parse(given, type);
    bool json = strcmp(type, type_json) == 0 || given.len == 0;
    snprintf(message, sizeof(message), "unsupported Content-Encoding: %.*s",
             (int)(coding.len < 64 ? coding.len : 64), (const char *)coding.data);
    if (json || strcmp(type, type_protobuf) == 0)
        send_status(o, x, json, 400, message, false);
    else
        send_now(o, x, (struct http_answer){500, type_json, text(UNMARSHALABLE)});
    return 0;
}

/* ---- looking at the head ---- */

/* False = refused by name. */
static bool find_coding(const struct otlp *o, struct bytes name, enum codec *ret)
{
    *ret = CODEC_IDENTITY;
    if (!o->encodings)
        return true;
    if (bytes_eq_str(name, "identity"))
        name.len = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(codings); i++)
        if (bytes_eq_str(name, codings[i].name)) {
            *ret = codings[i].codec;
            return o->encodings & 1u << i;
        }
    return false;
}

/* Resolves "//", "/./" and "/../" as Go's path.Clean does and keeps a slash at the end; true when
 * that changed anything. */
static bool clean_path(struct bytes path, char *out, size_t size)
{
    size_t n = 0, i = 0;
    bool slash_at_end = path.len > 1 && path.data[path.len - 1] == '/';
    if (path.len + 2 > size)
        return false;
    while (i < path.len) {
        while (i < path.len && path.data[i] == '/')
            i++;
        size_t start = i;
        while (i < path.len && path.data[i] != '/')
            i++;
        struct bytes part = bytes_of(path.data + start, i - start);
        if (part.len == 0 || bytes_eq_str(part, "."))
            continue;
        if (bytes_eq_str(part, "..")) {
            while (n > 0 && out[--n] != '/')
                ;
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, part.data, part.len);
        n += part.len;
    }
    if (n == 0 || slash_at_end)
        out[n++] = '/';
    out[n] = 0;
    return !bytes_eq_str(path, out);
}

/* A configured path that ends with a slash takes everything below it. */
static bool path_matches(const char *configured, struct bytes path)
{
    size_t n = strlen(configured);
    if (configured[n - 1] == '/')
        return path.len >= n && memcmp(path.data, configured, n) == 0;
    return bytes_eq_str(path, configured);
}

static bool find_signal(const struct otlp *o, struct bytes path, enum signal *ret)
{
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (otlp_serves(o, (enum signal)s) && path_matches(o->paths[s], path)) {
            *ret = (enum signal)s;
            return true;
        }
    return false;
}

static bool find_type(struct http_exchange *x, bool *ret_json)
{
    char type[MEDIA_TYPE_BYTES];
    media_type_parse(http_header(x, "content-type"), type);
    *ret_json = strcmp(type, type_json) == 0;
    return *ret_json || strcmp(type, type_protobuf) == 0;
}

static size_t refuse_path(const struct otlp *o, struct http_exchange *x)
{
    char clean[1024];
    struct bytes path = http_path(x);
    if (path.len && path.data[0] == '/' && clean_path(path, clean, sizeof(clean)))
        send_now(o, x, (struct http_answer){307, NULL, NULL, "location", clean});
    else
        send_now(o, x,
                 (struct http_answer){404, "text/plain; charset=utf-8", text(NOT_FOUND),
                                      "x-content-type-options", "nosniff"});
    return 0;
}

static void note_port(struct otlp_port *p, struct http_exchange *x)
{
    if (p->grpc && !atomic_flag_test_and_set(&p->mixed))
        log_info(&p->o->c.logger, "HTTP requests arrive on the gRPC port; they are served",
                 LOG_STR("endpoint", http_listener_address(x)));
}

/* What a request will take, as far as its head tells: a decoded copy stands beside what came. */
static size_t needed_bytes(const struct otlp *o, const struct http_exchange *x, struct plan plan)
{
    const uint64_t n = http_announced(x);
    if (n > o->http_max) /* has an answer of its own */
        return 0;
    return (size_t)n * (plan.coding != CODEC_IDENTITY ? 4 : plan.json ? 2 : 1);
}

size_t otlp_http_headers(struct otlp_port *p, struct http_exchange *x)
{
    struct otlp *o = p->o;
    struct cors_reply cors;
    struct plan plan = {0};
    struct bytes coding = http_header(x, "content-encoding");
    size_t max = o->http_max;
    if (cors_preflight(o->cors, x, &cors)) {
        send(o, x, &cors, (struct http_answer){204, NULL, NULL});
        return 0;
    }
    if (!admit(p, x, &max))
        return 0;
    if (!find_coding(o, coding, &plan.coding))
        return refuse_coding(o, x, coding);
    if (!find_signal(o, http_path(x), &plan.signal))
        return refuse_path(o, x);
    note_port(p, x);
    if (!bytes_eq_str(http_method(x), "POST")) {
        send_now(o, x, (struct http_answer){405, "text/plain", text(BAD_METHOD)});
        return 0;
    }
    if (!find_type(x, &plan.json)) {
        send_now(o, x, (struct http_answer){415, "text/plain", text(BAD_TYPE)});
        return 0;
    }
    if (host_stopping(o->c.host)) {
        send_status(o, x, plan.json, 503, "the receiver is shutting down", true);
        return 0;
    }
    if (!otlp_admit(o, x, false, plan.signal, needed_bytes(o, x, plan))) {
        send_status(o, x, plan.json, 503, MEMORY_REFUSED, false);
        return 0;
    }
    keep_plan(x, plan);
    return max;
}

void otlp_http_no_room(struct otlp_port *p, struct http_exchange *x)
{
    const struct plan plan = plan_of(x);
    memory_gate_refused(&p->o->memory[0][plan.signal]);
    send_status(p->o, x, plan.json, 503, MEMORY_REFUSED, true);
}

void otlp_http_too_large(struct otlp_port *p, struct http_exchange *x)
{
    struct auth_check *k = http_take_ticket(x);
    if (k) { /* with known credentials it may be large */
        k->drop(k);
        refuse_stranger(p, x, true, AUTH_RETRY_TEXT);
        return;
    }
    send_status(p->o, x, plan_of(x).json, 400, TOO_LARGE, true);
}

void otlp_http_request(struct otlp_port *p, struct http_exchange *x)
{
    struct plan plan = plan_of(x);
    struct otlp_request *q = request_new(p, x, plan.signal);
    if (!q) {
        send_status(p->o, x, plan.json, 503, "out of memory", false);
        return;
    }
    q->coding = plan.coding;
    q->json = plan.json;
    cors_actual(p->o->cors, x, &q->cors);
    request_start(q);
}

/* ---- the answer to a request ---- */

static struct buf *success_body(const struct otlp_request *q, const struct answer *a)
{
    struct buf *b = buf_new(0);
    int r = b ? 0 : -1;
    if (r == 0 && a->ps.rejected)
        r = response_write(q->signal, &a->ps, q->json, b);
    else if (r == 0)
        r = q->json ? buf_append_str(b, "{\"partialSuccess\":{}}") : buf_append(b, "\n\0", 2);
    return r < 0 ? buf_unref(b) : b;
}

void otlp_http_answer(struct otlp_request *q, const struct answer *a)
{
    struct http_answer h = {.type = q->json ? type_json : type_protobuf};
    char retry[24];
    if (a->status.code == RPC_OK) {
        h.status = 200;
        h.body = success_body(q, a);
    } else if (a->unmarshalable) {
        h.status = 500;
        h.type = type_json;
        h.body = text(UNMARSHALABLE);
    } else {
        h.status = a->http_status;
        h.body = buf_new(0);
        if (h.body && status_write(&a->status, q->json, h.body) < 0)
            h.body = buf_unref(h.body);
        if (a->challenge) {
            h.name = "www-authenticate";
            h.value = a->challenge;
        }
        if (a->status.has_retry && (h.status == 429 || h.status == 503)) {
            snprintf(retry, sizeof(retry), "%llu",
                     (unsigned long long)a->status.retry_after_ms / 1000);
            h.name = "retry-after";
            h.value = retry;
        }
    }
    send(q->o, q->x, &q->cors, h);
}
