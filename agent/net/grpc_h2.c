/* The HTTP/2 frames of a gRPC client: requests, messages without a copy, answers. */
#include <errno.h>
#include <inttypes.h>
#include <nghttp2/nghttp2.h>

#include "agent/base/clock.h"
#include "agent/base/secrets.h"
#include "agent/net/grpc_client_impl.h"

#define MAX_DETAILS_BYTES 65536
#define MAX_REPLY_BYTES (4u * 1024 * 1024)
#define OWN_HEADERS 10
#define FRAME_PIECES 24u /* of a message, in one DATA frame */

/* ---- out */

static ssize_t on_send(nghttp2_session *h2 _unused_, const uint8_t *data, size_t len,
                       int flags _unused_, void *user)
{
    struct grpc_out *o = &((struct grpc_client *)user)->conn.out;
    struct iovec *last = o->n ? &o->piece[o->first + o->n - 1] : NULL;
    uint8_t *to = o->control + o->control_len;
    bool joins = last && (uint8_t *)last->iov_base + last->iov_len == to;
    if (o->control_len + len > CONTROL_BYTES || (!joins && o->first + o->n == OUT_PIECES))
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(to, data, len);
    o->control_len += len;
    o->bytes += len;
    if (joins)
        last->iov_len += len;
    else
        o->piece[o->first + o->n++] = (struct iovec){to, len};
    return (ssize_t)len;
}

static struct grpc_call *call_of(nghttp2_session *h2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(h2, stream);
}

/* How much of the message goes into the next DATA frame; the bytes follow in on_send_data(). */
static ssize_t on_read(nghttp2_session *h2, int32_t stream, uint8_t *to _unused_, size_t len,
                       uint32_t *flags, nghttp2_data_source *source _unused_, void *user _unused_)
{
    struct grpc_call *k = call_of(h2, stream);
    if (!k)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t n = len < k->body_left ? len : k->body_left;
    k->body_left -= n;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY | (k->body_left ? 0 : NGHTTP2_DATA_FLAG_EOF);
    return (ssize_t)n;
}

static int on_send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head, size_t len,
                        nghttp2_data_source *source _unused_, void *user)
{
    struct grpc_out *o = &((struct grpc_client *)user)->conn.out;
    struct grpc_call *k = call_of(h2, frame->hd.stream_id);
    if (!k)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (o->n && (o->first + o->n + FRAME_PIECES >= OUT_PIECES || o->bytes > OUT_BYTES))
        return NGHTTP2_ERR_WOULDBLOCK;
    if (on_send(h2, head, 9, 0, user) < 0)
        return NGHTTP2_ERR_WOULDBLOCK;
    o->bytes += len;
    while (len) {
        struct iovec *v = &k->body[k->body_at];
        size_t n = v->iov_len - k->body_off < len ? v->iov_len - k->body_off : len;
        if (n)
            o->piece[o->first + o->n++] = (struct iovec){(char *)v->iov_base + k->body_off, n};
        len -= n;
        k->body_off += n;
        if (k->body_off == v->iov_len) {
            k->body_at++;
            k->body_off = 0;
        }
    }
    return 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* As large as the peer takes them, but of no more than FRAME_PIECES pieces of the message. */
static ssize_t on_frame_size(nghttp2_session *h2, uint8_t type _unused_, int32_t stream,
                             int32_t session_window, int32_t stream_window, uint32_t remote_max,
                             void *user _unused_)
{
    struct grpc_call *k = call_of(h2, stream);
    int64_t n = smaller(smaller(session_window, stream_window), smaller(remote_max, OUT_BYTES)),
            here = 0;
    for (unsigned i = k ? k->body_at : 0; k && i < k->nbody && i < k->body_at + FRAME_PIECES; i++)
        here += (int64_t)k->body[i].iov_len;
    here -= k ? (int64_t)k->body_off : 0;
    return (ssize_t)(here > 0 ? smaller(n, here) : n);
}

struct headers {
    nghttp2_nv *nv;
    size_t n;
    struct buf *encoded; /* of "-bin" values */
};

static void add(struct headers *h, const char *name, const char *value, size_t len)
{
    h->nv[h->n++] =
        (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), len, NGHTTP2_NV_FLAG_NONE};
}

