/* Between grpc_client.c (calls, the thread), grpc_conn.c (one connection) and grpc_endpoint.c. */
#ifndef MOTEL_NET_GRPC_CLIENT_IMPL_H
#define MOTEL_NET_GRPC_CLIENT_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "agent/net/grpc_call.h"

struct grpc_endpoint {
    bool plain, secure; /* the scheme decided: http, https */
    char host[256], port[16];
    char path[108]; /* of a unix socket; "" = TCP */
};

struct nghttp2_session;
#define OUT_PIECES 64
#define OUT_BYTES 262144 /* enough for one wake-up */
#define CONTROL_BYTES 20480
#define RECORD_BYTES 16384

/* Bytes on their way out: control frames by copy, messages by reference. */
struct grpc_out {
    struct iovec piece[OUT_PIECES];
    unsigned first, n;
    size_t bytes, control_len, record_len, record_off;
    uint8_t *control; /* CONTROL_BYTES */
    uint8_t *record;  /* TLS only: RECORD_BYTES that are being encrypted */
    struct buf *kept; /* copies of what finished calls had still queued */
};

struct grpc_conn {
    int fd;
    struct tls_client *creds;
    struct gnutls_session_int *tls;
    struct nghttp2_session *h2;
    struct grpc_out out;
    struct call_list active;
    bool ready;    /* the server's SETTINGS arrived */
    bool draining; /* GOAWAY arrived: no new calls */
    uint64_t last_read_ns;
    uint64_t dead_ns; /* a ping was sent: a peer that is silent until then is dead; 0 = none */
    char why[300]; /* it ended */
};

struct grpc_client {
    struct grpc_client_settings settings;
    struct grpc_endpoint endpoint;
    char authority[300];
    bool secure;
    pthread_mutex_t lock; /* pending, states and cancel of calls, the flags below */
    struct call_list pending;
    pthread_t thread;
    bool started, stopping, resolving, orphaned;
    int wake_fd;
    struct grpc_conn conn; /* the thread's, like all below */
    uint64_t retry_at_ns, backoff_ns;
    char last_error[400];
};

/* "host:port" and the other forms: 0 or -EINVAL with the reason. */
int grpc_endpoint_parse(const char *text, struct grpc_endpoint *ret, struct err *reterr);
bool grpc_client_stopping(struct grpc_client *c);
/* grpc_conn.c: resolves, connects, shakes hands. 0 or -errno with c->last_error. */
int grpc_conn_open(struct grpc_client *c);
/* Carries calls until the connection ends, is drained or the client stops. */
void grpc_conn_serve(struct grpc_client *c);
void grpc_conn_close(struct grpc_client *c);
/* Empties the wake-up counter. */
void grpc_client_woken(struct grpc_client *c);
/* grpc_h2.c: the HTTP/2 side. */
int grpc_h2_open(struct grpc_client *c);
int grpc_h2_submit(struct grpc_client *c, struct grpc_call *k); /* 0 or -errno */
void grpc_h2_cancel(struct grpc_client *c, struct grpc_call *k);
/* Before a call's memory goes away: queued references to it become copies. */
void grpc_out_keep(struct grpc_conn *n);

#endif
