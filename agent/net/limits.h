/* What the servers of this process allow to clients, and what they did to those that went beyond. Thread safe. */
#ifndef MOTEL_NET_LIMITS_H
#define MOTEL_NET_LIMITS_H

#include <stdint.h>

/* Limits without a key of their own in the receivers; 0 = the default. They hold for all listeners, from the next connection or request on. */
struct server_limits {
    int64_t max_connections;  /* of all listeners together; never more than the descriptors allow, which is the default */
    int64_t max_header_bytes; /* of one request; 16 KiB; HTTP/2 has four times that */
    int64_t client_timeout_ns;  /* for a head, a body without progress, an answer that is not taken; 60 s */
    int64_t request_timeout_ns; /* from the head of a request to its last byte; 10 min */
    int64_t stream_reset_burst, stream_reset_rate; /* resets that an HTTP/2 peer may send, and how many more a second; 10000, 500 */
};
void server_limits_set(const struct server_limits *l);
/* The values in force; nothing in it is 0, but max_connections (the descriptors decide). */
struct server_limits server_limits_get(void);

enum server_event {
    /* connections that were not let in */
    REFUSED_LIMIT,       /* the process has max_connections, or the listener its share of them */
    REFUSED_DESCRIPTORS, /* no descriptor is left */
    /* connections, and HTTP/2 streams, that were ended */
    CLOSED_HEADER_TIMEOUT,
    CLOSED_READ_TIMEOUT,  /* a body without progress */
    CLOSED_REQUEST_TIMEOUT, /* a request that took too long as a whole */
    CLOSED_WRITE_TIMEOUT, /* an answer that is not taken */
    CLOSED_IDLE,
    CLOSED_PING_TIMEOUT,
    CLOSED_EVICTED,       /* idle, when others wanted in */
    CLOSED_MALFORMED,     /* not HTTP, or framing that two readers may understand differently */
    CLOSED_HEADER_SIZE,
    CLOSED_FLOOD,         /* resets, pings, settings, empty frames */
    SERVER_EVENTS
};
void server_count(enum server_event e);
int64_t server_counted(enum server_event e);
/* The word for metrics: "header timeout". */
const char *server_event_name(enum server_event e);
static inline int server_event_refuses(enum server_event e) { return e <= REFUSED_DESCRIPTORS; }

/* Connections at present. */
int64_t server_connections(void);

#endif
