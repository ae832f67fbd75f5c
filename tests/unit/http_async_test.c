/* Many HTTP requests on one thread: none waits for another; deadlines, redirects, repeats,
 * cancelling. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/net/http_async.h"

#include "canned.h"

#define OK(body, length)                                                                           \
    "HTTP/1.1 200 OK\r\nContent-Type: t\r\nContent-Length: " length "\r\n\r\n" body

struct answer {
    unsigned times;
    int error, status;
    char url[60], body[100], reason[sizeof(((struct err *)0)->text)];
};

static void on_answer(void *ctx, int error, struct http_client_response *res,
                      const struct err *reason)
{
    struct answer *a = ctx;
    a->times++;
    a->error = error;
    a->status = error ? 0 : res->status;
    snprintf(a->body, sizeof(a->body), "%s", error ? "" : buf_str(res->body));
    snprintf(a->reason, sizeof(a->reason), "%s", reason->text);
}

static const struct http_client_settings settings = {.user_agent = "motel-test",
                                                     .no_env_proxy = true};

static struct http_caller *call(struct http_async *a, const struct http_client_settings *s,
                                int port, uint64_t deadline_ns, struct answer *answer)
{
    struct err e = {.text = ""};
    struct http_caller *c = http_caller_new(a, s, &e);
    *answer = (struct answer){.times = 0};
    snprintf(answer->url, sizeof(answer->url), "http://127.0.0.1:%d/", port);
    assert_non_null(c);
    const struct http_client_request q = {
        .method = "GET", .url = answer->url, .deadline_ns = deadline_ns, .max_response_bytes = 100};
    assert_int_equal(http_caller_send(c, &q, (struct http_done){on_answer, answer}, &e), 0);
    assert_int_equal(http_caller_send(c, &q, (struct http_done){on_answer, answer}, &e), -EBUSY);
    return c;
}

static void run_until(struct http_async *a, const struct answer *answer)
{
    const uint64_t end = clock_now_ns() + 30 * NS_PER_S;
    while (!answer->times && clock_now_ns() < end)
        http_async_run(a, end);
    assert_int_equal(answer->times, 1);
}

static void test_side_by_side(void **state)
{
    (void)state;
    static const char *const hang[] = {CANNED_HANG, NULL}, *const quick[] = {OK("one", "3"), NULL};
    struct canned *slow = canned_start(hang), *fast = canned_start(quick);
    struct http_async *a = http_async_new(10, NULL);
    struct answer late, soon;
    struct http_caller *c = call(a, &settings, slow->port, clock_now_ns() + 60 * NS_PER_S, &late),
                       *d = call(a, &settings, fast->port, clock_now_ns() + 60 * NS_PER_S, &soon);
    run_until(a, &soon);
    assert_int_equal(soon.error, 0);
    assert_int_equal(soon.status, 200);
    assert_string_equal(soon.body, "one");
    assert_false(http_caller_busy(d));
    assert_true(http_caller_busy(c));
    http_caller_cancel(c);
    assert_false(http_caller_busy(c));
    http_async_run(a, 0);
    assert_int_equal(late.times, 0);
    http_caller_free(c);
    http_caller_free(d);
    http_async_free(a);
    canned_stop(slow);
    canned_stop(fast);
}

static void test_deadline(void **state)
{
    (void)state;
    static const char *const hang[] = {CANNED_HANG, NULL};
    struct canned *slow = canned_start(hang);
    struct http_async *a = http_async_new(10, NULL);
    struct answer answer;
    struct http_caller *c = call(a, &settings, slow->port, clock_now_ns() + 2 * NS_PER_S, &answer);
    run_until(a, &answer);
    assert_int_equal(answer.error, -ETIMEDOUT);
    assert_true(*answer.reason);
    http_caller_free(c);
    http_async_free(a);
    canned_stop(slow);
}

/* Port 1, where nobody listens. */
static void test_refused(void **state)
{
    (void)state;
    struct http_async *a = http_async_new(10, NULL);
    struct answer answer;
    struct http_caller *c = call(a, &settings, 1, clock_now_ns() + 30 * NS_PER_S, &answer);
    run_until(a, &answer);
    assert_int_equal(answer.error, -ECONNREFUSED);
    http_caller_free(c);
    http_async_free(a);
}

/* The next request goes over the connection of the last one, and goes out again when that is dead.
 */
static void expect_repeat(bool repeatable, int error)
{
    static const char *const answers[] = {OK("one", "3"), CANNED_CLOSE, OK("two", "3"), NULL};
    struct canned *s = canned_start(answers);
    struct http_async *a = http_async_new(10, NULL);
    struct http_caller *c = http_caller_new(a, &settings, NULL);
    char url[60];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s->port);
    const struct http_client_request q = {.method = "GET",
                                          .url = url,
                                          .deadline_ns = clock_now_ns() + 30 * NS_PER_S,
                                          .max_response_bytes = 100,
                                          .repeatable = repeatable};
    for (int i = 0; i < 2; i++) {
        struct answer answer = {.times = 0};
        assert_int_equal(http_caller_send(c, &q, (struct http_done){on_answer, &answer}, NULL), 0);
        run_until(a, &answer);
        assert_int_equal(answer.error, i ? error : 0);
        assert_string_equal(answer.body, i == 0 ? "one" : error ? "" : "two");
    }
    http_caller_free(c);
    http_async_free(a);
    canned_stop(s);
}

static void test_repeats(void **state)
{
    (void)state;
    expect_repeat(true, 0);
    expect_repeat(false, -ECONNRESET);
}

static void test_redirects(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", OK("there", "5"), NULL};
    const struct http_client_settings stay = {.no_redirects = true, .no_env_proxy = true};
    for (int i = 0; i < 2; i++) {
        struct canned *s = canned_start(answers);
        struct http_async *a = http_async_new(10, NULL);
        char url[60];
        struct answer answer = {.times = 0};
        struct http_caller *c = http_caller_new(a, i ? &stay : &settings, NULL);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s->port);
        const struct http_client_request q = {
            .method = "GET", .url = url, .max_response_bytes = 100};
        assert_int_equal(http_caller_send(c, &q, (struct http_done){on_answer, &answer}, NULL), 0);
        run_until(a, &answer);
        assert_int_equal(answer.status, i ? 302 : 200);
        assert_string_equal(answer.body, i ? "" : "there");
        http_caller_free(c);
        http_async_free(a);
        canned_stop(s);
    }
}

static void *wake(void *arg)
{
    http_async_wake(arg);
    return NULL;
}

static void test_wake(void **state)
{
    (void)state;
    struct http_async *a = http_async_new(10, NULL);
    const uint64_t began = clock_now_ns();
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, wake, a), 0);
    http_async_run(a, began + 50 * NS_PER_S);
    assert_true(clock_now_ns() < began + 40 * NS_PER_S);
    pthread_join(t, NULL);
    http_async_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_redirects),    cmocka_unit_test(test_wake)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
