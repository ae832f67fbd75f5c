/* What authenticator extensions offer to servers and clients (CAP_SERVER_AUTH, CAP_CLIENT_AUTH), and the `auth:` key of both. */
#ifndef MOTEL_PIPELINE_AUTH_H
#define MOTEL_PIPELINE_AUTH_H

#include <stdatomic.h>

#include "agent/net/server.h"
#include "agent/pipeline/host.h"

struct auth_settings { /* auth: {authenticator: id}; a NULL block = none */
    struct cfg_id authenticator;
};
extern const struct cfg_field auth_fields[];      /* of clients and gRPC servers */
extern const struct cfg_field auth_http_fields[]; /* of HTTP servers, which know request_params, too */
/* The key `auth` of a struct whose `member` is a struct auth_settings *. */
#define AUTH_FIELD(type, member, table, text)                                                                                            \
    {                                                                                                                                    \
        .key = "auth", .kind = BIND_BLOCK, CFG_AT(type, member), .fields = (table), CFG_NESTED(struct auth_settings), .null_absent = true, \
        .help = (text)                                                                                                                   \
    }

/* A comparison that takes longer than an I/O thread has; goes on elsewhere. Exactly one of the two is called, once, by who got it. */
struct auth_check {
    /* done() once, at once or later from another thread; `refused` NULL = may pass, else static text for the client. */
    void (*then)(struct auth_check *k, void (*done)(void *ctx, const char *refused), void *ctx);
    void (*drop)(struct auth_check *k); /* nobody asks any more */
};
enum admission {
    ADMIT_PASS,
    ADMIT_REFUSE, /* 401, UNAUTHENTICATED */
    ADMIT_LATER,  /* *ret_check tells; meanwhile no more than AUTH_UNKNOWN_BYTES are taken of the request */
    ADMIT_BUSY,   /* 503, UNAVAILABLE: too many comparisons wait */
};
#define AUTH_UNKNOWN_BYTES ((size_t)1 << 20)
#define AUTH_RETRY_TEXT "the credentials are still being checked; send the request again"

/* A header of a request; data NULL = absent. HTTP/1 blanks at the end are no part of it (RFC 9110 5.5). */
struct bytes auth_header(const struct http_exchange *x, const char *lower);

/* Both vtables are the beginning of what capability() returns; `self` is passed back. Lookups in start(). */
struct server_auth {
    /* Whether the request may pass. Any thread; does not block; compares in constant time. *ret_reason: static text for the client, no
     * secrets, unless PASS or LATER. */
    enum admission (*admit)(const struct server_auth *self, struct http_exchange *x, const char **ret_reason,
                            struct auth_check **ret_check);
    /* The challenge of a 401: "Bearer", "Basic realm=\"…\"" (WWW-Authenticate, RFC 9110 11.6.1). */
    const char *challenge;
};
struct client_auth {
    /* Gives "name", "value" pairs for one request to `each`, freshly read. 0 or -errno with reterr (no secrets): the request is not sent. */
    int (*headers)(const struct client_auth *self, int (*each)(void *ctx, const char *name, const char *value), void *ctx,
                   struct err *reterr);
};
/* The extension by id, or an error in the reference's words naming the id: 0 or -EINVAL. NULL settings: 0 and NULL. `protocol`: "HTTP" or
 * "gRPC". */
int server_auth_find(struct host *h, const struct auth_settings *s, const struct server_auth **ret, struct err *reterr);
int client_auth_find(struct host *h, const struct auth_settings *s, const char *protocol, const struct client_auth **ret,
                     struct err *reterr);

/* ---- the headers of one request ---- */

struct auth_pair {
    char *name, *value;
};
#define AUTH_HEADERS_MAX 4
struct auth_headers {
    struct auth_pair items[AUTH_HEADERS_MAX];
    unsigned n;
};
/* What `a` (NULL = none) gives for one request: 0, -ENOMEM or what it failed with; -E2BIG for more than AUTH_HEADERS_MAX. Names as they come, or in lower case. */
int auth_headers_get(const struct client_auth *a, bool lower, struct auth_headers *ret, struct err *reterr);
bool auth_headers_have(const struct auth_headers *h, const char *name); /* in any case */
void auth_headers_done(struct auth_headers *h);                         /* wipes the values */

/* ---- the door of one server ---- */

struct auth_guard {
    const struct server_auth *auth; /* NULL = everybody may pass */
    const struct logger *logger;
    struct metric *refused;
    _Atomic uint64_t told_ns;
    _Atomic uint64_t untold;
};
/* `transport`: "grpc" or "http". 0 or -EINVAL as server_auth_find(). */
int auth_guard_start(struct auth_guard *g, struct component *c, const char *transport, const struct auth_settings *s, struct err *reterr);
/* Asks the authenticator; counts and logs who is refused. With ADMIT_LATER the check is the ticket of `x`. */
enum admission auth_guard_admit(struct auth_guard *g, struct http_exchange *x, const char **ret_reason);
/* The outcome of a check that said no: counted and logged. */
void auth_guard_refused(struct auth_guard *g, const char *peer, const char *reason);
/* One line when strangers can reach the address ("[::]:4317") and nothing keeps them out. `safe`: another thing does (client certificates). */
void auth_guard_warn_open(const struct auth_guard *g, const char *address, bool safe);

/* ---- comparing without telling how far it went ---- */

#define AUTH_DIGEST_BYTES 32
struct auth_key { /* of this process; a digest says nothing without it */
    uint8_t bytes[32];
};
int auth_key_make(struct auth_key *ret); /* 0 or -errno */
/* Of two texts, whose border counts. */
void auth_digest(const struct auth_key *key, struct bytes a, struct bytes b, uint8_t ret[AUTH_DIGEST_BYTES]);
bool auth_digest_equal(const uint8_t *a, const uint8_t *b);

#endif
