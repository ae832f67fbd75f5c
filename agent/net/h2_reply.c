/* Replies on HTTP/2 streams. */
#include <stdio.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/net/h2_impl.h"

/* An answer that there was no memory for: CANCELLED for gRPC, which clients may try again. Not
 * REFUSED_STREAM, since the request was processed. */
#define NO_MEMORY_CODE NGHTTP2_CANCEL

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static int submit_trailers(struct h2_stream *s)
{
    nghttp2_nv nva[16];
    unsigned n = s->ntrailers < ARRAY_SIZE(nva) ? s->ntrailers : (unsigned)ARRAY_SIZE(nva);
    for (unsigned i = 0; i < n; i++)
        nva[i] = nv_of(s->trailers[i].name, s->trailers[i].value);
    return nghttp2_submit_trailer(s->h->session, s->id, nva, n);
}

static ssize_t read_body(_unused_ nghttp2_session *session, _unused_ int32_t stream_id, uint8_t *to,
                         size_t room, uint32_t *flags, nghttp2_data_source *source,
                         _unused_ void *user_data)
{
    struct h2_stream *s = source->ptr;
    size_t left = s->out->len - s->out_at, n = left < room ? left : room;
    memcpy(to, s->out->data + s->out_at, n);
    s->moved_ns = clock_now_ns();
    s->out_at += n;
    if (n == left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->ntrailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (submit_trailers(s) != 0) {
                h2_stream_reset(s, NO_MEMORY_CODE);
                return NGHTTP2_ERR_DEFERRED;
            }
        }
    }
    return (ssize_t)n;
}

/* "content-length" for ordinary HTTP; nghttp2 copies everything. */
static int submit_headers(struct h2_stream *s, const struct reply *r)
{
    nghttp2_nv nva[32];
    const unsigned code = (unsigned)r->status % 1000;
    const char status[] = {(char)('0' + code / 100), (char)('0' + code / 10 % 10),
                           (char)('0' + code % 10), 0};
    char length[24];
    size_t n = 0;
    nva[n++] = nv_of(":status", status);
    for (unsigned i = 0; i < r->nheaders && n < ARRAY_SIZE(nva) - 1; i++)
        nva[n++] = nv_of(r->headers[i].name, r->headers[i].value);
    if (!s->x.grpc) {
        snprintf(length, sizeof(length), "%zu", r->body ? r->body->len : 0);
        nva[n++] = nv_of("content-length", length);
    }
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_body};
    return nghttp2_submit_response(s->h->session, s->id, nva, n, s->out ? &provider : NULL);
}

void h2_reply(struct http_exchange *x, struct reply *r)
{
    struct h2_stream *s = h2_stream_of(x);
    s->discard = true;
    s->moved_ns = clock_now_ns();
    bool head_only = bytes_eq_str(x->method, "HEAD");
    if (r->body && r->body->len && !head_only)
        s->out = buf_ref(r->body);
    if (s->out && r->ntrailers && (s->trailers = http_fields_copy(r->trailers, r->ntrailers)))
        s->ntrailers = r->ntrailers;
    const bool cut_short = s->out && r->ntrailers && !s->trailers;
    if (cut_short || submit_headers(s, r) != 0)
        h2_stream_reset(s, NO_MEMORY_CODE);
    buf_unref(r->body);
    if (!s->h->in_recv)
        h2_flush(s->h);
}

int h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_conn *h = user_data;
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->hd.stream_id > h->last_reset_id)
        h->last_reset_id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!s)
        return 0;
    s->h->ping_strikes = 0;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    s->replied = true;
    s->replied_ns = clock_now_ns();
    /* A request that was whole needs no more; one answered early is read away for a while, because
     * some clients only look at the answer once they could send everything. */
    if (!s->ended && s->requested)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    return 0;
}

void h2_answer_grpc(struct h2_stream *s, int status, const char *code, const char *message)
{
    const struct http_header_out headers[] = {
        {"content-type", "application/grpc"}, {"grpc-status", code}, {"grpc-message", message}};
    exchange_reply_headers(&s->x, status, headers, ARRAY_SIZE(headers));
}
