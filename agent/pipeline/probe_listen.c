/* Addresses that servers of the configuration are to have. */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/net/endpoint.h"
#include "agent/net/tls_server.h"
#include "agent/pipeline/probe.h"

struct port {
    struct port *next;
    int fd; /* -1 = not ours, or closed */
    char *endpoint, *owner;
};
struct probe_ports {
    struct port *list;
};

struct probe_ports *probe_ports_new(void)
{
    return calloc(1, sizeof(struct probe_ports));
}

void probe_ports_close(struct probe_ports *p)
{
    for (struct port *t = p->list; t; t = t->next)
        if (t->fd >= 0)
            close(TAKE_FD(t->fd));
}

struct probe_ports *probe_ports_free(struct probe_ports *p)
{
    if (!p)
        return NULL;
    probe_ports_close(p);
    for (struct port *t; (t = p->list);) {
        p->list = t->next;
        free(t->endpoint);
        free(t->owner);
        free(t);
    }
    free(p);
    return NULL;
}

static void remember(struct probe_ports *p, int fd, const char *endpoint, const char *owner)
{
    struct port *t = calloc(1, sizeof(*t));
    if (!t) {
        if (fd >= 0)
            close(fd);
        return;
    }
    *t = (struct port){.next = p->list, .fd = fd};
    t->endpoint = strdup(endpoint);
    t->owner = strdup(owner);
    p->list = t;
}

static const char *port_of(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    return colon ? colon + 1 : "";
}

static bool is_local(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0 || strcmp(host, "0.0.0.0") == 0;
}

/* The same host as text, or both are this machine's. */
bool probe_ports_have(const struct probe_ports *p, const char *host, const char *port)
{
    for (const struct port *t = p ? p->list : NULL; t; t = t->next) {
        if (!t->endpoint || strcmp(port_of(t->endpoint), port) != 0 || strcmp(port, "0") == 0)
            continue;
        const size_t n = strlen(t->endpoint) - strlen(port) - 1;
        char own[256];
        snprintf(own, sizeof(own), "%.*s", (int)n, t->endpoint);
        const bool wildcard = !*own || strcmp(own, "[::]") == 0 || strcmp(own, "0.0.0.0") == 0;
        if (strcasecmp(own, host) == 0 || (is_local(host) && (wildcard || is_local(own))))
            return true;
    }
    return false;
}

/* ---- why an address cannot be had ---- */

static const char *owner_of(const struct probe_ports *p, const char *port)
{
    for (const struct port *t = p->list; t; t = t->next)
        if (t->fd >= 0 && t->endpoint && t->owner && strcmp(port_of(t->endpoint), port) == 0)
            return t->owner;
    return NULL;
}

static void held_by_process(struct probe *p, const char *endpoint, const struct port_holder *h)
{
    const enum probe_likeness like =
        h->pid && p->likeness ? p->likeness(p->ctx, h->pid) : PROBE_STRANGER;
    if (like == PROBE_SAME)
        probe_ok(p, "address", endpoint,
                 "in use by process %d, a motel that runs with this configuration", (int)h->pid);
    else if (like == PROBE_MOTEL)
        probe_fail(
            p, "address", endpoint, "stop the other motel, or give one of the two other ports",
            "in use by process %d, a motel that runs with another configuration", (int)h->pid);
    else if (h->pid)
        probe_fail(p, "address", endpoint, "stop that program, or choose another port",
                   "in use by process %d (%s)", (int)h->pid, h->name);
    else
        probe_fail(p, "address", endpoint,
                   "\"ss -ltnp\" as root shows which one; stop it, or choose another port",
                   "in use by another program, which this user may not look at");
}

static void in_use(struct probe *p, const char *endpoint, bool is_unix)
{
    struct port_holder h;
    const char *own = is_unix ? NULL : owner_of(p->ports, port_of(endpoint));
    if (own) {
        probe_fail(p, "address", endpoint, "give each of the two a port of its own",
                   "the configuration names it twice: %s has it already", own);
        return;
    }
    if (is_unix)
        port_holder_find_unix(endpoint, &h);
    else
        port_holder_find(endpoint, &h);
    held_by_process(p, endpoint, &h);
}

