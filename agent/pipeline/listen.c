#include "agent/pipeline/listen.h"

#include <errno.h>
#include <string.h>

#include "agent/net/tls_server.h"

#define MAX_GENERATIONS 100 /* of one address, while older ones still drain */

/* What is shared under an address. */
struct shared_listener {
    struct listener *listener;
    char owner[1100];
};

struct served {
    struct host *host;
    struct shared *shared;
    struct shared_listener *sl;
    void *ctx;
};

struct opening {
    const struct server_settings *settings;
    const char *owner;
    int code; /* of the failure */
};

static int open_listener(void *ctx, void **ret, struct err *reterr)
{
    struct opening *o = ctx;
    struct shared_listener *sl = calloc(1, sizeof(*sl));
    o->code = -ENOMEM;
    if (!sl)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = o->code = listener_open(o->settings, &sl->listener, reterr);
    if (r < 0) {
        free(sl);
        return r;
    }
    snprintf(sl->owner, sizeof(sl->owner), "%s", o->owner);
    *ret = sl;
    return 0;
}

static void close_listener(void *thing)
{
    struct shared_listener *sl = thing;
    listener_free(sl->listener);
    free(sl);
}

static int in_use(const struct server_settings *s, const struct shared_listener *sl,
                  struct err *reterr)
{
    const char *transport = s->transport && s->transport[0] ? s->transport : "tcp";
    return err_set(reterr, -EADDRINUSE, "listen %s %s: bind: address already in use (by %s)",
                   transport, s->endpoint, sl->owner);
}

/* One try under a key: -ESHUTDOWN when what is there is ending. */
static int share(struct served *v, const char *key, struct opening *o,
                 const struct http_service *service, struct err *reterr)
{
    struct err e = {0};
    v->shared = host_share(v->host, key, open_listener, o, close_listener, reterr);
    if (!v->shared)
        return o->code ? o->code : -ENOMEM;
    v->sl = v->shared->thing;
    int r = 0;
    if (strcmp(v->sl->owner, o->owner) != 0 && listener_serving(v->sl->listener, &(void *){NULL}))
        r = in_use(o->settings, v->sl, reterr);
    if (r == 0) {
        listener_configure(v->sl->listener, o->settings);
        r = listener_serve(v->sl->listener, service, &e);
        if (r < 0 && r != -ESHUTDOWN && reterr)
            *reterr = e;
    }
    if (r < 0)
        v->shared = host_unshare(v->host, v->shared);
    return r;
}

static int share_any(struct served *v, const char *base, struct opening *o,
                     const struct http_service *service, struct err *reterr)
{
    char key[1720];
    int r = -ESHUTDOWN;
    for (int i = 0; r == -ESHUTDOWN && i < MAX_GENERATIONS; i++) {
        snprintf(key, sizeof(key), i ? "%s#%d" : "%s", base, i);
        r = share(v, key, o, service, reterr);
    }
    return r;
}

/* Port 0 is not the same port for each that says so. */
static void listen_key(const char *transport, const char *endpoint, const char *owner, char *ret,
                       size_t size)
{
    const char *colon = strrchr(endpoint, ':');
    const bool any_port = colon && strcmp(colon, ":0") == 0;
    snprintf(ret, size, "listen:%s:%s%s%s", transport && *transport ? transport : "tcp", endpoint,
             any_port ? ":" : "", any_port ? owner : "");
}

static int open_nothing(void *ctx, void **ret, struct err *reterr)
{
    (void)ctx;
    (void)ret;
    return err_set(reterr, -ENOENT, "nobody listens");
}

bool served_find(struct host *h, const char *owner, const char *endpoint, const char *transport,
                 char *ret, size_t size)
{
    char key[1700];
    struct err e;
    listen_key(transport, endpoint, owner, key, sizeof(key));
    struct shared *s = host_share(h, key, open_nothing, NULL, close_listener, &e);
    if (!s)
        return false;
    const struct shared_listener *sl = s->thing;
    const bool found = strcmp(sl->owner, owner) == 0;
    snprintf(ret, size, "%s", found ? listener_address(sl->listener) : "");
    host_unshare(h, s);
    return found;
}

static void count_failure(void *metric)
{
    metric_add(metric, 1);
}

/* Certificates are read at the start and at every reload. */
static int load_tls(struct component *c, const char *owner, const struct server_settings *s,
                    struct tls_server **ret, struct err *reterr)
{
    char labels[METRIC_LABELS_MAX] = "";
    if (!s->tls_keys)
        return 0;
    int r = tls_server_new(s->tls_keys, ret, reterr);
    if (r < 0)
        return r;
    metric_label(labels, "server", owner);
    tls_server_on_failure(*ret, count_failure,
                          metric_counter(c->host, "motel_server_tls_handshake_failures",
                                         "Connections to a port with TLS that ended before they "
                                         "were one.",
                                         labels));
    return 0;
}

int served_start(struct component *c, const char *role, const struct server_settings *s,
                 const struct http_service *service, struct served **ret, struct err *reterr)
{
    char key[1700], owner[1100];
    snprintf(owner, sizeof(owner), "%s %s%s%s", component_kind_name(c->type->kind), c->id,
             role[0] ? " " : "", role);
    listen_key(s->transport, s->endpoint, owner, key, sizeof(key));
    _cleanup_(tls_server_unrefp) struct tls_server *tls = NULL;
    int r = load_tls(c, owner, s, &tls, reterr);
    if (r < 0)
        return r;
    struct server_settings own = *s;
    own.tls = tls;
    struct served *v = calloc(1, sizeof(*v));
    if (!v)
        return err_set(reterr, -ENOMEM, "out of memory");
    v->host = c->host;
    v->ctx = service->ctx;
    r = share_any(v, key, &(struct opening){&own, owner, 0}, service, reterr);
    if (r < 0) {
        free(v);
        return r;
    }
    *ret = v;
    return 0;
}

const char *served_address(const struct served *s)
{
    return listener_address(s->sl->listener);
}

void served_stop(struct served *s, uint64_t deadline_ns)
{
    if (!s || !s->shared)
        return;
    listener_leave(s->sl->listener, s->ctx, deadline_ns);
    s->shared = host_unshare(s->host, s->shared);
}

struct served *served_free(struct served *s)
{
    served_stop(s, 0);
    free(s);
    return NULL;
}
