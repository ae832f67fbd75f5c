/* HTTP/2 streams: header rules, bodies, gRPC messages. */
#include "agent/net/h2_impl.h"

#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"

#define FIRST_LOOK_NS NS_PER_S /* at the deadlines of new streams */

enum pseudo { PSEUDO_METHOD = 1, PSEUDO_PATH = 2, PSEUDO_SCHEME = 4, PSEUDO_AUTHORITY = 8 };

struct h2_field {
    uint32_t name_len, value_len;
};

void h2_stream_reset(struct h2_stream *s, uint32_t code)
{
    if (nghttp2_submit_rst_stream(s->h->session, NGHTTP2_FLAG_NONE, s->id, code) != 0)
        s->h->cut_now = true;
    s->discard = true;
}

/* ---- header section ---- */

static bool next_field(const struct buf *head, size_t *at, struct bytes *name, struct bytes *value)
{
    struct h2_field f;
    if (!head || *at >= head->len)
        return false;
    memcpy(&f, head->data + *at, sizeof(f));
    *at += sizeof(f);
    *name = bytes_of(head->data + *at, f.name_len);
    *value = bytes_of(head->data + *at + f.name_len, f.value_len);
    *at += f.name_len + f.value_len;
    return true;
}

static void h2_each(const struct http_exchange *x,
                    bool (*each)(void *ctx, struct bytes name, struct bytes value), void *ctx)
{
    struct bytes name, value;
    size_t at = 0;
    while (next_field(h2_stream_of(x)->head, &at, &name, &value))
        if (name.data[0] != ':' && !each(ctx, name, value))
            return;
}

static int keep_field(struct h2_stream *s, struct bytes name, struct bytes value)
{
    struct h2_field f = {(uint32_t)name.len, (uint32_t)value.len};
    if (!s->head && (!(s->head = buf_new(0)) || buf_reserve(s->head, 512) < 0))
        return -ENOMEM;
    if (s->head->len + name.len + value.len > s->h->head_max_bytes ||
        ++s->nfields > H2_MAX_FIELDS) {
        s->too_big = true;
        return 0;
    }
    if (buf_reserve(s->head, sizeof(f) + name.len + value.len) < 0)
        return -ENOMEM;
    uint8_t *to = buf_tail(s->head);
    memcpy(to, &f, sizeof(f));
    memcpy(to + sizeof(f), name.data, name.len);
    if (value.len)
        memcpy(to + sizeof(f) + name.len, value.data, value.len);
    buf_commit(s->head, sizeof(f) + name.len + value.len);
    return 0;
}

static bool pseudo_ok(struct h2_stream *s, struct bytes name)
{
    static const char *const names[] = {":method", ":path", ":scheme", ":authority"};
    if (s->nfields > (size_t)__builtin_popcount(s->pseudo)) /* behind an ordinary field */
        return false;
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (!bytes_eq_str(name, names[i]))
            continue;
        bool again = s->pseudo & (1u << i);
        s->pseudo |= (uint8_t)(1u << i);
        return !again;
    }
    return false;
}

static bool parse_length(struct h2_stream *s, struct bytes value)
{
    uint64_t n = 0;
    if (s->has_length || !value.len || value.len > 18)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(value.data[i] - '0');
    }
    s->has_length = true;
    s->x.announced = n;
    return true;
}

static bool is_grpc_type(struct bytes v)
{
    static const char type[] = "application/grpc";
    size_t n = sizeof(type) - 1;
    if (v.len < n || memcmp(v.data, type, n) != 0)
        return false;
    return v.len == n || v.data[n] == '+' || v.data[n] == ';';
}

/* RFC 9113 8.2: no upper case, no fields of the connection. */
static bool field_ok(struct h2_stream *s, struct bytes name, struct bytes value)
{
    static const char *const forbidden[] = {"connection", "keep-alive", "proxy-connection",
                                            "transfer-encoding", "upgrade"};
    for (unsigned i = 0; i < ARRAY_SIZE(forbidden); i++)
        if (bytes_eq_str(name, forbidden[i]))
            return false;
    if (!nghttp2_check_header_name(name.data, name.len))
        return false;
    if (bytes_eq_str(name, "te"))
        return bytes_eq_str(value, "trailers");
    if (bytes_eq_str(name, "content-length"))
        return parse_length(s, value);
    if (bytes_eq_str(name, "content-type"))
        s->x.grpc = is_grpc_type(value);
    else if (bytes_eq_str(name, "host"))
        s->has_host = true;
    return true;
}

int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_data,
                 size_t name_len, const uint8_t *value_data, size_t value_len,
                 _unused_ uint8_t flags, _unused_ void *user_data)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct bytes name = bytes_of(name_data, name_len), value = bytes_of(value_data, value_len);
    if (!s || s->too_big)
        return 0;
    bool ok = name.len > 0 && nghttp2_check_header_value(value.data, value.len);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) /* trailers: nothing in them is for us */
        ok = ok && name.data[0] != ':';
    else
        ok = ok && (name.data[0] == ':' ? pseudo_ok(s, name) : field_ok(s, name, value));
    const bool request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    if (ok && (!request || keep_field(s, name, value) == 0))
        return 0;
    h2_stream_reset(s, ok ? NGHTTP2_REFUSED_STREAM : NGHTTP2_PROTOCOL_ERROR);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static const struct carrier h2_carrier = {CARRIER_HTTP2, h2_each, h2_reply};

