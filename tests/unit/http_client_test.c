/* The HTTP client against canned answers: bodies, redirects, dead connections, time-outs,
 * interrupts, proxies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/net/http_client.h"

#include "canned.h"

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static struct http_client *new_client(void)
{
    struct err e = {""};
    struct http_client *c =
        http_client_new(&(struct http_client_settings){.user_agent = "motel-test"}, &e);
    assert_non_null(c);
    return c;
}

static int post(struct http_client *c, const struct canned *s, const char *path,
                const struct bytes *parts, unsigned n, struct http_client_response *res,
                struct err *e)
{
    static const char *const headers[] = {"Content-Type: text/x", "Authorization: Bearer abc",
                                          "X-Empty:", NULL};
    char url[200];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", s->port, path);
    return http_client_send(c,
                            &(struct http_client_request){"POST", url, headers, parts, n,
                                                          clock_now_ns() + 5 * NS_PER_S, 100},
                            res, e);
}

static void test_post_one_part(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After:  2 "
        "\r\nContent-Type: a/b; x\r\nContent-Length: 3\r\n\r\nwhy",
        NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    struct err e = {""};
    struct bytes part = bytes_str("hello");
    assert_int_equal(post(c, s, "/v1/traces", &part, 1, &res, &e), 0);
    assert_int_equal(res.status, 429);
    assert_string_equal(res.retry_after, "2");
    assert_string_equal(res.content_type, "a/b; x");
    assert_string_equal(buf_str(res.body), "why");
    const char *q = canned_request(s, 0);
    assert_non_null(strstr(q, "POST /v1/traces HTTP/1.1\r\n"));
    assert_non_null(strstr(q, "Content-Type: text/x\r\n"));
    assert_non_null(strstr(q, "User-Agent: motel-test\r\n"));
    assert_non_null(strstr(q, "X-Empty:\r\n"));
    assert_non_null(strstr(q, "Content-Length: 5\r\n\r\nhello"));
    assert_null(strstr(q, "Expect"));
    buf_unref(res.body);
    http_client_free(c);
    canned_stop(s);
}

/* Several parts leave as one body with a length, on one kept-alive connection. */
static void test_parts_and_keepalive(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY, NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    _cleanup_free_ char *big = malloc(100000);
    memset(big, 'z', 100000);
    struct bytes parts[] = {bytes_str("one,"), bytes_str(""), bytes_of(big, 100000),
                            bytes_str(",end")};
    for (int i = 0; i < 3; i++) {
        struct http_client_response res;
        assert_int_equal(post(c, s, "/", parts, i == 2 ? 0 : 4, &res, NULL), 0);
        assert_int_equal(res.status, 200);
        buf_unref(res.body);
    }
    const char *body = strstr(canned_request(s, 1), "\r\n\r\n") + 4;
    assert_int_equal(strlen(body), 100008);
    assert_memory_equal(body, "one,zzz", 7);
    assert_string_equal(body + 100000, "zzzz,end");
    assert_non_null(strstr(canned_request(s, 2), "Content-Length: 0\r\n"));
    assert_int_equal(canned_count(s, &s->connections), 1);
    http_client_free(c);
    canned_stop(s);
}

/* A kept-alive connection that the server has closed meanwhile is not used again. */
static void test_closed_connection(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY CANNED_CLOSE_AFTER, NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct bytes parts[] = {bytes_str("first"), bytes_str("second")};
    for (unsigned i = 0; i < 3; i++) {
        struct http_client_response res;
        assert_int_equal(post(c, s, "/", parts, 2, &res, NULL), 0);
        buf_unref(res.body);
        while (canned_count(s, &s->closed) <= i)
            sched_yield();
    }
    assert_int_equal(canned_count(s, &s->requests), 3);
    assert_non_null(strstr(canned_request(s, 2), "\r\n\r\nfirstsecond"));
    http_client_free(c);
    canned_stop(s);
}

/* One that ends instead of an answer is an error, and the request goes out no second time by
 * itself. */
static void test_no_answer_on_kept_connection(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY, CANNED_CLOSE, NULL};
    for (unsigned n = 1; n <= 2; n++) {
        struct canned *s = canned_start(answers);
        struct http_client *c = new_client();
        struct http_client_response res;
        struct err e = {""};
        struct bytes parts[] = {bytes_str("first"), bytes_str("second")};
        assert_int_equal(post(c, s, "/", parts, n, &res, NULL), 0);
        buf_unref(res.body);
        assert_int_equal(post(c, s, "/", parts, n, &res, &e), -ECONNRESET);
        assert_int_equal(canned_count(s, &s->requests), 2);
        http_client_free(c);
        canned_stop(s);
    }
}

