#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>

// clang-format off
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "agent/base/buf.h"
#include "agent/net/tls.h"
#include "agent/net/tls_priority.h"
#include "agent/net/tls_session.h"

#include "tests/unit/tls_certs.h"

/* ---- versions, cipher suites, curves */

#define MAX_ITEMS 4

/* Words of `text`, which is cut up. */
static struct cfg_list list_of(char *text, const char *items[MAX_ITEMS])
{
    struct cfg_list l = {.items = items};
    for (char *w = strtok(text, " "); w && l.n < MAX_ITEMS; w = strtok(NULL, " "))
        items[l.n++] = w;
    return l;
}

static void test_priorities(void **state)
{
    (void)state;
    static const struct {
        const char *min, *max, *suites, *curves;
        const char *has, *has_not, *error;
    } rows[] = {
        {"", "", NULL, NULL, "+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL", "CBC", NULL},
        {"1.3", "", NULL, NULL, "-VERS-ALL:+VERS-TLS1.3:-KX-ALL", "VERS-TLS1.2", NULL},
        {"", "1.2", NULL, NULL, "-VERS-ALL:+VERS-TLS1.2:-KX-ALL", "VERS-TLS1.3", NULL},
        {"1.0", "", NULL, NULL, ":+VERS-TLS1.0:", NULL, NULL},
        {"1.0", "", NULL, NULL, "+SHA1", NULL, NULL},
        {"1.3", "1.2", NULL, NULL, NULL, NULL, "min_version cannot be greater"},
        {"TLS1.2", "", NULL, NULL, NULL, NULL, "unsupported TLS version: \"TLS1.2\""},
        {"", "2", NULL, NULL, NULL, NULL, "invalid TLS max_version"},
        {"", "", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", NULL,
         "-KX-ALL:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM:-MAC-ALL:+AEAD:-GROUP", "ECDSA", NULL},
        {"", "",
         "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 "
         "TLS_AES_256_GCM_SHA384",
         NULL, "+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM:-MAC", "AES-256", NULL},
        {"", "", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
         NULL, NULL, NULL, "without TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
        {"", "", "TLS_AES_256_GCM_SHA384", NULL,
         "-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-256-GCM:-MAC",
         "VERS-TLS1.2", NULL},
        {"", "1.2", "TLS_AES_256_GCM_SHA384", NULL, NULL, NULL, "max_version is lower"},
        {"", "", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", NULL, NULL, NULL, "TLS 1.3"},
        {"", "1.2", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", NULL, "+AES-128-CBC:-MAC", NULL, NULL},
        {"", "", "TLS_RSA_WITH_RC4_128_SHA", NULL, NULL, NULL,
         "invalid TLS cipher suite: \"TLS_RSA_WITH_RC4_128_SHA\""},
        {"", "", NULL, "P384 X25519",
         "-GROUP-ALL:+GROUP-SECP384R1:+GROUP-X25519:%SERVER_PRECEDENCE", NULL, NULL},
        {"", "", NULL, "X25519MLKEM768 P256", "-GROUP-ALL:+GROUP-SECP256R1:%", NULL, NULL},
        {"", "", NULL, "X25519MLKEM768", NULL, NULL, "not available"},
        {"", "", NULL, "P224", NULL, NULL, "invalid curve type: P224"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[TLS_PRIORITY_BYTES] = "";
        struct err e = {.text = ""};
        gnutls_priority_t p;
        char suites[256], curves[64];
        const char *a[MAX_ITEMS], *b[MAX_ITEMS];
        snprintf(suites, sizeof(suites), "%s", rows[i].suites ? rows[i].suites : "");
        snprintf(curves, sizeof(curves), "%s", rows[i].curves ? rows[i].curves : "");
        const struct tls_server_settings s = {.min_version = rows[i].min,
                                              .max_version = rows[i].max,
                                              .cipher_suites = list_of(suites, a),
                                              .curve_preferences = list_of(curves, b)};
        int r = tls_priority_make(&s, text, &e);
        if ((r == 0) != !rows[i].error || (r < 0 && !strstr(e.text, rows[i].error)) ||
            (r == 0 && rows[i].has && !strstr(text, rows[i].has)) ||
            (r == 0 && rows[i].has_not && strstr(text, rows[i].has_not)))
            fail_msg("row %zu: %d %s %s", i, r, e.text, text);
        if (r < 0)
            continue;
        assert_int_equal(gnutls_priority_init(&p, text, NULL), 0);
        gnutls_priority_deinit(p);
    }
}

/* ---- one client and one server on a pair of sockets */

struct pair {
    int fds[2];
    struct tls_session *server;
    gnutls_session_t client;
    gnutls_certificate_credentials_t creds;
};

static void client_new(struct pair *p)
{
    const gnutls_datum_t h2 = {(unsigned char *)"h2", 2};
    assert_int_equal(gnutls_certificate_allocate_credentials(&p->creds), 0);
    assert_int_equal(gnutls_init(&p->client, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL),
                     0);
    gnutls_priority_set_direct(p->client, "NORMAL", NULL);
    gnutls_credentials_set(p->client, GNUTLS_CRD_CERTIFICATE, p->creds);
    gnutls_alpn_set_protocols(p->client, &h2, 1, 0);
    gnutls_transport_set_int(p->client, p->fds[1]);
}

static void pair_new(struct pair *p, struct tls_server *t)
{
    char why[256] = "";
    int a = -EAGAIN, b = GNUTLS_E_AGAIN;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fds), 0);
    p->server = tls_session_new(t, p->fds[0]);
    assert_non_null(p->server);
    client_new(p);
    while (a == -EAGAIN || b == GNUTLS_E_AGAIN) {
        if (b == GNUTLS_E_AGAIN)
            b = gnutls_handshake(p->client);
        if (a == -EAGAIN)
            a = tls_session_shake(p->server, why, sizeof(why));
    }
    if (a != 0 || b != 0)
        fail_msg("%d %d %s", a, b, why);
    assert_true(tls_session_is_h2(p->server));
}

static void pair_free(struct pair *p)
{
    gnutls_deinit(p->client);
    gnutls_certificate_free_credentials(p->creds);
    tls_session_free(p->server);
    close(p->fds[0]);
    if (p->fds[1] >= 0)
        close(p->fds[1]);
}

/* The name in the certificate that a new client sees. */
static void name_seen(struct tls_server *t, char *ret, size_t size)
{
    struct pair p;
    unsigned n;
    gnutls_x509_crt_t c;
    pair_new(&p, t);
    const gnutls_datum_t *list = gnutls_certificate_get_peers(p.client, &n);
    assert_non_null(list);
    assert_int_equal(gnutls_x509_crt_init(&c), 0);
    assert_int_equal(gnutls_x509_crt_import(c, list, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(
        gnutls_x509_crt_get_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, 0, ret, &size), 0);
    gnutls_x509_crt_deinit(c);
    pair_free(&p);
}

static struct tls_server *server_of(const struct folder *f, int64_t reload_interval_ns)
{
    struct err e;
    struct tls_server *t = NULL;
    const struct tls_server_settings s = {
        .cert_file = f->cert, .key_file = f->key, .reload_interval_ns = reload_interval_ns};
    if (tls_server_new(&s, &t, &e) < 0)
        fail_msg("%s", e.text);
    return t;
}

#define BUFFERS                                                                                    \
    static uint8_t cipher[TLS_CIPHER_BYTES], data[256 << 10], sent[3 << 20], got[sizeof(sent)]
#define RECV(p) tls_session_recv((p).server, data, sizeof(data), cipher)

static void test_reading_again(void **state)
{
    (void)state;
    struct folder f;
    char name[32];
    folder_new(&f);
    struct tls_server *once = server_of(&f, 0), *always = server_of(&f, 1);
    write_pair("second", f.cert, f.key);
    name_seen(once, name, sizeof(name));
    assert_string_equal(name, "first");
    name_seen(always, name, sizeof(name));
    assert_string_equal(name, "second");
    write_pair("third", f.cert, f.other); /* the key is still that of the second */
    for (int i = 0; i < 3; i++) {
        name_seen(always, name, sizeof(name));
        assert_string_equal(name, "second");
    }
    unlink(f.key);
    name_seen(always, name, sizeof(name));
    assert_string_equal(name, "second");
    assert_int_equal(rename(f.other, f.key), 0);
    name_seen(always, name, sizeof(name));
    assert_string_equal(name, "third");
    tls_server_unref(once);
    tls_server_unref(always);
    folder_free(&f);
}

static void test_what_cannot_be_read(void **state)
{
    (void)state;
    struct folder f;
    struct err e;
    struct tls_server *t = NULL;
    folder_new(&f);
    write_file(f.other, "x", 1);
    const struct {
        struct tls_server_settings s;
        const char *text;
    } rows[] = {
        {{.cert_file = "/nowhere/c", .key_file = f.key},
         "failed to load TLS config: failed to load TLS cert and key: open /nowhere/c: no such "
         "file or directory"},
        {{.cert_file = f.cert, .key_file = f.other}, "failed to load TLS cert and key PEMs"},
        {{.cert_file = f.cert, .key_pem = "x"}, "key_pem"},
        {{.cert_file = f.cert, .key_file = f.key, .client_ca_file = "/nowhere/ca"},
         "failed to load client CA CertPool: failed to load CA /nowhere/ca: open /nowhere/ca"},
        {{.cert_file = f.cert, .key_file = f.key, .client_ca_file = f.other}, "failed to parse CA"},
        {{.cert_file = f.cert, .key_file = f.key, .client_ca_file = f.cert, .client_ca_pem = "x"},
         "not both"},
        {{.cert_file = f.cert, .key_file = f.key, .reload_interval_ns = -1}, "0 or more"},
        {{.cert_file = f.cert}, "must include both"},
        {{.cert_file = ""}, "must include both"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        e.text[0] = 0;
        if (tls_server_new(&rows[i].s, &t, &e) == 0 || !strstr(e.text, rows[i].text))
            fail_msg("row %zu: %s", i, e.text);
    }
    folder_free(&f);
}

/* Both directions with sockets that take little at a time: nothing lost, nothing twice. */
static void test_much_data(void **state)
{
    (void)state;
    BUFFERS;
    struct folder f;
    struct pair p;
    folder_new(&f);
    struct tls_server *t = server_of(&f, 0);
    pair_new(&p, t);
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (uint8_t)(i * 31 + i / 999);

    size_t out = 0, in = 0;
    unsigned waits = 0;
    while (in < sizeof(sent)) { /* to the client */
        ssize_t n =
            out < sizeof(sent) ? tls_session_send(p.server, sent + out, sizeof(sent) - out) : 0;
        out += n > 0 ? (size_t)n : 0;
        waits += n < 0;
        while ((n = gnutls_record_recv(p.client, got + in, sizeof(got) - in)) > 0)
            in += (size_t)n;
        assert_true(n == GNUTLS_E_AGAIN || in == sizeof(sent));
    }
    assert_true(waits > 0);
    assert_memory_equal(sent, got, sizeof(sent));

    memset(got, 0, sizeof(got));
    for (out = in = 0; in < sizeof(sent);) { /* from the client */
        ssize_t n =
            out < sizeof(sent) ? gnutls_record_send(p.client, sent + out, sizeof(sent) - out) : 0;
        out += n > 0 ? (size_t)n : 0;
        if ((n = RECV(p)) > 0) {
            memcpy(got + in, data, (size_t)n);
            in += (size_t)n;
        }
    }
    assert_memory_equal(sent, got, sizeof(sent));
    pair_free(&p);
    tls_server_unref(t);
    folder_free(&f);
}

/* close_notify right behind data is seen, and the other direction goes on; an end without it is an
 * error; a broken record, too. */
static void test_ends(void **state)
{
    (void)state;
    BUFFERS;
    struct folder f;
    struct pair p;
    char text[8] = "";
    (void)sent;
    (void)got;
    folder_new(&f);
    struct tls_server *t = server_of(&f, 0);

    pair_new(&p, t);
    assert_int_equal(RECV(p), -1);
    assert_int_equal(errno, EAGAIN);
    gnutls_record_send(p.client, "hello", 5);
    gnutls_bye(p.client, GNUTLS_SHUT_WR);
    assert_int_equal(RECV(p), 5);
    assert_true(tls_session_ended(p.server));
    assert_int_equal(RECV(p), 0);
    assert_int_equal(tls_session_send(p.server, (const uint8_t *)"answer", 6), 6);
    ssize_t n;
    do {
        n = gnutls_record_recv(p.client, text, sizeof(text));
    } while (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED);
    assert_int_equal(n, 6);
    tls_session_bye(p.server);
    assert_int_equal(gnutls_record_recv(p.client, text, sizeof(text)), 0);
    pair_free(&p);

    pair_new(&p, t);
    gnutls_record_send(p.client, "hello", 5);
    close(p.fds[1]);
    p.fds[1] = -1;
    assert_int_equal(RECV(p), 5);
    assert_int_equal(RECV(p), -1);
    assert_int_equal(errno, ECONNRESET);
    pair_free(&p);

    pair_new(&p, t);
    gnutls_record_send(p.client, "hello", 5);
    assert_int_equal(write(p.fds[1], "\x17\x03\x03\0\x18garbage garbage garbage!", 29), 29);
    assert_int_equal(RECV(p), 5);
    assert_true(tls_session_ended(p.server));
    assert_int_equal(RECV(p), -1);
    assert_int_equal(errno, EPROTO);
    pair_free(&p);
    tls_server_unref(t);
    folder_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_reading_again),
        cmocka_unit_test(test_what_cannot_be_read),
        cmocka_unit_test(test_much_data),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
