/* A TLS handshake as the clients make it, and all that it tells. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/net/reach.h"

struct shaking {
    struct tls_client *creds;
    gnutls_session_t session;
    int fd;
    uint64_t deadline_ns;
};

static void shaking_done(struct shaking *s)
{
    if (s->session)
        gnutls_deinit(s->session);
    tls_client_free(s->creds);
}

/* Waits for the side of the socket that GnuTLS wants. 0 or -ETIMEDOUT. */
static int wait_turn(const struct shaking *s)
{
    const uint64_t now = clock_now_ns();
    const short events = gnutls_record_get_direction(s->session) ? POLLOUT : POLLIN;
    if (now >= s->deadline_ns)
        return -ETIMEDOUT;
    struct pollfd p = {s->fd, events, 0};
    poll(&p, 1, (int)((s->deadline_ns - now) / NS_PER_MS) + 1);
    return 0;
}

static int begin(struct shaking *s, const struct tls_client_settings *settings, const char *host,
                 bool http2_only, struct err *reterr)
{
    int r = tls_client_new(settings, &s->creds, reterr);
    if (r == 0)
        r = tls_client_session(s->creds, s->fd, host, http2_only ? "h2" : "h2,http/1.1",
                               &s->session, reterr);
    return r;
}

/* The certificate that the server showed. */
static void see_certificate(gnutls_session_t g, struct reach_tls *ret)
{
    unsigned n = 0;
    const gnutls_datum_t *list = gnutls_certificate_get_peers(g, &n);
    struct err ignored;
    if (list && n)
        certificate_info_read(list[0].data, list[0].size, false, &ret->certificate, &ignored);
}

static enum reach_trust trust_of(unsigned status, const struct certificate_info *c)
{
    const int64_t now_s = (int64_t)(clock_wall_ns() / NS_PER_S);
    if (status & GNUTLS_CERT_EXPIRED || (c->expires_s && c->expires_s < now_s))
        return TRUST_EXPIRED;
    if (status & GNUTLS_CERT_NOT_ACTIVATED)
        return TRUST_NOT_YET;
    if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA))
        return c->self_signed ? TRUST_SELF_SIGNED : TRUST_UNKNOWN_CA;
    return status & GNUTLS_CERT_UNEXPECTED_OWNER ? TRUST_WRONG_NAME : TRUST_BAD;
}

static void note_alert(gnutls_session_t g, int code, struct reach_tls *ret)
{
    const char *name =
        code == GNUTLS_E_FATAL_ALERT_RECEIVED ? gnutls_alert_get_name(gnutls_alert_get(g)) : NULL;
    if (name)
        snprintf(ret->alert, sizeof(ret->alert), "%s", name);
}

static int shake_failed(gnutls_session_t g, int code, struct reach_tls *ret, struct err *reterr)
{
    char why[300];
    see_certificate(g, ret);
    note_alert(g, code, ret);
    ret->no_tls = code == GNUTLS_E_UNEXPECTED_PACKET_LENGTH ||
                  code == GNUTLS_E_UNSUPPORTED_VERSION_PACKET ||
                  code == GNUTLS_E_UNEXPECTED_PACKET || code == GNUTLS_E_RECORD_OVERFLOW;
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
        ret->trust = trust_of(gnutls_session_get_verify_cert_status(g), &ret->certificate);
    tls_handshake_reason(g, code, why, sizeof(why));
    size_t n = strlen(why);
    while (n && (why[n - 1] == ' ' || why[n - 1] == '.'))
        why[--n] = 0;
    return err_set(reterr, -EPROTO, "%s", why);
}

static int shake(const struct shaking *s, struct reach_tls *ret, struct err *reterr)
{
    for (;;) {
        const int r = gnutls_handshake(s->session);
        if (r >= 0)
            return 0;
        if (gnutls_error_is_fatal(r)) {
            shake_failed(s->session, r, ret, reterr);
            gnutls_alert_send_appropriate(s->session, r);
            return -EPROTO;
        }
        if (wait_turn(s) < 0)
            return err_set(reterr, -ETIMEDOUT, "no answer to the TLS handshake");
    }
}

static void see_session(gnutls_session_t g, struct reach_tls *ret)
{
    gnutls_datum_t chosen = {NULL, 0};
    see_certificate(g, ret);
    ret->asks_certificate = gnutls_certificate_client_get_request_status(g) != 0;
    const char *version = gnutls_protocol_get_name(gnutls_protocol_get_version(g));
    snprintf(ret->version, sizeof(ret->version), "%s", version ? version : "TLS");
    if (gnutls_alpn_get_selected_protocol(g, &chosen) == 0)
        snprintf(ret->alpn, sizeof(ret->alpn), "%.*s", (int)chosen.size, (const char *)chosen.data);
}

static int reach(struct shaking *s, const struct tls_client_settings *settings, const char *host,
                 bool http2_only, struct reach_tls *ret, struct err *reterr)
{
    memset(ret, 0, sizeof(*ret));
    int r = begin(s, settings, host, http2_only, reterr);
    if (r == 0)
        r = shake(s, ret, reterr);
    if (r == 0)
        see_session(s->session, ret);
    return r;
}

int reach_tls(const struct tls_client_settings *settings, int fd, const char *host, bool http2_only,
              uint64_t deadline_ns, struct reach_tls *ret, struct err *reterr)
{
    _cleanup_(shaking_done) struct shaking s = {.fd = fd, .deadline_ns = deadline_ns};
    const int r = reach(&s, settings, host, http2_only, ret, reterr);
    if (r == 0)
        gnutls_bye(s.session, GNUTLS_SHUT_WR);
    return r;
}

/* With TLS 1.3 the server says only now what it thinks of the client's certificate. */
int reach_tls_answer(const struct tls_client_settings *settings, int fd, const char *host,
                     bool http2_only, uint64_t deadline_ns, struct reach_tls *ret,
                     struct err *reterr)
{
    static const char h2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0",
                      h1[] = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    _cleanup_(shaking_done) struct shaking s = {.fd = fd, .deadline_ns = deadline_ns};
    char in[256];
    int r = reach(&s, settings, host, http2_only, ret, reterr);
    if (r < 0)
        return r;
    const bool is_h2 = strcmp(ret->alpn, "h2") == 0;
    gnutls_record_send(s.session, is_h2 ? h2 : h1, is_h2 ? sizeof(h2) : sizeof(h1) - 1);
    for (;;) {
        const ssize_t n = gnutls_record_recv(s.session, in, sizeof(in));
        if (n >= 0)
            return 0;
        if (gnutls_error_is_fatal((int)n)) {
            note_alert(s.session, (int)n, ret);
            return err_set(reterr, -EPROTO, "%s", gnutls_strerror((int)n));
        }
        if (wait_turn(&s) < 0)
            return err_set(reterr, -ETIMEDOUT, "no answer");
    }
}