static void test_redirects(void **state)
{
    (void)state;
    static const struct {
        const char *answer,
            *second; /* the second request begins so; NULL = the redirect is the answer */
        bool body;
    } rows[] = {
        {"HTTP/1.1 307 T\r\nLocation: /there?x=1\r\nContent-Length: 0\r\n\r\n", "POST /there?x=1 ",
         true},
        {"HTTP/1.1 308 T\r\nLocation: ../up\r\nContent-Length: 0\r\n\r\n", "POST /up ", true},
        {"HTTP/1.1 302 T\r\nLocation: /get\r\nContent-Length: 2\r\n\r\nno", "GET /get ", false},
        {"HTTP/1.1 303 T\r\nlocation: get\r\nContent-Length: 0\r\n\r\n", "GET /a/get ", false},
        {"HTTP/1.1 301 T\r\nContent-Length: 0\r\n\r\n", NULL, false},
        {"HTTP/1.1 304 T\r\nLocation: /x\r\n\r\n", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const answers[] = {rows[i].answer, OK_EMPTY, NULL};
        struct canned *s = canned_start(answers);
        struct http_client *c = new_client();
        struct http_client_response res;
        struct bytes parts[] = {bytes_str("first"), bytes_str("second")};
        assert_int_equal(post(c, s, "/a/b", parts, 2, &res, NULL), 0);
        const char *q = canned_request(s, 1);
        if (rows[i].second) {
            assert_int_equal(res.status, 200);
            assert_memory_equal(q, rows[i].second, strlen(rows[i].second));
            assert_int_equal(strstr(q, "\r\n\r\nfirstsecond") != NULL, rows[i].body);
            assert_int_equal(strstr(q, "Content-Type") != NULL, rows[i].body);
            assert_non_null(strstr(q, "Authorization: Bearer abc"));
        } else {
            assert_true(res.status >= 300);
            assert_int_equal(canned_count(s, &s->requests), 1);
        }
        buf_unref(res.body);
        http_client_free(c);
        canned_stop(s);
    }
}

/* Another host is not told the credentials. */
static void test_redirect_to_another_host(void **state)
{
    (void)state;
    static const char *const there[] = {OK_EMPTY, NULL};
    struct canned *second = canned_start(there);
    char answer[200];
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 307 T\r\nLocation: http://localhost:%d/\r\nContent-Length: 0\r\n\r\n",
             second->port);
    const char *const answers[] = {answer, NULL};
    struct canned *first = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    struct bytes part = bytes_str("x");
    assert_int_equal(post(c, first, "/", &part, 1, &res, NULL), 0);
    assert_int_equal(canned_count(second, &second->requests), 1);
    assert_null(strstr(canned_request(second, 0), "Authorization"));
    assert_non_null(strstr(canned_request(second, 0), "X-Empty:"));
    buf_unref(res.body);
    http_client_free(c);
    canned_stop(first);
    canned_stop(second);
}

static void test_redirect_loop(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 307 T\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    struct err e = {""};
    assert_int_equal(post(c, s, "/", NULL, 0, &res, &e), -ELOOP);
    assert_string_equal(e.text, "stopped after 10 redirects");
    assert_null(res.body);
    http_client_free(c);
    canned_stop(s);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int want;
    } rows[] = {{CANNED_CLOSE, -ECONNRESET},
                {"nonsense\r\n\r\n" CANNED_CLOSE_AFTER, -EIO},
                {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort" CANNED_CLOSE_AFTER, -EIO}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const answers[] = {rows[i].answer, NULL};
        struct canned *s = canned_start(answers);
        struct http_client *c = new_client();
        struct http_client_response res;
        struct err e = {""};
        struct bytes part = bytes_str("x");
        assert_int_equal(post(c, s, "/", &part, 1, &res, &e), rows[i].want);
        assert_true(e.text[0]);
        http_client_free(c);
        canned_stop(s);
    }
    struct http_client *c = new_client();
    struct http_client_response res;
    struct err e = {""};
    assert_int_equal(http_client_send(c,
                                      &(struct http_client_request){.method = "GET",
                                                                    .url = "http://127.0.0.1:1/"},
                                      &res, &e),
                     -ECONNREFUSED);
    assert_int_equal(
        http_client_send(
            c, &(struct http_client_request){.method = "GET", .url = "ftp://127.0.0.1/"}, &res, &e),
        -EIO);
    http_client_free(c);
}

