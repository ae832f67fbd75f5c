/* A backend from outside in: its name, a connection, TLS; and why a request got no answer. */
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/net/endpoint.h"
#include "agent/pipeline/probe.h"

#define SOON_S (14 * 86400)
#define DIAGNOSIS_NS (2 * NS_PER_S)

static uint64_t deadline_of(const struct probe *p)
{
    return clock_now_ns() + p->timeout_ns;
}

/* For finding out why something failed: the person has waited already. */
static uint64_t short_deadline_of(const struct probe *p)
{
    return clock_now_ns() + (p->timeout_ns < DIAGNOSIS_NS ? p->timeout_ns : DIAGNOSIS_NS);
}

static const char *timeout_text(const struct probe *p, char ret[32])
{
    cfg_format_duration((int64_t)p->timeout_ns, ret);
    return ret;
}

static const char *peer_text(const struct probe_peer *peer, char *ret, size_t size)
{
    if (peer->unix_path && *peer->unix_path)
        snprintf(ret, size, "%s", peer->unix_path);
    else
        snprintf(ret, size, strchr(peer->host, ':') && *peer->host != '[' ? "[%s]:%s" : "%s:%s",
                 peer->host, peer->port);
    return ret;
}

/* ---- names ---- */

static void join_addresses(const struct reach_addresses *a, char *ret, size_t size)
{
    size_t used = 0;
    ret[0] = 0;
    for (unsigned i = 0; i < a->n && used < size; i++) {
        char one[128];
        endpoint_format((const struct sockaddr *)&a->items[i].addr, a->items[i].len, one,
                        sizeof(one));
        char *colon = strrchr(one, ':');
        if (colon)
            *colon = 0;
        used += (size_t)snprintf(ret + used, size - used, "%s%s", i ? ", " : "", one);
    }
}

static bool is_literal(const char *host)
{
    return *host == '[' || strchr(host, ':') || host[strspn(host, "0123456789.")] == 0;
}

static bool resolve(struct probe *p, struct probe_peer *peer)
{
    struct err e = {0};
    char all[500], took[32], host[256];
    const uint64_t begin = clock_now_ns();
    if (peer->unix_path && *peer->unix_path)
        return reach_unix(peer->unix_path, &peer->addresses) ==
               0; /* the exporter checks its length */
    snprintf(host, sizeof(host), "%s", *peer->host == '[' ? peer->host + 1 : peer->host);
    host[strcspn(host, "]")] = 0;
    const int r = reach_resolve(host, peer->port, p->timeout_ns, &peer->addresses, &e);
    join_addresses(&peer->addresses, all, sizeof(all));
    if (r == 0 && !is_literal(peer->host))
        probe_ok(p, "resolve", peer->host, "%s (%s)", all, probe_took(begin, took));
    if (r == -ETIMEDOUT)
        probe_fail(p, "resolve", peer->host,
                   "look at /etc/resolv.conf and at the way to the name servers in it",
                   "no answer from the name service within %s", timeout_text(p, took));
    else if (r < 0)
        probe_fail(p, "resolve", peer->host,
                   "correct the name, or look at /etc/resolv.conf and /etc/hosts", "%s", e.text);
    return r == 0;
}

/* ---- connections ---- */

static const char *connect_advice(int code)
{
    switch (code) {
    case -ECONNREFUSED:
        return "nothing listens there: is the backend running, and is this its port (4317 is "
               "gRPC's, 4318 HTTP's)?";
    case -ETIMEDOUT: return "a firewall or network policy drops the packets, or the host is down";
    case -ENETUNREACH:
    case -EHOSTUNREACH: return "there is no way to that network from here: look at the routes";
    case -ENOENT: return "is the server running? Its socket is not there";
    case -EACCES:
    case -EPERM: return "this user may not connect there";
    default: return "look at the network between here and there";
    }
}

