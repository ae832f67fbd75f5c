#include "agent/net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include "agent/base/clock.h"

#define MAX_PEM_BYTES (16u * 1024 * 1024)
#define PIPE_NS (5 * NS_PER_S)

int tls_version(const char *text, int deflt)
{
    static const struct {
        const char *name;
        int version;
    } known[] = {{"1.0", 0x0301}, {"1.1", 0x0302}, {"1.2", 0x0303}, {"1.3", 0x0304}};
    if (!text || !*text)
        return deflt;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strcmp(known[i].name, text) == 0)
            return known[i].version;
    return -1;
}

static bool given(const char *s)
{
    return s && *s;
}

bool tls_client_has_ca(const struct tls_client_settings *s)
{
    return given(s->ca_file) || given(s->ca_pem);
}

int tls_client_check(const struct tls_client_settings *s, struct err *reterr)
{
    bool cert = given(s->cert_file) || given(s->cert_pem),
         key = given(s->key_file) || given(s->key_pem);
    if (given(s->ca_file) && given(s->ca_pem))
        return err_at(reterr, "tls::ca_pem",
                      "provide either a CA file or the PEM-encoded string, but not both");
    if (given(s->cert_file) && given(s->cert_pem))
        return err_at(reterr, "tls::cert_pem",
                      "provide either a certificate or the PEM-encoded string, but not both");
    if (given(s->key_file) && given(s->key_pem))
        return err_at(reterr, "tls::key_pem",
                      "provide either a key or the PEM-encoded string, but not both");
    if (cert != key)
        return err_at(reterr, cert ? "tls::cert_file" : "tls::key_file",
                      "provide both certificate and key, or neither");
    int min = tls_version(s->min_version, 0x0303), max = tls_version(s->max_version, 0x0304);
    if (min < 0)
        return err_at(reterr, "tls::min_version",
                      "unsupported TLS version: \"%s\" (expected 1.0, 1.1, 1.2 or 1.3)",
                      s->min_version);
    if (max < 0)
        return err_at(reterr, "tls::max_version",
                      "unsupported TLS version: \"%s\" (expected 1.0, 1.1, 1.2 or 1.3)",
                      s->max_version);
    if (min > max)
        return err_at(reterr, "tls::min_version", "min_version cannot be greater than max_version");
    return 0;
}

bool tls_is_special_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool is_special(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Whoever writes to a pipe or socket has PIPE_NS in all. */
static bool wait_for_writer(int fd, uint64_t until_ns)
{
    for (;;) {
        const uint64_t now = clock_now_ns();
        if (now >= until_ns)
            return false;
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) > 0)
            return true;
    }
}

int tls_read_file(const char *path, struct buf *out, struct err *reterr)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_set(reterr, -errno, "open %s: %s", path, strerror(errno));
    const size_t start = out->len;
    const uint64_t until = clock_now_ns() + PIPE_NS;
    const bool special = is_special(fd);
    for (;;) {
        if (special && !wait_for_writer(fd, until))
            return err_set(reterr, -ETIMEDOUT, "read %s: nobody writes to it", path);
        if (out->len - start > MAX_PEM_BYTES)
            return err_set(reterr, -EFBIG, "%s: more than %u bytes", path, MAX_PEM_BYTES);
        if (buf_reserve(out, 8192) < 0)
            return err_set(reterr, -ENOMEM, "out of memory");
        ssize_t n = read(fd, buf_tail(out), 8192);
        if (n < 0)
            return err_set(reterr, -errno, "read %s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        buf_commit(out, (size_t)n);
    }
}

/* ---- credentials */

struct tls_client {
    const struct tls_client_settings *settings;
    gnutls_certificate_credentials_t creds;
    bool shared; /* the process-wide credentials: the system's trust store, no certificate */
};

static gnutls_certificate_credentials_t system_creds;
static pthread_once_t system_once = PTHREAD_ONCE_INIT;

/* An unreadable store is an empty one: every verification then fails and says so. */
static void trust_system(gnutls_certificate_credentials_t c)
{
    _cleanup_buf_ struct buf *pem = buf_new(0);
    struct err err = {0};
    if (!pem || tls_system_cas(pem, &err) < 0)
        return;
    const gnutls_datum_t d = {pem->data, (unsigned)pem->len};
    gnutls_certificate_set_x509_trust_mem(c, &d, GNUTLS_X509_FMT_PEM);
}

static void load_system(void)
{
    if (gnutls_certificate_allocate_credentials(&system_creds) < 0)
        system_creds = NULL;
    else
        trust_system(system_creds);
}

/* A PEM object from a file or from the text itself. */
static int load_pem(const char *file, const char *pem, struct buf **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    int r = b ? 0 : err_set(reterr, -ENOMEM, "out of memory");
    if (r == 0 && given(file))
        r = tls_read_file(file, b, reterr);
    else if (r == 0)
        r = buf_append_str(b, pem) < 0 ? err_set(reterr, -ENOMEM, "out of memory") : 0;
    if (r == 0)
        *ret = TAKE_PTR(b);
    return r;
}

