/* TLS of servers: keys, certificates, reading them again. */
#include "agent/net/tls_server.h"

#include <ctype.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/net/tls.h"
#include "agent/net/tls_priority.h"

#define CLIENT_CA_CHECK_NS NS_PER_S /* how often a client_ca_file is looked at, at most */
#define LOG_EVERY_NS (10 * NS_PER_S)

struct tls_creds {
    atomic_uint refs;
    gnutls_certificate_credentials_t certificates;
    gnutls_datum_t
        ticket_key; /* new with every reading: a ticket is worth what was verified then */
};

struct material { /* PEM text */
    struct buf *cert, *key, *client_ca;
};

struct tls_server {
    atomic_uint refs;
    char *cert_file, *key_file, *client_ca_file; /* NULL = given as text */
    bool verify_clients, system_ca;
    int64_t reload_interval_ns, ca_interval_ns; /* 0 = never */
    gnutls_priority_t priority;
    pthread_mutex_t reading; /* who reads the files; never waited for */
    struct material material;
    uint64_t reload_at_ns, ca_check_at_ns;
    bool reload_failed;
    pthread_mutex_t lock; /* creds and what follows */
    struct tls_creds *creds;
    uint64_t log_at_ns;
    unsigned unlogged;
    void (*failed)(void *ctx);
    void *failed_ctx;
};

/* ---- rules ---- */

static bool given(const char *s)
{
    return s && *s;
}

static int check_pair(const struct tls_server_settings *s, struct err *reterr)
{
    bool cert = given(s->cert_file) || given(s->cert_pem),
         key = given(s->key_file) || given(s->key_pem);
    if (given(s->cert_file) && given(s->cert_pem))
        return err_at(reterr, "tls", "provide either certificate file or PEM, but not both");
    if (given(s->key_file) && given(s->key_pem))
        return err_at(reterr, "tls", "provide either key file or PEM, but not both");
    if (cert != key)
        return err_at(reterr, "tls",
                      "TLS configuration must include both certificate and key (CertFile/CertPem "
                      "and KeyFile/KeyPem)");
    if (!cert)
        return err_at(reterr, "tls",
                      "TLS configuration must include both certificate and key for server "
                      "connections");
    return 0;
}

int tls_server_check(const struct tls_server_settings *s, struct err *reterr)
{
    char text[TLS_PRIORITY_BYTES];
    if (given(s->ca_file) && given(s->ca_pem))
        return err_at(reterr, "tls",
                      "provide either a CA file or the PEM-encoded string, but not both");
    if (given(s->client_ca_file) && given(s->client_ca_pem))
        return err_at(reterr, "tls",
                      "provide either a client CA file or the PEM-encoded string, but not both");
    if (s->reload_interval_ns < 0)
        return err_at(reterr, "tls::reload_interval", "expected a duration of 0 or more");
    int r = check_pair(s, reterr);
    return r < 0 ? r : tls_priority_make(s, text, reterr);
}

/* ---- reading ---- */

static void material_done(struct material *m)
{
    m->cert = buf_unref(m->cert);
    m->key = buf_unref(m->key);
    m->client_ca = buf_unref(m->client_ca);
}

/* "open x: no such file or directory", as Go says it. */
static int read_pem(const char *path, struct buf **ret, struct err *reterr)
{
    struct err e;
    _cleanup_buf_ struct buf *b = buf_new(0);
    if (!b)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = tls_read_file(path, b, &e);
    if (r < 0) {
        char *why = strrchr(e.text, ':');
        if (why && why[1] == ' ')
            why[2] = (char)tolower((unsigned char)why[2]);
        return err_set(reterr, r, "%s", e.text);
    }
    buf_unref(*ret);
    *ret = TAKE_PTR(b);
    return 0;
}

static int keep_pem(const char *text, struct buf **ret)
{
    *ret = buf_new(0);
    return *ret && buf_append_str(*ret, text) == 0 ? 0 : -ENOMEM;
}

