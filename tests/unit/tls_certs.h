/* A certificate that signs itself, and its key, in files of a folder of their own. Included behind cmocka.h. */
#ifndef MOTEL_TESTS_TLS_CERTS_H
#define MOTEL_TESTS_TLS_CERTS_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void write_file(const char *path, const void *data, size_t len)
{
    char new[128];
    snprintf(new, sizeof(new), "%s.new", path);
    FILE *f = fopen(new, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(new, path), 0);
}

static void write_pair(const char *name, const char *cert_path, const char *key_path)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
    gnutls_datum_t text;
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(
                         key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                     0);
    assert_int_equal(gnutls_x509_crt_init(&cert), 0);
    gnutls_x509_crt_set_version(cert, 3);
    gnutls_x509_crt_set_serial(cert, "\1", 1);
    gnutls_x509_crt_set_activation_time(cert, time(NULL) - 60);
    gnutls_x509_crt_set_expiration_time(cert, time(NULL) + 3600);
    gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                  (unsigned)strlen(name));
    gnutls_x509_crt_set_key(cert, key);
    gnutls_x509_crt_set_ca_status(cert, 1);
    assert_int_equal(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text), 0);
    write_file(cert_path, text.data, text.size);
    gnutls_free(text.data);
    assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    write_file(key_path, text.data, text.size);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

struct folder {
    char path[64], cert[96], key[96], other[96];
};

static void folder_new(struct folder *f)
{
    snprintf(f->path, sizeof(f->path), "/tmp/motel-tls-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->cert, sizeof(f->cert), "%s/cert.pem", f->path);
    snprintf(f->key, sizeof(f->key), "%s/key.pem", f->path);
    snprintf(f->other, sizeof(f->other), "%s/other.pem", f->path);
    write_pair("first", f->cert, f->key);
}

static void folder_free(struct folder *f)
{
    unlink(f->cert);
    unlink(f->key);
    unlink(f->other);
    assert_int_equal(rmdir(f->path), 0);
}

#endif
