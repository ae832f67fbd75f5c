/* The side of servers and clients of authentication: finding the extension, refusing and counting.
 */
#include "agent/pipeline/auth.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <sys/random.h>

#include "agent/base/clock.h"
#include "agent/base/digest.h"

#define TELL_EVERY_NS (10 * NS_PER_S)

/* clang-format off */
#define ID_HELP "Id of the extension, which is listed in service::extensions."
#define AUTHENTICATOR {.key = "authenticator", .kind = BIND_ID, CFG_AT(struct auth_settings, authenticator), .help = ID_HELP}
const struct cfg_field auth_fields[] = {AUTHENTICATOR, {0}};
const struct cfg_field auth_http_fields[] = {
    AUTHENTICATOR,
    {.key = "request_params", .kind = BIND_REFUSED, .def = "[]", .help = "credentials in the query string are not read"},
    {0}};
/* clang-format on */

/* ---- finding ---- */

static bool offers_anything(struct host *h, const char *id)
{
    for (int kind = CAP_STORAGE; kind <= CAP_ENCODING; kind++)
        if (host_extension(h, id, (enum capability)kind))
            return true;
    return false;
}

/* The vtable, or the reference's words. `what`: "server", "HTTP client". */
static int find(struct host *h, const struct auth_settings *s, enum capability kind,
                const char *what, const void **ret, struct err *reterr)
{
    *ret = NULL;
    if (!s)
        return 0;
    const char *id = s->authenticator.id ? s->authenticator.id : "";
    if ((*ret = host_extension(h, id, kind)))
        return 0;
    if (offers_anything(h, id))
        return err_set(reterr, -EINVAL, "requested authenticator is not a %s authenticator: \"%s\"",
                       what, id);
    return err_set(reterr, -EINVAL,
                   "failed to resolve authenticator \"%s\": authenticator not found "
                   "(auth::authenticator names an extension, which must be defined under "
                   "extensions and listed in service::extensions)",
                   id);
}

int server_auth_find(struct host *h, const struct auth_settings *s, const struct server_auth **ret,
                     struct err *reterr)
{
    const void *p;
    int r = find(h, s, CAP_SERVER_AUTH, "server", &p, reterr);
    *ret = p;
    return r;
}

int client_auth_find(struct host *h, const struct auth_settings *s, const char *protocol,
                     const struct client_auth **ret, struct err *reterr)
{
    const void *p;
    char what[32];
    snprintf(what, sizeof(what), "%s client", protocol);
    int r = find(h, s, CAP_CLIENT_AUTH, what, &p, reterr);
    *ret = p;
    return r;
}

/* ---- headers of clients ---- */

struct collecting {
    struct auth_headers *headers;
    bool lower;
};

static int collect(void *ctx, const char *name, const char *value)
{
    const struct collecting *c = ctx;
    struct auth_headers *h = c->headers;
    if (h->n == AUTH_HEADERS_MAX)
        return -E2BIG;
    struct auth_pair *i = &h->items[h->n++];
    *i = (struct auth_pair){strdup(name), strdup(value)};
    if (!i->name || !i->value)
        return -ENOMEM;
    for (char *p = i->name; c->lower && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return 0;
}

int auth_headers_get(const struct client_auth *a, bool lower, struct auth_headers *ret,
                     struct err *reterr)
{
    struct collecting c = {ret, lower};
    ret->n = 0;
    int r = a ? a->headers(a, collect, &c, reterr) : 0;
    if (r == -ENOMEM || r == -E2BIG)
        err_set(reterr, r, r == -ENOMEM ? "out of memory" : "too many headers");
    if (r < 0)
        auth_headers_done(ret);
    return r;
}

bool auth_headers_have(const struct auth_headers *h, const char *name)
{
    for (unsigned i = 0; i < h->n; i++)
        if (strcasecmp(h->items[i].name, name) == 0)
            return true;
    return false;
}

void auth_headers_done(struct auth_headers *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (h->items[i].value)
            explicit_bzero(h->items[i].value, strlen(h->items[i].value));
        free(h->items[i].name);
        free(h->items[i].value);
    }
    h->n = 0;
}

