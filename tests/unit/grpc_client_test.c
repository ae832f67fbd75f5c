/* The gRPC client against an HTTP/2 server in this process: answers, resets, GOAWAY, deadlines,
 * stop, reconnects. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/net/grpc.h"
#include "agent/net/grpc_client.h"

#include "h2_server.h"

static const struct http_metadata metadata[] = {{"x-token", "tok"}, {"x-raw-bin", "\xff\xfe"}};

static struct grpc_client *client_of(int port, enum codec c, bool wait_for_ready)
{
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", port);
    struct grpc_client_settings s = {.endpoint = endpoint,
                                     .user_agent = "motel-test",
                                     .compression = c,
                                     .wait_for_ready = wait_for_ready,
                                     .metadata = metadata,
                                     .nmetadata = 2};
    struct grpc_client *client = NULL;
    struct err e = {""};
    assert_int_equal(grpc_client_new(&s, &client, &e), 0);
    return client;
}

static void call(struct grpc_client *c, const struct bytes *parts, unsigned n, unsigned ms,
                 struct grpc_response *res)
{
    grpc_client_call(c, "/p.S/M", parts, n, clock_now_ns() + ms * NS_PER_MS, res);
}

static void done(struct grpc_response *res)
{
    buf_unref(res->message_bytes);
    buf_unref(res->details);
}

static void test_ok(void **state)
{
    (void)state;
    const struct h2_answer answers[] = {{.grpc_status = "0", .body = bytes_of("\0\0\0\0\3abc", 8)}};
    struct h2_server *s = h2_start(answers, 1);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct bytes parts[] = {bytes_str("one,"), bytes_str(""), bytes_str("two")};
    for (int i = 0; i < 3; i++) {
        struct grpc_response res;
        call(c, parts, 3, 5000, &res);
        assert_int_equal(res.code, GRPC_OK);
        assert_string_equal(buf_str(res.message_bytes), "abc");
        done(&res);
    }
    assert_int_equal(h2_count(s, &s->connections), 1);
    assert_int_equal(h2_count(s, &s->requests), 3);
    assert_int_equal(s->body->len, 12);
    assert_memory_equal(s->body->data, "\0\0\0\0\7one,two", 12);
    const char *h = buf_str(s->headers);
    static const char *const want[] = {":method: POST\n",
                                       ":scheme: http\n",
                                       ":path: /p.S/M\n",
                                       ":authority: 127.0.0.1:",
                                       "content-type: application/grpc\n",
                                       "te: trailers\n",
                                       "user-agent: motel-test\n",
                                       "grpc-timeout: 49",
                                       "x-token: tok\n",
                                       "x-raw-bin: //4\n"};
    for (size_t i = 0; i < ARRAY_SIZE(want); i++)
        assert_non_null(strstr(h, want[i]));
    assert_null(strstr(h, "grpc-encoding:"));
    grpc_client_free(c);
    h2_stop(s);
}

static void test_answers(void **state)
{
    (void)state;
    const struct {
        struct h2_answer answer;
        int code;
        const char *message;
    } rows[] = {
        {{.grpc_status = "14", .grpc_message = "why %41%zz"}, GRPC_UNAVAILABLE, "why A%zz"},
        {{.grpc_status = "8", .grpc_message = "slow", .details = "CAgSBHNsb3c"},
         GRPC_RESOURCE_EXHAUSTED,
         "slow"},
        {{.grpc_status = "junk"}, GRPC_UNKNOWN, ""},
        {{.grpc_status = "0"}, GRPC_OK, ""},
        {{.status = "503", .content_type = "text/html"},
         GRPC_UNAVAILABLE,
         "unexpected HTTP status code received from server: 503; transport: received unexpected "
         "content-type"},
        {{.status = "401", .content_type = "text/html"}, GRPC_UNAUTHENTICATED, NULL},
        {{.status = "404", .content_type = "text/html", .grpc_status = "0"},
         GRPC_UNIMPLEMENTED,
         NULL},
        {{.content_type = "text/html"}, GRPC_UNKNOWN, NULL},
        {{.body = bytes_of("\0\0\0\0\0", 5)},
         GRPC_INTERNAL,
         "server closed the stream without sending trailers"},
        {{.reset = NGHTTP2_CANCEL}, GRPC_CANCELLED, NULL},
        {{.reset = NGHTTP2_INTERNAL_ERROR},
         GRPC_INTERNAL,
         "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
        {{.reset = NGHTTP2_ENHANCE_YOUR_CALM}, GRPC_RESOURCE_EXHAUSTED, NULL},
        {{.grpc_status = "0", .body = bytes_of("\1\0\0\0\1x", 6)},
         GRPC_INTERNAL,
         "grpc: compressed flag set with identity or empty encoding"},
        {{.grpc_status = "0", .body = bytes_of("\1\0\0\0\1x", 6), .grpc_encoding = "gzip"},
         GRPC_INTERNAL,
         "grpc: failed to decompress the received message: unexpected EOF"},
        {{.grpc_status = "0", .body = bytes_of("\0\0\0\0\5x", 6)},
         GRPC_INTERNAL,
         "unexpected EOF in the reply message"},
        {{.drop = true}, GRPC_UNAVAILABLE, "error reading from server: EOF"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct h2_server *s = h2_start(&rows[i].answer, 1);
        struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
        struct grpc_response res;
        struct bytes part = bytes_str("x");
        call(c, &part, 1, 5000, &res);
        assert_int_equal(res.code, rows[i].code);
        if (rows[i].message)
            assert_string_equal(res.message, rows[i].message);
        assert_int_equal(res.details != NULL, rows[i].answer.details != NULL);
        if (res.details)
            assert_memory_equal(res.details->data, "\x08\x08\x12\x04slow", 8);
        assert_int_equal(h2_count(s, &s->requests), 1);
        done(&res);
        grpc_client_free(c);
        h2_stop(s);
    }
}

static void test_compression(void **state)
{
    (void)state;
    static const struct {
        enum codec codec;
        const char *name;
    } rows[] = {{CODEC_GZIP, "gzip"}, {CODEC_ZSTD, "zstd"}, {CODEC_SNAPPY_FRAMED, "snappy"}};
    _cleanup_free_ char *big = malloc(300000);
    memset(big, 'q', 300000);
    struct bytes parts[] = {bytes_of(big, 100000), bytes_of(big, 300000)};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        /* The reply comes back compressed the same way. */
        struct bytes ok = bytes_str("fine");
        _cleanup_buf_ struct buf *reply = buf_new(0), *plain = buf_new(0);
        buf_append(reply, "\1\0\0\0\0", 5);
        assert_int_equal(codec_compress(rows[i].codec, 0, &ok, 1, reply), 0);
        grpc_frame_prefix(true, (uint32_t)reply->len - 5, reply->data);
        const struct h2_answer answer = {
            .grpc_status = "0", .body = buf_bytes(reply), .grpc_encoding = rows[i].name};
        struct h2_server *s = h2_start(&answer, 1);
        struct grpc_client *c = client_of(s->port, rows[i].codec, false);
        struct grpc_response res;
        call(c, parts, 2, 5000, &res);
        assert_int_equal(res.code, GRPC_OK);
        assert_string_equal(buf_str(res.message_bytes), "fine");
        char header[40];
        snprintf(header, sizeof(header), "\ngrpc-encoding: %s\n", rows[i].name);
        assert_non_null(strstr(buf_str(s->headers), header));
        assert_int_equal(s->body->data[0], 1);
        assert_int_equal(codec_decompress(rows[i].codec,
                                          bytes_of(s->body->data + 5, s->body->len - 5), plain,
                                          NULL),
                         0);
        assert_int_equal(plain->len, 400000);
        done(&res);
        grpc_client_free(c);
        h2_stop(s);
    }
}

