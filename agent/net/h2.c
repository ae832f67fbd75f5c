/* The HTTP/2 carrier: connections over nghttp2, their flow control, time-outs and keep-alive. */
#include "agent/net/h2_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/base/clock.h"

#define STREAM_WINDOW_BYTES (1 << 20)
#define CONN_WINDOW_BYTES (4 << 20)
#define FRAME_BYTES (256u << 10)
#define DEFAULT_STREAMS 100
#define H2_HEAD_FACTOR                                                                             \
    4 /* times as much head as on HTTP/1, where each connection keeps room for it */
#define KEEP_OUT_BYTES (64u << 10)
#define MAX_PING_STRIKES 2
#define IDLE_PING_NS (7200 * NS_PER_S) /* pings that an idle client may always send */
#define LOOK_NS NS_PER_S               /* between two looks at streams under way */
#define EARLY_REPLY_NS (10 * NS_PER_S) /* how long the rest of an answered request is read away */

static nghttp2_session_callbacks *callbacks;
static pthread_once_t callbacks_once = PTHREAD_ONCE_INIT;

static void h2_close(struct h2_conn *h, bool linger)
{
    struct conn *c = h->c;
    while (h->streams)
        h2_stream_free(h->streams);
    nghttp2_session_del(h->session);
    buf_unref(h->pending);
    free(h);
    c->proto = NULL;
    conn_charge(c, sizeof(*c));
    if (linger)
        conn_linger(c);
    else
        conn_close(c);
}

/* ---- output ---- */

static ssize_t send_some(struct conn *c, const uint8_t *data, size_t len)
{
    ssize_t n = conn_send(c, data, len);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    return n;
}

/* While output waits nothing is read: a peer that does not take its answers cannot ask for more. */
static void wait_for_output(struct h2_conn *h, bool on)
{
    loop_rewatch(h->c->loop, h->c->fd, on ? EPOLLOUT : EPOLLIN, &h->c->watch);
}

/* -errno when the connection is broken, 1 when everything went out, 0 when some waits. */
static int send_pending(struct h2_conn *h)
{
    if (!h->pending)
        return 1;
    ssize_t n = send_some(h->c, h->pending->data + h->pending_at, h->pending->len - h->pending_at);
    if (n < 0)
        return (int)n;
    h->pending_at += (size_t)n;
    if (n)
        h->pending_since_ns = clock_now_ns();
    if (h->pending_at < h->pending->len)
        return 0;
    h->pending = buf_unref(h->pending);
    h->pending_at = 0;
    wait_for_output(h, false);
    return 1;
}

static int keep_pending(struct h2_conn *h, const uint8_t *data, size_t len)
{
    h->pending = buf_new(0);
    if (!h->pending || buf_append(h->pending, data, len) < 0)
        return -ENOMEM;
    h->pending_since_ns = clock_now_ns();
    uint64_t at = h->pending_since_ns + timeout_ns(h->c->limits.write_timeout_ns);
    conn_deadline(h->c, at < h->c->deadline_ns ? at : h->c->deadline_ns);
    wait_for_output(h, true);
    return 0;
}

/* Gathers frames into one buffer: true when there is output. */
static int gather(struct h2_conn *h, struct buf *out)
{
    const uint8_t *data;
    buf_truncate(out, 0);
    while (out->len < SCRATCH_BYTES) {
        ssize_t n = nghttp2_session_mem_send(h->session, &data);
        if (n < 0 || (n > 0 && buf_append(out, data, (size_t)n) < 0))
            return -EPROTO;
        if (n == 0)
            break;
    }
    return out->len > 0;
}

static int pump(struct h2_conn *h)
{
    struct loop *l = h->c->loop;
    int r = send_pending(h);
    if (!l->out && !(l->out = buf_new(0)))
        return -ENOMEM;
    while (r == 1) {
        r = gather(h, l->out);
        if (r <= 0)
            return r;
        ssize_t n = send_some(h->c, l->out->data, l->out->len);
        if (n < 0)
            return (int)n;
        if ((size_t)n < l->out->len)
            return keep_pending(h, l->out->data + n, l->out->len - (size_t)n);
    }
    return r;
}

