/* What the first bytes of a connection are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/net/head.h"

#define MAX 16384
#define GOOD "POST /v1/traces HTTP/1.1\r\nHost: x\r\n"

static const struct {
    const char *name;
    const char *text;
    size_t len; /* 0 = strlen */
    enum head_kind want;
} cases[] = {
    {"ordinary", GOOD "Content-Length: 5\r\n\r\n", 0, HEAD_HTTP1},
    {"body behind it", GOOD "Content-Length: 2\r\n\r\n{}", 0, HEAD_HTTP1},
    {"chunked", GOOD "Transfer-Encoding: Chunked\r\n\r\n", 0, HEAD_HTTP1},
    {"blanks around a length", GOOD "Content-Length:  5 \r\n\r\n", 0, HEAD_HTTP1},
    {"absolute form", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 0, HEAD_HTTP1},
    {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 0, HEAD_HTTP1},
    {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0, HEAD_HTTP1},
    {"empty lines before", "\r\n\r\n" GOOD "\r\n", 0, HEAD_HTTP1},
    {"high bytes in a value", GOOD "X: \xc3\xa9\r\n\r\n", 0, HEAD_HTTP1},
    {"tab in a value", GOOD "X: a\tb\r\n\r\n", 0, HEAD_HTTP1},
    {"preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, HEAD_HTTP2},
    {"preface and a frame", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4", 28, HEAD_HTTP2},
    {"TLS", "\x16\x03\x01\x02", 0, HEAD_TLS},
    {"nothing", "", 0, HEAD_MORE},
    {"one letter", "P", 0, HEAD_MORE},
    {"half a preface", "PRI * HTTP/2.0\r\n\r\nS", 0, HEAD_MORE},
    {"half a line", "POST /v1/tra", 0, HEAD_MORE},
    {"half a head", GOOD "Content-Le", 0, HEAD_MORE},
    {"end of line to come", GOOD "\r", 0, HEAD_MORE},
    {"not the preface", "PRI * HTTP/2.0\r\n\r\nXM\r\n\r\n", 0, HEAD_BAD},
    {"garbage", "hello\r\n\r\n", 0, HEAD_BAD},
    {"binary", "\x80\x01\x02", 0, HEAD_BAD},
    {"zero bytes", "\0\0\0\0", 4, HEAD_BAD},
    {"HTTP/0.9", "GET /\r\n", 0, HEAD_BAD},
    {"HTTP/2.0 as text", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 0, HEAD_BAD},
    {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", 0, HEAD_BAD},
    {"two blanks in the line", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 0, HEAD_BAD},
    {"bare LF", "GET / HTTP/1.1\nHost: x\n\n", 0, HEAD_BAD},
    {"bare LF in a field", GOOD "X: a\n\r\n", 0, HEAD_BAD},
    {"CR in a value", GOOD "X: a\rb\r\n\r\n", 0, HEAD_BAD},
    {"NUL in a value", GOOD "X: a\0b\r\n\r\n", sizeof(GOOD "X: a\0b\r\n\r\n") - 1, HEAD_BAD},
    {"NUL in the path", "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 28, HEAD_BAD},
    {"blank before the colon", GOOD "Content-Length : 3\r\n\r\n", 0, HEAD_BAD},
    {"no name", GOOD ": 3\r\n\r\n", 0, HEAD_BAD},
    {"no colon", GOOD "abc\r\n\r\n", 0, HEAD_BAD},
    {"folded line", GOOD "X: a\r\n b\r\n\r\n", 0, HEAD_BAD},
    {"length with sign", GOOD "Content-Length: +5\r\n\r\n", 0, HEAD_BAD},
    {"negative length", GOOD "Content-Length: -1\r\n\r\n", 0, HEAD_BAD},
    {"hexadecimal length", GOOD "Content-Length: 0x10\r\n\r\n", 0, HEAD_BAD},
    {"list of lengths", GOOD "Content-Length: 5,5\r\n\r\n", 0, HEAD_BAD},
    {"empty length", GOOD "Content-Length:\r\n\r\n", 0, HEAD_BAD},
    {"20 digits", GOOD "Content-Length: 12345678901234567890\r\n\r\n", 0, HEAD_BAD},
    {"two lengths", GOOD "Content-Length: 2\r\nContent-Length: 3\r\n\r\n", 0, HEAD_BAD},
    {"the same length twice", GOOD "Content-Length: 2\r\ncontent-length: 2\r\n\r\n", 0, HEAD_BAD},
    {"length and chunked", GOOD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
     HEAD_BAD},
    {"chunked, identity", GOOD "Transfer-Encoding: chunked, identity\r\n\r\n", 0, HEAD_BAD},
    {"xchunked", GOOD "Transfer-Encoding: xchunked\r\n\r\n", 0, HEAD_BAD},
    {"chunked twice", GOOD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
     HEAD_BAD},
    {"chunked on 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 0, HEAD_BAD},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 0, HEAD_BAD},
    {"two Hosts", GOOD "Host: y\r\n\r\n", 0, HEAD_BAD},
    {"endless method", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 0, HEAD_BAD},
};

static struct bytes text_of(size_t i)
{
    return bytes_of(cases[i].text, cases[i].len ? cases[i].len : strlen(cases[i].text));
}

static void test_kinds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum head_kind got = http_head_sniff(text_of(i), MAX);
        if (got != cases[i].want)
            fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
    }
}

/* Byte by byte: "more" until the verdict, which then stays; a sound head is never refused half way.
 */
static void test_piecemeal(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bytes all = text_of(i);
        enum head_kind last = HEAD_MORE;
        for (size_t n = 0; n <= all.len; n++) {
            enum head_kind k = http_head_sniff(bytes_of(all.data, n), MAX);
            if (last != HEAD_MORE && k != last)
                fail_msg("%s: %d became %d at %zu", cases[i].name, last, k, n);
            last = k;
        }
    }
}

static void test_limit(void **state)
{
    (void)state;
    static char line[MAX + 100];
    memset(line, 'a', sizeof(line));
    memcpy(line, GOOD "X: ", sizeof(GOOD "X: ") - 1);
    assert_int_equal(http_head_sniff(bytes_of(line, MAX - 1), MAX), HEAD_MORE);
    assert_int_equal(http_head_sniff(bytes_of(line, MAX), MAX), HEAD_TOO_LARGE);
    assert_int_equal(http_head_sniff(bytes_of(line, MAX + 50), MAX), HEAD_TOO_LARGE);
    memcpy(line + MAX - 4, "\r\n\r\n", 4);
    assert_int_equal(http_head_sniff(bytes_of(line, MAX), MAX), HEAD_HTTP1);
}

/* RFC 9110 5.6.2, over all bytes. */
static void test_tokens(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        const uint8_t text[] = {'a', (uint8_t)c};
        const bool want = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
        if (http_is_token(bytes_of(text, 2)) != want)
            fail_msg("byte %d", c);
    }
    assert_false(http_is_token(bytes_of("", 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_piecemeal),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
