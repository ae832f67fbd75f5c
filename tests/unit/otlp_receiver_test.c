/* The OTLP receiver over real sockets: content types, limits, encodings, verdicts, hostile input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "otlp_world.h"
#include "proto/wire.h"

#define TRACE_PATH "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
#define LOGS_PATH "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

/* ---- content types, empty requests ---- */

static void test_media_types(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int status;
    } rows[] = {
        {JSON, 200},
        {"application/json; charset=utf-8", 200},
        {"Application/JSON;v=1", 200},
        {" application/json ; a=\"b;c\\\"d\" ;", 200},
        {"text/plain", 415},
        {NULL, 415},
        {"", 415},
        {"application/jsonx", 415},
        {"application/json; charset", 415},
        {"application/json; a=1; A=2", 415},
        {"application/json;;", 415},
        {"application/ json", 415},
    };
    struct world w;
    open_world(&w, BOTH, ALL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int got =
            status_of(w.http, (struct request){.type = rows[i].type, .body = bytes_str(SPAN)});
        if (got != rows[i].status)
            fail_msg("%s: got %d, want %d", rows[i].type ? rows[i].type : "none", got,
                     rows[i].status);
    }
    assert_int_equal(status_of(w.http, (struct request){.method = "GET"}), 405);
    close_world(&w);
}

static void test_empty_requests(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{\"resourceSpans\":[]}", "{\"resourceSpans\":[{}]}",
                                        "{\"resourceSpans\":[{\"scopeSpans\":[{}]}]}"};
    struct world w;
    open_world(&w, BOTH, ALL);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(
            status_of(w.http, (struct request){.type = JSON, .body = bytes_str(texts[i])}), 200);
    assert_int_equal(status_of(w.http, (struct request){.type = PROTOBUF, .path = "/v1/logs"}),
                     200);
    assert_int_equal(status_of(w.http, (struct request){.type = JSON}), 400);
    assert_int_equal(sink_offers(sink(&w)), 0);
    close_world(&w);
}

/* ---- limits ---- */

/* A log request of exactly `n` bytes. */
static struct buf *log_request(size_t n)
{
    for (size_t text = n > 64 ? n - 64 : 0;; text++) {
        struct buf *b = buf_new(0);
        size_t entry, scope, record, body;
        buf_reserve(b, n + 64);
        wire_begin(b, 1, &entry);
        wire_begin(b, 2, &scope);
        wire_begin(b, 2, &record);
        wire_begin(b, 5, &body);
        _cleanup_free_ char *s = malloc(text + 1);
        memset(s, 'a', text);
        wire_put_bytes(b, 1, bytes_of(s, text));
        wire_end(b, body);
        wire_end(b, record);
        wire_end(b, scope);
        wire_end(b, entry);
        if (b->len >= n) {
            assert_int_equal(b->len, n);
            return b;
        }
        buf_unref(b);
    }
}

#define GRPC_FIELDS(path, ...)                                                                     \
    (const char *const[])                                                                          \
    {                                                                                              \
        ":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type",    \
            "application/grpc", "te", "trailers", ##__VA_ARGS__, NULL                              \
    }

static struct buf *framed(struct bytes message, bool compressed)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];
    struct buf *b = buf_new(0);
    grpc_frame_prefix(compressed, (uint32_t)message.len, prefix);
    buf_append(b, prefix, sizeof(prefix));
    buf_append(b, message.data, message.len);
    return b;
}

/* A call on `p`; the answer has to come. */
static struct h2_answer call(struct h2_peer *p, const char *const *fields, struct bytes body)
{
    struct h2_answer *a = calloc(1, sizeof(*a)), copy;
    a->out = body;
    a->end = true;
    h2_begin(p, fields, a);
    h2_run(p, &a->done, 10000);
    assert_true(a->done);
    copy = *a;
    free(a);
    return copy;
}

static void assert_grpc(struct h2_answer a, int code)
{
    char want[8];
    snprintf(want, sizeof(want), "%d", code);
    if (strcmp(a.grpc_status, want) != 0)
        fail_msg("grpc-status %s (%s), want %s", a.grpc_status, a.grpc_message, want);
    h2_answer_done(&a);
}