static int connect_peer(struct probe *p, struct probe_peer *peer, const char *name)
{
    char where[128], took[32];
    const uint64_t begin = clock_now_ns();
    const int fd = reach_connect(&peer->addresses, deadline_of(p), &peer->at);
    const struct reach_address *a = &peer->addresses.items[peer->at];
    endpoint_format((const struct sockaddr *)&a->addr, a->len, where, sizeof(where));
    const bool named = a->addr.ss_family != AF_UNIX && !is_literal(peer->host);
    if (fd >= 0)
        probe_ok(p, "connect", name, "%s%s%s", named ? where : "", named ? ", " : "",
                 probe_took(begin, took));
    else if (fd == -ETIMEDOUT)
        probe_fail(p, "connect", name, connect_advice(fd), "no answer within %s",
                   timeout_text(p, took));
    else
        probe_fail(p, "connect", name, connect_advice(fd), "%s%s%s", named ? where : "",
                   named ? ": " : "", strerror(-fd));
    return fd;
}

/* ---- TLS ---- */

static void trust_failed(struct probe *p, const struct probe_peer *peer, const char *name,
                         const struct reach_tls *t, const struct err *e)
{
    char date[16], begin[16];
    const struct certificate_info *c = &t->certificate;
    const bool own_ca = tls_client_has_ca(peer->tls);
    certificate_date(c->expires_s, date);
    certificate_date(c->begins_s, begin);
    switch (t->trust) {
    case TRUST_SELF_SIGNED:
    case TRUST_UNKNOWN_CA:
        probe_fail(p, "tls", name,
                   own_ca ? "tls::ca_file names another authority than the one that issued it"
                          : "set tls::ca_file to the certificate of the authority that issued it",
                   "%s: the certificate of %s, by %s, is not of an authority that is trusted",
                   t->trust == TRUST_SELF_SIGNED ? "self-signed" : "unknown authority", c->subject,
                   c->issuer);
        break;
    case TRUST_WRONG_NAME:
        probe_fail(p, "tls", name,
                   "use one of these names in the endpoint, or set tls::server_name_override",
                   "wrong name: the certificate is for %s, not for %s",
                   *c->names ? c->names : c->subject,
                   peer->tls->server_name_override && *peer->tls->server_name_override
                       ? peer->tls->server_name_override
                       : peer->host);
        break;
    case TRUST_EXPIRED:
        probe_fail(p, "tls", name, "the backend needs a new certificate (is the clock here right?)",
                   "the certificate of %s expired on %s", c->subject, date);
        break;
    case TRUST_NOT_YET:
        probe_fail(p, "tls", name, "is the clock of this machine right?",
                   "the certificate of %s is valid from %s on only", c->subject, begin);
        break;
    case TRUST_GOOD:
    case TRUST_BAD: probe_fail(p, "tls", name, "", "%s", e->text); break;
    }
}

static void shake_failed(struct probe *p, const struct probe_peer *peer, const char *name,
                         const struct reach_tls *t, const struct err *e)
{
    const bool cert = (peer->tls->cert_file && *peer->tls->cert_file) ||
                      (peer->tls->cert_pem && *peer->tls->cert_pem);
    if (t->no_tls)
        probe_fail(p, "tls", name,
                   peer->grpc ? "use http:// in the endpoint or tls::insecure: true"
                              : "use http:// in the endpoint",
                   "the server speaks no TLS on this port");
    else if (t->trust != TRUST_GOOD)
        trust_failed(p, peer, name, t, e);
    else if (strstr(t->alert, "application protocol"))
        probe_fail(p, "tls", name,
                   peer->grpc ? "this is no gRPC port: use otlp_http, or the backend's gRPC port"
                              : "is this the right port?",
                   "the server knows none of our protocols (ALPN)");
    else if (*t->alert)
        probe_fail(p, "tls", name,
                   cert ? "the server does not accept tls::cert_file: is it of its authority, and "
                          "in time?"
                        : "if the server wants a client certificate: set tls::cert_file and "
                          "tls::key_file",
                   "the server refused the handshake: %s", t->alert);
    else
        probe_fail(p, "tls", name, "is TLS spoken on this port, and in a version that both know?",
                   "%s", e->text);
}