static void add_metadata(struct headers *h, const struct http_metadata *m)
{
    size_t n = strlen(m->name), at = h->encoded->len;
    if (n < 4 || strcmp(m->name + n - 4, "-bin") != 0) {
        add(h, m->name, m->value, strlen(m->value));
        return;
    }
    /* The buffer was reserved: it does not move. */
    if (grpc_bin_encode(bytes_str(m->value), h->encoded) == 0)
        add(h, m->name, (const char *)h->encoded->data + at, h->encoded->len - at);
}

static const char *encoding_name(enum codec c)
{
    return c == CODEC_SNAPPY_FRAMED || c == CODEC_SNAPPY ? "snappy" : codec_name(c);
}

static size_t encoded_room(const struct http_metadata *m, unsigned n)
{
    size_t room = 0;
    for (unsigned i = 0; i < n; i++)
        room += strlen(m[i].value) * 4 / 3 + 16;
    return room;
}

static bool is_replaced(const struct http_metadata *m, const struct grpc_call_options *o)
{
    for (unsigned i = 0; i < o->nmetadata; i++)
        if (strcmp(o->metadata[i].name, m->name) == 0)
            return true;
    return false;
}

/* What the call brings itself (credentials) is kept out of the tables that compress headers. */
static void add_all_metadata(struct headers *h, const struct grpc_client_settings *s,
                             const struct grpc_call_options *o)
{
    const size_t first = h->n;
    for (unsigned i = 0; i < o->nmetadata; i++)
        add_metadata(h, &o->metadata[i]);
    for (size_t i = first; i < h->n; i++)
        h->nv[i].flags |= NGHTTP2_NV_FLAG_NO_INDEX;
    for (unsigned i = 0; i < s->nmetadata; i++)
        if (!is_replaced(&s->metadata[i], o))
            add_metadata(h, &s->metadata[i]);
}

static void fill_headers(const struct grpc_client *c, const struct grpc_call *k, char timeout[16],
                         struct headers *h)
{
    const struct grpc_client_settings *s = &c->settings;
    add(h, ":method", "POST", 4);
    add(h, ":scheme", c->secure ? "https" : "http", c->secure ? 5 : 4);
    add(h, ":path", k->path, strlen(k->path));
    add(h, ":authority", c->authority, strlen(c->authority));
    add(h, "content-type", "application/grpc", 16);
    if (s->user_agent && *s->user_agent)
        add(h, "user-agent", s->user_agent, strlen(s->user_agent));
    add(h, "te", "trailers", 8);
    if (k->compressed)
        add(h, "grpc-encoding", encoding_name(s->compression),
            strlen(encoding_name(s->compression)));
    add(h, "grpc-accept-encoding", "gzip,zstd,snappy", 16);
    if (k->deadline_ns != UINT64_MAX) {
        uint64_t now = clock_now_ns();
        grpc_timeout_format(k->deadline_ns > now ? k->deadline_ns - now : 0, timeout);
        add(h, "grpc-timeout", timeout, strlen(timeout));
    }
    add_all_metadata(h, s, k->options);
}

int grpc_h2_submit(struct grpc_client *c, struct grpc_call *k)
{
    _cleanup_buf_ struct buf *encoded = buf_new(0);
    const struct grpc_client_settings *s = &c->settings;
    const struct grpc_call_options *o = k->options;
    const size_t room =
        encoded_room(s->metadata, s->nmetadata) + encoded_room(o->metadata, o->nmetadata);
    if (!encoded || buf_reserve(encoded, room) < 0)
        return -ENOMEM;
    _cleanup_free_ nghttp2_nv *nv = calloc(OWN_HEADERS + s->nmetadata + o->nmetadata, sizeof(*nv));
    if (!nv)
        return -ENOMEM;
    struct headers h = {.nv = nv, .encoded = encoded};
    char timeout[16];
    fill_headers(c, k, timeout, &h);
    k->no_memory = false;
    k->body_at = 0;
    k->body_off = k->body_left = 0;
    for (unsigned i = 0; i < k->nbody; i++)
        k->body_left += k->body[i].iov_len;
    const nghttp2_data_provider body = {.read_callback = on_read};
    k->stream = nghttp2_submit_request(c->conn.h2, NULL, h.nv, h.n, &body, k);
    return k->stream < 0 ? -EIO : 0;
}