static void test_grpc_size_limit(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, ALL);
    struct h2_peer *p = h2_open(w.grpc);
    for (int gzip = 0; gzip < 2; gzip++)
        for (size_t n = 4194304; n <= 4194305; n++) {
            _cleanup_buf_ struct buf *message = log_request(n), *small = buf_new(0);
            if (gzip)
                assert_int_equal(
                    codec_compress(CODEC_GZIP, 0, &(struct bytes){message->data, n}, 1, small), 0);
            _cleanup_buf_ struct buf *body =
                framed(gzip ? buf_bytes(small) : buf_bytes(message), gzip);
            const char *const *fields =
                gzip ? GRPC_FIELDS(LOGS_PATH, "grpc-encoding", "gzip") : GRPC_FIELDS(LOGS_PATH);
            struct h2_answer a = call(p, fields, buf_bytes(body));
            assert_int_equal(a.status, 200);
            assert_int_equal(a.reset, -1); /* readable: the answer came whole before any reset */
            assert_grpc(a, n == 4194304 ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED);
        }
    _cleanup_buf_ struct buf *m = log_request(100), *small = framed(buf_bytes(m), false);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(small)),
                GRPC_OK); /* the connection goes on */
    assert_int_equal(sink_taken(sink(&w)), 3);
    h2_close(p);
    close_world(&w);
    open_world(&w, "protocols: {grpc: {endpoint: '127.0.0.1:0', max_recv_msg_size_mib: 16}}", ALL);
    p = h2_open(w.grpc);
    _cleanup_buf_ struct buf *large = log_request(8 << 20), *body = framed(buf_bytes(large), false);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body)), GRPC_OK);
    h2_close(p);
    close_world(&w);
}

static void test_http_size_limit(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        bool gzip;
        int status;
    } rows[] = {{65536, false, 200}, {65537, false, 400}, {65536, true, 200}, {65537, true, 400}};
    struct world w;
    open_world(&w, "protocols: {http: {endpoint: '127.0.0.1:0', max_request_body_size: 65536}}",
               ALL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *m = log_request(rows[i].n), *small = buf_new(0), *all = NULL;
        if (rows[i].gzip)
            codec_compress(CODEC_GZIP, 0, &(struct bytes){m->data, m->len}, 1, small);
        struct request q = {.path = "/v1/logs",
                            .type = PROTOBUF,
                            .body = rows[i].gzip ? buf_bytes(small) : buf_bytes(m)};
        q.more = rows[i].gzip ? "Content-Encoding: gzip\r\n" : NULL;
        struct raw_answer a = ask(w.http, q, &all);
        assert_int_equal(a.status, rows[i].status);
        if (a.status == 400)
            assert_true(raw_has(all, "http: request body too large"));
    }
    close_world(&w);
}

/* The default limit, and a bomb that would be 64 MiB: neither is held in memory. */
static void test_large_bodies(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, ALL);
    size_t before = mem_used();
    _cleanup_buf_ struct buf *zeros = buf_new(0), *bomb = buf_new(0);
    buf_reserve(zeros, 64u << 20);
    memset(zeros->data, 0, 64u << 20);
    buf_commit(zeros, 64u << 20);
    codec_compress(CODEC_GZIP, 1, &(struct bytes){zeros->data, zeros->len}, 1, bomb);
    struct request q = {.type = PROTOBUF, .body = bytes_of(zeros->data, 21u << 20)};
    assert_int_equal(status_of(w.http, q), 400);
    q = (struct request){
        .type = PROTOBUF, .more = "Content-Encoding: gzip\r\n", .body = buf_bytes(bomb)};
    assert_int_equal(status_of(w.http, q), 400);
    q.more = "Content-Encoding: zlib\r\n";
    assert_int_equal(status_of(w.http, q), 400);
    _cleanup_buf_ struct buf *large = log_request(16000000);
    assert_int_equal(
        status_of(w.http,
                  (struct request){.path = "/v1/logs", .type = PROTOBUF, .body = buf_bytes(large)}),
        200);
    assert_int_equal(sink_taken(sink(&w)), 1);
    forget_taken(&w);
    assert_soon(mem_used() < before + zeros->cap + bomb->cap + large->cap + (1u << 20));
    close_world(&w);
}

/* ---- gRPC ---- */