/* Larger than every window and buffer, in many parts, byte for byte. */
static void test_large_message(void **state)
{
    (void)state;
    const struct h2_answer answer = {.grpc_status = "0"};
    struct h2_server *s = h2_start(&answer, 1);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    enum { PARTS = 3000, EACH = 777 };
    _cleanup_free_ uint8_t *data = malloc(PARTS * EACH);
    _cleanup_free_ struct bytes *parts = malloc(PARTS * sizeof(*parts));
    for (size_t i = 0; i < PARTS * EACH; i++)
        data[i] = (uint8_t)(i * 31 ^ i >> 8);
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = bytes_of(data + i * EACH, EACH);
    struct grpc_response res;
    call(c, parts, PARTS, 20000, &res);
    assert_int_equal(res.code, GRPC_OK);
    assert_int_equal(s->body->len, PARTS * EACH + 5);
    assert_memory_equal(s->body->data + 5, data, PARTS * EACH);
    done(&res);
    grpc_client_free(c);
    h2_stop(s);
}

static void test_large_reply_is_refused(void **state)
{
    (void)state;
    size_t n = 5 * 1024 * 1024;
    _cleanup_free_ uint8_t *body = calloc(1, n);
    const struct h2_answer answers[] = {{.grpc_status = "0", .body = bytes_of(body, n)},
                                        {.grpc_status = "0"}};
    struct h2_server *s = h2_start(answers, 2);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct grpc_response res;
    struct bytes part = bytes_str("x");
    call(c, &part, 1, 5000, &res);
    assert_int_equal(res.code, GRPC_RESOURCE_EXHAUSTED);
    done(&res);
    grpc_client_free(c);
    h2_stop(s);
}