static gnutls_datum_t datum(const struct buf *b)
{
    return (gnutls_datum_t){b->data, (unsigned)b->len};
}

static int load_ca(const struct tls_client_settings *s, gnutls_certificate_credentials_t c,
                   struct err *reterr)
{
    _cleanup_buf_ struct buf *pem = NULL;
    int r = load_pem(s->ca_file, s->ca_pem, &pem, reterr);
    if (r < 0)
        return r;
    gnutls_datum_t d = datum(pem);
    r = gnutls_certificate_set_x509_trust_mem(c, &d, GNUTLS_X509_FMT_PEM);
    if (r <= 0)
        return err_set(reterr, -EINVAL, "failed to parse cert %s: %s",
                       given(s->ca_file) ? s->ca_file : "(ca_pem)",
                       r < 0 ? gnutls_strerror(r) : "no certificate in it");
    return 0;
}

static int load_key_pair(const struct tls_client_settings *s, gnutls_certificate_credentials_t c,
                         struct err *reterr)
{
    _cleanup_buf_ struct buf *cert = NULL, *key = NULL;
    int r = load_pem(s->cert_file, s->cert_pem, &cert, reterr);
    if (r == 0)
        r = load_pem(s->key_file, s->key_pem, &key, reterr);
    if (r < 0)
        return r;
    gnutls_datum_t dc = datum(cert), dk = datum(key);
    r = gnutls_certificate_set_x509_key_mem(c, &dc, &dk, GNUTLS_X509_FMT_PEM);
    if (r < 0)
        return err_set(reterr, -EINVAL, "failed to load TLS cert and key (%s, %s): %s",
                       given(s->cert_file) ? s->cert_file : "cert_pem",
                       given(s->key_file) ? s->key_file : "key_pem", gnutls_strerror(r));
    return 0;
}

static int load_own(const struct tls_client_settings *s, gnutls_certificate_credentials_t c,
                    struct err *reterr)
{
    int r = 0;
    if (tls_client_has_ca(s))
        r = load_ca(s, c, reterr);
    if (r == 0 && (!tls_client_has_ca(s) || s->include_system_ca_certs_pool) &&
        !s->insecure_skip_verify)
        trust_system(c);
    if (r == 0 && (given(s->cert_file) || given(s->cert_pem)))
        r = load_key_pair(s, c, reterr);
    return r;
}

int tls_client_new(const struct tls_client_settings *s, struct tls_client **ret, struct err *reterr)
{
    _cleanup_(tls_client_freep) struct tls_client *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(reterr, -ENOMEM, "out of memory");
    t->settings = s;
    t->shared = !tls_client_has_ca(s) && !given(s->cert_file) && !given(s->cert_pem) &&
                !s->insecure_skip_verify;
    if (t->shared) {
        pthread_once(&system_once, load_system);
        t->creds = system_creds;
    } else if (gnutls_certificate_allocate_credentials(&t->creds) < 0) {
        t->creds = NULL;
    }
    if (!t->creds)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = t->shared ? 0 : load_own(s, t->creds, reterr);
    if (r < 0) {
        err_prefix(reterr, "failed to load TLS config: ");
        return r;
    }
    *ret = TAKE_PTR(t);
    return 0;
}

struct tls_client *tls_client_free(struct tls_client *t)
{
    if (t) {
        if (t->creds && !t->shared)
            gnutls_certificate_free_credentials(t->creds);
        free(t);
    }
    return NULL;
}

int tls_client_test(const struct tls_client_settings *s, struct err *reterr)
{
    _cleanup_(tls_client_freep) struct tls_client *t = NULL;
    if (!tls_client_has_ca(s) && !given(s->cert_file) && !given(s->cert_pem))
        return 0;
    struct tls_client_settings own = *s;
    own.include_system_ca_certs_pool = false; /* the system's store is loaded when it is needed */
    own.insecure_skip_verify = true;
    return tls_client_new(&own, &t, reterr);
}

/* ---- sessions */

static void priorities(const struct tls_client_settings *s, char *ret, size_t size)
{
    static const struct {
        int version;
        const char *name;
    } all[] = {{0x0304, ":+VERS-TLS1.3"},
               {0x0303, ":+VERS-TLS1.2"},
               {0x0302, ":+VERS-TLS1.1"},
               {0x0301, ":+VERS-TLS1.0"}};
    int min = tls_version(s->min_version, 0x0303), max = tls_version(s->max_version, 0x0304);
    size_t n = (size_t)snprintf(ret, size, "NORMAL:-VERS-ALL");
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (all[i].version >= min && all[i].version <= max)
            n += (size_t)snprintf(ret + n, size - n, "%s", all[i].name);
}

static bool is_address(const char *host)
{
    uint8_t scratch[16];
    return inet_pton(AF_INET, host, scratch) == 1 || inet_pton(AF_INET6, host, scratch) == 1;
}

/* "h2" or "h2,http/1.1". */
static int offer_protocols(gnutls_session_t g, const char *alpn)
{
    gnutls_datum_t list[4];
    unsigned n = 0;
    for (const char *p = alpn; *p && n < ARRAY_SIZE(list); p += *p == ',') {
        list[n++] = (gnutls_datum_t){(unsigned char *)p, (unsigned)strcspn(p, ",")};
        p += strcspn(p, ",");
    }
    return gnutls_alpn_set_protocols(g, list, n, 0);
}