static void test_grpc_compression(void **state)
{
    (void)state;
    static const struct {
        const char *encoding;
        enum codec codec;
        bool flag;
        int code;
    } rows[] = {
        {NULL, CODEC_IDENTITY, false, GRPC_OK},
        {"identity", CODEC_IDENTITY, false, GRPC_OK},
        {"gzip", CODEC_GZIP, true, GRPC_OK},
        {"gzip", CODEC_IDENTITY, false, GRPC_OK},
        {"zstd", CODEC_ZSTD, true, GRPC_OK},
        {"snappy", CODEC_SNAPPY_FRAMED, true, GRPC_OK},
        {"gzip", CODEC_IDENTITY, true, GRPC_INTERNAL},
        {NULL, CODEC_GZIP, true, GRPC_INTERNAL},
        {"identity", CODEC_GZIP, true, GRPC_INTERNAL},
        {"foo", CODEC_IDENTITY, true, GRPC_UNIMPLEMENTED},
        {"foo", CODEC_IDENTITY, false, GRPC_UNIMPLEMENTED},
    };
    struct world w;
    open_world(&w, BOTH, ALL);
    struct h2_peer *p = h2_open(w.grpc);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *m = log_request(200), *packed = buf_new(0), *plain = buf_new(0);
        assert_int_equal(
            codec_compress(rows[i].codec, 0, &(struct bytes){m->data, m->len}, 1, packed), 0);
        _cleanup_buf_ struct buf *body = framed(buf_bytes(packed), rows[i].flag);
        struct h2_answer a =
            call(p,
                 rows[i].encoding ? GRPC_FIELDS(LOGS_PATH, "grpc-encoding", rows[i].encoding)
                                  : GRPC_FIELDS(LOGS_PATH),
                 buf_bytes(body));
        if (rows[i].code == GRPC_UNIMPLEMENTED)
            assert_string_equal(a.accept, "identity,gzip,zstd,snappy");
        if (rows[i].code == GRPC_OK) { /* the reply is packed as the request says */
            bool packs = rows[i].encoding && strcmp(rows[i].encoding, "identity") != 0;
            assert_string_equal(a.encoding, packs ? rows[i].encoding : "");
            assert_int_equal(a.data->data[0], packs);
            enum codec c = packs && strcmp(rows[i].encoding, "snappy") == 0 ? CODEC_SNAPPY
                           : packs ? codec_find(bytes_str(rows[i].encoding))
                                   : CODEC_IDENTITY;
            struct bytes reply = bytes_of(a.data->data + 5, a.data->len - 5);
            assert_int_equal(codec_decompress(c, reply, plain, NULL), 0);
            assert_true(bytes_eq(buf_bytes(plain), bytes_of("\n\0", 2)));
        }
        assert_grpc(a, rows[i].code);
    }
    h2_close(p);
    close_world(&w);
}

static void test_signals_without_pipeline(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, SIGNAL_BIT(SIGNAL_TRACES));
    struct h2_peer *p = h2_open(w.grpc);
    struct h2_answer a = call(p, GRPC_FIELDS(LOGS_PATH), bytes_of("\0\0\0\0\0", 5));
    assert_string_equal(a.grpc_message,
                        "unknown service opentelemetry.proto.collector.logs.v1.LogsService");
    assert_grpc(a, GRPC_UNIMPLEMENTED);
    assert_grpc(call(p, GRPC_FIELDS(TRACE_PATH), bytes_of("\0\0\0\0\0", 5)), GRPC_OK);
    assert_int_equal(status_of(w.http, (struct request){.path = "/v1/logs", .type = PROTOBUF}),
                     404);
    h2_close(p);
    close_world(&w);
}

/* A client that ends the stream before a whole message, and one whose length promises more than it
 * sends. */
static void test_broken_messages(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int code;
    } rows[] = {{"", 0, GRPC_INTERNAL},
                {"\0\0\0", 3, GRPC_INTERNAL},
                {"\0\0\0\0\5ab", 7, GRPC_INTERNAL},
                {"\2\0\0\0\0", 5, GRPC_INTERNAL},
                {"\0\0\0\0\2\n\5", 7, GRPC_INTERNAL}};
    struct world w;
    open_world(&w, BOTH, ALL);
    struct h2_peer *p = h2_open(w.grpc);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_grpc(call(p, GRPC_FIELDS(TRACE_PATH), bytes_of(rows[i].bytes, rows[i].n)),
                    rows[i].code);
    h2_close(p);
    close_world(&w);
}

