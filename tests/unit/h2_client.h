/* An HTTP/2 client that sends what it is told, right or wrong, and shows what came back. */
#ifndef H2_CLIENT_H
#define H2_CLIENT_H

#include <nghttp2/nghttp2.h>

#include "raw_client.h"

struct h2_answer { /* of one stream */
    int32_t id;
    struct bytes out;    /* request body still to be sent */
    bool end;            /* with END_STREAM */
    int status;
    char type[128], grpc_status[8], grpc_message[512], encoding[32], accept[64], details[512];
    struct buf *data;
    bool headers_only;   /* everything came in one HEADERS with END_STREAM */
    bool ended;          /* END_STREAM came */
    int reset;           /* RST_STREAM code before the end, -1 = none */
    bool done;           /* the stream is over */
};
struct h2_peer { /* one connection */
    int fd;
    nghttp2_session *session;
    bool closed;
    int goaway;          /* code, -1 = none */
    unsigned pings;      /* acknowledged */
};

static inline struct h2_answer *h2_answer_of(nghttp2_session *s, int32_t id)
{
    return nghttp2_session_get_stream_user_data(s, id);
}
static inline void h2_copy(char *to, size_t size, const uint8_t *v, size_t n)
{
    snprintf(to, size, "%.*s", (int)n, (const char *)v);
}
static inline int h2_on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nlen, const uint8_t *v,
                               size_t vlen, uint8_t flags _unused_, void *ctx _unused_)
{
    struct h2_answer *a = h2_answer_of(s, f->hd.stream_id);
    struct bytes n = bytes_of(name, nlen);
    if (!a)
        return 0;
    if (bytes_eq_str(n, ":status"))
        a->status = atoi((const char *)v);
    else if (bytes_eq_str(n, "content-type"))
        h2_copy(a->type, sizeof(a->type), v, vlen);
    else if (bytes_eq_str(n, "grpc-status"))
        h2_copy(a->grpc_status, sizeof(a->grpc_status), v, vlen);
    else if (bytes_eq_str(n, "grpc-message"))
        h2_copy(a->grpc_message, sizeof(a->grpc_message), v, vlen);
    else if (bytes_eq_str(n, "grpc-encoding"))
        h2_copy(a->encoding, sizeof(a->encoding), v, vlen);
    else if (bytes_eq_str(n, "grpc-accept-encoding"))
        h2_copy(a->accept, sizeof(a->accept), v, vlen);
    else if (bytes_eq_str(n, "grpc-status-details-bin"))
        h2_copy(a->details, sizeof(a->details), v, vlen);
    return 0;
}
static inline int h2_on_data(nghttp2_session *s, uint8_t flags _unused_, int32_t id, const uint8_t *data, size_t len,
                             void *ctx _unused_)
{
    struct h2_answer *a = h2_answer_of(s, id);
    return a ? buf_append(a->data, data, len) : 0;
}
static inline int h2_on_frame(nghttp2_session *s, const nghttp2_frame *f, void *ctx)
{
    struct h2_peer *p = ctx;
    struct h2_answer *a = f->hd.stream_id ? h2_answer_of(s, f->hd.stream_id) : NULL;
    if (f->hd.type == NGHTTP2_GOAWAY)
        p->goaway = (int)f->goaway.error_code;
    if (f->hd.type == NGHTTP2_PING && (f->hd.flags & NGHTTP2_FLAG_ACK))
        p->pings++;
    if (a && f->hd.type == NGHTTP2_RST_STREAM && !a->ended)
        a->reset = (int)f->rst_stream.error_code;
    if (a && (f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) && (f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        a->ended = true;
        a->headers_only = f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_RESPONSE;
    }
    return 0;
}
static inline int h2_on_close(nghttp2_session *s, int32_t id, uint32_t code _unused_, void *ctx _unused_)
{
    struct h2_answer *a = h2_answer_of(s, id);
    if (a)
        a->done = true;
    return 0;
}

/* Connects and says the preface; fd -1 when refused. */
static inline struct h2_peer *h2_open(const char *address)
{
    struct h2_peer *p = calloc(1, sizeof(*p));
    nghttp2_session_callbacks *c;
    nghttp2_option *o;
    p->fd = raw_connect(address);
    p->goaway = -1;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(c, h2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, h2_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, h2_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, h2_on_close);
    nghttp2_option_new(&o);
    nghttp2_option_set_no_http_messaging(o, 1);
    nghttp2_option_set_max_send_header_block_length(o, 1 << 20);
    nghttp2_session_client_new2(&p->session, c, p, o);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(c);
    nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, NULL, 0);
    return p;
}
static inline void h2_close(struct h2_peer *p)
{
    nghttp2_session_del(p->session);
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}

static inline ssize_t h2_read_body(nghttp2_session *s _unused_, int32_t id _unused_, uint8_t *to, size_t room, uint32_t *flags,
                                   nghttp2_data_source *source, void *ctx _unused_)
{
    struct h2_answer *a = source->ptr;
    size_t n = a->out.len < room ? a->out.len : room;
    if (n == 0 && !a->end)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(to, a->out.data, n);
    a->out = bytes_of(a->out.data + n, a->out.len - n);
    if (a->out.len == 0 && a->end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* Begins a request: `fields` are name, value pairs, NULL ended. a->out and a->end say what follows. */
static inline void h2_begin(struct h2_peer *p, const char *const *fields, struct h2_answer *a)
{
    nghttp2_nv nva[32];
    size_t n = 0;
    for (; fields[0]; fields += 2)
        nva[n++] = (nghttp2_nv){(uint8_t *)fields[0], (uint8_t *)fields[1], strlen(fields[0]), strlen(fields[1]), 0};
    nghttp2_data_provider d = {.source.ptr = a, .read_callback = h2_read_body};
    a->reset = -1;
    a->data = buf_new(0);
    a->id = nghttp2_submit_request(p->session, NULL, nva, n, a->out.len || !a->end ? &d : NULL, a);
}

static inline bool h2_send(struct h2_peer *p)
{
    const uint8_t *data;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(p->session, &data)) > 0)
        while (n > 0) {
            ssize_t k = send(p->fd, data, (size_t)n, MSG_NOSIGNAL);
            if (k <= 0)
                return false;
            data += k;
            n -= k;
        }
    return true;
}
/* Moves bytes until `until` is true, the peer closes or `ms` have passed. */
static inline void h2_run(struct h2_peer *p, const bool *until, int ms)
{
    uint64_t end = clock_now_ns() + (uint64_t)ms * NS_PER_MS;
    uint8_t chunk[65536];
    while (!p->closed && !(until && *until)) {
        if (!h2_send(p))
            p->closed = true;
        uint64_t now = clock_now_ns();
        struct pollfd f = {p->fd, POLLIN, 0};
        if (now >= end || poll(&f, 1, (int)((end - now) / NS_PER_MS) + 1) <= 0)
            return;
        ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);
        if (n <= 0 || nghttp2_session_mem_recv(p->session, chunk, (size_t)n) < 0)
            p->closed = true;
        h2_send(p);
    }
}
static inline void h2_answer_done(struct h2_answer *a)
{
    a->data = buf_unref(a->data);
}

#endif
