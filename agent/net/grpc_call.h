/* One call of the gRPC client, from its caller to the connection that carries it. */
#ifndef MOTEL_NET_GRPC_CALL_H
#define MOTEL_NET_GRPC_CALL_H

#include <pthread.h>
#include <sys/uio.h>

#include "agent/net/grpc.h"
#include "agent/net/grpc_client.h"

enum call_state { CALL_PENDING, CALL_ACTIVE, CALL_DONE };
enum call_cancel { CALL_GOES_ON, CALL_DEADLINE, CALL_STOPPED };

/* One call; lives on the caller's stack. What the caller and the thread share is under the client's
 * lock. */
struct grpc_call {
    struct grpc_call *prev, *next; /* in the pending or the active list */
    const char *path;
    const struct grpc_call_options *options;
    uint64_t deadline_ns; /* UINT64_MAX = none */
    uint64_t begun_ns;    /* on this connection */
    struct grpc_response *ret;
    pthread_cond_t done;
    enum call_state state;
    enum call_cancel cancel;
    bool again; /* was given back once by a connection that did not process it */

    /* The message being sent: prefix, then parts. */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    bool compressed;
    struct iovec *body; /* body[0] is the prefix */
    unsigned nbody, body_at;
    size_t body_off, body_left;

    /* The answer so far; the thread's. */
    int32_t stream;
    int http_status, code; /* code -1 = no grpc-status yet */
    bool grpc_content, compressed_reply, has_frame;
    bool no_memory; /* for a part of the answer */
    enum codec encoding;
    struct buf *data;
};

struct call_list {
    struct grpc_call *head, *tail;
};
void calls_push(struct call_list *l, struct grpc_call *k);
void calls_remove(struct call_list *l, struct grpc_call *k);

/* The thread has finished with the call: code, words ("" = keep the server's). Without the lock. */
void grpc_call_finish(struct grpc_client *c, struct grpc_call *k, int code, const char *fmt, ...)
    _printf_(4, 5);
/* Puts an unprocessed call back in front, or ends it when that happened before. */
void grpc_call_give_back(struct grpc_client *c, struct grpc_call *k, const char *why);

#endif