/* HTTP rules on HTTP/2: OTLP/HTTP by content type, on either port. */
static void test_http_over_http2(void **state)
{
    (void)state;
#define HTTP_FIELDS(method, path, type, ...)                                                       \
    (const char *const[])                                                                          \
    {                                                                                              \
        ":method", method, ":scheme", "http", ":path", path, ":authority", "x", "content-type",    \
            type, ##__VA_ARGS__, NULL                                                              \
    }
    const struct {
        const char *const *fields;
        const char *body;
        int status, reset;
    } rows[] = {
        {HTTP_FIELDS("POST", "/v1/traces", JSON), SPAN, 200, -1},
        {HTTP_FIELDS("POST", "/v1/traces?x=y", JSON, "content-length", "2"), "{}", 200, -1},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, "content-length", "3"), "{}", 0,
         NGHTTP2_PROTOCOL_ERROR},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, "content-length", "1"), "{}", 0,
         NGHTTP2_PROTOCOL_ERROR},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, "content-length", "99000000"), "{}", 400, -1},
        {HTTP_FIELDS("GET", "/v1/traces", JSON), "", 405, -1},
        {HTTP_FIELDS("POST", "/nope", JSON), "{}", 404, -1},
        {HTTP_FIELDS("POST", "/v1/traces", "text/plain"), "{}", 415, -1},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, "te", "gzip"), "{}", 0, NGHTTP2_PROTOCOL_ERROR},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, ":path", "/late"), "{}", 0,
         NGHTTP2_PROTOCOL_ERROR},
        {HTTP_FIELDS("POST", "/v1/traces", JSON, "x", "a\nb"), "{}", 0, NGHTTP2_PROTOCOL_ERROR},
        {(const char *const[]){":method", "POST", ":scheme", "http", "content-type", JSON, NULL},
         "{}", 0, NGHTTP2_PROTOCOL_ERROR},
    };
    struct world w;
    open_world(&w, BOTH, ALL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct h2_peer *p = h2_open(i % 2 ? w.grpc : w.http);
        struct h2_answer a = call(p, rows[i].fields, bytes_str(rows[i].body));
        if (a.status != rows[i].status || a.reset != rows[i].reset)
            fail_msg("row %zu: status %d, reset %d", i, a.status, a.reset);
        h2_answer_done(&a);
        h2_close(p);
    }
    close_world(&w);
}

/* One stalled stream does not hold the others of its connection, although it has more than a window
 * to send. */
static void test_stalled_stream(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, ALL);
    struct h2_peer *p = h2_open(w.grpc);
    _cleanup_buf_ struct buf *large = log_request(3 << 20), *body = framed(buf_bytes(large), false);
    struct h2_answer stalled = {.out = bytes_of(body->data, body->len - 1000)};
    h2_begin(p, GRPC_FIELDS(LOGS_PATH), &stalled);
    h2_run(p, NULL, 200);
    assert_int_equal(stalled.out.len, 0);
    _cleanup_buf_ struct buf *m = log_request(100), *small = framed(buf_bytes(m), false);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(small)), GRPC_OK);
    h2_close(p);
    h2_answer_done(&stalled);
    close_world(&w);
}

/* ---- verdicts ---- */

static struct bytes two_logs(void)
{
    return bytes_str("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"body\":{"
                     "\"stringValue\":\"x\"}},{}]}]}]}");
}

static enum verdict answer_as_told(struct component *c _unused_, struct batch *b, struct ack *ack);
static const struct component_type told_type = {.kind = KIND_EXPORTER, .consume = answer_as_told};
static struct {
    struct component c;
    enum verdict verdict;
    struct outcome outcome;
} told = {.c = {.type = &told_type, .id = "told"}};

static enum verdict answer_as_told(struct component *c _unused_, struct batch *b, struct ack *ack)
{
    batch_unref(b);
    ack->now = told.outcome;
    return told.verdict;
}