static int session_setup(struct tls_client *t, gnutls_session_t g, const char *host,
                         const char *alpn)
{
    char text[128];
    priorities(t->settings, text, sizeof(text));
    int r = gnutls_priority_set_direct(g, text, NULL);
    if (r >= 0)
        r = gnutls_credentials_set(g, GNUTLS_CRD_CERTIFICATE, t->creds);
    if (r >= 0)
        r = offer_protocols(g, alpn);
    if (r >= 0 && !is_address(host))
        r = gnutls_server_name_set(g, GNUTLS_NAME_DNS, host, strlen(host));
    if (r >= 0 && !t->settings->insecure_skip_verify)
        gnutls_session_set_verify_cert(g, host, 0);
    return r;
}

int tls_client_session(struct tls_client *t, int fd, const char *host, const char *alpn,
                       struct gnutls_session_int **ret, struct err *reterr)
{
    gnutls_session_t g;
    int r = gnutls_init(&g, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (r < 0)
        return err_set(reterr, -ENOMEM, "TLS: %s", gnutls_strerror(r));
    if (given(t->settings->server_name_override))
        host = t->settings->server_name_override;
    r = session_setup(t, g, host, alpn);
    if (r < 0) {
        gnutls_deinit(g);
        return err_set(reterr, -EINVAL, "TLS: %s", gnutls_strerror(r));
    }
    gnutls_transport_set_int(g, fd);
    gnutls_handshake_set_timeout(g, GNUTLS_INDEFINITE_TIMEOUT);
    *ret = g;
    return 0;
}

void tls_handshake_reason(struct gnutls_session_int *session, int code, char *ret, size_t size)
{
    gnutls_datum_t text = {NULL, 0};
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(session),
            gnutls_certificate_type_get2(session, GNUTLS_CTYPE_SERVER), &text, 0) >= 0)
        snprintf(ret, size, "%.*s", (int)text.size, (const char *)text.data);
    else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
        snprintf(ret, size, "the peer answered with the alert \"%s\"",
                 gnutls_alert_get_name(gnutls_alert_get(session)));
    else
        snprintf(ret, size, "%s", gnutls_strerror(code));
    gnutls_free(text.data);
}

/* ---- keys */

const struct cfg_field tls_client_fields[] = {
    {.key = "insecure",
     .kind = BIND_BOOL,
     CFG_AT(struct tls_client_settings, insecure),
     .help = "Plain text instead of TLS (gRPC; for HTTP the scheme of the endpoint decides)."},
    {.key = "insecure_skip_verify",
     .kind = BIND_BOOL,
     CFG_AT(struct tls_client_settings, insecure_skip_verify),
     .help = "Do not verify the server's certificate."},
    {.key = "ca_file",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, ca_file),
     .use = CFG_READS_FILE,
     .help = "PEM file of the authorities to trust instead of the system's."},
    {.key = "ca_pem",
     .kind = BIND_OPAQUE,
     CFG_AT(struct tls_client_settings, ca_pem),
     .help = "The same as text."},
    {.key = "include_system_ca_certs_pool",
     .kind = BIND_BOOL,
     CFG_AT(struct tls_client_settings, include_system_ca_certs_pool),
     .help = "Trust the system's authorities besides those of ca_file."},
    {.key = "cert_file",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, cert_file),
     .use = CFG_READS_FILE,
     .help = "PEM file of the client's own certificate chain."},
    {.key = "cert_pem",
     .kind = BIND_OPAQUE,
     CFG_AT(struct tls_client_settings, cert_pem),
     .help = "The same as text."},
    {.key = "key_file",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, key_file),
     .use = CFG_READS_FILE,
     .help = "PEM file of the key of that certificate."},
    {.key = "key_pem",
     .kind = BIND_OPAQUE,
     CFG_AT(struct tls_client_settings, key_pem),
     .help = "The same as text."},
    {.key = "server_name_override",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, server_name_override),
     .help = "Name to ask for and to verify instead of the endpoint's host."},
    {.key = "min_version",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, min_version),
     .help = "Lowest TLS version, 1.0 to 1.3; default 1.2."},
    {.key = "max_version",
     .kind = BIND_STRING,
     CFG_AT(struct tls_client_settings, max_version),
     .help = "Highest TLS version; default 1.3."},
    {.key = "reload_interval",
     .kind = BIND_DURATION,
     CFG_AT(struct tls_client_settings, reload_interval_ns),
     .help = "Accepted; certificates are read again at every new connection."},
    {.key = "cipher_suites",
     .kind = BIND_REFUSED,
     .help = "a list of cipher suites cannot be set; leave it out to use the library's"},
    {.key = "curve_preferences",
     .kind = BIND_REFUSED,
     .help = "a list of curves cannot be set; leave it out to use the library's"},
    {.key = "tpm", .kind = BIND_REFUSED, .help = "keys in a TPM are not supported"},
    {0},
};
