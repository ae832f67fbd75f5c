/*
 * TLS over a non-blocking socket. What arrives is read with few large reads into a buffer of the
 * loop, from which GnuTLS takes it; after a read nothing is left there, because GnuTLS keeps the
 * record that is not whole. What is sent goes record by record to the socket.
 */
#include "agent/net/tls_session.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "agent/net/tls.h"

#define RECORD_BYTES 16384
#define ALERT_RECORD 21

struct tls_session {
    gnutls_session_t g;
    struct tls_creds *creds;
    int fd;
    const uint8_t *in; /* ciphertext that was read and not taken yet */
    size_t in_len;
    bool alert_next;  /* in the handshake: the body of an alert without encryption follows */
    uint8_t alert;    /* that alert; 0 = none */
    bool established; /* from now on GnuTLS reads from `in` */
    bool eof;         /* the socket has ended */
    bool ended;
    int end; /* errno of the end; 0 = orderly */
};

/* ---- the socket, as GnuTLS sees it ---- */

/* OpenSSL's clients say what they do not like of a certificate without encryption where GnuTLS
 * expects it to be encrypted (TLS 1.3), and the reason would be lost. */
static ssize_t pull_handshake(struct tls_session *s, uint8_t *to, size_t len)
{
    ssize_t n = recv(s->fd, to, len, 0);
    if (s->alert_next && n == 2)
        s->alert = to[1];
    s->alert_next = n == 5 && to[0] == ALERT_RECORD && to[3] == 0 && to[4] == 2;
    return n;
}

static ssize_t pull(gnutls_transport_ptr_t p, void *to, size_t len)
{
    struct tls_session *s = p;
    if (!s->established)
        return pull_handshake(s, to, len);
    if (s->in_len == 0) {
        if (s->eof)
            return 0;
        gnutls_transport_set_errno(s->g, EAGAIN);
        return -1;
    }
    size_t n = len < s->in_len ? len : s->in_len;
    memcpy(to, s->in, n);
    s->in += n;
    s->in_len -= n;
    return (ssize_t)n;
}

static ssize_t push(gnutls_transport_ptr_t p, const giovec_t *iov, int n)
{
    struct tls_session *s = p;
    struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    return sendmsg(s->fd, &m, MSG_NOSIGNAL);
}

/* ---- life ---- */

struct tls_session *tls_session_new(struct tls_server *t, int fd)
{
    struct tls_session *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->fd = fd;
    if (tls_server_session(t, &s->g, &s->creds) < 0) {
        free(s);
        return NULL;
    }
    gnutls_transport_set_ptr(s->g, s);
    gnutls_transport_set_pull_function(s->g, pull);
    gnutls_transport_set_vec_push_function(s->g, push);
    return s;
}

struct tls_session *tls_session_free(struct tls_session *s)
{
    if (s) {
        gnutls_deinit(s->g);
        tls_creds_unref(s->creds);
        free(s);
    }
    return NULL;
}

/* ---- the handshake ---- */

/* Some reasons, as a person at the server needs them. */
static void say_reason(const struct tls_session *s, int code, char *reason, size_t size)
{
    if (code == GNUTLS_E_NO_CERTIFICATE_FOUND || code == GNUTLS_E_CERTIFICATE_REQUIRED)
        snprintf(reason, size, "the client sent no certificate");
    else if (s->alert && gnutls_alert_get_name((gnutls_alert_description_t)s->alert))
        snprintf(reason, size, "the peer answered with the alert \"%s\"",
                 gnutls_alert_get_name((gnutls_alert_description_t)s->alert));
    else if (code == GNUTLS_E_PREMATURE_TERMINATION || code == GNUTLS_E_PULL_ERROR ||
             code == GNUTLS_E_PUSH_ERROR)
        snprintf(reason, size, "the client closed the connection");
    else
        tls_handshake_reason(s->g, code, reason, size);
    size_t n = strlen(reason);
    while (n && (reason[n - 1] == ' ' || reason[n - 1] == '.'))
        reason[--n] = 0;
}

int tls_session_shake(struct tls_session *s, char *reason, size_t size)
{
    int r;
    do {
        r = gnutls_handshake(s->g);
    } while (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_WARNING_ALERT_RECEIVED);
    if (r == GNUTLS_E_AGAIN)
        return -EAGAIN;
    if (r < 0) {
        say_reason(s, r, reason, size);
        if (r != GNUTLS_E_FATAL_ALERT_RECEIVED)
            gnutls_alert_send_appropriate(s->g, r);
        return -EPROTO;
    }
    s->established = true;
    return 0;
}

bool tls_session_wants_write(const struct tls_session *s)
{
    return gnutls_record_get_direction(s->g) == 1;
}

bool tls_session_is_h2(const struct tls_session *s)
{
    gnutls_datum_t d = {NULL, 0};
    return gnutls_alpn_get_selected_protocol(s->g, &d) == 0 && d.size == 2 &&
           memcmp(d.data, "h2", 2) == 0;
}

/* ---- data ---- */

static void end(struct tls_session *s, int code)
{
    s->ended = true;
    s->end = code;
    s->in_len = 0;
}

/* What a failed read means; false when there is no more for now. Renegotiation is not for us. */
static bool read_failed(struct tls_session *s, int r, size_t before)
{
    if (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_WARNING_ALERT_RECEIVED)
        return true;
    if (r == GNUTLS_E_AGAIN) {
        if (s->in_len == 0 && !s->eof)
            return false;
        if (s->in_len != before)
            return true;
    }
    if (r == GNUTLS_E_PREMATURE_TERMINATION || r == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        end(s, ECONNRESET);
    } else {
        gnutls_alert_send_appropriate(s->g, r);
        end(s, EPROTO);
    }
    return false;
}

/* Takes all records that are whole. */
static size_t take_records(struct tls_session *s, uint8_t *data, size_t size)
{
    size_t total = 0;
    for (;;) {
        size_t before = s->in_len;
        ssize_t r = gnutls_record_recv(s->g, data + total, size - total);
        if (r > 0) {
            total += (size_t)r;
        } else if (r == 0) {
            end(s, 0);
            return total;
        } else if (!read_failed(s, (int)r, before)) {
            return total;
        }
    }
}

ssize_t tls_session_recv(struct tls_session *s, uint8_t *data, size_t size, uint8_t *cipher)
{
    size_t got = 0;
    if (!s->ended) {
        ssize_t n = recv(s->fd, cipher, TLS_CIPHER_BYTES, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            end(s, errno);
        } else {
            s->eof = n == 0;
            s->in = cipher;
            s->in_len = n > 0 ? (size_t)n : 0;
            got = take_records(s, data, size);
        }
    }
    if (got)
        return (ssize_t)got;
    if (s->ended && s->end == 0)
        return 0;
    errno = s->ended ? s->end : EAGAIN;
    return -1;
}

bool tls_session_ended(const struct tls_session *s)
{
    return s->ended;
}

ssize_t tls_session_send(struct tls_session *s, const uint8_t *data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        size_t n = len - done < RECORD_BYTES ? len - done : RECORD_BYTES;
        ssize_t r = gnutls_record_send(s->g, data + done, n);
        if (r > 0) {
            done += (size_t)r;
        } else if (r == GNUTLS_E_AGAIN) {
            break;
        } else if (r != GNUTLS_E_INTERRUPTED) {
            errno = EPIPE;
            return -1;
        }
    }
    if (done)
        return (ssize_t)done;
    errno = EAGAIN;
    return -1;
}

void tls_session_bye(struct tls_session *s)
{
    if (s->established)
        gnutls_bye(s->g, GNUTLS_SHUT_WR);
}
