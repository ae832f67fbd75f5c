/* The otlp_http exporter: keys, what it puts on the wire, what it makes of answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/codec.h"
#include "proto/wire.h"

#include "canned.h"
#include "rig.h"

extern const struct component_type exporter_otlp_http;

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/* Two segments of one record each. */
static struct batch *make_batch(enum signal s)
{
    static const uint8_t one[] = "\x0a\x04\x12\x02\x12\x00"; /* the same bytes for every signal */
    struct buf *segs[2];
    for (int i = 0; i < 2; i++) {
        segs[i] = buf_new(0);
        buf_append(segs[i], one, 6);
    }
    return batch_new(s, segs, 2, 2);
}

static struct rig *make(const struct canned *s, const char *more)
{
    char yaml[1000];
    struct rig *r = calloc(1, sizeof(*r));
    snprintf(yaml, sizeof(yaml), "endpoint: http://user:SEKRET2@127.0.0.1:%d/base\n%s", s->port,
             more);
    rig_make(r, &exporter_otlp_http, "otlp_http", SIGNAL_TRACES, 0, yaml);
    struct err e = {""};
    assert_int_equal(r->c->type->start(r->c, &e), 0);
    return r;
}

static enum verdict offer(struct rig *r, enum signal s, struct outcome *out)
{
    _cleanup_batch_ struct batch *b = make_batch(s);
    *out = (struct outcome){0};
    return r->c->type->send(r->c, b, clock_now_ns() + 5 * NS_PER_S, out);
}

static void end(struct rig *r, struct canned *s)
{
    r->c->type->stop(r->c, 0);
    rig_done(r);
    free(r);
    canned_stop(s);
}

static void test_request(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY, NULL};
    struct canned *s = canned_start(answers);
    struct rig *r = make(s, "compression: none\nheaders: {x-a: \"Bearer SEKRET1\", x-n: '5'}");
    struct outcome out;
    assert_int_equal(offer(r, SIGNAL_TRACES, &out), VERDICT_OK);
    assert_int_equal(offer(r, SIGNAL_METRICS, &out), VERDICT_OK);
    assert_int_equal(offer(r, SIGNAL_LOGS, &out), VERDICT_OK);
    const char *q = canned_request(s, 0);
    assert_non_null(strstr(q, "POST /base/v1/traces HTTP/1.1\r\n"));
    assert_non_null(strstr(q, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(q, "User-Agent: motel/" MOTEL_VERSION " (linux/"));
    assert_non_null(strstr(q, "x-a: Bearer SEKRET1\r\n"));
    assert_non_null(strstr(q, "x-n: 5\r\n"));
    assert_non_null(strstr(q, "Content-Length: 36\r\n"));
    assert_null(strstr(q, "Content-Encoding"));
    assert_int_equal(canned_count(s, &s->connections), 1);
    end(r, s);
}

static void test_compressed(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY, NULL};
    struct canned *s = canned_start(answers);
    struct rig *r = make(s, "headers: [{name: content-type, value: text/own}]");
    struct outcome out;
    assert_int_equal(offer(r, SIGNAL_TRACES, &out), VERDICT_OK);
    const char *q = canned_request(s, 0), *body = strstr(q, "\r\n\r\n") + 4;
    assert_non_null(strstr(q, "Content-Encoding: gzip\r\n"));
    assert_non_null(strstr(q, "content-type: text/own\r\n"));
    assert_null(strstr(q, "x-protobuf"));
    _cleanup_buf_ struct buf *plain = buf_new(0);
    size_t len = s->log_len - 1 - (size_t)(body - s->log);
    assert_int_equal(codec_decompress(CODEC_GZIP, bytes_of(body, len), plain, NULL), 0);
    assert_int_equal(plain->len, 36); /* with the empty messages that exporters write */
    end(r, s);
}

