/* Inside of the HTTP/2 carrier: the connection (h2.c), its streams (h2_stream.c) and their replies (h2_reply.c). */
#ifndef MOTEL_NET_H2_IMPL_H
#define MOTEL_NET_H2_IMPL_H

#include <nghttp2/nghttp2.h>

#include "agent/net/grpc.h"
#include "agent/net/exchange.h"

#define H2_MAX_FIELDS 200
#define H2_KNOWN_STREAMS 64 /* the last ones, of which it is known whether they were ever open */

struct h2_conn {
    struct conn *c;
    nghttp2_session *session;
    struct buf *pending;     /* output that the socket did not take */
    size_t pending_at;
    struct h2_stream *streams;
    unsigned nstreams;
    bool in_recv, settings_seen, goaway, saw_grpc, cut_now;
    uint64_t last_read_ns, idle_since_ns, age_ns, grace_ns, pending_since_ns, ping_sent_ns;
    uint64_t peer_ping_ns;   /* keep-alive enforcement */
    unsigned ping_strikes;
    uint64_t nuisance_ns;    /* frames that carry nothing: when all of them will be forgotten */
    uint64_t head_since_ns;  /* a header section has begun and is not whole; 0 = none */
    size_t head_max_bytes;
    int32_t last_id, last_reset_id; /* highest stream that the peer opened, and that we reset */
    uint64_t opened;         /* bit i: stream last_id - 2 * i was opened */
};

struct h2_stream {
    struct http_exchange x; /* first */
    struct h2_conn *h;
    struct h2_stream *prev, *next;
    int32_t id;
    struct buf *head;       /* fields: struct h2_field, name, value */
    size_t nfields;
    uint8_t pseudo;         /* bits of the pseudo headers seen */
    uint8_t prefix[GRPC_PREFIX_BYTES], prefix_len;
    bool has_host, has_length, too_big; /* of the header section */
    bool ended;             /* END_STREAM came */
    bool requested;         /* given to the service */
    bool discard;           /* answered early: the rest is read away */
    bool replied;           /* END_STREAM was sent */
    size_t received, discarded;
    uint64_t started_ns, moved_ns; /* its head was whole; something of it came last */
    uint64_t replied_ns;
    struct buf *out;        /* reply body on its way */
    size_t out_at;
    struct http_header_out *trailers;
    unsigned ntrailers;
};

static inline struct h2_stream *h2_stream_of(const struct http_exchange *x) { return (struct h2_stream *)x; }

/* nghttp2 callbacks for streams; user_data is the h2_conn. */
int h2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data);
int h2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data);
int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len, const uint8_t *value,
                 size_t value_len, uint8_t flags, void *user_data);
int h2_on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data, size_t len, void *user_data);
int h2_on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user_data);
int h2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data);
/* As struct carrier says. */
void h2_reply(struct http_exchange *x, struct reply *r);
void h2_answer_grpc(struct h2_stream *s, int status, const char *code, const char *message);
/* A peer that waits for an answer must get this one: without memory for it the connection ends. */
void h2_stream_reset(struct h2_stream *s, uint32_t code);
/* A HEADERS or DATA frame is complete. */
void h2_stream_frame(struct h2_conn *h, const nghttp2_frame *frame);
/* Resets the streams whose request takes too long or has stalled. When the next one may be due. */
uint64_t h2_reset_slow(struct h2_conn *h, uint64_t now);
void h2_stream_free(struct h2_stream *s); /* the connection ends */
void h2_became_idle(struct h2_conn *h);   /* the last stream ended */
void h2_flush(struct h2_conn *h);         /* sends what nghttp2 has; may close the connection */

#endif