void h2_flush(struct h2_conn *h)
{
    struct loop *l = h->c->loop;
    int r = pump(h);
    if (l->out && l->out->cap > KEEP_OUT_BYTES) /* after an unusually large answer */
        l->out = buf_unref(l->out);
    if (r < 0 || h->cut_now) {
        h2_close(h, false);
        return;
    }
    if (h->pending)
        return;
    bool over = !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
    if (over || (h->goaway && h->nstreams == 0))
        h2_close(h, true);
}

/* No new streams; the connection ends with the last one. */
static void go_away(struct h2_conn *h, uint32_t code, const char *why)
{
    if (h->goaway)
        return;
    h->goaway = true;
    nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h->session), code,
                          (const uint8_t *)why, strlen(why));
}

/* ---- input ---- */

/* A client that pings more often than the enforcement policy allows is sent away, as gRPC servers
 * do. */
static void on_peer_ping(struct h2_conn *h)
{
    const struct server_settings *s = &h->c->limits;
    uint64_t now = clock_now_ns(), least = (uint64_t)s->keepalive_min_time_ns;
    if (s->keepalive_min_time_ns <= 0)
        return;
    if (h->nstreams == 0 && !s->keepalive_permit_without_stream)
        least = IDLE_PING_NS;
    if (h->peer_ping_ns && now - h->peer_ping_ns < least)
        h->ping_strikes++;
    h->peer_ping_ns = now;
    if (h->ping_strikes > MAX_PING_STRIKES)
        go_away(h, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
}

static int64_t reset_burst(const struct h2_conn *h)
{
    const int64_t own = h->c->limits.stream_reset_burst;
    return own > 0 ? own : server_limits_get().stream_reset_burst;
}

static int64_t reset_rate(const struct h2_conn *h)
{
    const int64_t own = h->c->limits.stream_reset_rate;
    return own > 0 ? own : server_limits_get().stream_reset_rate;
}

/* A frame that costs its sender nothing. nghttp2 counts resets alone, and answers that are not
 * taken. */
static void on_nuisance(struct h2_conn *h)
{
    const uint64_t now = h->last_read_ns, each = NS_PER_S / (uint64_t)reset_rate(h);
    if (h->nuisance_ns < now)
        h->nuisance_ns = now;
    h->nuisance_ns += each;
    if ((h->nuisance_ns - now) / each <= (uint64_t)reset_burst(h) || h->cut_now)
        return;
    go_away(h, NGHTTP2_ENHANCE_YOUR_CALM, "too many frames without use");
    h->cut_now = true;
}

static int on_frame(_unused_ nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct h2_conn *h = user_data;
    switch (frame->hd.type) {
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
            on_nuisance(h);
        h2_stream_frame(h, frame);
        break;
    case NGHTTP2_HEADERS: h2_stream_frame(h, frame); break;
    case NGHTTP2_SETTINGS:
        h->settings_seen = true;
        on_nuisance(h);
        break;
    case NGHTTP2_PRIORITY:
    case NGHTTP2_RST_STREAM: on_nuisance(h); break;
    case NGHTTP2_PING:
        on_nuisance(h);
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            h->ping_sent_ns = 0;
        else
            on_peer_ping(h);
        break;
    default: break;
    }
    return 0;
}

static void make_callbacks(void)
{
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return;
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, h2_on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, h2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, h2_on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, h2_on_frame_sent);
}

static void on_io(struct conn *c, uint32_t events)
{
    struct h2_conn *h = c->proto;
    if (h->pending) {
        if (events & (EPOLLERR | EPOLLHUP))
            h2_close(h, false);
        else
            h2_flush(h);
        return;
    }
    uint8_t *scratch = loop_scratch(c->loop);
    ssize_t n = scratch ? conn_recv(c, scratch, SCRATCH_BYTES) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        h2_close(h, false);
        return;
    }
    h->last_read_ns = clock_now_ns();
    h->in_recv = true;
    ssize_t used = nghttp2_session_mem_recv(h->session, scratch, (size_t)n);
    h->in_recv = false;
    if (used < 0 && used != NGHTTP2_ERR_FLOODED && used != NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        h2_close(h, false);
        return;
    }
    if (used < 0)
        h->cut_now = true; /* whatever it still wants to say goes out, then the connection ends */
    if (!h->cut_now) {
        h2_flush(h);
        return;
    }
    server_count(used == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? CLOSED_MALFORMED : CLOSED_FLOOD);
    if (pump(h) >= 0)
        h2_close(h, true);
    else
        h2_close(h, false);
}

