/* Listeners, inside of the server: who serves, the limits, the count of connections. */
#ifndef MOTEL_NET_LISTENER_PARTS_H
#define MOTEL_NET_LISTENER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/net/loop.h"
#include "agent/net/server.h"

struct service_ref { /* one service, refcounted: who serves and the exchanges under way */
    struct http_service svc;
    struct server_settings settings;
    atomic_uint refs;
    unsigned inflight;        /* under the listener's lock */
    atomic_bool dead;         /* no callback any more */
    struct service_ref *next; /* replaced ones that have not left yet */
};
struct listener {
    atomic_uint refs;
    pthread_mutex_t lock; /* service, settings, counts */
    pthread_cond_t changed;
    int fd;
    bool serving, tls_warned;
    atomic_bool stopping;
    struct server_settings settings;
    char *endpoint, *transport, *unix_path;
    char address[128];
    struct service_ref *service, *retired;
    unsigned nconns, ninner; /* of these, the inner ones of TLS */
    struct acceptor *acceptors; /* one a loop */
};
struct acceptor {
    struct watch watch;
    struct listener *listener;
    struct loop *loop;
    struct acceptor *next_paused;
    uint64_t full_since_ns, full_at_ns, warned_ns; /* there was no room: first, last, and when that was logged */
    bool watching;
};

struct listener *listener_ref(struct listener *l);
void listener_unref(struct listener *l);
void listener_conn_left(struct listener *l);
void listener_inner(struct listener *l, int n); /* one inner connection more (it counts as one of the listener, too) or, before it leaves, less */
void service_unref(struct service_ref *s); /* NULL ok */

#endif
