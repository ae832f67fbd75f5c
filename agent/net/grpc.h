/* gRPC over HTTP/2, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md: framing, status texts, time-outs. */
#ifndef MOTEL_NET_GRPC_H
#define MOTEL_NET_GRPC_H

#include "agent/base/buf.h"

#define GRPC_PREFIX_BYTES 5

/* Length-prefixed-message parser. 1 = a whole message (its payload in *ret, bytes consumed in *ret_used); 0 = more is needed (the
 * announced length in *ret_need once the prefix is there, else 0); -EBADMSG = a compressed flag other than 0 or 1. */
int grpc_frame_parse(struct bytes in, bool *ret_compressed, struct bytes *ret, size_t *ret_used, size_t *ret_need);
void grpc_frame_prefix(bool compressed, uint32_t len, uint8_t ret[GRPC_PREFIX_BYTES]);
/* Appends grpc-message percent-encoding of UTF-8 text, and back (invalid escapes are kept as they are). */
int grpc_percent_encode(struct bytes text, struct buf *out);
int grpc_percent_decode(struct bytes text, struct buf *out);
/* "1500m" of a duration (at most 8 digits, unit as fine as fits), and back: -EBADMSG. */
void grpc_timeout_format(uint64_t ns, char ret[16]);
int grpc_timeout_parse(struct bytes text, uint64_t *ret_ns);
/* Base64 of -bin headers: standard alphabet, padding optional on input, none on output. */
int grpc_bin_encode(struct bytes in, struct buf *out);
int grpc_bin_decode(struct bytes in, struct buf *out);
/* Status codes, https://grpc.io/docs/guides/status-codes/ (the numbers of enum rpc_code in proto/status.h). */
enum grpc_code {
    GRPC_OK, GRPC_CANCELLED, GRPC_UNKNOWN, GRPC_INVALID_ARGUMENT, GRPC_DEADLINE_EXCEEDED, GRPC_NOT_FOUND, GRPC_ALREADY_EXISTS,
    GRPC_PERMISSION_DENIED, GRPC_RESOURCE_EXHAUSTED, GRPC_FAILED_PRECONDITION, GRPC_ABORTED, GRPC_OUT_OF_RANGE,
    GRPC_UNIMPLEMENTED, GRPC_INTERNAL, GRPC_UNAVAILABLE, GRPC_DATA_LOSS, GRPC_UNAUTHENTICATED,
};
/* gRPC code of an HTTP status without grpc-status (http-grpc-status-mapping.md). */
int grpc_code_of_http(int http_status);
/* The HTTP status that the reference answers for a gRPC code (OTLP/HTTP receiver). */
int http_status_of_grpc(int code);
/* The gRPC code that the reference gives to an HTTP error of OTLP/HTTP, its own or a backend's (400 -> INVALID_ARGUMENT …). */
int otlp_code_of_http(int http_status);

#endif