static void test_status_mapping(void **state)
{
    (void)state;
    static const struct {
        enum verdict verdict;
        int status, http, grpc;
    } rows[] = {
        {VERDICT_RETRY, 0, 503, GRPC_UNAVAILABLE},
        {VERDICT_REJECT, 0, 500, GRPC_INTERNAL},
        {VERDICT_RETRY, GRPC_CANCELLED, 503, GRPC_CANCELLED},
        {VERDICT_RETRY, GRPC_DEADLINE_EXCEEDED, 503, GRPC_DEADLINE_EXCEEDED},
        {VERDICT_RETRY, GRPC_ABORTED, 503, GRPC_ABORTED},
        {VERDICT_RETRY, GRPC_OUT_OF_RANGE, 503, GRPC_OUT_OF_RANGE},
        {VERDICT_RETRY, GRPC_DATA_LOSS, 503, GRPC_DATA_LOSS},
        {VERDICT_RETRY, GRPC_RESOURCE_EXHAUSTED, 429, GRPC_RESOURCE_EXHAUSTED},
        {VERDICT_REJECT, GRPC_INVALID_ARGUMENT, 400, GRPC_INVALID_ARGUMENT},
        {VERDICT_REJECT, GRPC_UNAUTHENTICATED, 401, GRPC_UNAUTHENTICATED},
        {VERDICT_REJECT, GRPC_PERMISSION_DENIED, 403, GRPC_PERMISSION_DENIED},
        {VERDICT_REJECT, GRPC_UNIMPLEMENTED, 404, GRPC_UNIMPLEMENTED},
        {VERDICT_REJECT, GRPC_NOT_FOUND, 500, GRPC_NOT_FOUND},
        {VERDICT_REJECT, GRPC_UNKNOWN, 500, GRPC_UNKNOWN},
    };
    struct world w;
    open_world(&w, BOTH, SIGNAL_BIT(SIGNAL_LOGS));
    fanout_set(w.r.c->next[SIGNAL_LOGS], 0, &told.c, NULL, 1);
    struct h2_peer *p = h2_open(w.grpc);
    _cleanup_buf_ struct buf *m = log_request(100), *body = framed(buf_bytes(m), false);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (int retry = 0; retry < 2; retry++) {
            _cleanup_buf_ struct buf *all = NULL, *details = buf_new(0);
            told.verdict = rows[i].verdict;
            told.outcome = (struct outcome){.status = rows[i].status,
                                            .retry_after_ms = retry ? 3500 : 0,
                                            .message = "because 100% ü"};
            struct raw_answer h =
                ask(w.http, (struct request){.path = "/v1/logs", .type = JSON, .body = two_logs()},
                    &all);
            assert_int_equal(h.status, rows[i].http);
            assert_string_equal(h.retry_after,
                                retry && (h.status == 429 || h.status == 503) ? "3" : "");
            assert_int_equal(rpc_code_of(JSON, h.body), rows[i].grpc);
            struct h2_answer a = call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body));
            struct rpc_status st = {0};
            assert_string_equal(a.grpc_message, "because 100%25 %C3%BC");
            assert_true(a.headers_only);
            assert_int_equal(a.details[0] != 0, retry);
            assert_int_equal(grpc_bin_decode(bytes_str(a.details), details), 0);
            if (retry && status_read(buf_bytes(details), &st) == 0)
                assert_int_equal(st.retry_after_ms, 3500);
            assert_grpc(a, rows[i].grpc);
        }
    h2_close(p);
    close_world(&w);
}

static void test_partial_success(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, SIGNAL_BIT(SIGNAL_LOGS));
    fanout_set(w.r.c->next[SIGNAL_LOGS], 0, &told.c, NULL, 1);
    told.verdict = VERDICT_OK;
    told.outcome = (struct outcome){.rejected = 1, .message = "one was bad"};
    _cleanup_buf_ struct buf *all = NULL, *all2 = NULL, *m = log_request(100),
                             *body = framed(buf_bytes(m), false);
    struct partial_success ps = {0};
    struct raw_answer a =
        ask(w.http, (struct request){.path = "/v1/logs", .type = JSON, .body = two_logs()}, &all);
    assert_int_equal(a.status, 200);
    assert_int_equal(response_read(SIGNAL_LOGS, a.body, true, &ps), 0);
    assert_int_equal(ps.rejected, 1);
    assert_string_equal(ps.message, "one was bad");
    a = ask(w.http, (struct request){.path = "/v1/logs", .type = PROTOBUF, .body = buf_bytes(m)},
            &all2);
    assert_int_equal(response_read(SIGNAL_LOGS, a.body, false, &ps), 0);
    assert_int_equal(ps.rejected, 1);
    struct h2_peer *p = h2_open(w.grpc);
    struct h2_answer g = call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body));
    assert_int_equal(
        response_read(SIGNAL_LOGS, bytes_of(g.data->data + 5, g.data->len - 5), false, &ps), 0);
    assert_int_equal(ps.rejected, 1);
    assert_grpc(g, GRPC_OK);
    h2_close(p);
    close_world(&w);
}

