/* google.rpc.Status with RetryInfo, and the export responses with partial_success, in protobuf and JSON. */
#ifndef MOTEL_PROTO_STATUS_H
#define MOTEL_PROTO_STATUS_H

#include "proto/schema.h"

enum rpc_code { /* https://grpc.io/docs/guides/status-codes/ */
    RPC_OK, RPC_CANCELLED, RPC_UNKNOWN, RPC_INVALID_ARGUMENT, RPC_DEADLINE_EXCEEDED, RPC_NOT_FOUND, RPC_ALREADY_EXISTS,
    RPC_PERMISSION_DENIED, RPC_RESOURCE_EXHAUSTED, RPC_FAILED_PRECONDITION, RPC_ABORTED, RPC_OUT_OF_RANGE,
    RPC_UNIMPLEMENTED, RPC_INTERNAL, RPC_UNAVAILABLE, RPC_DATA_LOSS, RPC_UNAUTHENTICATED,
};
const char *rpc_code_name(int code); /* "UNAVAILABLE"; "UNKNOWN" for what is none */

struct rpc_status {
    int code;
    char message[512];       /* NUL ended; valid UTF-8; cut at a character */
    bool has_retry;          /* a RetryInfo detail is there */
    uint64_t retry_after_ms;
};
/* Appends the Status as protobuf or as JSON ({"code":14,"message":"…"}). 0, -ENOMEM or -EMSGSIZE. */
int status_write(const struct rpc_status *st, bool json, struct buf *out);
/* From protobuf or JSON. -EBADMSG when `body` is not a Status; -ENOMEM. Only the fields above are taken. */
int status_read(struct bytes body, struct rpc_status *ret);
int status_read_json(struct bytes body, struct rpc_status *ret);

struct partial_success {
    uint64_t rejected;       /* records refused inside an accepted request */
    char message[512];
};
/* Export*ServiceResponse as the reference answers it: partial_success present, empty when nothing was rejected
 * (protobuf 0a 00, JSON {"partialSuccess":{}}). */
int response_write(enum signal s, const struct partial_success *ps, bool json, struct buf *out);
/* -EBADMSG when the body does not parse; -ENOMEM. An empty body is an empty response. */
int response_read(enum signal s, struct bytes body, bool json, struct partial_success *ret);

#endif