/* A stream that the server did not look at goes out again by itself, once. */
static void test_refused_stream(void **state)
{
    (void)state;
    const struct h2_answer answers[] = {
        {.reset = NGHTTP2_REFUSED_STREAM}, {.grpc_status = "0"}, {.reset = NGHTTP2_REFUSED_STREAM}};
    struct h2_server *s = h2_start(answers, 3);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct grpc_response res;
    struct bytes part = bytes_str("hello");
    call(c, &part, 1, 5000, &res);
    assert_int_equal(res.code, GRPC_OK);
    assert_int_equal(h2_count(s, &s->requests), 2);
    assert_int_equal(s->body->len, 10);
    call(c, &part, 1, 5000, &res);
    assert_int_equal(res.code, GRPC_UNAVAILABLE);
    assert_int_equal(h2_count(s, &s->requests), 4);
    grpc_client_free(c);
    h2_stop(s);
}

static void test_goaway(void **state)
{
    (void)state;
    const struct h2_answer answers[] = {{.goaway_unprocessed = true},
                                        {.grpc_status = "0", .goaway_after = true},
                                        {.grpc_status = "0"}};
    struct h2_server *s = h2_start(answers, 3);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct bytes part = bytes_str("x");
    for (int i = 0; i < 2; i++) {
        struct grpc_response res;
        call(c, &part, 1, 5000, &res);
        assert_int_equal(res.code, GRPC_OK);
    }
    assert_int_equal(h2_count(s, &s->requests), 3);
    assert_int_equal(h2_count(s, &s->connections), 3);
    grpc_client_free(c);
    h2_stop(s);
}

static void test_deadline(void **state)
{
    (void)state;
    const struct h2_answer answers[] = {{.hang = true}, {.grpc_status = "0"}};
    struct h2_server *s = h2_start(answers, 2);
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct grpc_response res;
    struct bytes part = bytes_str("x");
    uint64_t start = clock_now_ns();
    call(c, &part, 1, 100, &res);
    uint64_t took = clock_now_ns() - start;
    assert_int_equal(res.code, GRPC_DEADLINE_EXCEEDED);
    assert_true(took >= 100 * NS_PER_MS && took < 3 * NS_PER_S);
    call(c, &part, 1, 5000, &res); /* on the same connection */
    assert_int_equal(res.code, GRPC_OK);
    assert_int_equal(h2_count(s, &s->connections), 1);
    assert_int_equal(h2_count(s, &s->resets), 1);
    grpc_client_free(c);
    h2_stop(s);
}

struct caller {
    struct grpc_client *c;
    pthread_t thread;
    struct grpc_response res;
};

static void *caller_run(void *arg)
{
    struct caller *a = arg;
    struct bytes part = bytes_str("x");
    call(a->c, &part, 1, 20000, &a->res);
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    const struct h2_answer answer = {.hang = true};
    struct h2_server *s = h2_start(&answer, 1);
    struct caller a[3] = {{.c = client_of(s->port, CODEC_IDENTITY, false)}};
    for (int i = 0; i < 3; i++) {
        a[i].c = a[0].c;
        pthread_create(&a[i].thread, NULL, caller_run, &a[i]);
    }
    while (h2_count(s, &s->requests) < 3)
        sched_yield();
    uint64_t start = clock_now_ns();
    grpc_client_stop(a[0].c);
    for (int i = 0; i < 3; i++) {
        pthread_join(a[i].thread, NULL);
        assert_int_equal(a[i].res.code, GRPC_CANCELLED);
    }
    assert_true(clock_now_ns() - start < 3 * NS_PER_S);
    caller_run(&a[0]);
    assert_int_equal(a[0].res.code, GRPC_CANCELLED);
    grpc_client_free(a[0].c);
    h2_stop(s);
}

