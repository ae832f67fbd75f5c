/* Inside of the OTLP receiver: configuration, one instance, one request under way. */
#ifndef MOTEL_RECEIVERS_OTLP_H
#define MOTEL_RECEIVERS_OTLP_H

#include "agent/net/grpc.h"
#include "agent/pipeline/memory_gate.h"
#include "agent/pipeline/listen.h"
#include "proto/status.h"
#include "receivers/otlp/config.h"
#include "receivers/otlp/cors.h"
#include "receivers/otlp/pool.h"

/* ---- the instance (otlp.c) ---- */

struct otlp;
struct otlp_port { /* one listener; the ctx of its service */
    struct otlp *o;
    bool grpc; /* the gRPC port; both protocols are served on either */
    struct served *served;
    atomic_flag mixed; /* the other protocol came and was logged */
    struct auth_guard guard;
};
struct otlp {
    struct component c; /* first */
    const struct otlp_config *config;
    atomic_uint refs; /* requests outlive the instance when their answers come late */
    struct otlp_port grpc_port, http_port;
    struct pool *pool;
    size_t grpc_max, http_max;
    char *paths[SIGNAL_COUNT];
    unsigned encodings; /* bits, of compression_algorithms; 0 = Content-Encoding is not looked at */
    struct cors *cors;
    struct http_header_out *response_headers; /* own strings */
    unsigned nresponse_headers;
    struct receiver_metrics metrics[2][SIGNAL_COUNT]; /* http, grpc */
    struct memory_gate memory[2][SIGNAL_COUNT];
    _Atomic(struct buf *) grpc_success[CODEC_UNKNOWN]; /* the usual reply message, made once for each compression */
};
void otlp_unref(struct otlp *o);
/* True when the pipelines of this signal exist. */
static inline bool otlp_serves(const struct otlp *o, enum signal s) { return o->c.next[s] != NULL; }

/* Whether there is memory for a request of `bytes`; from now on its body is read only while there is. */
static inline bool otlp_admit(const struct otlp *o, struct http_exchange *x, bool grpc, enum signal s, size_t bytes)
{
    const struct memory_gate *a = &o->memory[grpc][s];
    http_bound_memory(x, a->limit);
    return memory_gate_room(a, bytes);
}

/* ---- requests (request.c) ---- */

struct otlp_request {
    struct pool_item work; /* first */
    struct ack ack;
    struct otlp *o;
    struct otlp_port *port;
    struct http_exchange *x;
    struct buf *body;
    enum signal signal;
    enum codec coding;
    unsigned encoding; /* gRPC: index of grpc-encoding */
    bool grpc, json;
    uint32_t records;
    char content_type[64]; /* gRPC: echoed */
    struct cors_reply cors;
};
/* Of `x`, whose body it takes. NULL when out of memory. */
struct otlp_request *request_new(struct otlp_port *p, struct http_exchange *x, enum signal s);
/* Decodes and offers the request, here or on a worker, and answers it. Takes q. */
void request_start(struct otlp_request *q);

/* How a request ends. */
struct answer {
    struct rpc_status status;  /* code 0 = success */
    int http_status;           /* of an error */
    const char *challenge;     /* HTTP, with a 401; NULL = none */
    struct partial_success ps;
    bool unmarshalable;        /* HTTP: the reference cannot write this error and answers a fixed text */
};

/* ---- the two protocols (http.c, grpc.c) ---- */

#define OTLP_ALL_ENCODINGS 0xffu
/* The bits of compression_algorithms. */
unsigned otlp_http_encodings(const struct cfg_list *list);

/* As struct http_service says. */
size_t otlp_http_headers(struct otlp_port *p, struct http_exchange *x);
void otlp_http_request(struct otlp_port *p, struct http_exchange *x);
void otlp_http_too_large(struct otlp_port *p, struct http_exchange *x);
size_t otlp_grpc_headers(struct otlp_port *p, struct http_exchange *x);
void otlp_http_no_room(struct otlp_port *p, struct http_exchange *x);
void otlp_grpc_no_room(struct otlp_port *p, struct http_exchange *x);
void otlp_grpc_request(struct otlp_port *p, struct http_exchange *x);
void otlp_grpc_too_large(struct otlp_port *p, struct http_exchange *x);
/* Replies; q->x is used up. */
void otlp_http_answer(struct otlp_request *q, const struct answer *a);
void otlp_grpc_answer(struct otlp_request *q, const struct answer *a);

#endif