static void test_json(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n"
        "{\"partialSuccess\":{\"rejectedLogRecords\":\"2\",\"errorMessage\":\"x\"}}",
        NULL};
    struct canned *s = canned_start(answers);
    struct rig *r =
        make(s, "encoding: json\ncompression: \"\"\ntraces_endpoint: http://127.0.0.1:1/");
    struct outcome out;
    assert_int_equal(offer(r, SIGNAL_LOGS, &out), VERDICT_OK);
    assert_int_equal(out.rejected, 2);
    const char *q = canned_request(s, 0);
    assert_non_null(strstr(q, "POST /base/v1/logs HTTP/1.1\r\n"));
    assert_non_null(strstr(q, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(q, "\r\n\r\n{\"resourceLogs\":[{"));
    assert_int_equal(offer(r, SIGNAL_TRACES, &out),
                     VERDICT_RETRY); /* its own endpoint, where nobody is */
    end(r, s);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        enum verdict v;
        int status;
        uint32_t retry_ms;
        const char *message;
    } rows[] = {
        {"HTTP/1.1 204 No\r\n\r\n", VERDICT_OK, 0, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>", VERDICT_OK,
         0, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
         VERDICT_OK, 0, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
         VERDICT_OK, 0, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1\r\n\r\n\xff",
         VERDICT_REJECT, 13, 0, "error parsing protobuf response: unexpected EOF or invalid data"},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n<",
         VERDICT_REJECT, 13, 0, "error parsing json response: unexpected EOF or invalid data"},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: "
         "1\r\n\r\n<",
         VERDICT_OK, 0, 0, ""},
        {"HTTP/1.1 503 No\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n", VERDICT_RETRY, 14, 2000,
         "error exporting items, request to http://***@127.0.0.1:PORT/base/v1/traces responded "
         "with HTTP Status Code 503, Message=, "
         "Details=[]"},
        {"HTTP/1.1 503 No\r\nRetry-After: -2\r\nContent-Length: 3\r\n\r\nwhy", VERDICT_RETRY, 14, 0,
         "error exporting items, request to http://***@127.0.0.1:PORT/base/v1/traces responded "
         "with HTTP Status Code 503"},
        {"HTTP/1.1 502 No\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n", VERDICT_RETRY, 14, 0,
         NULL},
        {"HTTP/1.1 401 No\r\nContent-Length: 13\r\n\r\n\x08\x10\x12\x09 SEKRET1 ", VERDICT_REJECT,
         16, 0,
         "error exporting items, request to http://***@127.0.0.1:PORT/base/v1/traces responded "
         "with HTTP Status Code 401, "
         "Message= ******* , Details=[]"},
        {"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", VERDICT_REJECT, 2, 0, NULL},
        {CANNED_CLOSE, VERDICT_RETRY, 14, 0,
         "failed to make an HTTP request: Post \"http://***@127.0.0.1:PORT/base/v1/traces\": EOF "
         "(the server closed the connection "
         "without an answer)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const answers[] = {rows[i].answer, NULL};
        struct canned *s = canned_start(answers);
        struct rig *r = make(s, "headers: {authorization: \"Bearer SEKRET1\"}");
        struct outcome out;
        assert_int_equal(offer(r, SIGNAL_TRACES, &out), rows[i].v);
        assert_int_equal(canned_count(s, &s->requests), 1);
        assert_int_equal(out.status, rows[i].status);
        assert_int_equal(out.retry_after_ms, rows[i].retry_ms);
        assert_null(strstr(out.message, "SEKRET"));
        char want[400];
        const char *at = rows[i].message ? strstr(rows[i].message, "PORT") : NULL;
        if (rows[i].message) {
            snprintf(want, sizeof(want), "%.*s", at ? (int)(at - rows[i].message) : 399,
                     rows[i].message);
            if (at)
                snprintf(want + strlen(want), sizeof(want) - strlen(want), "%d%s", s->port, at + 4);
            assert_string_equal(out.message, want);
        }
        end(r, s);
    }
}

static void *stop_when_asked(void *arg)
{
    void **a = arg;
    struct canned *s = a[0];
    struct rig *r = a[1];
    for (bool there = false; !there; sched_yield()) {
        there = canned_count(s, &s->requests) > 0;
    }
    r->c->type->stop(r->c, 0);
    return NULL;
}