/* ---- requests ---- */

/* Method and path point into the header fields, which grow no more. */
static void find_target(struct h2_stream *s)
{
    struct bytes name, value;
    size_t at = 0;
    while (next_field(s->head, &at, &name, &value) && name.data[0] == ':') {
        if (bytes_eq_str(name, ":method"))
            s->x.method = value;
        if (bytes_eq_str(name, ":path"))
            s->x.path = value;
    }
    const uint8_t *query = s->x.path.len ? memchr(s->x.path.data, '?', s->x.path.len) : NULL;
    if (query)
        s->x.path.len = (size_t)(query - s->x.path.data);
}

static void on_request_headers(struct h2_stream *s)
{
    const uint8_t needed = PSEUDO_METHOD | PSEUDO_PATH | PSEUDO_SCHEME;
    s->started_ns = s->moved_ns = s->h->last_read_ns;
    s->h->head_since_ns = 0;
    if (s->too_big) {
        server_count(CLOSED_HEADER_SIZE);
        exchange_reply_text(&s->x, 431, "431 Request Header Fields Too Large", false);
        return;
    }
    find_target(s);
    if ((s->pseudo & needed) != needed || s->x.path.len == 0) {
        h2_stream_reset(s, NGHTTP2_PROTOCOL_ERROR);
        return;
    }
    s->h->saw_grpc |= s->x.grpc;
    if (!(s->pseudo & PSEUDO_AUTHORITY) && !s->has_host) {
        if (s->x.grpc)
            h2_answer_grpc(s, 400, "13", "no host or :authority header present");
        else
            exchange_reply_text(&s->x, 400, "400 Bad Request: missing required Host header", false);
        return;
    }
    if (s->x.grpc)
        s->x.announced = 0;
    exchange_headers(&s->x);
    if (!exchange_has_reply(&s->x) && s->x.announced > s->x.limit)
        exchange_too_large(&s->x);
}

static void on_whole(struct h2_stream *s)
{
    s->requested = true;
    exchange_request(&s->x);
}

/* The prefix of a gRPC message; returns how many bytes of `in` it took. */
static size_t take_prefix(struct h2_stream *s, struct bytes in)
{
    size_t n = GRPC_PREFIX_BYTES - s->prefix_len;
    n = n < in.len ? n : in.len;
    memcpy(s->prefix + s->prefix_len, in.data, n);
    s->prefix_len += (uint8_t)n;
    if (s->prefix_len < GRPC_PREFIX_BYTES)
        return n;
    bool compressed = false;
    struct bytes message;
    size_t used, need = 0;
    int r = grpc_frame_parse(bytes_of(s->prefix, GRPC_PREFIX_BYTES), &compressed, &message, &used,
                             &need);
    if (r < 0) {
        h2_answer_grpc(s, 200, "13", "a gRPC message begins with a flag other than 0 or 1");
        return n;
    }
    s->x.grpc_compressed = s->prefix[0];
    s->x.announced = need;
    if (s->x.announced > s->x.limit)
        exchange_too_large(&s->x);
    else
        exchange_body_announced(&s->x);
    return n;
}

static void take_grpc(struct h2_stream *s, struct bytes in)
{
    if (s->prefix_len < GRPC_PREFIX_BYTES) {
        size_t n = take_prefix(s, in);
        in = bytes_of(in.data + n, in.len - n);
        if (s->prefix_len < GRPC_PREFIX_BYTES || s->discard)
            return;
    }
    size_t have = s->x.body ? s->x.body->len : 0, left = (size_t)s->x.announced - have;
    if (in.len > left)
        in.len = left;
    if (in.len && !exchange_body_append(&s->x, in.data, in.len))
        return;
    if (in.len == left)
        on_whole(s);
}

int h2_on_data(nghttp2_session *session, _unused_ uint8_t flags, int32_t stream_id,
               const uint8_t *data, size_t len, _unused_ void *user_data)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, stream_id);
    nghttp2_session_consume_connection(session, len);
    nghttp2_session_consume_stream(session, stream_id, len);
    if (!s)
        return 0;
    s->received += len;
    s->moved_ns = s->h->last_read_ns;
    if (!s->x.grpc && s->has_length && s->received > s->x.announced) {
        h2_stream_reset(s, NGHTTP2_PROTOCOL_ERROR);
    } else if (s->discard || s->requested) {
        s->discarded += len;
        if (s->discarded > DISCARD_MAX_BYTES)
            h2_stream_reset(s, NGHTTP2_NO_ERROR);
    } else if (s->x.grpc) {
        take_grpc(s, bytes_of(data, len));
    } else {
        exchange_body_append(&s->x, data, len);
    }
    return 0;
}

