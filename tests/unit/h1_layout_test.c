/* Heads as libmicrohttpd cuts them up: only one with the line ends that everybody sees is sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/buf.h"
#include "agent/net/h1_layout.h"
#include "agent/net/h1_probe.h"

/* A line end becomes one NUL for each of its bytes; returns what is behind it. */
static char *cut(char *line_end)
{
    const size_t n = line_end[0] == '\r' && line_end[1] == '\n' ? 2 : 1;
    memset(line_end, 0, n);
    return line_end + n;
}

/* Cuts a head as libmicrohttpd does and shows the pieces to the layout. `text` is changed. */
static bool look(char *text, size_t *ret_body)
{
    struct h1_layout l = {0};
    char *target = strchr(text, ' ') + 1, *version = strstr(target, " HTTP/") + 1;
    char *line = cut(version + strcspn(version, "\r\n"));
    target[-1] = version[-1] = 0;
    bool ok = h1_layout_line(&l, bytes_str(text), h1_layout_target(target), bytes_str(version));
    while (*line != '\r' && *line != '\n') {
        char *name = line, *value = strchr(line, ':') + 1;
        line = cut(line + strcspn(line, "\r\n"));
        value[-1] = 0;
        value += strspn(value, " \t");
        ok = ok && h1_layout_field(&l, bytes_str(name), bytes_str(value));
    }
    const char *end = cut(line);
    const uint8_t *body;
    const struct bytes head = bytes_of(text, (size_t)(end - text));
    if (!ok || !h1_layout_end(&l, head, &body))
        return false;
    *ret_body = (size_t)(body - (const uint8_t *)text);
    return true;
}

#define LINE "POST /x HTTP/1.1"

static void test_heads(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        bool good;
    } rows[] = {
        {LINE "\r\n\r\n", true},
        {"GET /x?a=b HTTP/1.0\r\n\r\n", true},
        {"GET http://h/x HTTP/1.1\r\nHost: h\r\n\r\n", true},
        {LINE "\r\nHost: x\r\nA:\r\nB: \t c d \r\n\r\n", true},
        {LINE "\nHost: x\r\n\r\n", false},
        {LINE "\r\nHost: x\n\r\n", false},
        {LINE "\r\nHost: x\r\n\n1", false},
        {LINE "\r\nHost : x\r\n\r\n", false},
        {LINE "\r\n Host: x\r\n\r\n", false},
        {LINE "\r\nA: b\001\r\n\r\n", false},
        {"POST /\177x HTTP/1.1\r\n\r\n", false},
        {"POST /x y HTTP/1.1\r\n\r\n", false},
        {"POST  /x HTTP/1.1\r\n\r\n", false},
        {"POST /x HTTP/1.2\r\n\r\n", false},
        {"POST /x HTTP/1.10\r\n\r\n", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[256] = "";
        size_t body = 0;
        snprintf(text, sizeof(text), "%s", rows[i].head);
        if (look(text, &body) != rows[i].good)
            fail_msg("row %zu: taken for %s", i, rows[i].good ? "bad" : "good");
        if (rows[i].good)
            assert_int_equal(body, strlen(rows[i].head));
    }
}

/* What strings of the parser hide: a NUL in a value ends it early, a folded line is in a copy. */
static void test_places(void **state)
{
    (void)state;
    char text[] = "POST /x HTTP/1.1\0\0A\0b\0c\0\0B\0d\0\0\0\0";
    const char *a = text + 18;
    const struct bytes name = bytes_of(a, 1), value = bytes_of(a + 2, 1);
    struct h1_layout l = {0};
    text[4] = text[7] = 0;
    assert_true(h1_layout_line(&l, bytes_str(text), bytes_str(text + 5), bytes_str(text + 8)));
    assert_false(h1_layout_field(&l, name, value)); /* "b", NUL, "c" */
    l.next = (const uint8_t *)a;
    assert_false(h1_layout_field(&l, name, bytes_of("b c", 3)) &&
                 h1_layout_field(&l, bytes_of(a + 7, 1), bytes_of(a + 9, 1)));
    l.next = (const uint8_t *)a + 7;
    assert_true(h1_layout_field(&l, bytes_of(a + 7, 1), bytes_of(a + 9, 1)));
    l.next = (const uint8_t *)a + 7; /* not where the line before has ended */
    assert_false(h1_layout_field(&l, bytes_of(a + 8, 0), bytes_of(a + 9, 1)));
}

/* A parser that hands out copies: what they say counts, and no byte beside them is looked at. */
static void test_anywhere(void **state)
{
    (void)state;
    const struct bytes method = bytes_str("POST"), target = bytes_str("/x"), name = bytes_str("A"),
                       version = bytes_str("HTTP/1.1");
    struct h1_layout l = {.anywhere = true};
    const uint8_t *body;
    assert_true(h1_layout_line(&l, method, target, version));
    assert_true(h1_layout_field(&l, name, bytes_str("\tb c ")));
    assert_true(h1_layout_field(&l, name, bytes_of(NULL, 0)));
    assert_true(h1_layout_end(&l, bytes_of("", 0), &body));
    assert_null(body);
    assert_false(h1_layout_line(&l, method, bytes_of("", 0), version));
    assert_false(h1_layout_line(&l, bytes_str("PO ST"), target, version));
    assert_false(h1_layout_line(&l, method, target, bytes_str("HTTP/1.2")));
    assert_false(h1_layout_field(&l, bytes_str("A "), bytes_str("b")));
    assert_false(h1_layout_field(&l, name, bytes_str("b\rc")));
    assert_false(h1_layout_field(&l, name, bytes_of("b\0c", 3)));
}

/* The version that this was written for. */
static void test_known(void **state)
{
    (void)state;
    if (strcmp(MHD_get_version(), "0.9.75") == 0)
        assert_true(h1_layout_known());
}

/* ":", CR, LF: three NULs, of which two look like an end. */
static void test_end(void **state)
{
    (void)state;
    static const char text[] = "A\0b\0\0\0\0\0\0";
    const struct h1_layout l = {.next = (const uint8_t *)text + 5};
    const uint8_t *body;
    assert_true(h1_layout_end(&l, bytes_of(text, 7), &body));
    assert_ptr_equal(body, text + 7);
    assert_false(h1_layout_end(&l, bytes_of(text, 8), &body));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_anywhere), cmocka_unit_test(test_known),
        cmocka_unit_test(test_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
