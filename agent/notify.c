#include "agent/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/log.h"

#define NS_PER_US 1000ull
#define PATIENCE_US 500000 /* for a manager that does not read: the main loop waits meanwhile */
#define AGAIN_NS NS_PER_S  /* after a watchdog message that was not taken */
#define MIN_WATCHDOG_US 2000ull /* a shorter time would keep a core busy */

/* One socket for all messages: there is none to be had when the descriptors are used up, and a
 * watchdog that then hears nothing would end a collector that works. */
static struct {
    int fd;    /* -1 = no manager */
    bool deaf; /* it did not read in time, so the next messages do not wait */
    struct sockaddr_un address;
    socklen_t address_size;
    uint64_t watchdog_ns, watchdog_due_ns; /* UINT64_MAX = not watched */
} manager = {.fd = -1, .watchdog_ns = UINT64_MAX, .watchdog_due_ns = UINT64_MAX};

/* Waits once, not each time: at a stop it comes out of the time for deliveries. */
static bool say(const char *text)
{
    if (manager.fd < 0)
        return false;
    const int flags = MSG_NOSIGNAL | (manager.deaf ? MSG_DONTWAIT : 0);
    const bool sent = sendto(manager.fd, text, strlen(text), flags, (const void *)&manager.address,
                             manager.address_size) >= 0;
    if (!sent && !manager.deaf)
        log_warn(NULL, "The service manager does not take messages",
                 LOG_STR("error", strerror(errno)));
    manager.deaf = !sent;
    return sent;
}

/* A path, or "@name" in the abstract namespace. */
static int parse_address(const char *name)
{
    const size_t len = strlen(name), room = sizeof(manager.address.sun_path);
    if (*name != '/' && *name != '@')
        return -EAFNOSUPPORT;
    if (len < 2 || len >= room)
        return -ENAMETOOLONG;
    memset(&manager.address, 0, sizeof(manager.address));
    manager.address.sun_family = AF_UNIX;
    memcpy(manager.address.sun_path, name, len);
    if (*name == '@')
        manager.address.sun_path[0] = '\0';
    manager.address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/'));
    return 0;
}

static int open_socket(const char *name)
{
    const struct timeval limit = {.tv_usec = PATIENCE_US};
    const int r = parse_address(name);
    if (r < 0)
        return r;
    manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (manager.fd < 0)
        return -errno;
    setsockopt(manager.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return 0;
}

/* A number of the environment; 0 = there is none. */
static uint64_t number(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' ? n : 0;
}

/* The watchdog is for the process that WATCHDOG_PID names, or for any without it. */
static void set_up_watchdog(void)
{
    const uint64_t us = number("WATCHDOG_USEC");
    if (us == 0 || us > UINT64_MAX / NS_PER_US ||
        (getenv("WATCHDOG_PID") && number("WATCHDOG_PID") != (uint64_t)getpid()))
        return;
    manager.watchdog_ns = us < MIN_WATCHDOG_US ? MIN_WATCHDOG_US * NS_PER_US : us * NS_PER_US;
    manager.watchdog_due_ns = clock_now_ns();
}

void notify_set_up(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (name && *name) {
        const int r = open_socket(name);
        if (r < 0)
            log_warn(NULL, "The service manager cannot be told anything",
                     LOG_STR("NOTIFY_SOCKET", name), LOG_STR("error", strerror(-r)));
        else
            set_up_watchdog();
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_done(void)
{
    if (manager.fd >= 0)
        close(manager.fd);
    manager.fd = -1;
    manager.deaf = false;
    manager.watchdog_ns = manager.watchdog_due_ns = UINT64_MAX;
}

void notify_ready(const char *status)
{
    char text[512];
    snprintf(text, sizeof(text), "READY=1\nSTATUS=%.400s", status);
    say(text);
}

void notify_reloading(void)
{
    char text[128];
    snprintf(text, sizeof(text),
             "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading the configuration again",
             clock_now_ns() / NS_PER_US);
    say(text);
}

void notify_stopping(const char *status, uint64_t within_ns)
{
    char text[512];
    snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=%.400s\nEXTEND_TIMEOUT_USEC=%llu", status,
             within_ns / NS_PER_US);
    say(text);
}

uint64_t notify_watchdog_due_ns(void)
{
    return manager.watchdog_due_ns;
}

void notify_watchdog(void)
{
    const uint64_t now = clock_now_ns();
    if (now < manager.watchdog_due_ns)
        return;
    const uint64_t half = manager.watchdog_ns / 2;
    const bool sent = say("WATCHDOG=1");
    manager.watchdog_due_ns = now + (sent || half < AGAIN_NS ? half : AGAIN_NS);
}
