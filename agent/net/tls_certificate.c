#include "agent/net/tls_certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>
#include <time.h>

#include "agent/net/tls.h"

#define NAMES_SHOWN 8

static void distinguished_name(gnutls_x509_crt_t c,
                               int (*get)(gnutls_x509_crt_t, gnutls_datum_t *, unsigned), char *ret,
                               size_t size)
{
    gnutls_datum_t d = {NULL, 0};
    if (get(c, &d, 0) < 0 || d.size == 0)
        snprintf(ret, size, "(none)");
    else
        snprintf(ret, size, "%.*s", (int)d.size, (const char *)d.data);
    gnutls_free(d.data);
}

/* One alternative name as text; false for kinds that are of no use here. */
static bool name_text(int kind, const char *data, size_t len, char *ret, size_t size)
{
    if (kind == GNUTLS_SAN_DNSNAME) {
        snprintf(ret, size, "%.*s", (int)len, data);
        return true;
    }
    if (kind != GNUTLS_SAN_IPADDRESS || (len != 4 && len != 16))
        return false;
    return inet_ntop(len == 4 ? AF_INET : AF_INET6, data, ret, (socklen_t)size) != NULL;
}

static void alternative_names(gnutls_x509_crt_t c, struct certificate_info *ret)
{
    size_t used = 0;
    for (unsigned i = 0; i < NAMES_SHOWN; i++) {
        char data[256], text[256];
        size_t len = sizeof(data);
        const int kind = gnutls_x509_crt_get_subject_alt_name(c, i, data, &len, NULL);
        if (kind < 0)
            break;
        if (!name_text(kind, data, len, text, sizeof(text)) ||
            used + strlen(text) + 3 > sizeof(ret->names))
            continue;
        used += (size_t)snprintf(ret->names + used, sizeof(ret->names) - used, "%s%s",
                                 used ? ", " : "", text);
    }
}

int certificate_info_read(const void *data, size_t len, bool pem, struct certificate_info *ret,
                          struct err *reterr)
{
    gnutls_x509_crt_t c;
    const gnutls_datum_t d = {(unsigned char *)data, (unsigned)len};
    memset(ret, 0, sizeof(*ret));
    if (gnutls_x509_crt_init(&c) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    const int r = gnutls_x509_crt_import(c, &d, pem ? GNUTLS_X509_FMT_PEM : GNUTLS_X509_FMT_DER);
    if (r >= 0) {
        distinguished_name(c, gnutls_x509_crt_get_dn3, ret->subject, sizeof(ret->subject));
        distinguished_name(c, gnutls_x509_crt_get_issuer_dn3, ret->issuer, sizeof(ret->issuer));
        alternative_names(c, ret);
        ret->begins_s = (int64_t)gnutls_x509_crt_get_activation_time(c);
        ret->expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(c);
        ret->self_signed = gnutls_x509_crt_check_issuer(c, c) != 0;
    }
    gnutls_x509_crt_deinit(c);
    return r < 0 ? err_set(reterr, -EINVAL, "not a certificate: %s", gnutls_strerror(r)) : 0;
}

int certificate_info_load(const char *file, const char *pem, struct certificate_info *ret,
                          struct err *reterr)
{
    if (!file || !*file)
        return certificate_info_read(pem, strlen(pem), true, ret, reterr);
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? tls_read_file(file, b, reterr) : err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    r = certificate_info_read(b->data, b->len, true, ret, reterr);
    if (r < 0)
        err_prefix(reterr, "%s: ", file);
    return r;
}

void certificate_date(int64_t unix_s, char ret[16])
{
    struct tm tm;
    const time_t t = (time_t)unix_s;
    if (!gmtime_r(&t, &tm) || strftime(ret, 16, "%Y-%m-%d", &tm) == 0)
        snprintf(ret, 16, "?");
}
