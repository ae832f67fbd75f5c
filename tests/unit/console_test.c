/* The console exporter: stdout that is read, that is not, and that has gone away. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/wire.h"
#include "rig.h"

extern const struct component_type exporter_console;

/* stdout is a pipe meanwhile. */
struct console_rig {
    struct rig rig;
    int saved, reader, writer;
};

static void setup(struct console_rig *r)
{
    int fds[2];
    struct err e = {.text = ""};
    fflush(stdout);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    r->saved = dup(STDOUT_FILENO);
    r->reader = fds[0];
    dup2(fds[1], STDOUT_FILENO);
    close(fds[1]);
    rig_make(&r->rig, &exporter_console, "console", SIGNAL_LOGS, 0, "");
    assert_int_equal(exporter_console.start(r->rig.c, &e), 0);
}

static void teardown(struct console_rig *r)
{
    rig_done(&r->rig);
    dup2(r->saved, STDOUT_FILENO);
    close(r->saved);
    if (r->reader >= 0)
        close(r->reader);
}

/* `n` empty log records. */
static struct batch *logs(uint32_t n)
{
    struct buf *b = buf_new(0);
    size_t entry, scope;
    wire_begin(b, 1, &entry);
    wire_begin(b, 2, &scope);
    for (uint32_t i = 0; i < n; i++)
        wire_put_str(b, 2, "");
    wire_end(b, scope);
    wire_end(b, entry);
    return batch_new(SIGNAL_LOGS, &b, 1, n);
}

static int64_t counted(struct console_rig *r, const char *what)
{
    char name[80];
    snprintf(name, sizeof(name), "otelcol_exporter_%s_log_records", what);
    return rig_metric(&r->rig, name, "exporter=\"console\"");
}

/* Reads until `n` lines have come. */
static unsigned read_lines(int fd, unsigned n)
{
    char text[65536];
    unsigned seen = 0;
    while (seen < n) {
        ssize_t got = read(fd, text, sizeof(text));
        assert_true(got > 0);
        for (ssize_t i = 0; i < got; i++)
            seen += text[i] == '\n';
    }
    return seen;
}

static void test_read(void **state)
{
    (void)state;
    struct console_rig r = {0};
    size_t before = mem_used();
    setup(&r);
    for (int i = 0; i < 20; i++)
        assert_int_equal(rig_offer(&r.rig, logs(5), NULL), VERDICT_OK);
    assert_int_equal(read_lines(r.reader, 100), 100);
    exporter_console.stop(r.rig.c, clock_now_ns() + 10 * NS_PER_S);
    assert_int_equal(counted(&r, "sent"), 100);
    assert_int_equal(counted(&r, "send_failed"), 0);
    teardown(&r);
    assert_int_equal(mem_used(), before);
}

static void test_not_read(void **state)
{
    (void)state;
    struct console_rig r = {0};
    struct outcome out = {0};
    uint32_t taken = 0;
    size_t before = mem_used();
    setup(&r);
    enum verdict v;
    while ((v = rig_offer(&r.rig, logs(10000), &out)) == VERDICT_OK)
        taken += 10000;
    assert_int_equal(v, VERDICT_RETRY);
    assert_string_equal(out.message, "console: stdout does not keep up");
    assert_int_equal(counted(&r, "enqueue_failed"), 10000);
    uint64_t start = clock_now_ns();
    exporter_console.stop(r.rig.c, start + 50 * NS_PER_MS);
    assert_true(clock_now_ns() - start < 5 * NS_PER_S);
    assert_int_equal(counted(&r, "sent") + counted(&r, "send_failed"), taken);
    assert_true(counted(&r, "send_failed") > 0);
    teardown(&r);
    assert_int_equal(mem_used(), before);
}

static void test_gone(void **state)
{
    (void)state;
    struct console_rig r = {0};
    signal(SIGPIPE, SIG_IGN);
    setup(&r);
    close(r.reader);
    r.reader = -1;
    for (int i = 0; i < 10; i++)
        assert_int_equal(rig_offer(&r.rig, logs(5), NULL), VERDICT_OK);
    exporter_console.stop(r.rig.c, clock_now_ns() + 10 * NS_PER_S);
    assert_int_equal(counted(&r, "send_failed"), 50);
    teardown(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_not_read),
                                       cmocka_unit_test(test_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
