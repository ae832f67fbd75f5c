/* What answers to an empty export mean, for `doctor`. */
#ifndef MOTEL_EXPORTERS_OTLP_HTTP_PROBE_H
#define MOTEL_EXPORTERS_OTLP_HTTP_PROBE_H

#include "agent/pipeline/probe.h"
#include "exporters/otlp_http/config.h"

/* Says what the answer to an empty request of signal `s`, sent to `url` without following redirects, means. `took`: probe_took(). */
void otlp_http_explain(struct probe *p, const struct otlp_http_config *c, enum signal s, const char *url,
                       const struct http_client_response *res, const char *took);

#endif
