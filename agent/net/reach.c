/* Names, connections, and what a server says without TLS. */
#include "agent/net/reach.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/un.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"

/* ---- names ---- */

/* getaddrinfo() cannot be interrupted, so a thread asks; two hold this, the last one frees it. */
struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    unsigned holders;
    bool done;
    char host[256], port[16];
    int code, system_code;
    struct addrinfo *list;
};

static void lookup_release(struct lookup *l)
{
    pthread_mutex_lock(&l->lock);
    const bool last = --l->holders == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    if (l->list)
        freeaddrinfo(l->list);
    pthread_cond_destroy(&l->finished);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void *lookup_main(void *arg)
{
    struct lookup *l = arg;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const int code = getaddrinfo(l->host, l->port, &hints, &list), system_code = errno;
    pthread_mutex_lock(&l->lock);
    l->code = code;
    l->system_code = system_code;
    l->list = code == 0 ? list : NULL;
    l->done = true;
    pthread_cond_signal(&l->finished);
    pthread_mutex_unlock(&l->lock);
    lookup_release(l);
    return NULL;
}

static struct lookup *lookup_new(const char *host, const char *port)
{
    struct lookup *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->holders = 1;
    pthread_mutex_init(&l->lock, NULL);
    cond_init_monotonic(&l->finished);
    snprintf(l->host, sizeof(l->host), "%s", host);
    snprintf(l->port, sizeof(l->port), "%s", port);
    return l;
}

static int lookup_start(struct lookup *l)
{
    pthread_t thread;
    l->holders++;
    const int r = pthread_create(&thread, NULL, lookup_main, l);
    if (r == 0)
        pthread_detach(thread);
    else
        l->holders--;
    return -r;
}

static void copy_addresses(const struct addrinfo *list, struct reach_addresses *ret)
{
    for (; list && ret->n < REACH_ADDRESSES; list = list->ai_next) {
        struct reach_address *a = &ret->items[ret->n];
        if (list->ai_addrlen > sizeof(a->addr))
            continue;
        memcpy(&a->addr, list->ai_addr, list->ai_addrlen);
        a->len = list->ai_addrlen;
        ret->n++;
    }
}

/* Under the lock. */
static int lookup_result(const struct lookup *l, struct reach_addresses *ret, struct err *reterr)
{
    if (!l->done)
        return err_set(reterr, -ETIMEDOUT, "no answer from the name service");
    if (l->code)
        return err_set(reterr, -EHOSTUNREACH, "%s",
                       l->code == EAI_SYSTEM ? strerror(l->system_code) : gai_strerror(l->code));
    copy_addresses(l->list, ret);
    return ret->n ? 0 : err_set(reterr, -EHOSTUNREACH, "the name has no address");
}

int reach_resolve(const char *host, const char *port, uint64_t timeout_ns,
                  struct reach_addresses *ret, struct err *reterr)
{
    const uint64_t until = clock_now_ns() + timeout_ns;
    memset(ret, 0, sizeof(*ret));
    struct lookup *l = lookup_new(host, port);
    int r = l ? lookup_start(l) : -ENOMEM;
    if (r < 0) {
        if (l)
            lookup_release(l);
        return err_set(reterr, r, "%s", strerror(-r));
    }
    pthread_mutex_lock(&l->lock);
    while (!l->done && cond_wait_until(&l->finished, &l->lock, until) != ETIMEDOUT)
        ;
    r = lookup_result(l, ret, reterr);
    pthread_mutex_unlock(&l->lock);
    lookup_release(l);
    return r;
}

int reach_unix(const char *path, struct reach_addresses *ret)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&ret->items[0].addr;
    memset(ret, 0, sizeof(*ret));
    if (strlen(path) >= sizeof(un->sun_path))
        return -ENAMETOOLONG;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, strlen(path));
    ret->items[0].len = sizeof(*un);
    ret->n = 1;
    return 0;
}

/* ---- connections ---- */

/* 0 or -ETIMEDOUT. */
static int wait_fd(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        const uint64_t now = clock_now_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        struct pollfd p = {fd, events, 0};
        if (poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1) > 0)
            return 0;
    }
}

static int connect_one(const struct reach_address *a, uint64_t deadline_ns)
{
    _cleanup_close_ int fd =
        socket(a->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = connect(fd, (const struct sockaddr *)&a->addr, a->len) < 0 ? -errno : 0;
    if (r == -EINPROGRESS) {
        int reason = 0;
        socklen_t size = sizeof(reason);
        r = wait_fd(fd, POLLOUT, deadline_ns);
        if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) == 0)
            r = -reason;
    }
    return r < 0 ? r : TAKE_FD(fd);
}

int reach_connect(const struct reach_addresses *a, uint64_t deadline_ns, unsigned *ret_at)
{
    int r = -EHOSTUNREACH;
    for (unsigned i = 0; i < a->n; i++) {
        const uint64_t now = clock_now_ns();
        const uint64_t share = now < deadline_ns ? (deadline_ns - now) / (a->n - i) : 0;
        *ret_at = i;
        r = connect_one(&a->items[i], now + share);
        if (r >= 0)
            return r;
    }
    return r;
}

/* ---- what is spoken ---- */

static enum reach_speech speech_of(const unsigned char *in, size_t len)
{
    if (len >= 5 && memcmp(in, "HTTP/", 5) == 0)
        return SPEAKS_HTTP1;
    if (len >= 3 && (in[0] == 0x15 || in[0] == 0x16) && in[1] == 3)
        return SPEAKS_TLS;
    /* a frame: its length, then type 4 (SETTINGS) or 7 (GOAWAY) on stream 0 */
    if (len >= 9 && (in[3] == 4 || in[3] == 7) && memcmp(in + 5, "\0\0\0\0", 4) == 0)
        return SPEAKS_HTTP2;
    return len ? SPEAKS_OTHER : SPEAKS_NOTHING;
}

enum reach_speech reach_listen(int fd, bool http1, uint64_t deadline_ns)
{
    static const char h2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0",
                      h1[] = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    unsigned char in[64];
    size_t len = 0;
    if (send(fd, http1 ? h1 : h2, http1 ? sizeof(h1) - 1 : sizeof(h2), MSG_NOSIGNAL) < 0)
        return SPEAKS_NOTHING;
    while (len < 9 && wait_fd(fd, POLLIN, deadline_ns) == 0) {
        const ssize_t n = recv(fd, in + len, sizeof(in) - len, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    return speech_of(in, len);
}
