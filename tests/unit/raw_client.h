/* Clients on bare sockets: bytes in, what came back, and whether the other side closed. */
#ifndef RAW_CLIENT_H
#define RAW_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"

/* Connects to "127.0.0.1:1234", "[::1]:1234" or a path. -1 when refused. */
static inline int raw_connect(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const struct sockaddr *a = (struct sockaddr *)&in;
    socklen_t len = sizeof(in);
    const char *port = strrchr(address, ':');
    if (address[0] == '/') {
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", address);
        a = (struct sockaddr *)&un;
        len = sizeof(un);
    } else if (address[0] == '[') {
        in6.sin6_port = htons((uint16_t)atoi(port + 1));
        a = (struct sockaddr *)&in6;
        len = sizeof(in6);
    } else {
        in.sin_port = htons((uint16_t)atoi(port + 1));
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, a, len) == 0)
        return fd;
    close(fd);
    return -1;
}

enum raw_end { RAW_OPEN, RAW_CLOSED };
struct raw_result {
    struct buf *got;
    enum raw_end end;
};

static inline bool raw_has(const struct buf *b, const char *text)
{
    return b->len && memmem(b->data, b->len, text, strlen(text)) != NULL;
}
static inline unsigned raw_count(const struct buf *b, const char *text)
{
    unsigned n = 0;
    const uint8_t *p = b->data, *end = b->data + b->len;
    while (p && p < end && (p = memmem(p, (size_t)(end - p), text, strlen(text)))) {
        n++;
        p += strlen(text);
    }
    return n;
}

/* Sends all of `out` while reading; ends when the peer closes, when `until` was received `times` times, or after idle_ms of
 * silence. The descriptor stays open. */
static inline struct raw_result raw_talk(int fd, struct bytes out, const char *until, unsigned times, int idle_ms)
{
    struct raw_result r = {buf_new(0), RAW_OPEN};
    uint8_t chunk[65536];
    for (;;) {
        struct pollfd p = {fd, (short)(POLLIN | (out.len ? POLLOUT : 0)), 0};
        if (poll(&p, 1, idle_ms) <= 0)
            return r;
        if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
            ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN)) {
                r.end = RAW_CLOSED;
                return r;
            }
            if (n > 0)
                buf_append(r.got, chunk, (size_t)n);
            if (until && raw_count(r.got, until) >= times)
                return r;
        }
        if (p.revents & POLLOUT) {
            ssize_t n = send(fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0)
                out = bytes_of(out.data + n, out.len - (size_t)n);
            else if (n < 0 && errno != EAGAIN)
                out.len = 0; /* it reads no more; its answer may still be there */
        }
    }
}
/* A whole conversation on a connection of its own. */
static inline struct raw_result raw_exchange(const char *address, struct bytes out, const char *until, int idle_ms)
{
    int fd = raw_connect(address);
    if (fd < 0)
        return (struct raw_result){buf_new(0), RAW_CLOSED};
    struct raw_result r = raw_talk(fd, out, until, 1, idle_ms);
    close(fd);
    return r;
}

/* One HTTP/1 answer in `in`, cut off it; false when there is none. `head`: it answers a HEAD request. */
struct raw_answer {
    int version, status; /* 11, 200 */
    char type[128], location[256], retry_after[32], connection[32];
    struct bytes head, body;
};
static inline void raw_field(struct bytes head, const char *name, char *ret, size_t size)
{
    char want[64];
    snprintf(want, sizeof(want), "\r\n%s:", name);
    ret[0] = 0;
    for (size_t i = 0; i + strlen(want) < head.len; i++) {
        if (strncasecmp((const char *)head.data + i, want, strlen(want)) != 0)
            continue;
        const char *v = (const char *)head.data + i + strlen(want);
        v += strspn(v, " ");
        snprintf(ret, size, "%.*s", (int)strcspn(v, "\r"), v);
        return;
    }
}
static inline bool raw_next_answer(struct bytes *in, bool head, struct raw_answer *ret)
{
    const uint8_t *end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL;
    char length[32];
    memset(ret, 0, sizeof(*ret));
    if (!end || in->len < 12 || memcmp(in->data, "HTTP/1.", 7) != 0)
        return false;
    ret->head = bytes_of(in->data, (size_t)(end - in->data) + 2);
    ret->version = in->data[7] == '0' ? 10 : 11;
    ret->status = atoi((const char *)in->data + 9);
    raw_field(ret->head, "content-type", ret->type, sizeof(ret->type));
    raw_field(ret->head, "location", ret->location, sizeof(ret->location));
    raw_field(ret->head, "retry-after", ret->retry_after, sizeof(ret->retry_after));
    raw_field(ret->head, "connection", ret->connection, sizeof(ret->connection));
    raw_field(ret->head, "content-length", length, sizeof(length));
    size_t n = ret->head.len + 2, left = in->len - n;
    size_t body = head || ret->status < 200 || ret->status == 204 ? 0 : length[0] ? strtoul(length, NULL, 10) : left;
    body = body < left ? body : left;
    ret->body = bytes_of(in->data + n, body);
    *in = bytes_of(in->data + n + body, left - body);
    return true;
}

#endif