/* ---- in */

static void take_text(struct bytes v, char *ret, size_t size)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (b && grpc_percent_decode(v, b) == 0 && buf_str(b) &&
        snprintf(ret, size, "%s", (const char *)b->data) >= (int)size)
        secrets_trim(ret);
}

static void take_details(struct bytes v, struct grpc_call *k)
{
    struct grpc_response *ret = k->ret;
    if (ret->details || v.len > MAX_DETAILS_BYTES)
        return;
    ret->details = buf_new(0);
    const int r = ret->details ? grpc_bin_decode(v, ret->details) : -ENOMEM;
    k->no_memory |= r == -ENOMEM;
    if (r < 0)
        ret->details = buf_unref(ret->details);
}

static int number(struct bytes v)
{
    int n = 0;
    for (size_t i = 0; i < v.len && i < 4; i++)
        n = v.data[i] >= '0' && v.data[i] <= '9' ? n * 10 + v.data[i] - '0' : 1000000;
    return v.len && v.len < 4 && n < 1000 ? n : GRPC_UNKNOWN;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len,
                     uint8_t flags _unused_, void *user _unused_)
{
    struct grpc_call *k = call_of(h2, frame->hd.stream_id);
    struct bytes n = bytes_of(name, name_len), v = bytes_of(value, value_len);
    if (!k)
        return 0;
    if (bytes_eq_str(n, ":status"))
        k->http_status = number(v);
    else if (bytes_eq_str(n, "content-type"))
        k->grpc_content = v.len >= 16 && memcmp(v.data, "application/grpc", 16) == 0;
    else if (bytes_eq_str(n, "grpc-status"))
        k->code = number(v);
    else if (bytes_eq_str(n, "grpc-message"))
        take_text(v, k->ret->message, sizeof(k->ret->message));
    else if (bytes_eq_str(n, "grpc-status-details-bin"))
        take_details(v, k);
    else if (bytes_eq_str(n, "grpc-encoding"))
        k->encoding = bytes_eq_str(v, "snappy") ? CODEC_SNAPPY_FRAMED : codec_find(v);
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags _unused_, int32_t stream, const uint8_t *data,
                   size_t len, void *user)
{
    struct grpc_client *c = user;
    struct grpc_call *k = call_of(h2, stream);
    if (!k)
        return 0;
    if (!k->data)
        k->data = buf_new(MAX_REPLY_BYTES + GRPC_PREFIX_BYTES);
    const int r = k->data ? buf_append(k->data, data, len) : -ENOMEM;
    k->no_memory |= r == -ENOMEM; /* the status may still come */
    if (r != -EMSGSIZE)
        return 0;
    nghttp2_session_set_stream_user_data(h2, stream, NULL);
    nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    calls_remove(&c->conn.active, k);
    grpc_out_keep(&c->conn);
    grpc_call_finish(c, k, GRPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (%u)",
                     MAX_REPLY_BYTES);
    return 0;
}

static int on_frame(nghttp2_session *h2 _unused_, const nghttp2_frame *frame, void *user)
{
    struct grpc_conn *n = &((struct grpc_client *)user)->conn;
    if (frame->hd.type == NGHTTP2_SETTINGS)
        n->ready = true;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        n->draining = true;
        snprintf(n->why, sizeof(n->why), "the server is closing the connection (GOAWAY, code: %s)",
                 nghttp2_http2_strerror(frame->goaway.error_code));
    }
    return 0;
}