static void test_nobody_there(void **state)
{
    (void)state;
    struct grpc_client *c = client_of(1, CODEC_IDENTITY, false);
    struct grpc_response res;
    struct bytes part = bytes_str("x");
    for (int i = 0; i < 3; i++) {
        call(c, &part, 1, 5000, &res);
        assert_int_equal(res.code, GRPC_UNAVAILABLE);
        assert_string_equal(res.message, "connection error: desc = \"transport: Error while "
                                         "dialing: dial tcp 127.0.0.1:1: connect: "
                                         "Connection refused\"");
    }
    grpc_client_free(c);
}

/* wait_for_ready: the call waits for the server to come, or for its deadline. */
static void test_wait_for_ready(void **state)
{
    (void)state;
    struct grpc_client *c = client_of(1, CODEC_IDENTITY, true);
    struct grpc_response res;
    struct bytes part = bytes_str("x");
    uint64_t start = clock_now_ns();
    call(c, &part, 1, 300, &res);
    assert_int_equal(res.code, GRPC_DEADLINE_EXCEEDED);
    assert_true(clock_now_ns() - start >= 300 * NS_PER_MS);
    grpc_client_free(c);

    /* Refused while nobody listens on it, and nobody else can take it. */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    struct caller a = {.c = client_of(ntohs(at.sin_port), CODEC_IDENTITY, true)};
    pthread_create(&a.thread, NULL, caller_run, &a);
    assert_int_equal(listen(fd, 1), 0);
    int got = accept(fd, NULL, NULL); /* it came back */
    assert_true(got >= 0);
    close(got);
    grpc_client_stop(a.c);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.res.code, GRPC_CANCELLED);
    grpc_client_free(a.c);
    close(fd);
}

/* Not an HTTP/2 server: an error, and no storm of connections. */
static void test_no_http2(void **state)
{
    (void)state;
    const struct h2_answer answer = {.hang = true};
    struct h2_server *s = h2_start(&answer, 1);
    s->no_settings = true;
    struct grpc_client *c = client_of(s->port, CODEC_IDENTITY, false);
    struct grpc_response res;
    struct bytes part = bytes_str("x");
    uint64_t until = clock_now_ns() + 300 * NS_PER_MS;
    while (clock_now_ns() < until) {
        call(c, &part, 1, 5000, &res);
        assert_int_equal(res.code, GRPC_UNAVAILABLE);
    }
    assert_true(h2_count(s, &s->connections) <= 5);
    grpc_client_free(c);
    h2_stop(s);
}

static void test_endpoints(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint, *why; /* NULL = good */
    } rows[] = {
        {"host:4317", NULL},
        {"http://host:4317", NULL},
        {"https://host:4317/", NULL},
        {"dns:///host:4317", NULL},
        {"dns://8.8.8.8/host:4317", NULL},
        {"passthrough:///host:4317", NULL},
        {"[::1]:4317", NULL},
        {":4317", NULL},
        {"unix:///tmp/x.sock", NULL},
        {"unix:x.sock", NULL},
        {"", "requires a non-empty \"endpoint\""},
        {"foo", "address foo: missing port in address"},
        {"http://foo", "address foo: missing port in address"},
        {"[::1]", "address [::1]: missing port in address"},
        {"::1:4317", "address ::1:4317: too many colons in address"},
        {"foo:", "invalid port \"\""},
        {"foo:otlp", "invalid port \"otlp\""},
        {"foo:99999", "invalid port \"99999\""},
        {"unix:", "unix socket path: expected 1 to 107 bytes, got 0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {""};
        int r = grpc_client_check_endpoint(rows[i].endpoint, &e);
        assert_int_equal(r, rows[i].why ? -EINVAL : 0);
        assert_string_equal(e.text, rows[i].why ? rows[i].why : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ok),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_compression),
        cmocka_unit_test(test_large_message),
        cmocka_unit_test(test_large_reply_is_refused),
        cmocka_unit_test(test_refused_stream),
        cmocka_unit_test(test_goaway),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_wait_for_ready),
        cmocka_unit_test(test_no_http2),
        cmocka_unit_test(test_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
