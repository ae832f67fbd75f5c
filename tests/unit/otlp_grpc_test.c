/* The otlp_grpc exporter: keys, what it puts on the wire, what it makes of answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/codec.h"

#include "h2_server.h"
#include "rig.h"

extern const struct component_type exporter_otlp_grpc;

static struct rig *make(const struct h2_server *s, const char *more)
{
    char yaml[1000];
    struct rig *r = calloc(1, sizeof(*r));
    snprintf(yaml, sizeof(yaml), "endpoint: 127.0.0.1:%d\ntls: {insecure: true}\n%s", s->port,
             more);
    rig_make(r, &exporter_otlp_grpc, "otlp_grpc", SIGNAL_TRACES, 0, yaml);
    struct err e = {""};
    assert_int_equal(r->c->type->start(r->c, &e), 0);
    return r;
}

static enum verdict offer(struct rig *r, enum signal s, struct outcome *out)
{
    struct buf *seg = buf_new(0);
    buf_append_str(seg, "\x0a\x02\x12");
    buf_putc(seg, 0);
    _cleanup_batch_ struct batch *b = batch_new(s, &seg, 1, 1);
    *out = (struct outcome){0};
    return r->c->type->send(r->c, b, clock_now_ns() + 5 * NS_PER_S, out);
}

static void end(struct rig *r, struct h2_server *s)
{
    r->c->type->stop(r->c, 0);
    rig_done(r);
    free(r);
    h2_stop(s);
}

static void test_request(void **state)
{
    (void)state;
    const struct h2_answer answer = {.grpc_status = "0", .body = bytes_of("\0\0\0\0\0", 5)};
    struct h2_server *s = h2_start(&answer, 1);
    struct rig *r =
        make(s, "headers: {X-Token: tok, TE: gone, grpc-x: gone}\ncompression_params: {level: 6}");
    struct outcome out;
    for (int i = 0; i < SIGNAL_COUNT; i++)
        assert_int_equal(offer(r, i, &out), VERDICT_OK);
    const char *h = buf_str(s->headers);
    assert_non_null(
        strstr(h, ":path: /opentelemetry.proto.collector.trace.v1.TraceService/Export\n"));
    assert_non_null(
        strstr(h, ":path: /opentelemetry.proto.collector.metrics.v1.MetricsService/Export\n"));
    assert_non_null(
        strstr(h, ":path: /opentelemetry.proto.collector.logs.v1.LogsService/Export\n"));
    assert_non_null(strstr(h, "x-token: tok\n"));
    assert_non_null(strstr(h, "user-agent: motel/" MOTEL_VERSION));
    assert_non_null(strstr(h, "grpc-encoding: gzip\n"));
    assert_null(strstr(h, "gone"));
    _cleanup_buf_ struct buf *plain = buf_new(0);
    assert_int_equal(s->body->data[0], 1);
    assert_int_equal(
        codec_decompress(CODEC_GZIP, bytes_of(s->body->data + 5, s->body->len - 5), plain, NULL),
        0);
    assert_int_equal(plain->len, 8); /* with the empty messages that exporters write */
    assert_int_equal(h2_count(s, &s->connections), 1);
    end(r, s);
}

static void test_answers(void **state)
{
    (void)state;
    const struct {
        struct h2_answer answer;
        enum verdict v;
        int status;
        uint32_t retry_ms;
        const char *message;
    } rows[] = {
        {{.grpc_status = "0"}, VERDICT_OK, 0, 0, ""},
        {{.grpc_status = "0",
          .body = bytes_of("\0\0\0\0\x0d\x0a\x0b\x08\x02\x12\x07"
                           "dropped",
                           18)},
         VERDICT_OK,
         0,
         0,
         ""},
        {{.grpc_status = "0", .body = bytes_of("\0\0\0\0\1\xff", 6)}, VERDICT_REJECT, 13, 0, NULL},
        {{.grpc_status = "3", .grpc_message = "bad SEKRET1"},
         VERDICT_REJECT,
         3,
         0,
         "rpc error: code = InvalidArgument desc = bad *******"},
        {{.grpc_status = "14", .grpc_message = "later"},
         VERDICT_RETRY,
         14,
         0,
         "rpc error: code = Unavailable desc = later"},
        {{.grpc_status = "8", .grpc_message = "full"}, VERDICT_REJECT, 8, 0, NULL},
        {{.grpc_status = "8",
          .grpc_message = "slow",
          .details =
              "CAgSBHNsb3caMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIAw"},
         VERDICT_RETRY,
         8,
         3000,
         NULL},
        {{.drop = true}, VERDICT_RETRY, 14, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct h2_server *s = h2_start(&rows[i].answer, 1);
        struct rig *r = make(s, "headers: {authorization: \"Bearer SEKRET1\"}");
        struct outcome out;
        assert_int_equal(offer(r, SIGNAL_TRACES, &out), rows[i].v);
        assert_int_equal(out.status, rows[i].status);
        assert_int_equal(out.retry_after_ms, rows[i].retry_ms);
        assert_false(out.retry_after_own);
        if (rows[i].message)
            assert_string_equal(out.message, rows[i].message);
        end(r, s);
    }
}

static void test_config(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *path, *text; /* NULL = good */
    } rows[] = {
        {"endpoint: h:4317", NULL, NULL},
        {"endpoint: https://h:4317\nkeepalive: {time: 1s}\nbalancer_name: pick_first", NULL, NULL},
        {"{}", "endpoint", "requires a non-empty \"endpoint\""},
        {"endpoint: foo", "endpoint", "address foo: missing port in address"},
        {"endpoint: h:1\ncompression: deflate", "compression",
         "unsupported compression type \"deflate\""},
        {"endpoint: h:1\nbalancer_name: rr", "balancer_name", "invalid balancer_name: rr"},
        {"endpoint: h:1\nheaders: {x: \"a\\nb\"}", "headers", "the value of header \"x\" holds"},
        {"endpoint: h:1\nauth: {authenticator: x}", NULL, NULL},
        {"endpoint: h:1\nauth: {x: y}", "x::auth", "unknown key \"x\""},
        {"endpoint: h:1\ntls: {ca_file: a, ca_pem: b}", "tls::ca_pem", "not both"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r = {0};
        struct err e = {.text = ""};
        void *bound;
        int rc = rig_bind(&r, &exporter_otlp_grpc, rows[i].yaml, &bound, &e);
        if ((rc == 0) != !rows[i].text)
            fail_msg("%s: %s", rows[i].yaml, e.text);
        if (rows[i].text) {
            assert_string_equal(e.path, rows[i].path);
            assert_non_null(strstr(e.text, rows[i].text));
        }
        config_free(r.config);
    }
}

/* A certificate that is not there is a mistake at start, not at the first request. */
static void test_missing_certificate(void **state)
{
    (void)state;
    struct rig r = {0};
    struct err e = {""};
    rig_make(&r, &exporter_otlp_grpc, "otlp_grpc", SIGNAL_TRACES, 0,
             "endpoint: h:1\ntls: {ca_file: /nowhere/ca.pem}");
    assert_int_equal(r.c->type->start(r.c, &e), -ENOENT);
    assert_string_equal(
        e.text, "failed to load TLS config: open /nowhere/ca.pem: No such file or directory");
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_missing_certificate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
