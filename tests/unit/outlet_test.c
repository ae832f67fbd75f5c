/* The writer thread: whole lines, bounded, no loss while the reader is slow, notes for all. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/base/clock.h"
#include "agent/base/outlet.h"

struct tally {
    atomic_uint written, failed;
    atomic_int error;
};

static void count(void *ctx, int error, unsigned kind, uint32_t n)
{
    struct tally *t = ctx;
    assert_int_equal(kind, 7);
    atomic_fetch_add(error ? &t->failed : &t->written, n);
    if (error)
        atomic_store(&t->error, error);
}

static struct outlet_note note(struct tally *t)
{
    return (struct outlet_note){count, t, 7, 1};
}

static struct buf *line(char c, size_t len)
{
    struct buf *b = buf_new(0);
    assert_int_equal(buf_reserve(b, len), 0);
    memset(b->data, c, len);
    b->data[len - 1] = '\n';
    buf_commit(b, len);
    return b;
}

static uint64_t soon(unsigned ms)
{
    return clock_now_ns() + ms * NS_PER_MS;
}

/* Reads `want` bytes and checks that each line is of one letter. */
static void read_lines(int fd, size_t want)
{
    char buf[5000], last = '\n';
    while (want) {
        ssize_t n = read(fd, buf, want < sizeof(buf) ? want : sizeof(buf));
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; last = buf[i], i++)
            assert_true(buf[i] == '\n' || last == '\n' || buf[i] == last);
        want -= (size_t)n;
    }
}

static void test_pipe(void **state)
{
    (void)state;
    int fds[2];
    struct tally t = {0};
    assert_int_equal(pipe(fds), 0);
    struct outlet *o = outlet_new(fds[1], 1 << 20);
    assert_non_null(o);
    size_t sum = 0;
    for (int i = 0; i < 60; i++) {
        size_t len = 1 + (size_t)i * 211;
        sum += len;
        assert_int_equal(outlet_put(o, line((char)('a' + i % 26), len), note(&t)), 0);
    }
    read_lines(fds[0], sum);
    outlet_flush(o, &t, soon(5000));
    assert_int_equal(t.written, 60);
    assert_int_equal(t.failed, 0);
    outlet_free(o);
    close(fds[0]);
    close(fds[1]);
}

/* Nobody reads: the bound holds, the flush ends at its deadline, and all that was taken is
 * accounted for. */
static void test_slow_reader(void **state)
{
    (void)state;
    int fds[2];
    struct tally t = {0}, other = {0};
    assert_int_equal(pipe(fds), 0);
    struct outlet *o = outlet_new(fds[1], 100000);
    unsigned taken = 0;
    for (int i = 0; i < 100; i++) {
        struct buf *b = line('x', 9000);
        int r = outlet_put(o, b, note(&t));
        taken += r == 0;
        if (r < 0) {
            assert_int_equal(r, -EAGAIN);
            buf_unref(b);
        }
    }
    assert_true(taken >= 11 && taken < 100); /* 100000 bytes, and what the pipe took meanwhile */
    uint64_t before = clock_now_ns();
    outlet_flush(o, &t, soon(50));
    assert_true(clock_now_ns() - before < 5 * NS_PER_S);
    assert_int_equal(t.written + t.failed, taken);
    assert_true(t.failed > 0);
    assert_int_equal(t.error, -ETIMEDOUT);
    /* The one that was half written is finished when the reader comes back. */
    assert_int_equal(outlet_put(o, line('y', 10), note(&other)), 0);
    read_lines(fds[0], t.written * 9000 + 9000 + 10);
    outlet_flush(o, &other, soon(5000));
    assert_int_equal(other.written, 1);
    outlet_free(o);
    close(fds[0]);
    close(fds[1]);
}

static void test_free_while_stuck(void **state)
{
    (void)state;
    int fds[2];
    struct tally t = {0};
    assert_int_equal(pipe(fds), 0);
    struct outlet *o = outlet_new(fds[1], 1 << 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(outlet_put(o, line('x', 9000), note(&t)), 0);
    outlet_free(o);
    assert_int_equal(t.written + t.failed, 20);
    assert_true(t.failed > 0);
    close(fds[0]);
    close(fds[1]);
}

static void test_reader_gone(void **state)
{
    (void)state;
    int fds[2];
    struct tally t = {0};
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    struct outlet *o = outlet_new(fds[1], 1 << 20);
    assert_int_equal(outlet_put(o, line('x', 10), note(&t)), 0);
    outlet_flush(o, &t, soon(5000));
    assert_int_equal(outlet_put(o, line('x', 10), note(&t)), -EPIPE);
    assert_int_equal(t.failed, 2);
    assert_int_equal(t.error, -EPIPE);
    outlet_free(o);
    close(fds[1]);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/outlet-test-XXXXXX";
    int fd = mkstemp(path);
    struct tally t = {0};
    struct outlet *o = outlet_new(fd, 1000);
    assert_int_equal(outlet_put(o, line('x', 100000), note(&t)),
                     0); /* one text may be larger than the bound */
    outlet_flush(o, &t, soon(5000));
    assert_int_equal(t.written, 1);
    assert_int_equal(lseek(fd, 0, SEEK_END), 100000);
    outlet_free(o);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_free_while_stuck),
        cmocka_unit_test(test_reader_gone),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