/* The message of an OK answer; the text of what is wrong with it goes into `why`. */
static int read_message(struct grpc_call *k, char *why, size_t size)
{
    struct bytes payload;
    bool compressed;
    size_t used, need;
    struct bytes in = k->data ? buf_bytes(k->data) : bytes_of(NULL, 0);
    if (in.len == 0)
        return GRPC_OK;
    int r = grpc_frame_parse(in, &compressed, &payload, &used, &need);
    if (r <= 0) {
        snprintf(why, size,
                 r ? "grpc: received unexpected payload format"
                   : "unexpected EOF in the reply message");
        return GRPC_INTERNAL;
    }
    if (compressed && (k->encoding == CODEC_IDENTITY || k->encoding == CODEC_UNKNOWN)) {
        snprintf(why, size, "grpc: compressed flag set with identity or empty encoding");
        return GRPC_INTERNAL;
    }
    k->ret->message_bytes = buf_new(MAX_REPLY_BYTES);
    struct err e = {""};
    r = k->ret->message_bytes ? codec_decompress(compressed ? k->encoding : CODEC_IDENTITY, payload,
                                                 k->ret->message_bytes, &e)
                              : -ENOMEM;
    if (r == 0)
        return GRPC_OK;
    k->ret->message_bytes = buf_unref(k->ret->message_bytes);
    k->no_memory |= r == -ENOMEM;
    snprintf(why, size, "grpc: failed to decompress the received message: %.160s", e.text);
    return r == -EMSGSIZE ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL;
}

static int code_of_reset(uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM: return GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL: return GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM: return GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY: return GRPC_PERMISSION_DENIED;
    default: return GRPC_INTERNAL;
    }
}

static int code_of_answer(struct grpc_call *k, uint32_t error, char *why, size_t size)
{
    int code = k->code;
    if (code == GRPC_OK && k->grpc_content) {
        code = read_message(k, why, size);
    } else if (code >= 0 && k->grpc_content) {
        ; /* the server's own words stand in ret->message */
    } else if (k->http_status && (k->http_status != 200 || !k->grpc_content)) {
        code = grpc_code_of_http(k->http_status);
        snprintf(why, size, "unexpected HTTP status code received from server: %d%s",
                 k->http_status,
                 k->grpc_content ? "" : "; transport: received unexpected content-type");
    } else if (error) {
        code = code_of_reset(error);
        snprintf(why, size, "stream terminated by RST_STREAM with error code: %s",
                 nghttp2_http2_strerror(error));
    } else {
        code = GRPC_INTERNAL;
        snprintf(why, size, "server closed the stream without sending trailers");
    }
    return code;
}

static void conclude(struct grpc_client *c, struct grpc_call *k, uint32_t error)
{
    char why[256] = "";
    int code = code_of_answer(k, error, why, sizeof(why));
    if (k->no_memory) /* what is missing may be that it can be sent again */
        grpc_call_finish(c, k, GRPC_UNAVAILABLE, "out of memory while the answer was read");
    else
        grpc_call_finish(c, k, code, "%s", why);
}

static int on_close(nghttp2_session *h2, int32_t stream, uint32_t error, void *user)
{
    struct grpc_client *c = user;
    struct grpc_call *k = call_of(h2, stream);
    if (!k)
        return 0;
    calls_remove(&c->conn.active, k);
    grpc_out_keep(&c->conn);
    if (error == NGHTTP2_REFUSED_STREAM && !k->http_status)
        grpc_call_give_back(c, k, c->conn.why[0] ? c->conn.why : "the server refused the stream");
    else
        conclude(c, k, error);
    return 0;
}

void grpc_h2_cancel(struct grpc_client *c, struct grpc_call *k)
{
    nghttp2_session_set_stream_user_data(c->conn.h2, k->stream, NULL);
    nghttp2_submit_rst_stream(c->conn.h2, NGHTTP2_FLAG_NONE, k->stream, NGHTTP2_CANCEL);
    calls_remove(&c->conn.active, k);
    grpc_out_keep(&c->conn);
    grpc_call_finish(c, k, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
}

int grpc_h2_open(struct grpc_client *c)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&cb) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_send_callback(cb, on_send);
    nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(cb, on_frame_size);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    int r = nghttp2_option_new(&option);
    if (r == 0) {
        nghttp2_option_set_no_closed_streams(option, 1);
        r = nghttp2_session_client_new2(&c->conn.h2, cb, c, option);
        nghttp2_option_del(option);
    }
    nghttp2_session_callbacks_del(cb);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    if (r == 0)
        r = nghttp2_submit_settings(c->conn.h2, NGHTTP2_FLAG_NONE, settings, 1);
    return r == 0 ? 0 : -ENOMEM;
}
