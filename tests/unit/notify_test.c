/* Messages to a service manager: a datagram socket of ours stands for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/notify.h"

static char folder[64];
static int fd = -1;

/* Listens at "/path" or "@name" and says so in the environment. */
static void listen_at(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const size_t len = strlen(name);
    assert_true(len < sizeof(a.sun_path));
    memcpy(a.sun_path, name, len);
    if (*name == '@')
        a.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(
        bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
        0);
    setenv("NOTIFY_SOCKET", name, 1);
}

static const char *heard(void)
{
    static char text[1024];
    const ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[n < 0 ? 0 : n] = 0;
    return text;
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    snprintf(folder, sizeof(folder), "/tmp/motel-notify-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[80];
    (void)state;
    notify_done();
    if (fd >= 0)
        close(fd);
    fd = -1;
    snprintf(path, sizeof(path), "%s/s", folder);
    unlink(path);
    return rmdir(folder);
}

static void expect_messages(void)
{
    unsigned long long us = 0;
    notify_set_up();
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_string_equal(heard(), "");
    notify_ready("Receiving: 3 pipelines");
    assert_string_equal(heard(), "READY=1\nSTATUS=Receiving: 3 pipelines");
    const unsigned long long before = clock_now_ns() / 1000;
    notify_reloading();
    assert_int_equal(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading", &us), 1);
    assert_true(us >= before && us <= clock_now_ns() / 1000);
    notify_stopping("Delivering", 27 * NS_PER_S);
    assert_string_equal(heard(), "STOPPING=1\nSTATUS=Delivering\nEXTEND_TIMEOUT_USEC=27000000");
    notify_done();
    notify_ready("nobody hears this");
    assert_string_equal(heard(), "");
}

static void test_path(void **state)
{
    char name[80];
    (void)state;
    snprintf(name, sizeof(name), "%s/s", folder);
    listen_at(name);
    expect_messages();
}

static void test_abstract(void **state)
{
    char name[80];
    (void)state;
    snprintf(name, sizeof(name), "@motel-notify-test-%d", getpid());
    listen_at(name);
    expect_messages();
}

/* The longest name that there is: 107 bytes and a NUL. */
static void test_long_names(void **state)
{
    char name[120] = "@";
    (void)state;
    memset(name + 1, 'x', 106);
    snprintf(name + 1, 20, "%d-", getpid());
    name[strlen(name)] = 'x';
    assert_int_equal(strlen(name), 107);
    listen_at(name);
    notify_set_up();
    notify_ready("long");
    assert_string_equal(heard(), "READY=1\nSTATUS=long");
    notify_done();
    name[107] = 'y'; /* does not fit: nobody is told, nothing breaks */
    setenv("NOTIFY_SOCKET", name, 1);
    notify_set_up();
    notify_ready("too long");
    assert_string_equal(heard(), "");
}

/* A status of any length is one message, and is cut. */
static void test_long_status(void **state)
{
    char name[80], status[2000];
    (void)state;
    memset(status, 's', sizeof(status));
    status[sizeof(status) - 1] = 0;
    snprintf(name, sizeof(name), "%s/s", folder);
    listen_at(name);
    notify_set_up();
    notify_ready(status);
    assert_int_equal(strlen(heard()), strlen("READY=1\nSTATUS=") + 400);
    notify_stopping(status, NS_PER_S);
    assert_non_null(strstr(heard(), "s\nEXTEND_TIMEOUT_USEC=1000000"));
}

static void test_no_manager(void **state)
{
    static const char *const names[] = {
        NULL, "", "relative", "/", "@", "vsock:2:1234", "/nobody/listens/here"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (names[i])
            setenv("NOTIFY_SOCKET", names[i], 1);
        setenv("WATCHDOG_USEC", "1000000", 1);
        notify_set_up();
        notify_ready("ready");
        notify_reloading();
        notify_watchdog();
        notify_stopping("", 0);
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_null(getenv("WATCHDOG_USEC"));
        notify_done();
    }
}

struct watchdog_case {
    const char *us, *pid; /* "self" is this process */
    bool watched;
};

static void test_watchdog(void **state)
{
    static const struct watchdog_case cases[] = {
        {"30000000", NULL, true}, {"30000000", "self", true},
        {"30000000", "1", false}, {"30000000", "x", false},
        {NULL, NULL, false},      {"0", NULL, false},
        {"-5", NULL, false},      {"30s", NULL, false},
        {"", NULL, false},        {"99999999999999999999", NULL, false},
    };
    char name[80], self[20];
    (void)state;
    snprintf(name, sizeof(name), "@motel-watchdog-test-%d", getpid());
    snprintf(self, sizeof(self), "%d", getpid());
    listen_at(name);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct watchdog_case *c = &cases[i];
        setenv("NOTIFY_SOCKET", name, 1);
        if (c->us)
            setenv("WATCHDOG_USEC", c->us, 1);
        if (c->pid)
            setenv("WATCHDOG_PID", strcmp(c->pid, "self") == 0 ? self : c->pid, 1);
        const uint64_t before = clock_now_ns();
        notify_set_up();
        assert_int_equal(notify_watchdog_due_ns() <= clock_now_ns(), c->watched);
        notify_watchdog();
        assert_string_equal(heard(), c->watched ? "WATCHDOG=1" : "");
        notify_watchdog(); /* not due yet: half of the time has to go by */
        assert_string_equal(heard(), "");
        if (c->watched)
            assert_in_range(notify_watchdog_due_ns(), before + 15 * NS_PER_S,
                            clock_now_ns() + 15 * NS_PER_S);
        else
            assert_true(notify_watchdog_due_ns() == UINT64_MAX);
        notify_done();
    }
}

/* Messages until the manager has no room for more. */
static void fill(void)
{
    struct sockaddr_un a;
    socklen_t size = sizeof(a);
    _cleanup_close_ int own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    while (sendto(own, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, size) > 0)
        ;
}

/* It is waited for once; a watchdog message is tried again soon, and all is well when it reads
 * again. */
static void test_manager_that_does_not_read(void **state)
{
    char name[80];
    (void)state;
    snprintf(name, sizeof(name), "@motel-deaf-test-%d", getpid());
    listen_at(name);
    setenv("WATCHDOG_USEC", "60000000", 1);
    notify_set_up();
    fill();
    const uint64_t begin = clock_now_ns();
    for (int i = 0; i < 50; i++)
        notify_ready("nobody reads this");
    notify_watchdog();
    notify_stopping("in time", NS_PER_S);
    assert_true(clock_now_ns() - begin <
                20 * NS_PER_S); /* each would have waited for half a second */
    assert_true(notify_watchdog_due_ns() < clock_now_ns() + 2 * NS_PER_S);
    while (*heard())
        ;
    notify_ready("again");
    assert_string_equal(heard(), "READY=1\nSTATUS=again");
}

/* No time is too short to do something else as well. */
static void test_shortest_watchdog(void **state)
{
    char name[80];
    (void)state;
    snprintf(name, sizeof(name), "@motel-short-test-%d", getpid());
    listen_at(name);
    setenv("WATCHDOG_USEC", "1", 1);
    notify_set_up();
    const uint64_t before = clock_now_ns();
    notify_watchdog();
    assert_true(notify_watchdog_due_ns() >= before + NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_abstract, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_manager, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_watchdog, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_manager_that_does_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shortest_watchdog, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
