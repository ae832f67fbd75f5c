#include "agent/pipeline/otlp_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <strings.h>

#include "agent/base/secrets.h"
#include "agent/net/grpc.h"
#include "proto/wire_order.h"

#define USUAL_RATIO 6 /* telemetry compresses to less than one part of so many */
#define METRICS_LEVEL 4

/* ---- compression */

const struct cfg_field compression_params_fields[] = {
    {.key = "level",
     .kind = BIND_INT,
     CFG_AT(struct compression_params, level),
     .help = "Compression level; 0 means the default of the compression."},
    {0},
};

enum codec compression_codec(const char *name, bool grpc)
{
    if (strcmp(name, "none") == 0)
        return CODEC_IDENTITY;
    enum codec c = codec_find(bytes_str(name));
    return grpc && c == CODEC_SNAPPY ? CODEC_SNAPPY_FRAMED : c;
}

/* Exact spelling; "identity" is a codec but no setting. */
static bool known_compression(const char *name, bool grpc)
{
    static const char *const known[] = {
        "", "none", "gzip", "zstd", "snappy", "zlib", "deflate", "x-snappy-framed", "lz4"};
    for (size_t i = 0; i < (grpc ? 5 : ARRAY_SIZE(known)); i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

int compression_check(const char *name, const struct compression_params *p, bool grpc,
                      struct err *reterr)
{
    if (!known_compression(name, grpc))
        return err_at(
            reterr, "compression",
            "unsupported compression type \"%s\" (expected gzip, zstd, snappy, %snone or \"\")",
            name, grpc ? "" : "x-snappy-framed, zlib, deflate, lz4, ");
    int64_t low = 0, high = 0;
    switch (compression_codec(name, grpc)) {
    case CODEC_GZIP:
    case CODEC_ZLIB: low = -2, high = 9; break;
    case CODEC_ZSTD: low = -1, high = 22; break;
    default: break;
    }
    if (p->level < low || p->level > high)
        return err_at(reterr, "compression_params::level",
                      "unsupported level %" PRId64 " for compression \"%s\" (expected %" PRId64
                      " to %" PRId64 ")",
                      p->level, name, low, high);
    return 0;
}

/* ---- headers */

static const char *header_value(const struct cfg_map *headers, size_t i)
{
    return ((const char *const *)headers->values)[i];
}

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *name)
{
    return *name &&
           name[strspn(
               name,
               "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] ==
               0;
}

int client_headers_check(const struct cfg_map *headers, struct err *reterr)
{
    for (size_t i = 0; i < headers->n; i++) {
        const char *name = headers->keys[i];
        if (!is_token(name))
            return err_at(reterr, "headers", "\"%s\" is not a header name", name);
        for (const char *v = header_value(headers, i); *v; v++)
            if (((unsigned char)*v < 0x20 && *v != '\t') || *v == 0x7f)
                return err_at(
                    reterr, "headers",
                    "the value of header \"%s\" holds a line break or another control character",
                    name);
    }
    return 0;
}

const char *client_headers_get(const struct cfg_map *headers, const char *name)
{
    for (size_t i = 0; i < headers->n; i++)
        if (strcasecmp(headers->keys[i], name) == 0)
            return header_value(headers, i);
    return NULL;
}

static void blank_out(char *text, const char *secret)
{
    size_t n = strlen(secret);
    if (n < SECRET_MIN_BYTES)
        return;
    for (char *at; (at = strstr(text, secret)); text = at + n)
        memset(at, '*', n);
}

void client_headers_scrub(const struct cfg_map *headers, char *text)
{
    for (size_t i = 0; i < headers->n; i++) {
        const char *value = header_value(headers, i), *space = strchr(value, ' ');
        blank_out(text, value);
        if (space)
            blank_out(text, space + 1);
    }
    secrets_blank(text);
}

/* ---- requests */

int otlp_client_request(const struct batch *b, struct wire_order **ret_owner, struct bytes *ret)
{
    _cleanup_(wire_order_freep) struct wire_order *o = wire_order_new();
    int r = o ? wire_order_reserve(o, b->bytes + b->bytes / 8) : -ENOMEM;
    for (unsigned i = b->nsegs; r == 0 && i-- > 0;)
        r = wire_order_put(o, schema_request(b->signal), buf_bytes(b->segs[i]));
    if (r < 0)
        return r;
    *ret = wire_order_bytes(o);
    *ret_owner = TAKE_PTR(o);
    return 0;
}

struct segments {
    const struct batch *batch;
    unsigned next;
    struct wire_order *order;
};

static int next_segment(void *ctx, struct bytes *ret)
{
    struct segments *s = ctx;
    wire_order_reset(s->order);
    *ret = bytes_of(NULL, 0);
    while (ret->len == 0 && s->next < s->batch->nsegs) {
        struct bytes segment = buf_bytes(s->batch->segs[s->next++]);
        int r = wire_order_put(s->order, schema_request(s->batch->signal), segment);
        if (r < 0)
            return r;
        *ret = wire_order_bytes(s->order);
    }
    return 0;
}

/* What gzip and zlib do at their default level for requests is quick and makes about a tenth more
 * than level 6. Not with metrics, whose points are alike but for a few bytes: there it would be a
 * fifth, and a higher level is a tenth. */
static int usual_level(const struct batch *b, enum codec c, int level)
{
    const bool deflate = c == CODEC_GZIP || c == CODEC_ZLIB;
    return deflate && b->signal == SIGNAL_METRICS && (level == 0 || level == -1) ? METRICS_LEVEL
                                                                                 : level;
}

int otlp_client_request_compressed(const struct batch *b, enum codec c, int level, struct buf *out)
{
    _cleanup_(wire_order_freep) struct wire_order *o = wire_order_new();
    struct segments s = {b, 0, o};
    buf_reserve(out, b->bytes / USUAL_RATIO); /* no need: it grows */
    return o ? codec_compress_pull(c, usual_level(b, c, level), next_segment, &s, out) : -ENOMEM;
}

/* ---- answers */

void outcome_message(struct outcome *out, const char *fmt, ...)
{
    char text[sizeof(out->message) + 4];
    struct ack cut = {0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ack_answer(&cut, VERDICT_RETRY, 0, "%s", text);
    memcpy(out->message, cut.now.message, sizeof(out->message));
}

enum verdict verdict_of_http(int http_status, uint32_t retry_ms, struct outcome *out)
{
    if (http_status >= 200 && http_status < 300)
        return VERDICT_OK;
    out->status = otlp_code_of_http(http_status);
    switch (http_status) {
    case 429:
    case 503: /* the delay is for us; the reference does not pass it on */
        out->retry_after_ms = retry_ms;
        out->retry_after_own = true;
        return VERDICT_RETRY;
    case 502:
    case 504: return VERDICT_RETRY;
    default: return VERDICT_REJECT;
    }
}

static bool grpc_may_retry(int code, bool has_retry)
{
    switch (code) {
    case RPC_CANCELLED:
    case RPC_DEADLINE_EXCEEDED:
    case RPC_ABORTED:
    case RPC_OUT_OF_RANGE:
    case RPC_UNAVAILABLE:
    case RPC_DATA_LOSS: return true;
    case RPC_RESOURCE_EXHAUSTED: return has_retry;
    default: return false;
    }
}

enum verdict verdict_of_grpc(int code, const struct rpc_status *details, struct outcome *out)
{
    if (code == RPC_OK)
        return VERDICT_OK;
    bool has_retry = details && details->has_retry;
    out->status = code > 0 && code <= RPC_UNAUTHENTICATED ? code : RPC_UNKNOWN;
    if (!grpc_may_retry(code, has_retry))
        return VERDICT_REJECT;
    if (has_retry)
        out->retry_after_ms =
            details->retry_after_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)details->retry_after_ms;
    return VERDICT_RETRY;
}

void partial_success_note(const struct logger *lg, enum signal s, const struct partial_success *ps,
                          struct outcome *out)
{
    if (!ps->rejected && !ps->message[0])
        return;
    char key[40];
    snprintf(key, sizeof(key), "dropped_%s",
             s == SIGNAL_METRICS ? "data_points" : signal_records_name(s));
    log_warn(lg, "Partial success response", LOG_STR("message", ps->message),
             LOG_INT(key, ps->rejected));
    out->rejected = ps->rejected > UINT32_MAX ? UINT32_MAX : (uint32_t)ps->rejected;
}
