/* CORS: what the config says, in a form to look things up in; all strings are its own. */
#ifndef MOTEL_RECEIVERS_OTLP_CORS_H
#define MOTEL_RECEIVERS_OTLP_CORS_H

#include "agent/net/server.h"
#include "receivers/otlp/config.h"

struct cors;
int cors_new(const struct cors_config *c, struct cors **ret); /* *ret NULL when no origins are allowed; -ENOMEM */
struct cors *cors_free(struct cors *c);
#define CORS_MAX_HEADERS 6
struct cors_reply { /* headers for one answer */
    struct http_header_out headers[CORS_MAX_HEADERS];
    unsigned n;
    char origin[256], asked[512];
};
/* For an actual request. */
void cors_actual(const struct cors *c, const struct http_exchange *x, struct cors_reply *ret);
/* True when `x` is a preflight request, to be answered 204 with these headers. */
bool cors_preflight(const struct cors *c, const struct http_exchange *x, struct cors_reply *ret);

#endif
