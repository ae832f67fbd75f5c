/* What a connection of HTTP/1 costs, and that it takes every request all the same. */
#include "agent/base/mem.h"
#include "agent/net/limits.h"
#include "tests/unit/server_world.h"

#define PATIENCE_MS 10000

/* One request with a field of `field` bytes and a body of `body` bytes; the status. */
static int ask(int fd, size_t field, size_t body)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    int status = 0;
    buf_printf(out, HEAD("/echo") "Content-Length: %zu\r\nX: ", body);
    for (size_t i = 0; i < field; i++)
        buf_append_str(out, "x");
    buf_append_str(out, "\r\n\r\n");
    for (size_t i = 0; i < body; i++)
        buf_append_str(out, "b");
    struct raw_result r = raw_talk(fd, buf_bytes(out), "HTTP/1.1 ", 1, PATIENCE_MS);
    if (raw_has(r.got, "HTTP/1.1 "))
        status = atoi((const char *)r.got->data + 9);
    /* what is left of an echo */
    const uint8_t *end = memmem(r.got->data, r.got->len, "\r\n\r\n", 4);
    size_t have = end ? r.got->len - (size_t)(end + 4 - r.got->data) : 0;
    buf_unref(r.got);
    while (status == 200 && have < body) {
        uint8_t more[65536];
        ssize_t n = recv(fd, more, sizeof(more), 0);
        assert_true(n > 0);
        have += (size_t)n;
    }
    return status;
}

/* Pages are too large on some machines for one to lie within the memory of a connection. */
static bool has_small_pages(void)
{
    return sysconf(_SC_PAGESIZE) <= 8192;
}

/* What is left of `n` connections that are idle: less than two pages, and what belongs to us. */
static size_t idle_bytes(size_t n)
{
    return n * (2 * (size_t)sysconf(_SC_PAGESIZE) + 2048);
}

/* More connections than a thread lets keep what they have, whichever thread they belong to. */
#define MANY 300
static void connect_many(struct world *w, int *fds)
{
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = connect_world(w);
        assert_int_equal(ask(fds[i], 10, 10), 200);
    }
}

static void close_many(int *fds)
{
    for (size_t i = 0; i < MANY; i++)
        close(fds[i]);
}

/* An idle connection keeps little, and has all of its memory again for the next request. */
static void test_idle(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct server_settings){0});
    const size_t before = mem_used();
    int fds[MANY];
    connect_many(&w, fds);
    for (size_t i = 0; i < 3; i++) {
        const int fd = fds[i * 100];
        assert_int_equal(ask(fd, 10000, 100000), 200);
        if (has_small_pages())
            assert_soon(mem_used() - before < idle_bytes(MANY));
    }
    close_many(fds);
    assert_soon(mem_used() <= before);
    close_world(&w);
}

/* What has come of the next request is kept, whether it came behind the one before or later. */
static void test_half_head(void **state)
{
    (void)state;
    static const char first[] = HEAD("/x") "Content-Length: 2\r\n\r\nabPOST /e",
                      rest[] = "cho HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345";
    struct world w;
    open_world(&w, (struct server_settings){0});
    const size_t before = mem_used();
    int fds[MANY];
    connect_many(&w, fds);
    int fd = connect_world(&w);
    struct raw_result r = raw_talk(fd, bytes_str(first), "hello", 1, PATIENCE_MS);
    assert_true(raw_has(r.got, "hello"));
    buf_unref(r.got);
    if (has_small_pages())
        assert_soon(mem_used() - before < idle_bytes(MANY + 1));
    r = raw_talk(fd, bytes_str(rest), "12345", 1, PATIENCE_MS);
    assert_true(raw_has(r.got, "12345"));
    buf_unref(r.got);
    close(fd);
    close_many(fds);
    close_world(&w);
}

/* Requests of every size one after the other on one connection, whatever it began with. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        size_t field, body;
    } rows[] = {{10, 10}, {10, 7000}, {12000, 10}, {10, 8000}, {10, 500000}, {12000, 100000}};
    struct world w;
    open_world(&w, (struct server_settings){0});
    for (size_t first = 0; first < ARRAY_SIZE(rows); first++) {
        int fd = connect_world(&w);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            const size_t at = (first + i) % ARRAY_SIZE(rows);
            const int status = ask(fd, rows[at].field, rows[at].body);
            if (status != 200)
                fail_msg("began with %zu, row %zu: %d", first, at, status);
        }
        close(fd);
    }
    close_world(&w);
}

/* A limit above the usual one holds for later heads as well. */
static void test_raised_limit(void **state)
{
    (void)state;
    static const struct server_limits more = {.max_header_bytes = 40000}, usual;
    struct world w;
    server_limits_set(&more);
    open_world(&w, (struct server_settings){0});
    int fd = connect_world(&w);
    assert_int_equal(ask(fd, 10, 10), 200);
    assert_int_equal(ask(fd, 39000, 10), 200);
    assert_int_equal(ask(fd, 41000, 10), 431);
    close(fd);
    close_world(&w);
    server_limits_set(&usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_half_head),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_raised_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
