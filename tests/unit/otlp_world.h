/* An OTLP receiver with a sink behind it, and clients of its two ports. */
#ifndef OTLP_WORLD_H
#define OTLP_WORLD_H

#include <jansson.h>

#include "agent/net/grpc.h"
#include "h2_client.h"
#include "receivers/otlp/otlp.h"
#include "rig.h"

extern const struct component_type receiver_otlp;

#define BOTH "protocols: {grpc: {endpoint: '127.0.0.1:0'}, http: {endpoint: '127.0.0.1:0'}}"

/* A receiver with one sink behind all signals in `signals`. */
struct world {
    struct rig r;
    char grpc[64], http[64];
};
#define ALL (SIGNAL_BIT(SIGNAL_TRACES) | SIGNAL_BIT(SIGNAL_METRICS) | SIGNAL_BIT(SIGNAL_LOGS))

static inline struct sink *sink(struct world *w)
{
    return &w->r.sinks[0];
}

static inline void open_world(struct world *w, const char *yaml, unsigned signals)
{
    struct err e = {.text = ""};
    memset(w, 0, sizeof(*w));
    rig_make(&w->r, &receiver_otlp, "otlp", SIGNAL_TRACES, 1, yaml);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        if (s != SIGNAL_TRACES && (signals & SIGNAL_BIT(s))) {
            w->r.c->next[s] = fanout_new(1);
            fanout_set(w->r.c->next[s], 0, &sink(w)->base, NULL, 1);
        }
        if (!(signals & SIGNAL_BIT(s)))
            w->r.c->next[s] = fanout_free(w->r.c->next[s]);
    }
    if (receiver_otlp.start(w->r.c, &e) < 0)
        fail_msg("%s", e.text);
    const struct otlp *o = (const struct otlp *)w->r.c;
    if (o->grpc_port.served)
        snprintf(w->grpc, sizeof(w->grpc), "%s", served_address(o->grpc_port.served));
    if (o->http_port.served)
        snprintf(w->http, sizeof(w->http), "%s", served_address(o->http_port.served));
}

static inline void close_world(struct world *w)
{
    receiver_otlp.stop(w->r.c, clock_now_ns() + 2 * NS_PER_S);
    rig_done(&w->r);
}

static inline void forget_taken(struct world *w)
{
    for (unsigned i = 0; i < sink(w)->ntaken; i++)
        batch_unref(sink(w)->taken[i]);
    sink(w)->ntaken = 0;
}

/* ---- HTTP ---- */

struct request {
    const char *method, *path, *type, *more; /* NULL = POST, /v1/traces, none, none */
    struct bytes body;
};

/* One request on a connection of its own; the answer's bytes stay in *ret_all. */
static inline struct raw_answer ask(const char *address, struct request q, struct buf **ret_all)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    const char *method = q.method ? q.method : "POST";
    buf_printf(out, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", method,
               q.path ? q.path : "/v1/traces");
    if (q.type)
        buf_printf(out, "Content-Type: %s\r\n", q.type);
    buf_printf(out, "%sContent-Length: %zu\r\n\r\n", q.more ? q.more : "", q.body.len);
    buf_append(out, q.body.data, q.body.len);
    struct raw_result r = raw_exchange(address, buf_bytes(out), NULL, 20000);
    struct bytes in = buf_bytes(r.got);
    struct raw_answer a;
    if (!raw_next_answer(&in, strcmp(method, "HEAD") == 0, &a))
        a.status = -1;
    if (ret_all)
        *ret_all = r.got;
    else
        buf_unref(r.got);
    return a;
}

static inline int status_of(const char *address, struct request q)
{
    return ask(address, q, NULL).status;
}

#define JSON "application/json"
#define PROTOBUF "application/x-protobuf"
#define SPAN                                                                                       \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"                               \
    "\"5b8efff798038103d269b633813fc60c\","                                                        \
    "\"spanId\":\"eee19b7ec3c1b174\",\"name\":\"op\"}]}]}]}"

/* The code of a google.rpc.Status; 0 when it is none. */
static inline int rpc_code_of(const char *type, struct bytes body)
{
    if (strncmp(type, JSON, strlen(JSON)) == 0) {
        json_t *o = json_loadb((const char *)body.data, body.len, JSON_ALLOW_NUL, NULL);
        int code = (int)json_integer_value(json_object_get(o, "code"));
        json_decref(o);
        return code;
    }
    struct rpc_status st = {0};
    if (strcmp(type, PROTOBUF) != 0 || status_read(body, &st) < 0)
        return 0;
    return st.code;
}

#endif