static void shake_succeeded(struct probe *p, const struct probe_peer *peer, const char *name,
                            const struct reach_tls *t)
{
    char date[16];
    const struct certificate_info *c = &t->certificate;
    const int64_t now_s = (int64_t)(clock_wall_ns() / NS_PER_S);
    certificate_date(c->expires_s, date);
    if (peer->tls->insecure_skip_verify)
        probe_warn(p, "tls", name, "set tls::ca_file instead of tls::insecure_skip_verify",
                   "%s, %s; the certificate of %s, by %s, valid until %s, is not verified",
                   t->version, *t->alpn ? t->alpn : "no ALPN", c->subject, c->issuer, date);
    else if (c->expires_s - now_s < SOON_S)
        probe_warn(p, "tls", name, "the backend needs a new certificate soon",
                   "%s, %s; the certificate of %s expires on %s", t->version,
                   *t->alpn ? t->alpn : "no ALPN", c->subject, date);
    else
        probe_ok(p, "tls", name, "%s, %s; the certificate of %s, by %s, is valid until %s%s",
                 t->version, *t->alpn ? t->alpn : "no ALPN", c->subject, c->issuer, date,
                 t->asks_certificate ? "; asks for a client certificate" : "");
}

static bool shake(struct probe *p, const struct probe_peer *peer, int fd, const char *name)
{
    struct reach_tls t;
    struct err e = {0};
    char host[256];
    snprintf(host, sizeof(host), "%s", *peer->host == '[' ? peer->host + 1 : peer->host);
    host[strcspn(host, "]")] = 0;
    const int r = reach_tls(peer->tls, fd, host, peer->grpc, deadline_of(p), &t, &e);
    if (r < 0) {
        shake_failed(p, peer, name, &t, &e);
        return false;
    }
    if (peer->grpc && strcmp(t.alpn, "h2") != 0) {
        probe_fail(p, "tls", name,
                   "this is no gRPC port: use otlp_http, or the backend's gRPC port",
                   "the server does not speak HTTP/2 here (ALPN agreed on %s)",
                   *t.alpn ? t.alpn : "nothing");
        return false;
    }
    shake_succeeded(p, peer, name, &t);
    return true;
}

bool probe_reach(struct probe *p, struct probe_peer *peer)
{
    char name[300];
    peer_text(peer, name, sizeof(name));
    if (peer->host && probe_ports_have(p->ports, peer->host, peer->port)) {
        peer->own = true;
        probe_warn(
            p, "connect", name, "",
            "this configuration listens there itself; not looked at, since it is not running");
        return false;
    }
    if (!resolve(p, peer))
        return false;
    _cleanup_close_ int fd = connect_peer(p, peer, name);
    return fd >= 0 && (!peer->tls || shake(p, peer, fd, name));
}

bool probe_reach_url(struct probe *p, const struct http_client_settings *s, const char *url,
                     struct probe_peer *peer, struct http_url *room)
{
    struct http_url proxy;
    *peer = (struct probe_peer){.host = room->host, .port = room->port};
    if (http_url_split(url, room) < 0)
        return false;
    if (http_client_proxy(s, url, &proxy)) {
        char name[300];
        snprintf(name, sizeof(name), "%s:%s", proxy.host, proxy.port);
        probe_ok(p, "proxy", name, "requests to %s:%s go through it", room->host, room->port);
        *room = proxy;
        return probe_reach(p, peer);
    }
    if (room->tls)
        peer->tls = s->tls;
    return probe_reach(p, peer);
}

/* ---- a request without an answer ---- */

static int again(struct probe *p, const struct probe_peer *peer)
{
    unsigned at;
    const struct reach_addresses one = {.items = {peer->addresses.items[peer->at]}, .n = 1};
    return reach_connect(&one, short_deadline_of(p), &at);
}

