/* What answers to an empty export mean, for `doctor`. */
#ifndef MOTEL_EXPORTERS_OTLP_GRPC_PROBE_H
#define MOTEL_EXPORTERS_OTLP_GRPC_PROBE_H

#include "agent/net/grpc_client.h"
#include "agent/pipeline/probe.h"

/* Says what the answer to an empty request for `signal` means. `code`: the name of res->code; `credentials`: some were sent; `took`: probe_took(). */
void otlp_grpc_explain(struct probe *p, const struct probe_peer *peer, const char *signal, bool credentials, const char *code,
                       const struct grpc_response *res, const char *took);

#endif
