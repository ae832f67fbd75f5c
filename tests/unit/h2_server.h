/* An HTTP/2 server in the test's own process, without TLS: answers gRPC calls from a list. One
 * connection at a time. */
#ifndef MOTEL_TESTS_H2_SERVER_H
#define MOTEL_TESTS_H2_SERVER_H

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/buf.h"

struct h2_answer {
    const char *status;        /* HTTP; NULL = "200" */
    const char *content_type;  /* NULL = application/grpc */
    const char *grpc_status;   /* NULL = none */
    const char *grpc_message;  /* NULL = none */
    const char *details;       /* grpc-status-details-bin; NULL = none */
    const char *grpc_encoding; /* NULL = none */
    struct bytes body;
    bool hang;               /* no answer */
    bool drop;               /* close the connection */
    uint32_t reset;          /* RST_STREAM with this code */
    bool goaway_unprocessed; /* GOAWAY that excludes this stream, then a new connection is expected
                              */
    bool goaway_after;       /* GOAWAY behind the answer */
};

struct h2_server {
    int fd, port, conn;
    pthread_t thread;
    const struct h2_answer *answers; /* the last one repeats */
    unsigned nanswers;
    bool no_settings; /* close every connection at once */
    /* Under the lock. */
    pthread_mutex_t lock;
    unsigned requests, connections, resets;
    struct buf *headers; /* "name: value\n" of all requests */
    struct buf *body;    /* of the last request */
    /* The thread's. */
    const struct h2_answer *now;
    size_t sent;
    bool dead;
};

static inline int h2_on_begin(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    struct h2_server *s = user;
    (void)h2;
    if (f->hd.type != NGHTTP2_HEADERS)
        return 0;
    pthread_mutex_lock(&s->lock);
    s->body->len = 0;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static inline int h2_on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *n,
                               size_t nlen, const uint8_t *v, size_t vlen, uint8_t flags,
                               void *user)
{
    struct h2_server *s = user;
    (void)h2, (void)f, (void)flags;
    pthread_mutex_lock(&s->lock);
    buf_printf(s->headers, "%.*s: %.*s\n", (int)nlen, n, (int)vlen, v);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static inline int h2_on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                             const uint8_t *data, size_t len, void *user)
{
    struct h2_server *s = user;
    (void)h2, (void)flags, (void)stream;
    pthread_mutex_lock(&s->lock);
    buf_append(s->body, data, len);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static inline ssize_t h2_read(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t len,
                              uint32_t *flags, nghttp2_data_source *src, void *user)
{
    struct h2_server *s = user;
    const struct h2_answer *a = s->now;
    (void)src;
    size_t n = a->body.len - s->sent < len ? a->body.len - s->sent : len;
    if (n)
        memcpy(to, a->body.data + s->sent, n);
    s->sent += n;
    if (s->sent < a->body.len)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    nghttp2_nv nv[3];
    size_t count = 0;
    const char *const fields[][2] = {{"grpc-status", a->grpc_status},
                                     {"grpc-message", a->grpc_message},
                                     {"grpc-status-details-bin", a->details}};
    for (size_t i = 0; i < 3; i++)
        if (fields[i][1])
            nv[count++] = (nghttp2_nv){(uint8_t *)fields[i][0], (uint8_t *)fields[i][1],
                                       strlen(fields[i][0]), strlen(fields[i][1]), 0};
    if (count) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(h2, stream, nv, count);
    }
    return (ssize_t)n;
}

