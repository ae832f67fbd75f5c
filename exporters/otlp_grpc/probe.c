#include "exporters/otlp_grpc/probe.h"

#include <string.h>

#include "proto/status.h"

/* A server, or a proxy before it, that speaks HTTP/2 but not gRPC. */
static bool is_no_grpc(const struct grpc_response *res)
{
    return strstr(res->message, "HTTP status code") || strstr(res->message, "content-type");
}

static void refused(struct probe *p, const char *signal, bool credentials, const char *code,
                    const struct grpc_response *res)
{
    if (credentials)
        probe_fail(p, "export", signal,
                   res->code == RPC_UNAUTHENTICATED
                       ? "the token (header) is wrong, expired, or misses its scheme, such as "
                         "\"Bearer \""
                       : "the token is known but may not write here: another project, tenant or "
                         "scope?",
                   "the backend refused the credentials: %s (%s)", code, res->message);
    else
        probe_fail(
            p, "export", signal, "set headers::authorization, or auth, to what the backend expects",
            "the backend wants credentials, and none are configured: %s (%s)", code, res->message);
}

void otlp_grpc_explain(struct probe *p, const struct probe_peer *peer, const char *signal,
                       bool credentials, const char *code, const struct grpc_response *res,
                       const char *took)
{
    switch (res->code) {
    case RPC_OK:
        probe_ok(p, "export", signal, "the backend took an empty request (%s)", took);
        return;
    case RPC_UNAUTHENTICATED:
    case RPC_PERMISSION_DENIED: refused(p, signal, credentials, code, res); return;
    case RPC_INVALID_ARGUMENT:
        probe_warn(p, "export", signal, "",
                   "reached; the backend does not take an empty request: %s (%s)", code,
                   res->message);
        return;
    case RPC_RESOURCE_EXHAUSTED:
        probe_warn(p, "export", signal, "", "reached; the backend has too much to do now: %s (%s)",
                   code, res->message);
        return;
    default: break;
    }
    if (is_no_grpc(res))
        probe_fail(p, "export", signal,
                   "use the otlp_http exporter for this port, or the backend's gRPC port, often "
                   "4317",
                   "what answers is no gRPC server: %s", res->message);
    else if (res->code == RPC_UNIMPLEMENTED)
        probe_fail(p, "export", signal,
                   "is this the OTLP port of the backend, and does it take "
                   "this signal?",
                   "a gRPC server answers that does not take OTLP %s: %s (%s)", signal, code,
                   res->message);
    else if (res->code == RPC_UNAVAILABLE || res->code == RPC_DEADLINE_EXCEEDED)
        probe_unanswered(p, peer, "export", signal, res->message);
    else
        probe_fail(p, "export", signal, "look at the log of the backend", "%s (%s)", code,
                   res->message);
}
