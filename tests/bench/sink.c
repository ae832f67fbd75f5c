/* sink PORT [-p PAGE]: a small HTTP/1.1 server on 127.0.0.1 for the benchmark.
 *
 * POST bodies are counted (requests, bytes as sent, spans, data points and log records after
 * decoding; gzip is understood) and answered with 200. GET /stats answers the counters as JSON; GET
 * of anything else answers the contents of the file PAGE, a scrape target. One thread, epoll,
 * level-triggered. It shares no code with motel: it checks it. */
#include <errno.h>
#include <libdeflate.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/otlp_count.h"

#define ROOM 65536u
#define MAX_CHUNK (1ul << 30)

struct conn {
    int fd;
    char *data;
    size_t len, size;
    bool told_to_continue;
};

struct request {
    char method[8], path[128];
    size_t head_len, body_len,
        used; /* used: bytes of input that the body took, chunk heads included */
    bool gzip, chunked, expect, close;
};

static struct {
    unsigned long posts, gets, bytes_wire, bytes, spans, points, logs, bad;
} seen;
static struct {
    char *data;
    size_t len;
} page, inflated;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *grow(void *p, size_t n)
{
    p = realloc(p, n);
    if (!p)
        die("realloc");
    return p;
}

/* The length of a gzip member's contents stands in its last four bytes. */
static size_t gzip_content_length(const char *in, size_t n)
{
    const uint8_t *t = (const uint8_t *)in + n - 4;
    return n < 18 ? 0 : (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 | (size_t)t[3] << 24;
}

static bool gunzip(const char *in, size_t n, size_t *ret_len)
{
    static struct libdeflate_decompressor *z;
    if (!z && !(z = libdeflate_alloc_decompressor()))
        die("libdeflate");
    size_t want = gzip_content_length(in, n);
    if (want == 0 || want > MAX_CHUNK)
        return false;
    if (inflated.len < want)
        inflated.data = grow(inflated.data, inflated.len = want);
    return libdeflate_gzip_decompress(z, in, n, inflated.data, want, ret_len) == LIBDEFLATE_SUCCESS;
}

static bool send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t w = send(fd, data, n, MSG_NOSIGNAL);
        if (w > 0) {
            data += w;
            n -= (size_t)w;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static bool reply(int fd, const char *type, const char *body, size_t n)
{
    char head[256];
    int len =
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", type, n);
    char *all = grow(NULL, (size_t)len + n);
    memcpy(all, head, (size_t)len);
    if (n)
        memcpy(all + len, body, n);
    bool ok = send_all(fd, all, (size_t)len + n);
    free(all);
    return ok;
}

static bool reply_stats(int fd)
{
    char s[512];
    int n = snprintf(s, sizeof(s),
                     "{\"posts\":%lu,\"gets\":%lu,\"bytes_wire\":%lu,\"bytes\":%lu,\"spans\":%lu,"
                     "\"points\":%lu,\"logs\":%lu,\"bad\":%lu}\n",
                     seen.posts, seen.gets, seen.bytes_wire, seen.bytes, seen.spans, seen.points,
                     seen.logs, seen.bad);
    return reply(fd, "application/json", s, (size_t)n);
}

static void count(const struct request *r, const char *body)
{
    size_t n = r->body_len;
    seen.posts++;
    seen.bytes_wire += n;
    if (r->gzip) {
        if (!gunzip(body, r->body_len, &n)) {
            seen.bad++;
            return;
        }
        body = inflated.data;
    }
    seen.bytes += n;
    bool metrics = strncmp(r->path, "/v1/metrics", 11) == 0;
    long records = otlp_count((const uint8_t *)body, n, metrics);
    if (records < 0)
        seen.bad++;
    else if (metrics)
        seen.points += (unsigned long)records;
    else if (strncmp(r->path, "/v1/logs", 8) == 0)
        seen.logs += (unsigned long)records;
    else
        seen.spans += (unsigned long)records;
}

/* One pass over chunks: 1 complete, 0 more is needed, -1 malformed. With `join` the data is moved
 * together. */
static int walk_chunks(char *b, size_t len, bool join, size_t *ret_body, size_t *ret_used)
{
    size_t at = 0, out = 0;
    for (;;) {
        char *end, *newline = memchr(b + at, '\n', len - at);
        if (!newline)
            return 0;
        unsigned long size = strtoul(b + at, &end, 16);
        if (end == b + at || size > MAX_CHUNK)
            return -1;
        size_t data = (size_t)(newline - b) + 1;
        if (len < data + size + 2)
            return 0;
        if (join)
            memmove(b + out, b + data, size);
        out += size;
        at = data + size + 2;
        if (size == 0)
            break;
    }
    *ret_body = out;
    *ret_used = at;
    return 1;
}

static int dechunk(char *b, size_t len, size_t *ret_body, size_t *ret_used)
{
    int rc = walk_chunks(b, len, false, ret_body, ret_used);
    return rc == 1 ? walk_chunks(b, len, true, ret_body, ret_used) : rc;
}

static void read_header(const char *line, struct request *r)
{
    if (strncasecmp(line, "content-length:", 15) == 0)
        r->body_len = strtoul(line + 15, NULL, 10);
    else if (strncasecmp(line, "content-encoding:", 17) == 0)
        r->gzip = strncasecmp(line + 17 + strspn(line + 17, " "), "gzip", 4) == 0;
    else if (strncasecmp(line, "transfer-encoding:", 18) == 0)
        r->chunked = true;
    else if (strncasecmp(line, "expect:", 7) == 0)
        r->expect = true;
    else if (strncasecmp(line, "connection: close", 17) == 0)
        r->close = true;
}

/* Reads the head of the request in front; false when it is not complete. */
static bool read_head(struct conn *c, struct request *r)
{
    char *end = memmem(c->data, c->len, "\r\n\r\n", 4);
    if (!end)
        return false;
    r->head_len = (size_t)(end - c->data) + 4;
    *end = '\0'; /* for sscanf and strchr; put back below */
    sscanf(c->data, "%7s %127s", r->method, r->path);
    for (char *l = strchr(c->data, '\n'); l; l = strchr(l, '\n'))
        read_header(++l, r);
    *end = '\r';
    return true;
}

/* 1: the body is there, 0: more is needed, -1: malformed. */
static int read_body(struct conn *c, struct request *r)
{
    size_t have = c->len - r->head_len;
    if (r->chunked)
        return dechunk(c->data + r->head_len, have, &r->body_len, &r->used);
    r->used = r->body_len;
    return have >= r->body_len;
}

static bool answer(struct conn *c, const struct request *r)
{
    if (strcmp(r->method, "POST") == 0) {
        count(r, c->data + r->head_len);
        return reply(c->fd, "application/x-protobuf", NULL, 0);
    }
    if (strcmp(r->path, "/stats") == 0)
        return reply_stats(c->fd);
    seen.gets++;
    return reply(c->fd, "text/plain; version=0.0.4; charset=utf-8", page.data, page.len);
}

/* Answers all complete requests; false: close the connection. */
static bool handle(struct conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    for (;;) {
        struct request r = {0};
        if (!read_head(c, &r))
            return true;
        if (r.expect && !c->told_to_continue) {
            if (!send_all(c->fd, go_on, sizeof(go_on) - 1))
                return false;
            c->told_to_continue = true;
        }
        int rc = read_body(c, &r);
        if (rc <= 0)
            return rc == 0;
        if (!answer(c, &r) || r.close)
            return false;
        c->told_to_continue = false;
        c->len -= r.head_len + r.used;
        memmove(c->data, c->data + r.head_len + r.used, c->len);
    }
}

static void accept_one(int listener, int epoll)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct conn *c = grow(NULL, sizeof(*c));
    *c = (struct conn){.fd = fd};
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
        die("epoll_ctl");
}

static void readable(struct conn *c)
{
    if (c->size - c->len < ROOM)
        c->data = grow(c->data, c->size = c->size * 2 + 2 * ROOM);
    ssize_t n = recv(c->fd, c->data + c->len, c->size - c->len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        c->len += (size_t)n;
        if (handle(c))
            return;
    }
    close(c->fd);
    free(c->data);
    free(c);
}

static void load_page(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    fseek(f, 0, SEEK_END);
    page.len = (size_t)ftell(f);
    rewind(f);
    page.data = grow(NULL, page.len + 1);
    if (fread(page.data, 1, page.len, f) != page.len)
        die(path);
    fclose(f);
}

static int listen_on(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
        die("bind");
    return fd;
}

static void serve(int listener)
{
    struct epoll_event evs[64], ev = {.events = EPOLLIN, .data.ptr = NULL};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &ev) < 0)
        die("epoll");
    for (;;) {
        int n = epoll_wait(epoll, evs, 64, -1);
        for (int i = 0; i < n; i++) {
            if (evs[i].data.ptr)
                readable(evs[i].data.ptr);
            else
                accept_one(listener, epoll);
        }
    }
}

int main(int argc, char **argv)
{
    int opt;
    while ((opt = getopt(argc, argv, "p:")) == 'p')
        load_page(optarg);
    unsigned long port = optind < argc ? strtoul(argv[optind], NULL, 10) : 0;
    if (opt != -1 || port == 0 || port > UINT16_MAX) {
        fprintf(stderr, "usage: sink [-p PAGE] PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    serve(listen_on((uint16_t)port));
}