static inline void h2_answer_now(struct h2_server *s, nghttp2_session *h2, int32_t stream)
{
    const struct h2_answer *a = s->now;
    const char *status = a->status ? a->status : "200",
               *type = a->content_type ? a->content_type : "application/grpc";
    nghttp2_nv nv[] = {{(uint8_t *)":status", (uint8_t *)status, 7, strlen(status), 0},
                       {(uint8_t *)"content-type", (uint8_t *)type, 12, strlen(type), 0},
                       {(uint8_t *)"grpc-encoding", (uint8_t *)a->grpc_encoding, 13,
                        a->grpc_encoding ? strlen(a->grpc_encoding) : 0, 0}};
    nghttp2_data_provider p = {.read_callback = h2_read};
    s->sent = 0;
    if (a->hang)
        return;
    if (a->drop)
        s->dead = true;
    else if (a->reset)
        nghttp2_submit_rst_stream(h2, 0, stream, a->reset);
    else if (a->goaway_unprocessed)
        nghttp2_submit_goaway(h2, 0, stream > 2 ? stream - 2 : 0, NGHTTP2_NO_ERROR, NULL, 0);
    else
        nghttp2_submit_response(h2, stream, nv, a->grpc_encoding ? 3 : 2, &p);
    if (a->goaway_after)
        nghttp2_submit_goaway(h2, 0, stream, NGHTTP2_NO_ERROR, NULL, 0);
}

static inline int h2_on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    struct h2_server *s = user;
    if (f->hd.type == NGHTTP2_RST_STREAM) {
        pthread_mutex_lock(&s->lock);
        s->resets++;
        pthread_mutex_unlock(&s->lock);
    }
    if ((f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS) ||
        !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    pthread_mutex_lock(&s->lock);
    s->now = &s->answers[s->requests < s->nanswers ? s->requests : s->nanswers - 1];
    s->requests++;
    pthread_mutex_unlock(&s->lock);
    h2_answer_now(s, h2, f->hd.stream_id);
    return 0;
}

static inline ssize_t h2_send(nghttp2_session *h2, const uint8_t *data, size_t len, int flags,
                              void *user)
{
    struct h2_server *s = user;
    (void)h2, (void)flags;
    ssize_t n = send(s->conn, data, len, MSG_NOSIGNAL);
    return n < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : n;
}

static inline void h2_connection(struct h2_server *s)
{
    nghttp2_session_callbacks *cb;
    nghttp2_session *h2;
    uint8_t in[8192];
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_send_callback(cb, h2_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, h2_on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, h2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, h2_on_frame);
    nghttp2_session_server_new(&h2, cb, s);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(h2, 0, NULL, 0);
    s->dead = false;
    while (nghttp2_session_send(h2) == 0 && !s->dead &&
           (nghttp2_session_want_read(h2) || nghttp2_session_want_write(h2))) {
        ssize_t n = recv(s->conn, in, sizeof(in), 0);
        if (n <= 0 || nghttp2_session_mem_recv(h2, in, (size_t)n) < 0)
            break;
    }
    nghttp2_session_del(h2);
    shutdown(
        s->conn,
        SHUT_WR); /* a close with bytes unread would be a reset, which overtakes what was sent */
    while (recv(s->conn, in, sizeof(in), 0) > 0)
        ;
}

static inline void *h2_run(void *arg)
{
    struct h2_server *s = arg;
    while ((s->conn = accept(s->fd, NULL, NULL)) >= 0) {
        pthread_mutex_lock(&s->lock);
        s->connections++;
        pthread_mutex_unlock(&s->lock);
        if (!s->no_settings)
            h2_connection(s);
        close(s->conn);
    }
    return NULL;
}

static inline struct h2_server *h2_start(const struct h2_answer *answers, unsigned n)
{
    struct h2_server *s = calloc(1, sizeof(*s));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    s->answers = answers;
    s->nanswers = n;
    s->headers = buf_new(0);
    s->body = buf_new(0);
    pthread_mutex_init(&s->lock, NULL);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->fd, (struct sockaddr *)&a, len) < 0 || listen(s->fd, 8) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    s->port = ntohs(a.sin_port);
    if (pthread_create(&s->thread, NULL, h2_run, s) != 0)
        abort();
    return s;
}

static inline unsigned h2_count(struct h2_server *s, const unsigned *what)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = *what;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* The client has closed its connections. */
static inline void h2_stop(struct h2_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    buf_unref(s->headers);
    buf_unref(s->body);
    free(s);
}

#endif
