/* What the exporters that send OTLP to a backend share: headers, compression, the meaning of answers. */
#ifndef MOTEL_PIPELINE_OTLP_CLIENT_H
#define MOTEL_PIPELINE_OTLP_CLIENT_H

#include "agent/net/codec.h"
#include "agent/pipeline/component.h"
#include "proto/status.h"

#if defined(__x86_64__)
#define OTLP_CLIENT_ARCH "amd64"
#elif defined(__aarch64__)
#define OTLP_CLIENT_ARCH "arm64"
#else
#define OTLP_CLIENT_ARCH "unknown"
#endif
#define OTLP_USER_AGENT "motel/" MOTEL_VERSION " (linux/" OTLP_CLIENT_ARCH ")"

/* compression_params */
struct compression_params {
    int64_t level; /* 0 = the codec's default */
};
extern const struct cfg_field compression_params_fields[];
/* `compression` and its level by the reference's rules; `grpc`: only gzip, zstd and snappy. 0 or -EINVAL naming the key. */
int compression_check(const char *name, const struct compression_params *p, bool grpc, struct err *reterr);
/* The codec of a checked name; "snappy" is framed for gRPC. "" and "none" are CODEC_IDENTITY. */
enum codec compression_codec(const char *name, bool grpc);

/* Names are tokens, values hold no CR, LF or NUL. 0 or -EINVAL; never prints a value. `headers` is a map of strings. */
int client_headers_check(const struct cfg_map *headers, struct err *reterr);
/* The value of a header in any case; NULL when it is not set. */
const char *client_headers_get(const struct cfg_map *headers, const char *name);
/* Blanks every header value of six bytes or more, with or without its scheme ("Bearer "), and every known secret out of a text that a backend
 * wrote. */
void client_headers_scrub(const struct cfg_map *headers, char *text);

/* The request of a batch in protobuf, fields in the reference's order (proto/wire_order.h): as one piece, which is valid as long
 * as *ret_owner (the caller frees it), or compressed. 0 or -ENOMEM. */
struct wire_order;
int otlp_client_request(const struct batch *b, struct wire_order **ret_owner, struct bytes *ret);
int otlp_client_request_compressed(const struct batch *b, enum codec c, int level, struct buf *out);

/* What an answer means for the data. Sets out->status; `retry_ms` is the delay that the backend asked for, 0 = none. */
enum verdict verdict_of_http(int http_status, uint32_t retry_ms, struct outcome *out);
enum verdict verdict_of_grpc(int code, const struct rpc_status *details, struct outcome *out);
/* out->message, cut at a character. */
void outcome_message(struct outcome *out, const char *fmt, ...) _printf_(2, 3);
/* Logs and notes what a backend left out of an accepted request. */
void partial_success_note(const struct logger *lg, enum signal s, const struct partial_success *ps, struct outcome *out);

#endif