/* True when TLS is spoken, whoever's certificate. */
static bool speaks_tls(struct probe *p, const struct probe_peer *peer)
{
    static const struct tls_client_settings any = {.insecure_skip_verify = true};
    struct reach_tls t;
    struct err e;
    _cleanup_close_ int fd = again(p, peer);
    return fd >= 0 && (reach_tls(&any, fd, "localhost", false, short_deadline_of(p), &t, &e) == 0 ||
                       t.certificate.subject[0] || (*t.alert && !t.no_tls));
}

/* What the server speaks: some answer to the beginning of HTTP/2 with something odd. */
static enum reach_speech speech_of(struct probe *p, const struct probe_peer *peer)
{
    enum reach_speech speech = SPEAKS_NOTHING;
    for (int http1 = 0; http1 < 2; http1++) {
        _cleanup_close_ int fd = again(p, peer);
        const enum reach_speech s =
            fd >= 0 ? reach_listen(fd, http1, short_deadline_of(p)) : SPEAKS_NOTHING;
        if (s != SPEAKS_NOTHING)
            speech = s;
        if (s != SPEAKS_NOTHING && s != SPEAKS_OTHER)
            break;
    }
    return speech;
}

static void unanswered_plain(struct probe *p, const struct probe_peer *peer, const char *check,
                             const char *subject, const char *reason)
{
    const enum reach_speech speech = speech_of(p, peer);
    if (speech == SPEAKS_TLS ||
        ((speech == SPEAKS_NOTHING || speech == SPEAKS_HTTP1) && speaks_tls(p, peer)))
        probe_fail(p, check, subject,
                   peer->grpc ? "use https:// in the endpoint, or take tls::insecure away"
                              : "use https:// in the endpoint",
                   "the server speaks TLS on this port (%s)", reason);
    else if (peer->grpc && speech == SPEAKS_HTTP1)
        probe_fail(p, check, subject,
                   "use the otlp_http exporter for this port, or the backend's gRPC port, often "
                   "4317",
                   "gRPC was sent to a server that speaks HTTP/1 only");
    else if (!peer->grpc && speech == SPEAKS_HTTP2)
        probe_fail(p, check, subject,
                   "use the otlp_grpc exporter for this port, or the backend's HTTP port, often "
                   "4318",
                   "HTTP/1 was sent to a server that speaks gRPC (HTTP/2) only");
    else if (speech == SPEAKS_OTHER)
        probe_fail(p, check, subject, "is this the right port?",
                   "the server speaks neither HTTP/1 nor HTTP/2 (%s)", reason);
    else
        probe_fail(p, check, subject, "look at the log of the backend", "%s", reason);
}

static void unanswered_tls(struct probe *p, const struct probe_peer *peer, const char *check,
                           const char *subject, const char *reason)
{
    struct reach_tls t = {0};
    struct err e = {0};
    const bool cert = (peer->tls->cert_file && *peer->tls->cert_file) ||
                      (peer->tls->cert_pem && *peer->tls->cert_pem);
    _cleanup_close_ int fd = again(p, peer);
    if (fd >= 0)
        reach_tls_answer(peer->tls, fd, peer->host, peer->grpc, short_deadline_of(p), &t, &e);
    if (t.asks_certificate || strstr(t.alert, "ertificate"))
        probe_fail(p, check, subject,
                   cert ? "tls::cert_file must be of the authority that the server trusts, and in "
                          "time"
                        : "set tls::cert_file and tls::key_file",
                   "the server %s a client certificate (%s)", cert ? "refused our" : "requires",
                   *t.alert ? t.alert : reason);
    else
        probe_fail(p, check, subject, "look at the log of the backend", "%s%s%s", reason,
                   *t.alert ? ": " : "", t.alert);
}

void probe_unanswered(struct probe *p, const struct probe_peer *peer, const char *check,
                      const char *subject, const char *reason)
{
    if (peer->addresses.n == 0)
        probe_fail(p, check, subject, "", "%s", reason);
    else if (peer->tls)
        unanswered_tls(p, peer, check, subject, reason);
    else
        unanswered_plain(p, peer, check, subject, reason);
}