static int read_pair(const struct tls_server *t, struct material *m, struct err *reterr)
{
    int r = t->cert_file ? read_pem(t->cert_file, &m->cert, reterr) : 0;
    if (r == 0 && t->key_file)
        r = read_pem(t->key_file, &m->key, reterr);
    if (r < 0)
        err_prefix(reterr, "failed to load TLS config: failed to load TLS cert and key: ");
    return r;
}

static int read_client_ca(const struct tls_server *t, struct material *m, struct err *reterr)
{
    int r = t->client_ca_file ? read_pem(t->client_ca_file, &m->client_ca, reterr) : 0;
    if (r < 0)
        err_prefix(reterr,
                   "failed to load client CA CertPool: failed to load CA %s: ", t->client_ca_file);
    return r;
}

static gnutls_datum_t datum(const struct buf *b)
{
    return (gnutls_datum_t){b->data, (unsigned)b->len};
}

/* ---- credentials ---- */

struct tls_creds *tls_creds_unref(struct tls_creds *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return NULL;
    if (c->certificates)
        gnutls_certificate_free_credentials(c->certificates);
    if (c->ticket_key.data) {
        gnutls_memset(c->ticket_key.data, 0, c->ticket_key.size);
        gnutls_free(c->ticket_key.data);
    }
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct tls_creds *, tls_creds_unref)

static struct tls_creds *creds_alloc(void)
{
    struct tls_creds *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    atomic_init(&c->refs, 1);
    if (gnutls_certificate_allocate_credentials(&c->certificates) < 0) {
        c->certificates = NULL;
        return tls_creds_unref(c);
    }
    return gnutls_session_ticket_key_generate(&c->ticket_key) < 0 ? tls_creds_unref(c) : c;
}

static int trust_system(gnutls_certificate_credentials_t c, struct err *reterr)
{
    _cleanup_buf_ struct buf *pem = buf_new(0);
    int r = pem ? tls_system_cas(pem, reterr) : err_set(reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        err_prefix(reterr, "failed to load client CA CertPool: ");
        return r;
    }
    const gnutls_datum_t d = datum(pem);
    r = pem->len ? gnutls_certificate_set_x509_trust_mem(c, &d, GNUTLS_X509_FMT_PEM) : 0;
    return r < 0 ? err_set(reterr, -EINVAL, "failed to load client CA CertPool: %s",
                           gnutls_strerror(r))
                 : 0;
}

static int set_client_ca(const struct tls_server *t, const struct material *m,
                         gnutls_certificate_credentials_t c, struct err *reterr)
{
    gnutls_datum_t d = datum(m->client_ca);
    int r = gnutls_certificate_set_x509_trust_mem(c, &d, GNUTLS_X509_FMT_PEM);
    if (r <= 0)
        return err_set(reterr, -EINVAL,
                       "failed to load client CA CertPool: failed to parse CA %s: %s",
                       t->client_ca_file ? t->client_ca_file : "client_ca_pem",
                       r < 0 ? gnutls_strerror(r) : "no certificate in it");
    return t->system_ca ? trust_system(c, reterr) : 0;
}

static int creds_new(const struct tls_server *t, const struct material *m, struct tls_creds **ret,
                     struct err *reterr)
{
    _cleanup_(tls_creds_unrefp) struct tls_creds *c = creds_alloc();
    if (!c)
        return err_set(reterr, -ENOMEM, "out of memory");
    gnutls_datum_t cert = datum(m->cert), key = datum(m->key);
    int r = gnutls_certificate_set_x509_key_mem(c->certificates, &cert, &key, GNUTLS_X509_FMT_PEM);
    if (r < 0)
        return err_set(reterr, -EINVAL,
                       "failed to load TLS config: failed to load TLS cert and key: failed to load "
                       "TLS cert and key PEMs (%s, %s): %s",
                       t->cert_file ? t->cert_file : "cert_pem",
                       t->key_file ? t->key_file : "key_pem", gnutls_strerror(r));
    r = t->verify_clients ? set_client_ca(t, m, c->certificates, reterr) : 0;
    if (r == 0)
        *ret = TAKE_PTR(c);
    return r;
}