static void h2_event(struct watch *w, uint32_t events)
{
    struct conn *c = container_of(w, struct conn, watch);
    on_io(c, events);
    struct h2_conn *h = c->proto;
    if (h && !h->pending && conn_ended(c))
        h2_close(h, false);
}

/* ---- deadlines ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t after(uint64_t from, int64_t configured)
{
    return configured > 0 ? from + (uint64_t)configured : UINT64_MAX;
}

/* Is something under way that only the peer can move? */
static bool waits_for_peer(const struct h2_conn *h)
{
    for (const struct h2_stream *s = h->streams; s; s = s->next)
        if (!s->requested && !s->replied)
            return true;
    return false;
}

static void reset_answered(struct h2_conn *h, uint64_t now)
{
    for (struct h2_stream *s = h->streams; s; s = s->next)
        if (s->replied && !s->ended && now - s->replied_ns >= EARLY_REPLY_NS)
            nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
}

/* Why the connection must be cut; SERVER_EVENTS = it need not. */
static enum server_event stuck_by(const struct h2_conn *h, uint64_t now)
{
    const struct server_settings *s = &h->c->limits;
    const uint64_t head_ns = timeout_ns(s->read_header_timeout_ns);
    if (!h->settings_seen && now >= h->c->accepted_ns + head_ns)
        return CLOSED_HEADER_TIMEOUT;
    if (h->head_since_ns && now >= h->head_since_ns + head_ns)
        return CLOSED_HEADER_TIMEOUT;
    if (h->pending && now >= h->pending_since_ns + timeout_ns(s->write_timeout_ns))
        return CLOSED_WRITE_TIMEOUT;
    if (h->ping_sent_ns && now >= h->ping_sent_ns + timeout_ns(s->keepalive_timeout_ns))
        return CLOSED_PING_TIMEOUT;
    if (h->grace_ns && now >= h->grace_ns)
        return CLOSED_IDLE;
    if (waits_for_peer(h) && now >= h->last_read_ns + timeout_ns(s->read_timeout_ns))
        return CLOSED_READ_TIMEOUT;
    return SERVER_EVENTS;
}

static uint64_t idle_at(const struct h2_conn *h)
{
    uint64_t at = after(h->idle_since_ns, h->c->limits.max_connection_idle_ns);
    if (h->nstreams)
        return UINT64_MAX;
    if (!h->saw_grpc && h->idle_since_ns != h->c->accepted_ns) { /* a client of plain HTTP */
        int64_t idle = h->c->limits.idle_timeout_ns;
        at = earlier(at, h->idle_since_ns + (idle > 0 ? (uint64_t)idle : DEFAULT_IDLE_NS));
    }
    return at;
}

void h2_became_idle(struct h2_conn *h)
{
    h->idle_since_ns = h->c->idle_ns = clock_now_ns();
    uint64_t at = idle_at(h);
    if (at < h->c->deadline_ns)
        conn_deadline(h->c, at);
}

static void schedule(struct h2_conn *h, uint64_t slow_ns)
{
    const struct server_settings *s = &h->c->limits;
    uint64_t at = earlier(slow_ns, earlier(idle_at(h), h->goaway ? UINT64_MAX : h->age_ns));
    if (!h->settings_seen)
        at = earlier(at, h->c->accepted_ns + timeout_ns(s->read_header_timeout_ns));
    if (h->head_since_ns)
        at = earlier(at, h->head_since_ns + timeout_ns(s->read_header_timeout_ns));
    if (h->pending)
        at = earlier(at, h->pending_since_ns + timeout_ns(s->write_timeout_ns));
    if (h->grace_ns)
        at = earlier(at, h->grace_ns);
    if (h->nstreams)
        at = earlier(at, clock_now_ns() + LOOK_NS);
    if (h->ping_sent_ns)
        at = earlier(at, h->ping_sent_ns + timeout_ns(s->keepalive_timeout_ns));
    else
        at = earlier(at, after(h->last_read_ns, s->keepalive_time_ns));
    conn_deadline(h->c, at);
}