struct bytes auth_header(const struct http_exchange *x, const char *lower)
{
    struct bytes v = http_header(x, lower);
    if (http_carrier(x) == CARRIER_HTTP1)
        while (v.len && (v.data[v.len - 1] == ' ' || v.data[v.len - 1] == '\t'))
            v.len--;
    return v;
}

/* ---- the door of a server ---- */

int auth_guard_start(struct auth_guard *g, struct component *c, const char *transport,
                     const struct auth_settings *s, struct err *reterr)
{
    char labels[METRIC_LABELS_MAX] = "";
    g->logger = &c->logger;
    int r = server_auth_find(c->host, s, &g->auth, reterr);
    if (r < 0 || !g->auth)
        return r;
    metric_label(labels, component_kind_name(c->type->kind), c->id);
    metric_label(labels, "transport", transport);
    g->refused = metric_counter(c->host, "motel_server_unauthenticated_requests",
                                "Requests refused for lack of valid credentials.", labels);
    return 0;
}

/* The first one at once, then the sum of those of ten seconds. */
void auth_guard_refused(struct auth_guard *g, const char *peer, const char *reason)
{
    const uint64_t now = clock_now_ns();
    uint64_t told = atomic_load(&g->told_ns);
    metric_add(g->refused, 1);
    atomic_fetch_add(&g->untold, 1);
    if ((told && now - told < TELL_EVERY_NS) ||
        !atomic_compare_exchange_strong(&g->told_ns, &told, now))
        return;
    log_warn(g->logger, "Requests without valid credentials are refused", LOG_STR("reason", reason),
             LOG_STR("peer", peer), LOG_INT("requests", atomic_exchange(&g->untold, 0)));
}

static void drop_check(void *ticket)
{
    struct auth_check *k = ticket;
    k->drop(k);
}

enum admission auth_guard_admit(struct auth_guard *g, struct http_exchange *x,
                                const char **ret_reason)
{
    struct auth_check *k = NULL;
    *ret_reason = NULL;
    if (!g->auth)
        return ADMIT_PASS;
    enum admission a = g->auth->admit(g->auth, x, ret_reason, &k);
    if (a == ADMIT_REFUSE)
        auth_guard_refused(g, http_peer(x), *ret_reason);
    if (a == ADMIT_LATER) {
        http_peer(x); /* kept: another thread may ask for it later */
        http_set_ticket(x, k, drop_check);
    }
    return a;
}

static bool is_loopback(const char *address)
{
    return address[0] == '/' || !strchr(address, ':') || strncmp(address, "127.", 4) == 0 ||
           strncmp(address, "[::1]", 5) == 0;
}

void auth_guard_warn_open(const struct auth_guard *g, const char *address, bool safe)
{
    if (!g->auth && !safe && !is_loopback(address))
        log_warn(g->logger,
                 "The server is reachable from other hosts and asks for no credentials: anyone "
                 "there can send data",
                 LOG_STR("endpoint", address));
}

/* ---- comparing ---- */

int auth_key_make(struct auth_key *ret)
{
    ssize_t n = getrandom(ret->bytes, sizeof(ret->bytes), 0);
    return n == (ssize_t)sizeof(ret->bytes) ? 0 : n < 0 ? -errno : -EIO;
}

void auth_digest(const struct auth_key *key, struct bytes a, struct bytes b,
                 uint8_t ret[AUTH_DIGEST_BYTES])
{
    uint8_t all[sizeof(key->bytes) + 2 * SHA256_BYTES];
    memcpy(all, key->bytes, sizeof(key->bytes));
    digest_sha256(a, all + sizeof(key->bytes));
    digest_sha256(b, all + sizeof(key->bytes) + SHA256_BYTES);
    digest_sha256(bytes_of(all, sizeof(all)), ret);
    explicit_bzero(all, sizeof(all));
}

bool auth_digest_equal(const uint8_t *a, const uint8_t *b)
{
    unsigned differ = 0;
    for (size_t i = 0; i < AUTH_DIGEST_BYTES; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}