static void test_long_response_is_cut(void **state)
{
    (void)state;
    static char answer[3000100];
    int n = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
    memset(answer + n, 'x', 3000000);
    const char *const answers[] = {answer, NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    assert_int_equal(post(c, s, "/", NULL, 0, &res, NULL), 0);
    assert_int_equal(res.status, 200);
    assert_int_equal(res.body->len, 100);
    buf_unref(res.body);
    http_client_free(c);
    canned_stop(s);
}

static void test_deadline(void **state)
{
    (void)state;
    static const char *const answers[] = {CANNED_HANG, NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    struct err e = {""};
    char url[100];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s->port);
    uint64_t start = clock_now_ns();
    struct http_client_request q = {
        .method = "GET", .url = url, .deadline_ns = start + 100 * NS_PER_MS};
    assert_int_equal(http_client_send(c, &q, &res, &e), -ETIMEDOUT);
    uint64_t took = clock_now_ns() - start;
    assert_true(took >= 100 * NS_PER_MS && took < 2 * NS_PER_S);
    http_client_free(c);
    canned_stop(s);
}

static void *interrupt_once_asked(void *arg)
{
    void **a = arg;
    struct canned *s = a[0];
    for (;;) {
        bool there = canned_count(s, &s->requests) > 0;
        if (there)
            break;
        sched_yield();
    }
    http_client_interrupt(a[1]);
    return NULL;
}

static void test_interrupt(void **state)
{
    (void)state;
    static const char *const answers[] = {CANNED_HANG, NULL};
    struct canned *s = canned_start(answers);
    struct http_client *c = new_client();
    struct http_client_response res;
    pthread_t t;
    void *args[] = {s, c};
    assert_int_equal(pthread_create(&t, NULL, interrupt_once_asked, args), 0);
    uint64_t start = clock_now_ns();
    struct bytes part = bytes_str("x");
    assert_int_equal(post(c, s, "/", &part, 1, &res, NULL), -ECANCELED);
    assert_true(clock_now_ns() - start < 3 * NS_PER_S);
    assert_int_equal(post(c, s, "/", &part, 1, &res, NULL), -ECANCELED);
    pthread_join(t, NULL);
    http_client_free(c);
    canned_stop(s);
}

static void test_proxy(void **state)
{
    (void)state;
    static const char *const answers[] = {OK_EMPTY, NULL};
    struct canned *s = canned_start(answers);
    char proxy[100];
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", s->port);
    setenv("NO_PROXY", "direct.invalid", 1);
    setenv("HTTP_PROXY", proxy, 1);
    struct http_client *c = new_client();
    struct http_client_response res;
    struct http_client_request q = {.method = "GET",
                                    .url = "http://backend.invalid:81/p",
                                    .deadline_ns = clock_now_ns() + 5 * NS_PER_S};
    assert_int_equal(http_client_send(c, &q, &res, NULL), 0);
    buf_unref(res.body);
    assert_memory_equal(canned_request(s, 0), "GET http://backend.invalid:81/p HTTP/1.1\r\n", 42);
    q.url = "http://127.0.0.1:1/";
    assert_int_equal(http_client_send(c, &q, &res, NULL), -ECONNREFUSED);
    q.url = "http://direct.invalid/";
    assert_int_equal(http_client_send(c, &q, &res, NULL), -EHOSTUNREACH);
    unsetenv("HTTP_PROXY");
    unsetenv("NO_PROXY");
    http_client_free(c);
    c = http_client_new(&(struct http_client_settings){.proxy_url = proxy}, NULL);
    q.url = "http://127.0.0.1:1/by-setting";
    assert_int_equal(http_client_send(c, &q, &res, NULL), 0);
    buf_unref(res.body);
    assert_int_equal(canned_count(s, &s->requests), 2);
    http_client_free(c);
    canned_stop(s);
}

static void test_redact(void **state)
{
    (void)state;
    static const struct {
        const char *url, *want;
    } rows[] = {
        {"http://host:1/p", "http://host:1/p"},
        {"http://user:SEKRET@host:1/p", "http://***@host:1/p"},
        {"https://a@b:c@host/p@q?key=SEKRET#SEKRET", "https://***@host/p@q?***"},
        {"host:4317", "host:4317"},
        {"u:SEKRET@host:4317", "***@host:4317"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char out[100];
        http_url_redact(rows[i].url, out, sizeof(out));
        assert_string_equal(out, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post_one_part),
        cmocka_unit_test(test_parts_and_keepalive),
        cmocka_unit_test(test_closed_connection),
        cmocka_unit_test(test_no_answer_on_kept_connection),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_redirect_to_another_host),
        cmocka_unit_test(test_redirect_loop),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_long_response_is_cut),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_redact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