static void h2_expired(struct conn *c, uint64_t now)
{
    struct h2_conn *h = c->proto;
    const enum server_event why = stuck_by(h, now);
    if (why != SERVER_EVENTS) {
        server_count(why);
        conn_abortive(c);
        h2_close(h, false);
        return;
    }
    if (now >= idle_at(h)) {
        server_count(CLOSED_IDLE);
        go_away(h, NGHTTP2_NO_ERROR, "max_idle");
    }
    if (now >= h->age_ns && !h->goaway) {
        go_away(h, NGHTTP2_NO_ERROR, "max_age");
        h->grace_ns = c->limits.max_connection_age_grace_ns > 0
                          ? now + (uint64_t)c->limits.max_connection_age_grace_ns
                          : 0;
    }
    if (!h->ping_sent_ns && now >= after(h->last_read_ns, c->limits.keepalive_time_ns)) {
        nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
        h->ping_sent_ns = now;
    }
    reset_answered(h, now);
    schedule(h, h2_reset_slow(h, now));
    h2_flush(h);
}

static void h2_drain(struct conn *c)
{
    struct h2_conn *h = c->proto;
    go_away(h, NGHTTP2_NO_ERROR, "shutting down");
    h2_flush(h);
}

static void h2_cut(struct conn *c)
{
    h2_close(c->proto, false);
}

static const struct conn_ops h2_ops = {h2_expired, h2_drain, h2_cut};

/* ---- start ---- */

static nghttp2_session *make_session(struct h2_conn *h)
{
    nghttp2_session *session = NULL;
    nghttp2_option *o = NULL;
    pthread_once(&callbacks_once, make_callbacks);
    if (!callbacks || nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_http_messaging(
        o, 1); /* checked by us: a missing authority is answered, not reset */
    nghttp2_option_set_no_closed_streams(o, 1);
    /* on_nuisance() comes first, and counts */
    nghttp2_option_set_stream_reset_rate_limit(o, 2 * (uint64_t)reset_burst(h),
                                               2 * (uint64_t)reset_rate(h));
    if (nghttp2_session_server_new2(&session, callbacks, h, o) != 0)
        session = NULL;
    nghttp2_option_del(o);
    return session;
}

static int say_settings(struct h2_conn *h)
{
    int64_t streams = h->c->limits.max_concurrent_streams;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
         streams > 0 ? (uint32_t)streams : DEFAULT_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h->head_max_bytes},
    };
    int r = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
    return r ? r
             : nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
                                                     CONN_WINDOW_BYTES);
}

/* Plus or minus a tenth, so that connections of one moment do not end in one moment. */
static uint64_t age_of(const struct conn *c)
{
    uint64_t age = (uint64_t)c->limits.max_connection_age_ns, spread = age / 5;
    if (c->limits.max_connection_age_ns <= 0)
        return UINT64_MAX;
    return c->accepted_ns + age - age / 10 +
           (spread ? (c->accepted_ns / 1000 * 2654435761u) % spread : 0);
}

void h2_start(struct conn *c)
{
    struct h2_conn *h = calloc(1, sizeof(*h));
    if (h) {
        h->c = c;
        h->head_max_bytes = H2_HEAD_FACTOR * (size_t)server_limits_get().max_header_bytes;
        h->session = make_session(h);
    }
    if (!h || !h->session || say_settings(h) != 0) {
        if (h)
            nghttp2_session_del(h->session);
        free(h);
        conn_close(c);
        return;
    }
    c->proto = h;
    c->ops = &h2_ops;
    c->watch.event = h2_event;
    conn_charge(c, sizeof(*c) + H2_CONN_BYTES);
    h->last_read_ns = clock_now_ns();
    h->idle_since_ns = c->accepted_ns;
    h->age_ns = age_of(c);
    schedule(h, UINT64_MAX);
    if (loop_rewatch(c->loop, c->fd, EPOLLIN, &c->watch) < 0)
        h2_close(h, false);
}
