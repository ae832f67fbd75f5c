/* gRPC unary calls to one server over one HTTP/2 connection (nghttp2, GnuTLS). */
#ifndef MOTEL_NET_GRPC_CLIENT_H
#define MOTEL_NET_GRPC_CLIENT_H

#include "agent/base/buf.h"
#include "agent/base/err.h"
#include "agent/net/codec.h"
#include "agent/net/tls.h"

struct grpc_client; /* one connection thread, started at the first call; calls from many threads */

struct grpc_client_settings {
    const char *endpoint; /* host:port, http://…, https://…, dns:///…, unix:… */
    const struct tls_client_settings *tls; /* NULL = defaults, that is TLS; like the strings it must outlive the client */
    const char *authority, *user_agent;
    enum codec compression;  /* of messages sent; CODEC_SNAPPY_FRAMED is gRPC's "snappy" */
    int compression_level;   /* 0 = the codec's default */
    int64_t keepalive_time_ns, keepalive_timeout_ns; /* 0 = none */
    bool keepalive_permit_without_stream, wait_for_ready;
    const struct http_metadata {
        const char *name, *value;
    } *metadata; /* sent with every call; names in lower case; values of "-bin" names are encoded here */
    unsigned nmetadata;
};
struct grpc_response {
    int code;              /* gRPC status; UNAVAILABLE for connection trouble, DEADLINE_EXCEEDED, CANCELLED after stop */
    char message[512];
    struct buf *message_bytes; /* the reply message, decompressed; NULL = none; owned by the caller */
    struct buf *details;       /* grpc-status-details-bin, decoded; NULL = none; owned by the caller */
};
/* No connection yet. -EINVAL for a bad endpoint; -errno. */
int grpc_client_new(const struct grpc_client_settings *s, struct grpc_client **ret, struct err *reterr);
/* Blocks until the answer, the deadline (clock_now_ns; 0 = none) or the stop. The parts are not copied and must stay until the return. */
void grpc_client_call(struct grpc_client *c, const char *path, const struct bytes *parts, unsigned nparts, uint64_t deadline_ns,
                      struct grpc_response *ret);
/* The same with a message that the caller has compressed by the client's codec already. */
void grpc_client_call_compressed(struct grpc_client *c, const char *path, struct bytes message, uint64_t deadline_ns,
                                 struct grpc_response *ret);
/* The same with metadata of this call alone; it takes the place of the client's of the same names. `compressed`: as above, of one part. */
struct grpc_call_options {
    const struct http_metadata *metadata; /* as in the settings */
    unsigned nmetadata;
    bool compressed;
    uint64_t deadline_ns;
};
void grpc_client_call_with(struct grpc_client *c, const char *path, const struct bytes *parts, unsigned nparts,
                           const struct grpc_call_options *o, struct grpc_response *ret);
/* True when the settings and the endpoint mean TLS. */
bool grpc_client_is_secure(const struct grpc_client *c);
/* Where it connects to: host and port, or the path of a unix socket ("" = TCP). They live as long as the client. */
void grpc_client_target(const struct grpc_client *c, const char **ret_host, const char **ret_port, const char **ret_unix_path);
void grpc_client_stop(struct grpc_client *c); /* calls under way and later ones end with CANCELLED; closes the connection */
struct grpc_client *grpc_client_free(struct grpc_client *c); /* NULL ok; returns NULL; no call may be under way */
DEFINE_CLEANUP(struct grpc_client *, grpc_client_free)
/* The endpoint's syntax alone: 0 or -EINVAL with "address foo: missing port in address". */
int grpc_client_check_endpoint(const char *endpoint, struct err *reterr);

#endif