static void not_had(struct probe *p, const char *endpoint, bool is_unix, int code,
                    const struct err *e)
{
    const char *advice = "";
    if (code == -EADDRINUSE) {
        in_use(p, endpoint, is_unix);
        return;
    }
    if (code == -EACCES && !is_unix)
        advice = "ports below 1024 are for root (or CAP_NET_BIND_SERVICE): choose a higher one";
    else if (code == -EADDRNOTAVAIL)
        advice = "no interface of this machine has that address; 0.0.0.0 or :PORT means all that "
                 "there are";
    else if (is_unix)
        advice = "the directory must be there and writable, and the path shorter than 108 bytes";
    probe_fail(p, "address", endpoint, advice, "%s", e->text);
}

/* ---- trying ---- */

/* Without leaving a socket file behind: whether one may be made. */
static void try_unix(struct probe *p, const char *path)
{
    struct stat st;
    struct reach_addresses a;
    unsigned at;
    struct err e;
    if (reach_unix(path, &a) < 0) {
        err_set(&e, -ENAMETOOLONG, "the path is too long for a unix socket");
        not_had(p, path, true, -ENAMETOOLONG, &e);
        return;
    }
    if (lstat(path, &st) < 0) {
        probe_output_file(p, path, false, "");
        return;
    }
    const int fd = S_ISSOCK(st.st_mode) ? reach_connect(&a, UINT64_MAX, &at) : -ENOTSOCK;
    if (fd >= 0) {
        close(fd);
        in_use(p, path, true);
    } else if (fd == -ECONNREFUSED) {
        probe_ok(p, "address", path, "a socket that nobody serves any more, and that is replaced");
    } else {
        err_set(&e, fd, "there is something else at that path");
        not_had(p, path, true, fd, &e);
    }
}

static bool is_open_to_others(const char *endpoint)
{
    char host[256];
    snprintf(host, sizeof(host), "%.*s", (int)(strlen(endpoint) - strlen(port_of(endpoint)) - 1),
             endpoint);
    return strcmp(host, "0.0.0.0") == 0 || !is_local(host);
}

static void try_tcp(struct probe *p, const struct server_settings *s, const char *owner, bool safe)
{
    struct err e = {0};
    const int fd = endpoint_listen(s->transport, s->endpoint, &e);
    if (fd < 0) {
        not_had(p, s->endpoint, false, fd, &e);
        remember(p->ports, -1, s->endpoint, owner);
        return;
    }
    remember(p->ports, fd, s->endpoint, owner);
    if (!safe && is_open_to_others(s->endpoint))
        probe_warn(p, "address", s->endpoint,
                   "bind it to 127.0.0.1, or set auth or tls::client_ca_file",
                   "free; other hosts can reach it, and nothing asks them for credentials");
    else
        probe_ok(p, "address", s->endpoint, "free");
}

static void try_certificates(struct probe *p, const struct tls_server_settings *s)
{
    _cleanup_(tls_server_unrefp) struct tls_server *t = NULL;
    struct certificate_info c;
    struct err e = {0};
    const char *name = s->cert_file && *s->cert_file ? s->cert_file : "tls::cert_pem";
    if (tls_server_new(s, &t, &e) < 0)
        probe_fail(p, "certificate", name,
                   "certificate and key must be readable PEM files that belong together", "%s",
                   e.text);
    else if (certificate_info_load(s->cert_file, s->cert_pem, &c, &e) == 0)
        probe_certificate(p, "certificate", name, &c);
}

void probe_server(struct probe *p, const char *role, const struct server_settings *s, bool guarded)
{
    char owner[400];
    const struct tls_server_settings *tls = s->tls_keys;
    if (p->step != PROBE_SERVERS)
        return;
    snprintf(owner, sizeof(owner), "%s%s%s", p->component, *role ? " " : "", role);
    if (s->transport && strcmp(s->transport, "unix") == 0)
        try_unix(p, s->endpoint);
    else
        try_tcp(p, s, owner,
                guarded || (tls && ((tls->client_ca_file && *tls->client_ca_file) ||
                                    (tls->client_ca_pem && *tls->client_ca_pem))));
    if (tls)
        try_certificates(p, tls);
}
