/* What authenticator extensions offer to servers and clients (CAP_SERVER_AUTH, CAP_CLIENT_AUTH), and the `auth:` key of both. */
#ifndef MOTEL_PIPELINE_AUTH_H
#define MOTEL_PIPELINE_AUTH_H

#include "agent/net/server.h"
#include "agent/pipeline/host.h"

struct auth_settings { /* auth: {authenticator: id}; a NULL block = none */
    struct cfg_id authenticator;
};
extern const struct cfg_field auth_fields[];

/* Both vtables are the beginning of what capability() returns; `self` is passed back. Lookups by host_extension() in start(). */
struct server_auth {
    /* Whether the request may pass. Any thread; does not block; compares in constant time. False: `reason` says what to answer (no secrets). */
    bool (*admit)(const struct server_auth *self, const struct http_exchange *x, const char **reason);
    /* The challenge of a 401: "Bearer", "Basic realm=\"…\"" (WWW-Authenticate, RFC 9110 11.6.1); NULL = none. */
    const char *challenge;
};
struct client_auth {
    /* Appends "name: value" pairs to `each` for one request, freshly read. 0 or -errno with reterr (no secrets): the request is not sent. */
    int (*headers)(const struct client_auth *self, int (*each)(void *ctx, const char *name, const char *value), void *ctx, struct err *reterr);
};
/* The extension by id, or an error in the reference's words naming the id: 0 or -EINVAL. NULL settings: 0 and NULL. */
int server_auth_find(struct host *h, const struct auth_settings *s, const struct server_auth **ret, struct err *reterr);
int client_auth_find(struct host *h, const struct auth_settings *s, const struct client_auth **ret, struct err *reterr);

#endif