#define METRIC(what) "otelcol_receiver_" what "_log_records"

static void test_self_metrics(void **state)
{
    (void)state;
    static const char http[] = "receiver=\"otlp\",transport=\"http\"",
                      grpc[] = "receiver=\"otlp\",transport=\"grpc\"";
    struct world w;
    open_world(&w, BOTH, ALL);
    struct request q = {.path = "/v1/logs", .type = JSON, .body = two_logs()};
    assert_int_equal(status_of(w.http, q), 200);
    sink_set(sink(&w), VERDICT_RETRY);
    assert_int_equal(status_of(w.http, q), 503);
    sink_set(sink(&w), VERDICT_OK);
    struct h2_peer *p = h2_open(w.http); /* gRPC on the HTTP port counts as gRPC */
    _cleanup_buf_ struct buf *m = log_request(100), *body = framed(buf_bytes(m), false);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body)), GRPC_OK);
    h2_close(p);
    assert_int_equal(rig_metric(&w.r, METRIC("accepted"), http), 2);
    assert_int_equal(rig_metric(&w.r, METRIC("refused"), http), 2);
    assert_int_equal(rig_metric(&w.r, METRIC("accepted"), grpc), 1);
    close_world(&w);
}

static void *answer_waiting(void *arg)
{
    struct sink *s = arg;
    for (unsigned done = 0; done < 3;) {
        pthread_mutex_lock(&s->lock);
        struct ack *a = done < s->nwaiting ? s->waiting[done] : NULL;
        pthread_mutex_unlock(&s->lock);
        if (a)
            ack_done(a, done++ == 2 ? VERDICT_RETRY : VERDICT_OK, &(struct outcome){0});
        else
            usleep(1000);
    }
    return NULL;
}

static void test_pending_answers(void **state)
{
    (void)state;
    struct world w;
    pthread_t t;
    open_world(&w, BOTH, ALL);
    sink_set(sink(&w), VERDICT_PENDING);
    pthread_create(&t, NULL, answer_waiting, sink(&w));
    struct request q = {.path = "/v1/logs", .type = JSON, .body = two_logs()};
    assert_int_equal(status_of(w.http, q), 200);
    struct h2_peer *p = h2_open(w.grpc);
    _cleanup_buf_ struct buf *m = log_request(100), *body = framed(buf_bytes(m), false);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body)), GRPC_OK);
    assert_int_equal(status_of(w.http, q), 503);
    pthread_join(t, NULL);
    h2_close(p);
    close_world(&w);
}

/* An answer that comes when receiver and client are long gone is of no harm. */
static void test_answer_after_the_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, ALL);
    sink_set(sink(&w), VERDICT_PENDING);
    int fd = raw_connect(w.http);
    struct raw_result r = raw_talk(
        fd,
        bytes_str("POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: "
                  "application/json\r\nContent-Length: 63\r\n\r\n"
                  "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"flags\":1}]}]}]}"),
        NULL, 0, 100);
    buf_unref(r.got);
    assert_soon(sink_offers(sink(&w)) == 1);
    struct ack *a = sink(&w)->waiting[0];
    receiver_otlp.stop(w.r.c, clock_now_ns() + 100 * NS_PER_MS);
    receiver_otlp.stop(w.r.c, clock_now_ns());
    struct fanout *next[SIGNAL_COUNT];
    memcpy(next, w.r.c->next, sizeof(next));
    receiver_otlp.destroy(w.r.c);
    ack_done(a, VERDICT_OK, &(struct outcome){0});
    for (int s = 0; s < SIGNAL_COUNT; s++)
        fanout_free(next[s]);
    host_free(w.r.host);
    config_free(w.r.config);
    close(fd);
}

static void test_shutting_down(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, BOTH, ALL);
    host_set_stopping(w.r.host, true);
    _cleanup_buf_ struct buf *all = NULL, *m = log_request(100),
                             *body = framed(buf_bytes(m), false);
    struct raw_answer h =
        ask(w.http, (struct request){.path = "/v1/logs", .type = JSON, .body = two_logs()}, &all);
    assert_int_equal(h.status, 503);
    assert_int_equal(rpc_code_of(JSON, h.body), GRPC_UNAVAILABLE);
    struct h2_peer *p = h2_open(w.grpc);
    assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body)), GRPC_UNAVAILABLE);
    assert_int_equal(sink_offers(sink(&w)), 0);
    h2_close(p);
    close_world(&w);
}

