#include "agent/net/limits.h"

#include <stdatomic.h>

#define S_NS 1000000000ll

static struct {
    _Atomic int64_t max_connections, max_header_bytes, client_timeout_ns, request_timeout_ns,
        stream_reset_burst, stream_reset_rate;
} limits;
static _Atomic int64_t counts[SERVER_EVENTS];

void server_limits_set(const struct server_limits *l)
{
    atomic_store(&limits.max_connections, l->max_connections);
    atomic_store(&limits.max_header_bytes, l->max_header_bytes);
    atomic_store(&limits.client_timeout_ns, l->client_timeout_ns);
    atomic_store(&limits.request_timeout_ns, l->request_timeout_ns);
    atomic_store(&limits.stream_reset_burst, l->stream_reset_burst);
    atomic_store(&limits.stream_reset_rate, l->stream_reset_rate);
}

static int64_t value(_Atomic int64_t *of, int64_t usual)
{
    int64_t v = atomic_load_explicit(of, memory_order_relaxed);
    return v > 0 ? v : usual;
}

struct server_limits server_limits_get(void)
{
    return (struct server_limits){
        .max_connections = value(&limits.max_connections, 0),
        .max_header_bytes = value(&limits.max_header_bytes, 16 << 10),
        .client_timeout_ns = value(&limits.client_timeout_ns, 60 * S_NS),
        .request_timeout_ns = value(&limits.request_timeout_ns, 600 * S_NS),
        .stream_reset_burst = value(&limits.stream_reset_burst, 10000),
        .stream_reset_rate = value(&limits.stream_reset_rate, 500),
    };
}

void server_count(enum server_event e)
{
    atomic_fetch_add_explicit(&counts[e], 1, memory_order_relaxed);
}

int64_t server_counted(enum server_event e)
{
    return atomic_load_explicit(&counts[e], memory_order_relaxed);
}

const char *server_event_name(enum server_event e)
{
    static const char *const names[SERVER_EVENTS] = {
        [REFUSED_LIMIT] = "limit",
        [REFUSED_DESCRIPTORS] = "descriptors",
        [CLOSED_HEADER_TIMEOUT] = "header timeout",
        [CLOSED_READ_TIMEOUT] = "read timeout",
        [CLOSED_REQUEST_TIMEOUT] = "request timeout",
        [CLOSED_WRITE_TIMEOUT] = "write timeout",
        [CLOSED_IDLE] = "idle",
        [CLOSED_PING_TIMEOUT] = "ping timeout",
        [CLOSED_EVICTED] = "evicted",
        [CLOSED_MALFORMED] = "malformed",
        [CLOSED_HEADER_SIZE] = "header size",
        [CLOSED_FLOOD] = "flood",
    };
    return names[e];
}