/* ---- reading again ---- */

static bool same(const struct buf *a, const struct buf *b)
{
    return a == b ||
           (a && b && a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

static bool material_same(const struct material *a, const struct material *b)
{
    return same(a->cert, b->cert) && same(a->key, b->key) && same(a->client_ca, b->client_ca);
}

static void material_copy(struct material *to, const struct material *from)
{
    *to = (struct material){buf_ref(from->cert), buf_ref(from->key),
                            from->client_ca ? buf_ref(from->client_ca) : NULL};
}

static void take_creds(struct tls_server *t, struct tls_creds *c)
{
    pthread_mutex_lock(&t->lock);
    struct tls_creds *old = t->creds;
    t->creds = c;
    pthread_mutex_unlock(&t->lock);
    tls_creds_unref(old);
}

/* Reads what it is time for; what cannot be used leaves everything as it is. Under `reading`. */
static int reload(struct tls_server *t, bool pair, bool ca, struct err *reterr)
{
    struct material m;
    struct tls_creds *c = NULL;
    material_copy(&m, &t->material);
    int r = pair ? read_pair(t, &m, reterr) : 0;
    if (r == 0 && ca)
        r = read_client_ca(t, &m, reterr);
    if (r == 0 && !material_same(&m, &t->material)) {
        r = creds_new(t, &m, &c, reterr);
        if (r == 0) {
            struct material old = t->material;
            t->material = m;
            m = old;
            take_creds(t, c);
            log_info(NULL, "TLS certificates were read again",
                     LOG_STR("cert_file", t->cert_file ? t->cert_file : ""));
        }
    }
    material_done(&m);
    return r;
}

static bool is_due(int64_t interval_ns, uint64_t *at, uint64_t now)
{
    if (interval_ns <= 0 || now < *at)
        return false;
    *at = now + (uint64_t)interval_ns;
    return true;
}

static void reload_when_due(struct tls_server *t)
{
    struct err e;
    if ((t->reload_interval_ns <= 0 && t->ca_interval_ns <= 0) ||
        pthread_mutex_trylock(&t->reading) != 0)
        return;
    uint64_t now = clock_now_ns();
    bool pair = is_due(t->reload_interval_ns, &t->reload_at_ns, now),
         ca = is_due(t->ca_interval_ns, &t->ca_check_at_ns, now);
    if (pair || ca) {
        int r = reload(t, pair, ca, &e);
        if (r < 0 && !t->reload_failed)
            log_error(NULL,
                      "Cannot read TLS certificates again; those of before stay in use until it "
                      "succeeds",
                      LOG_STR("error", e.text));
        t->reload_failed = r < 0;
    }
    pthread_mutex_unlock(&t->reading);
}

/* ---- life ---- */

static void server_free(struct tls_server *t)
{
    tls_creds_unref(t->creds);
    material_done(&t->material);
    if (t->priority)
        gnutls_priority_deinit(t->priority);
    pthread_mutex_destroy(&t->reading);
    pthread_mutex_destroy(&t->lock);
    free(t->cert_file);
    free(t->key_file);
    free(t->client_ca_file);
    free(t);
}

struct tls_server *tls_server_ref(struct tls_server *t)
{
    if (t)
        atomic_fetch_add(&t->refs, 1);
    return t;
}

struct tls_server *tls_server_unref(struct tls_server *t)
{
    if (t && atomic_fetch_sub(&t->refs, 1) == 1)
        server_free(t);
    return NULL;
}

/* A file's name or the text itself. */
static int copy_source(const char *file, const char *pem, char **ret_file, struct buf **ret_text)
{
    if (!given(file))
        return given(pem) ? keep_pem(pem, ret_text) : 0;
    *ret_file = strdup(file);
    return *ret_file ? 0 : -ENOMEM;
}

static struct tls_server *server_alloc(const struct tls_server_settings *s)
{
    struct tls_server *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    pthread_mutex_init(&t->reading, NULL);
    pthread_mutex_init(&t->lock, NULL);
    t->verify_clients = given(s->client_ca_file) || given(s->client_ca_pem);
    t->system_ca = s->include_system_ca_certs_pool;
    t->reload_interval_ns = s->reload_interval_ns;
    if (s->client_ca_file_reload && given(s->client_ca_file))
        t->ca_interval_ns = CLIENT_CA_CHECK_NS;
    t->reload_at_ns = clock_now_ns() + (uint64_t)s->reload_interval_ns;
    if (copy_source(s->cert_file, s->cert_pem, &t->cert_file, &t->material.cert) < 0 ||
        copy_source(s->key_file, s->key_pem, &t->key_file, &t->material.key) < 0 ||
        copy_source(s->client_ca_file, s->client_ca_pem, &t->client_ca_file,
                    &t->material.client_ca) < 0)
        return tls_server_unref(t);
    return t;
}

int tls_server_new(const struct tls_server_settings *s, struct tls_server **ret, struct err *reterr)
{
    char text[TLS_PRIORITY_BYTES];
    const char *bad = "";
    int r = tls_server_check(s, reterr);
    if (r < 0)
        return r;
    _cleanup_(tls_server_unrefp) struct tls_server *t = server_alloc(s);
    if (!t)
        return err_set(reterr, -ENOMEM, "out of memory");
    tls_priority_make(s, text, NULL);
    if ((r = gnutls_priority_init(&t->priority, text, &bad)) < 0)
        return err_set(reterr, -EINVAL, "failed to load TLS config: %s, at \"%s\"",
                       gnutls_strerror(r), bad);
    r = read_pair(t, &t->material, reterr);
    if (r == 0)
        r = read_client_ca(t, &t->material, reterr);
    if (r == 0)
        r = creds_new(t, &t->material, &t->creds, reterr);
    if (r == 0)
        *ret = TAKE_PTR(t);
    return r;
}

/* ---- failures ---- */

void tls_server_on_failure(struct tls_server *t, void (*failed)(void *ctx), void *ctx)
{
    t->failed = failed;
    t->failed_ctx = ctx;
}

void tls_server_failed(struct tls_server *t, const char *address, const char *peer,
                       const char *reason)
{
    uint64_t now = clock_now_ns();
    unsigned skipped = 0;
    if (t->failed)
        t->failed(t->failed_ctx);
    pthread_mutex_lock(&t->lock);
    bool say = now >= t->log_at_ns;
    if (say) {
        t->log_at_ns = now + LOG_EVERY_NS;
        skipped = t->unlogged;
        t->unlogged = 0;
    } else {
        t->unlogged++;
    }
    pthread_mutex_unlock(&t->lock);
    if (say)
        log_warn(NULL, "A TLS handshake failed", LOG_STR("endpoint", address),
                 LOG_STR("peer", peer), LOG_STR("reason", reason),
                 LOG_INT("others_not_logged", skipped));
}

/* ---- sessions ---- */

static int session_setup(struct tls_server *t, gnutls_session_t g, struct tls_creds *c)
{
    static const gnutls_datum_t protocols[] = {{(unsigned char *)"h2", 2},
                                               {(unsigned char *)"http/1.1", 8},
                                               {(unsigned char *)"http/1.0", 8}};
    static gnutls_typed_vdata_st purpose[] = {
        {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0}};
    int r = gnutls_priority_set(g, t->priority);
    if (r >= 0)
        r = gnutls_credentials_set(g, GNUTLS_CRD_CERTIFICATE, c->certificates);
    if (r >= 0)
        r = gnutls_alpn_set_protocols(g, protocols, ARRAY_SIZE(protocols),
                                      GNUTLS_ALPN_MANDATORY | GNUTLS_ALPN_SERVER_PRECEDENCE);
    if (r >= 0)
        r = gnutls_session_ticket_enable_server(g, &c->ticket_key);
    gnutls_certificate_server_set_request(g, t->verify_clients ? GNUTLS_CERT_REQUIRE
                                                               : GNUTLS_CERT_IGNORE);
    if (t->verify_clients)
        gnutls_session_set_verify_cert2(g, purpose, 1, 0);
    return r;
}

int tls_server_session(struct tls_server *t, struct gnutls_session_int **ret,
                       struct tls_creds **ret_creds)
{
    gnutls_session_t g;
    reload_when_due(t);
    if (gnutls_init(&g, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
        return -ENOMEM;
    pthread_mutex_lock(&t->lock);
    struct tls_creds *c = t->creds;
    atomic_fetch_add(&c->refs, 1);
    pthread_mutex_unlock(&t->lock);
    if (session_setup(t, g, c) < 0) {
        gnutls_deinit(g);
        tls_creds_unref(c);
        return -ENOMEM;
    }
    *ret = g;
    *ret_creds = c;
    return 0;
}

/* ---- keys ---- */

/* clang-format off */
#define USED_KEY(name, k, for_what, text)                                                          \
    {.key = #name, .kind = k, CFG_AT(struct tls_server_settings, name), .use = for_what, .help = text}
#define KEY(name, k, text) USED_KEY(name, k, CFG_USE_NONE, text)
#define FILE_KEY(name, text) USED_KEY(name, BIND_STRING, CFG_READS_FILE, text)
#define UNUSED_KEY(name, k) USED_KEY(name, k, CFG_NO_EFFECT, "Accepted, has no effect on a server.")
const struct cfg_field tls_server_fields[] = {
    FILE_KEY(cert_file, "PEM file of the server's certificate chain."),
    KEY(cert_pem, BIND_OPAQUE, "The same as text."),
    FILE_KEY(key_file, "PEM file of the key of that certificate."),
    KEY(key_pem, BIND_OPAQUE, "The same as text."),
    FILE_KEY(client_ca_file, "PEM file of the authorities for client certificates, which are then required."),
    KEY(client_ca_pem, BIND_OPAQUE, "The same as text."),
    KEY(client_ca_file_reload, BIND_BOOL, "Read client_ca_file again when it has changed."),
    KEY(include_system_ca_certs_pool, BIND_BOOL, "Accept client certificates of the system's authorities, too."),
    KEY(min_version, BIND_STRING, "Lowest TLS version, 1.0 to 1.3; default 1.2."),
    KEY(max_version, BIND_STRING, "Highest TLS version; default 1.3."),
    {.key = "cipher_suites", .kind = BIND_LIST, CFG_AT(struct tls_server_settings, cipher_suites), .elem = &cfg_elem_string,
     .help = "Cipher suites by Go's names; default: those with ECDHE and AES-GCM or CHACHA20."},
    {.key = "curve_preferences", .kind = BIND_LIST, CFG_AT(struct tls_server_settings, curve_preferences), .elem = &cfg_elem_string,
     .help = "X25519, P256, P384, P521, the best first."},
    {.key = "reload_interval", .kind = BIND_DURATION, CFG_AT(struct tls_server_settings, reload_interval_ns),
     .help = "Read certificate and key again after this long; 0 means never (but at SIGHUP)."},
    UNUSED_KEY(ca_file, BIND_STRING),
    UNUSED_KEY(ca_pem, BIND_OPAQUE),
    {.key = "include_insecure_cipher_suites", .kind = BIND_REFUSED, .def = "false", .help = "insecure cipher suites are not served"},
    {.key = "tpm", .kind = BIND_REFUSED, .help = "keys in a TPM are not supported"},
    {0},
};
/* clang-format on */
