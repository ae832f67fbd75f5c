/* HTTP/1.1 framing over real sockets: what is refused, what is taken, how a connection begins. */
#include "tests/unit/server_world.h"

#define NUL_MARK 0x02
#define NUL "\002" /* becomes a NUL on the way */

/* What each is answered with, and whether a good request behind it on the same connection is
 * answered as well. */
static const struct {
    const char *name, *request;
    int status;
    bool goes_on;
} framings[] = {
    {"ordinary", HEAD("/x") "Content-Length: 5\r\n\r\n12345", 200, true},
    {"no body", "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 200, true},
    {"no length", HEAD("/x") "\r\n", 200, true},
    {"chunked",
     HEAD("/echo") "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\n12345\r\n0\r\nT: x\r\n\r\n", 200,
     false},
    {"absolute form", "POST http://h/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 200,
     true},
    {"upgrade to h2c",
     "GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
     "HTTP2-Settings: AAMAAABk\r\n\r\n",
     200, true},
    {"length +5", HEAD("/x") "Content-Length: +5\r\n\r\n12345", 400, false},
    {"length -1", HEAD("/x") "Content-Length: -1\r\n\r\n12345", 400, false},
    {"length 0x10", HEAD("/x") "Content-Length: 0x10\r\n\r\n12345", 400, false},
    {"length 5,5", HEAD("/x") "Content-Length: 5,5\r\n\r\n12345", 400, false},
    {"20 digits", HEAD("/x") "Content-Length: 99999999999999999999\r\n\r\n12345", 400, false},
    {"two lengths", HEAD("/x") "Content-Length: 5\r\nContent-Length: 3\r\n\r\n12345", 400, false},
    {"length and chunked",
     HEAD("/x") "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
    {"chunked, identity", HEAD("/x") "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400,
     false},
    {"xchunked", HEAD("/x") "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, false},
    {"chunk of 10000000000000000",
     HEAD("/x") "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nab\r\n0\r\n\r\n", 413,
     false},
    {"chunk of -1", HEAD("/x") "Transfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n", 400,
     false},
    {"chunk of 0x5", HEAD("/x") "Transfer-Encoding: chunked\r\n\r\n0x5\r\n12345\r\n0\r\n\r\n", 400,
     false},
    {"empty chunk size", HEAD("/x") "Transfer-Encoding: chunked\r\n\r\n\r\nab\r\n0\r\n\r\n", 400,
     false},
    {"bare LF", "POST /x HTTP/1.1\nHost: x\nContent-Length: 1\n\n1", 400, false},
    {"bare LF behind the request line", "POST /x HTTP/1.1\nHost: x\r\nContent-Length: 1\r\n\r\n1",
     400, false},
    {"bare LF behind a field", HEAD("/x") "A: b\nContent-Length: 1\r\n\r\n1", 400, false},
    {"bare LF at the end", HEAD("/x") "Content-Length: 1\r\n\n1", 400, false},
    {"bare CR in a value", HEAD("/x") "A: b\rc\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"control character", HEAD("/x") "A: b\001c\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"NUL in a value", HEAD("/x") "A: b" NUL "c\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"NUL in a name", HEAD("/x") "A" NUL "b: c\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"NUL in the target", "POST /x" NUL "y HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 400,
     false},
    {"NUL in the query", "POST /x?y" NUL "z HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 400,
     false},
    {"folded line", HEAD("/x") "A: b\r\n c\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"folded first line", "POST /x HTTP/1.1\r\n Host: x\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"two blanks", "POST  /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"no colon", HEAD("/x") "A\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"two hosts", HEAD("/x") "Host: y\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"HTTP/1.0 and chunked",
     "POST /x HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, false},
    {"HTTP/1.2", "POST /x HTTP/1.2\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"query", "POST /x?a=b&c=d+e HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1", 200, true},
    {"blanks around a value", HEAD("/x") "A: \t b \t\r\nB:\r\nContent-Length:1\r\n\r\n1", 200,
     true},
    {"only a colon", HEAD("/x") ":\r\nContent-Length: 1\r\n\r\n1", 400, false},
    {"blank before the colon", HEAD("/x") "Content-Length : 1\r\n\r\n1", 400, false},
    {"no Host", "GET /x HTTP/1.1\r\n\r\n", 400, false},
    {"garbage", "hello\r\n\r\n", 400, false},
};

static void check_framing(const struct world *w, size_t i, const char *before)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    bool all = framings[i].goes_on;
    unsigned extra = before[0] ? 1 : 0;
    buf_printf(out, "%s%s" GOOD, before, framings[i].request);
    for (uint8_t *p = out->data; p < out->data + out->len; p++)
        *p = *p == NUL_MARK ? 0 : *p;
    struct raw_result r = raw_exchange(listener_address(w->l), buf_bytes(out), NULL, 3000);
    struct bytes in = buf_bytes(r.got);
    struct raw_answer a = {0};
    unsigned n = 0;
    int status = 0;
    while (raw_next_answer(&in, false, &a))
        status = n++ == extra ? a.status : status;
    bool refused =
        status == 413 && framings[i].status == 400; /* libmicrohttpd's word for 20 digits */
    if (r.end != RAW_CLOSED || (status != framings[i].status && !refused) ||
        (before[0] == 0 && n != (all ? 2 : 1)))
        fail_msg("%s: end %d, %u answers, status %d: %s", framings[i].name, r.end, n, status,
                 buf_str(r.got));
    if (!all && raw_count(r.got, "hello") != extra) /* nothing behind it was taken for a request */
        fail_msg("%s: a request came out of body bytes: %s", framings[i].name, buf_str(r.got));
    buf_unref(r.got);
}

static void test_framing(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (size_t i = 0; i < ARRAY_SIZE(framings); i++)
        check_framing(&w, i, "");
    close_world(&w);
}

/* The same as a later request of a connection. libmicrohttpd closes without a word when there is
 * not even a request line. */
static void test_framing_of_later_requests(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (size_t i = 0; i < ARRAY_SIZE(framings); i++)
        if (strcmp(framings[i].name, "garbage") != 0)
            check_framing(&w, i, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
    close_world(&w);
}

static void test_first_bytes(void **state)
{
    (void)state;
    static const uint8_t hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct raw_result r = say(&w, "hello\r\n\r\n", NULL);
    assert_string_equal(buf_str(r.got),
                        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
                        "Connection: close\r\n\r\n400 Bad Request");
    assert_int_equal(r.end, RAW_CLOSED);
    buf_unref(r.got);
    uint64_t start = clock_now_ns();
    r = raw_exchange(listener_address(w.l), bytes_of(hello, sizeof(hello)), NULL, 3000);
    assert_int_equal(r.end, RAW_CLOSED);
    assert_int_equal(r.got->len, 0);
    assert_true(clock_now_ns() - start < NS_PER_S);
    buf_unref(r.got);
    r = raw_exchange(listener_address(w.l), bytes_str("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), NULL,
                     200);
    assert_int_equal(r.end, RAW_OPEN);
    assert_true(r.got->len > 9 && r.got->data[3] == 4); /* SETTINGS */
    buf_unref(r.got);
    close_world(&w);
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    int fd = connect_world(&w), one = 1;
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof(one));
    for (const char *s = GOOD; *s; s++)
        assert_int_equal(send(fd, s, 1, 0), 1);
    struct raw_result r = raw_talk(fd, bytes_of("", 0), NULL, 0, 3000);
    assert_int_equal(r.end, RAW_CLOSED);
    assert_true(raw_has(r.got, "200 OK") && raw_has(r.got, "hello"));
    assert_int_equal(atomic_load(&w.last_body), 4);
    buf_unref(r.got);
    close(fd);
    close_world(&w);
}

static void test_versions_and_methods(void **state)
{
    (void)state;
    struct world w;
    struct raw_answer a;
    open_world(&w, (struct server_settings){0});
    struct raw_result r = say(&w, "POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", NULL);
    struct bytes in = buf_bytes(r.got);
    assert_true(raw_next_answer(&in, false, &a) && a.version == 10 && a.status == 200);
    assert_int_equal(r.end, RAW_CLOSED);
    buf_unref(r.got);
    r = say(&w, "HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n" GOOD, NULL);
    in = buf_bytes(r.got);
    assert_true(raw_next_answer(&in, true, &a) && a.status == 200 && a.body.len == 0);
    assert_true(raw_has(r.got, "Content-Length: 5"));
    assert_true(raw_next_answer(&in, false, &a) && a.status == 200 && a.body.len == 5);
    buf_unref(r.got);
    r = say(
        &w,
        HEAD("/echo") "Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        NULL);
    in = buf_bytes(r.got);
    assert_true(raw_next_answer(&in, false, &a) && a.status == 100);
    assert_true(raw_next_answer(&in, false, &a) && a.status == 200 && bytes_eq_str(a.body, "ab"));
    buf_unref(r.got);
    close_world(&w);
}

static void test_pipelining(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    struct raw_result r = say(
        &w,
        HEAD("/echo") "Content-Length: 3\r\n\r\none" HEAD("/late") "Content-Length: 0\r\n\r\n" HEAD(
            "/echo") "Content-Length: 5\r\nConnection: close\r\n\r\nthree",
        NULL);
    assert_int_equal(raw_count(r.got, "HTTP/1.1 200 OK"), 3);
    const char *all = buf_str(r.got);
    assert_true(strstr(all, "one") < strstr(all, "late") &&
                strstr(all, "late") < strstr(all, "three"));
    buf_unref(r.got);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_framing_of_later_requests),
        cmocka_unit_test(test_first_bytes),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_versions_and_methods),
        cmocka_unit_test(test_pipelining),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