/* ---- HTTP settings ---- */

#define CORS                                                                                       \
    "protocols: {http: {endpoint: '127.0.0.1:0', cors: {allowed_origins: "                         \
    "['http://*.example.com', 'http://a.b'], "                                                     \
    "allowed_headers: [x-tenant], exposed_headers: [x-one, X-two], max_age: 600}, "                \
    "response_headers: {X-Add: yes}}}"

static void cors_field(const struct raw_answer *a, const char *name, const char *want)
{
    char got[256];
    raw_field(a->head, name, got, sizeof(got));
    assert_string_equal(got, want);
}

static void test_cors(void **state)
{
    (void)state;
    static const struct {
        const char *origin, *asked;
        bool allowed;
    } rows[] = {
        {"http://a.example.com", "content-type,x-tenant", true},
        {"HTTP://A.Example.com", "X-Tenant", true},
        {"http://a.b", "", true},
        {"http://axb", "", false}, /* a dot is a dot */
        {"http://a.example.com.evil.test", "", false},
        {"http://evil.test", "content-type", false},
        {"http://a.example.com", "x-other", false},
    };
    struct world w;
    char more[512];
    open_world(&w, CORS, ALL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *all = NULL, *all2 = NULL;
        snprintf(more, sizeof(more),
                 "Origin: %s\r\nAccess-Control-Request-Method: "
                 "POST\r\nAccess-Control-Request-Headers: %s\r\n",
                 rows[i].origin, rows[i].asked);
        struct raw_answer a =
            ask(w.http, (struct request){.method = "OPTIONS", .more = more}, &all);
        bool ok = rows[i].allowed;
        assert_int_equal(a.status, 204);
        cors_field(&a, "access-control-allow-origin", ok ? rows[i].origin : "");
        cors_field(&a, "access-control-allow-methods", ok ? "POST" : "");
        cors_field(&a, "access-control-allow-headers", ok ? rows[i].asked : "");
        cors_field(&a, "access-control-max-age", ok ? "600" : "");
        cors_field(&a, "vary",
                   "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
        snprintf(more, sizeof(more), "Origin: %s\r\n", rows[i].origin);
        a = ask(w.http, (struct request){.type = JSON, .more = more, .body = bytes_str("{}")},
                &all2);
        bool origin_ok = ok || strcmp(rows[i].asked, "x-other") == 0;
        assert_int_equal(a.status, 200); /* the request itself is served */
        cors_field(&a, "access-control-allow-origin", origin_ok ? rows[i].origin : "");
        cors_field(&a, "access-control-expose-headers", origin_ok ? "X-One, X-Two" : "");
        cors_field(&a, "vary", "Origin");
        cors_field(&a, "x-add", "yes");
    }
    close_world(&w);
    open_world(&w, BOTH, ALL);
    _cleanup_buf_ struct buf *all = NULL;
    ask(w.http,
        (struct request){.type = JSON, .more = "Origin: http://a.b\r\n", .body = bytes_str("{}")},
        &all);
    assert_false(raw_has(all, "Access-Control"));
    close_world(&w);
}

static void test_paths_and_encodings(void **state)
{
    (void)state;
    struct world w;
    open_world(&w,
               "protocols: {http: {endpoint: '127.0.0.1:0', traces_url_path: t, logs_url_path: "
               "/l/, compression_algorithms: ['', gzip]}}",
               ALL);
    _cleanup_buf_ struct buf *packed = buf_new(0);
    codec_compress(CODEC_GZIP, 0, &(struct bytes){(const uint8_t *)"{}", 2}, 1, packed);
    struct bytes empty = bytes_str("{}");
    assert_int_equal(status_of(w.http, (struct request){.path = "/t", .type = JSON, .body = empty}),
                     200);
    assert_int_equal(
        status_of(w.http, (struct request){.path = "/v1/traces", .type = JSON, .body = empty}),
        404);
    assert_int_equal(
        status_of(w.http, (struct request){.path = "/l/below", .type = JSON, .body = empty}), 200);
    assert_int_equal(
        status_of(w.http, (struct request){.path = "/v1/metrics", .type = JSON, .body = empty}),
        200);
    struct request q = {.path = "/t",
                        .type = JSON,
                        .more = "Content-Encoding: gzip\r\n",
                        .body = buf_bytes(packed)};
    assert_int_equal(status_of(w.http, q), 200);
    q.more = "Content-Encoding: zstd\r\n";
    assert_int_equal(status_of(w.http, q), 400);
    close_world(&w);
}

/* ---- hostile input ---- */

/* AnyValues nested `depth` deep by kvlists. */
static struct buf *deep(unsigned depth)
{
    struct buf *reversed = buf_new(0), *out = buf_new(0);
    size_t n = 2;
    buf_append(reversed, "x\x01\x0a", 3); /* string "x", back to front */
    n = 3;
    for (unsigned i = 0; i < depth; i++) { /* value{6: kvlist{1: kv{2: value}}} */
        const uint8_t tags[3] = {0x12, 0x0a, 0x32};
        for (unsigned k = 0; k < 3; k++) {
            uint8_t varint[10], len = 0;
            for (size_t v = n; v || !len; v >>= 7)
                varint[len++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
            for (uint8_t j = len; j-- > 0;)
                buf_putc(reversed, (char)varint[j]);
            buf_putc(reversed, (char)tags[k]);
            n += len + 1u;
        }
    }
    const uint8_t heads[4] = {0x2a, 0x12, 0x12,
                              0x0a}; /* record.body, scope.records, entry.scopes, entries */
    for (unsigned k = 0; k < 4; k++) {
        uint8_t varint[10], len = 0;
        for (size_t v = n; v || !len; v >>= 7)
            varint[len++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        for (uint8_t j = len; j-- > 0;)
            buf_putc(reversed, (char)varint[j]);
        buf_putc(reversed, (char)heads[k]);
        n += len + 1u;
    }
    buf_reserve(out, reversed->len);
    for (size_t i = reversed->len; i-- > 0;)
        buf_putc(out, (char)reversed->data[i]);
    buf_unref(reversed);
    return out;
}

static void test_deep_nesting(void **state)
{
    (void)state;
    static const struct {
        unsigned depth;
        int http, grpc;
    } rows[] = {{10, 200, GRPC_OK},
                {63, 200, GRPC_OK},
                {10000, 400, GRPC_INTERNAL},
                {200000, 400, GRPC_INTERNAL}};
    struct world w;
    open_world(&w, BOTH, ALL);
    struct h2_peer *p = h2_open(w.grpc);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf *m = deep(rows[i].depth), *body = framed(buf_bytes(m), false);
        int got = status_of(
            w.http, (struct request){.path = "/v1/logs", .type = PROTOBUF, .body = buf_bytes(m)});
        if (got != rows[i].http)
            fail_msg("depth %u: %d", rows[i].depth, got);
        if (body->len < 4u << 20)
            assert_grpc(call(p, GRPC_FIELDS(LOGS_PATH), buf_bytes(body)), rows[i].grpc);
    }
    _cleanup_buf_ struct buf *groups = buf_new(0), *text = buf_new(0);
    for (int i = 0; i < 1000000; i++)
        buf_putc(groups, 0x0b);
    assert_int_equal(
        status_of(w.http, (struct request){.type = PROTOBUF, .body = buf_bytes(groups)}), 400);
    buf_append_str(text, "{\"x\":");
    for (int i = 0; i < 1000000; i++)
        buf_putc(text, '[');
    assert_int_equal(status_of(w.http, (struct request){.type = JSON, .body = buf_bytes(text)}),
                     400);
    h2_close(p);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_media_types),
        cmocka_unit_test(test_empty_requests),
        cmocka_unit_test(test_grpc_size_limit),
        cmocka_unit_test(test_http_size_limit),
        cmocka_unit_test(test_large_bodies),
        cmocka_unit_test(test_grpc_compression),
        cmocka_unit_test(test_signals_without_pipeline),
        cmocka_unit_test(test_broken_messages),
        cmocka_unit_test(test_http_over_http2),
        cmocka_unit_test(test_stalled_stream),
        cmocka_unit_test(test_status_mapping),
        cmocka_unit_test(test_partial_success),
        cmocka_unit_test(test_self_metrics),
        cmocka_unit_test(test_pending_answers),
        cmocka_unit_test(test_answer_after_the_end),
        cmocka_unit_test(test_shutting_down),
        cmocka_unit_test(test_cors),
        cmocka_unit_test(test_paths_and_encodings),
        cmocka_unit_test(test_deep_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
