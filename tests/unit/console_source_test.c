/* The registry of streams for the console receiver. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/pipeline/console_source.h"

static void add(const char *receiver, const char *label)
{
    struct console_source s = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .pass_fd = -1};
    strncpy(s.label, label, sizeof(s.label) - 1);
    assert_int_equal(console_source_add(receiver, &s), 0);
}

/* The label of the next one, whose descriptor is closed; "" when there is none. */
static const char *take(const char *receiver)
{
    static struct console_source s;
    if (!console_source_take(receiver, &s))
        return "";
    assert_int_equal(close(s.fd), 0);
    return s.label;
}

static void test_each_goes_to_its_receiver(void **state)
{
    (void)state;
    add("console/b", "for b");
    add(NULL, "for any");
    add("console/a", "first for a");
    add("console/a", "second for a");
    assert_string_equal(take("console/c"), "for any");
    assert_string_equal(take("console/c"), "");
    assert_string_equal(take("console/a"), "first for a");
    assert_string_equal(take("console/a"), "second for a");
    assert_string_equal(take("console/a"), "");
    assert_string_equal(take("console/b"), "for b");
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void test_those_left_are_closed(void **state)
{
    int ended = 0, fds[2];
    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct console_source s = {.fd = fds[0], .pass_fd = -1, .ended = count, .ctx = &ended};
    assert_int_equal(console_source_add("console/a", &s), 0);
    add("console/b", "without ended()");
    assert_int_equal(console_source_drop(), 2);
    assert_int_equal(ended, 1);
    assert_int_equal(fcntl(fds[0], F_GETFD), -1);
    assert_int_equal(errno, EBADF);
    close(fds[1]);
    assert_int_equal(console_source_drop(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_goes_to_its_receiver),
        cmocka_unit_test(test_those_left_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
