/* A TCP server in the test's own process: reads HTTP/1.1 requests and answers them from a list,
 * byte for byte. */
#ifndef MOTEL_TESTS_CANNED_H
#define MOTEL_TESTS_CANNED_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CANNED_CLOSE "close"         /* close the connection instead of an answer */
#define CANNED_HANG "hang"           /* never answer */
#define CANNED_CLOSE_AFTER "\nclose" /* an answer that ends with it is followed by a close */

struct canned {
    int fd;
    int port;
    pthread_t thread;
    const char *const *answers; /* NULL ended; the last one repeats */
    pthread_mutex_t lock;
    unsigned requests, connections, closed; /* under the lock */
    char log[400000]; /* the requests, one after the other, each with a NUL behind it; under the
                         lock */
    size_t log_len;
};

/* Reads one request into `to`; its length, 0 at the end of the connection. */
static inline size_t canned_read(int fd, char *to, size_t size)
{
    size_t len = 0, want = 0;
    while (!want || len < want) {
        ssize_t n = recv(fd, to + len, size - len - 1, 0);
        if (n <= 0)
            return 0;
        len += (size_t)n;
        to[len] = 0;
        char *end = want ? NULL : strstr(to, "\r\n\r\n");
        if (end) {
            const char *cl = strcasestr(to, "\r\ncontent-length:");
            want = (size_t)(end - to) + 4 + (cl && cl < end ? strtoul(cl + 17, NULL, 10) : 0);
        }
    }
    return len;
}

static inline const char *canned_next(struct canned *s, const char *request, size_t len)
{
    pthread_mutex_lock(&s->lock);
    const char *const *a = s->answers;
    for (unsigned i = 0; i < s->requests && a[1]; i++)
        a++;
    s->requests++;
    if (s->log_len + len + 1 < sizeof(s->log)) {
        memcpy(s->log + s->log_len, request, len);
        s->log_len += len + 1;
    }
    pthread_mutex_unlock(&s->lock);
    return *a;
}

static inline void canned_serve(struct canned *s, int fd)
{
    static _Thread_local char request[300000];
    for (size_t n; (n = canned_read(fd, request, sizeof(request))) > 0;) {
        const char *answer = canned_next(s, request, n);
        size_t len = strlen(answer), after = strlen(CANNED_CLOSE_AFTER);
        if (strcmp(answer, CANNED_CLOSE) == 0)
            return;
        if (strcmp(answer, CANNED_HANG) == 0)
            continue;
        bool last = len > after && strcmp(answer + len - after, CANNED_CLOSE_AFTER) == 0;
        if (send(fd, answer, last ? len - after : len, MSG_NOSIGNAL) < 0 || last)
            return;
    }
}

static inline void *canned_run(void *arg)
{
    struct canned *s = arg;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0;) {
        pthread_mutex_lock(&s->lock);
        s->connections++;
        pthread_mutex_unlock(&s->lock);
        canned_serve(s, fd);
        close(fd);
        pthread_mutex_lock(&s->lock);
        s->closed++;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static inline struct canned *canned_start(const char *const *answers)
{
    struct canned *s = calloc(1, sizeof(*s));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->answers = answers;
    pthread_mutex_init(&s->lock, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->fd, (struct sockaddr *)&a, len) < 0 || listen(s->fd, 8) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    s->port = ntohs(a.sin_port);
    if (pthread_create(&s->thread, NULL, canned_run, s) != 0)
        abort();
    return s;
}

static inline unsigned canned_count(struct canned *s, const unsigned *what)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = *what;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* The client has closed its connections. */
static inline void canned_stop(struct canned *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    free(s);
}

/* The n-th request (from 0); "" when there was none. */
static inline const char *canned_request(struct canned *s, unsigned n)
{
    pthread_mutex_lock(&s->lock);
    const char *p = s->log;
    while (n-- && p < s->log + s->log_len)
        p += strlen(p) + 1;
    pthread_mutex_unlock(&s->lock);
    return p;
}

#endif