static void test_stop_interrupts(void **state)
{
    (void)state;
    static const char *const answers[] = {CANNED_HANG, NULL};
    struct canned *s = canned_start(answers);
    struct rig *r = make(s, "");
    struct outcome out;
    pthread_t t;
    void *args[] = {s, r};
    pthread_create(&t, NULL, stop_when_asked, args);
    uint64_t start = clock_now_ns();
    assert_int_equal(offer(r, SIGNAL_TRACES, &out), VERDICT_RETRY);
    assert_true(clock_now_ns() - start < 3 * NS_PER_S);
    pthread_join(t, NULL);
    assert_int_equal(offer(r, SIGNAL_TRACES, &out), VERDICT_RETRY);
    end(r, s);
}

static void test_config(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *path, *text; /* NULL = good */
    } rows[] = {
        {"endpoint: http://h", NULL, NULL},
        {"logs_endpoint: https://h/x", NULL, NULL},
        {"endpoint: http://h\nkeepalive: {enabled: false}\ncookies: {enabled: false}\nauth: null",
         NULL, NULL},
        {"endpoint: http://h\nidle_conn_timeout: 5s\ndisable_keep_alives: true", NULL, NULL},
        {"{}", "", "at least one endpoint must be specified"},
        {"endpoint: h:4318", "endpoint", "endpoint must be a valid URL"},
        {"endpoint: \"http://u:SEKRET@h\\n\"", "endpoint", "endpoint must be a valid URL"},
        {"endpoint: 'u:SEKRET@h'", "endpoint", "got \"***@h\""},
        {"endpoint: http://h\ncompression: br", "compression",
         "unsupported compression type \"br\""},
        {"endpoint: http://h\ncompression_params: {level: 99}", "compression_params::level",
         "unsupported level 99"},
        {"endpoint: http://h\nheaders: {x: \"SEKRET\\r\\ny: z\"}", "headers",
         "the value of header \"x\" holds"},
        {"endpoint: http://h\nheaders: {'a b': c}", "headers", "is not a header name"},
        {"endpoint: http://h\nauth: {authenticator: x}", NULL, NULL},
        {"endpoint: http://h\nauth: {x: y}", "x::auth", "unknown key \"x\""},
        {"endpoint: http://h\ncookies: {enabled: true}", "x::cookies",
         "cookies of the backend are not kept"},
        {"endpoint: http://h\ntls: {cert_file: x}", "tls::cert_file",
         "provide both certificate and key, or neither"},
        {"endpoint: http://h\ntls: {min_version: '1.4'}", "tls::min_version",
         "unsupported TLS version"},
        {"endpoint: http://h\nkeepalive: {idle_conn_timeout: 1s}\nmax_idle_conns: 3", "keepalive",
         "cannot be used together"},
        {"endpoint: http://h\ntimeout: -1s", "timeout", "must not be negative"},
        {"endpoint: http://h\nproxy_url: proxy", "proxy_url", "expected a URL"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound;
        int rc = rig_bind(&r, &exporter_otlp_http, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].text)
            fail_msg("%s: %s", rows[i].yaml, e.text);
        if (rows[i].text) {
            assert_string_equal(e.path, rows[i].path);
            assert_non_null(strstr(e.text, rows[i].text));
        }
        assert_null(strstr(e.text, "SEKRET"));
        config_free(r.config);
    }
}

static void test_signal_without_endpoint(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {.text = ""};
    void *bound = NULL;
    assert_int_equal(rig_bind(&r, &exporter_otlp_http, "traces_endpoint: http://h", &bound, &e), 0);
    assert_int_equal(exporter_otlp_http.check_signal(bound, SIGNAL_TRACES, &e), 0);
    assert_int_equal(exporter_otlp_http.check_signal(bound, SIGNAL_METRICS, &e), -EINVAL);
    assert_string_equal(e.text, "either endpoint or metrics_endpoint must be specified");
    config_free(r.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_stop_interrupts),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_signal_without_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