static void on_end(struct h2_stream *s)
{
    s->ended = true;
    if (s->discard || s->requested)
        return;
    if (!s->x.grpc && s->has_length && s->received != s->x.announced) {
        h2_stream_reset(s, NGHTTP2_PROTOCOL_ERROR);
        return;
    }
    s->x.truncated = s->x.grpc;
    on_whole(s);
}

void h2_stream_frame(struct h2_conn *h, const nghttp2_frame *frame)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(h->session, frame->hd.stream_id);
    if (!s)
        return;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        on_request_headers(s);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        on_end(s);
    else if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        h2_stream_reset(s, NGHTTP2_PROTOCOL_ERROR); /* trailers end the request: RFC 9113 8.1 */
}

/* ---- life ---- */

static bool was_open(const struct h2_conn *h, int32_t id)
{
    const int32_t back = (h->last_id - id) / 2;
    return back >= H2_KNOWN_STREAMS || h->opened >> back & 1;
}

/* Frames of streams that are over: nghttp2 forgets those, to be small, and passes such frames over
 * in silence. Behind a reset of ours they may be on the way; otherwise the peer is wrong (RFC 9113
 * 5.1, 5.1.1). */
int h2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data)
{
    struct h2_conn *h = user_data;
    const int32_t id = hd->stream_id;
    if ((hd->type != NGHTTP2_HEADERS && hd->type != NGHTTP2_DATA) || !(id & 1) || id > h->last_id ||
        id <= h->last_reset_id || h->goaway || nghttp2_session_find_stream(session, id))
        return 0;
    server_count(CLOSED_MALFORMED);
    nghttp2_session_terminate_session(session, was_open(h, id) ? NGHTTP2_STREAM_CLOSED
                                                               : NGHTTP2_PROTOCOL_ERROR);
    return 0;
}

static void note_opened(struct h2_conn *h, int32_t id)
{
    const int32_t step = (id - h->last_id) / 2;
    h->opened = (step < H2_KNOWN_STREAMS ? h->opened << step : 0) | 1;
    h->last_id = id;
}

/* When the peer has been waited for long enough: for the rest of its request, or to take the
 * answer. UINT64_MAX while it is not waited for. */
static uint64_t slow_at(const struct h2_stream *s, enum server_event *ret_why)
{
    const struct server_settings *limits = &s->h->c->limits;
    const uint64_t stalls = s->moved_ns + timeout_ns(limits->read_timeout_ns),
                   late = s->started_ns + (uint64_t)server_limits_get().request_timeout_ns;
    *ret_why = CLOSED_WRITE_TIMEOUT;
    if (s->replied || !s->started_ns)
        return UINT64_MAX;
    if (exchange_has_reply(&s->x))
        return s->moved_ns + timeout_ns(limits->write_timeout_ns);
    *ret_why = late < stalls ? CLOSED_REQUEST_TIMEOUT : CLOSED_READ_TIMEOUT;
    return s->requested ? UINT64_MAX : late < stalls ? late : stalls;
}

uint64_t h2_reset_slow(struct h2_conn *h, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (struct h2_stream *s = h->streams; s; s = s->next) {
        enum server_event why;
        const uint64_t at = slow_at(s, &why);
        if (now >= at) {
            server_count(why);
            h2_stream_reset(s, NGHTTP2_CANCEL);
            s->started_ns = 0;
        } else if (at < next) {
            next = at;
        }
    }
    return next;
}

int h2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_conn *h = user_data;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct h2_stream *s = exchange_new(&h2_carrier, h->c, sizeof(*s));
    if (!s) {
        if (nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_REFUSED_STREAM) != 0)
            h->cut_now = true;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    s->h = h;
    s->id = frame->hd.stream_id;
    note_opened(h, s->id);
    h->head_since_ns = h->last_read_ns;
    s->next = h->streams;
    if (s->next)
        s->next->prev = s;
    h->streams = s;
    if (h->nstreams++ == 0) {
        uint64_t at = h->last_read_ns + FIRST_LOOK_NS;
        h->c->idle_ns = 0;
        h->c->had_request = true;
        if (at < h->c->deadline_ns)
            conn_deadline(h->c, at);
    }
    nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

void h2_stream_free(struct h2_stream *s)
{
    struct h2_conn *h = s->h;
    if (s->prev)
        s->prev->next = s->next;
    else
        h->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    if (--h->nstreams == 0)
        h2_became_idle(h);
    s->head = buf_unref(s->head);
    s->out = buf_unref(s->out);
    free(TAKE_PTR(s->trailers));
    exchange_release(&s->x);
}

int h2_on_stream_close(nghttp2_session *session, int32_t stream_id, _unused_ uint32_t code,
                       _unused_ void *user_data)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, stream_id);
    if (s)
        h2_stream_free(s);
    return 0;
}
