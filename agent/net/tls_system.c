/* The authorities that this machine trusts: the file or folder that the distribution keeps them in,
 * or what SSL_CERT_FILE and SSL_CERT_DIR name, for every server that is verified. */
#include <dirent.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <sys/stat.h>

#include "agent/net/tls.h"

static const char *const files[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Alpine, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, RHEL and its kin */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE without the link */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL 7 and later */
    "/etc/pki/tls/cacert.pem",                           /* OpenELEC */
    "/etc/ssl/cert.pem",                                 /* Alpine without the package */
};
static const char *const folders[] = {"/etc/ssl/certs", "/etc/pki/tls/certs"};

static const char *named(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

const char *tls_system_ca_file(void)
{
    const char *own = named("SSL_CERT_FILE");
    if (own)
        return own;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (access(files[i], R_OK) == 0)
            return files[i];
    return NULL;
}

bool tls_system_ca_folders(void)
{
    const char *own = named("SSL_CERT_FILE");
    return named("SSL_CERT_DIR") || !tls_system_ca_file() || (own && tls_is_special_file(own));
}

static bool holds_certificates(const struct buf *pem)
{
    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0;
    const gnutls_datum_t d = {pem->data, (unsigned)pem->len};
    if (gnutls_x509_crt_list_import2(&list, &n, &d, GNUTLS_X509_FMT_PEM, 0) < 0)
        return false;
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return n > 0;
}

/* What is no certificate (a private key, a README) does not spoil the rest of a folder. */
static int add_file(const char *path, struct buf *out)
{
    _cleanup_buf_ struct buf *pem = buf_new(0);
    struct err err = {0};
    struct stat st;
    if (!pem)
        return -ENOMEM;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || tls_read_file(path, pem, &err) < 0 ||
        !holds_certificates(pem))
        return 0;
    return buf_append(out, pem->data, pem->len) < 0 || buf_append_str(out, "\n") < 0 ? -ENOMEM : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(const char *folder, struct buf *out)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, NULL, by_name);
    int r = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        const int len = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (r == 0 && len > 0 && (size_t)len < sizeof(path))
            r = add_file(path, out);
        free(entries[i]);
    }
    free(entries);
    return r;
}

/* Folders are separated by colons. */
static int add_named(const char *list, struct buf *out)
{
    int r = 0;
    while (r == 0 && *list) {
        const size_t n = strcspn(list, ":");
        char folder[4096];
        if (n > 0 && n < sizeof(folder)) {
            memcpy(folder, list, n);
            folder[n] = '\0';
            r = add_folder(folder, out);
        }
        list += n + (list[n] == ':');
    }
    return r;
}

/* It is read more than once, so a pipe is of no use. */
static int add_ca_file(const char *path, struct buf *out, struct err *reterr)
{
    const size_t start = out->len;
    int r = tls_is_special_file(path) ? err_set(reterr, -EINVAL, "%s: not an ordinary file", path)
                                      : tls_read_file(path, out, reterr);
    if (r < 0)
        buf_truncate(out, start);
    else if (buf_append_str(out, "\n") < 0)
        r = err_set(reterr, -ENOMEM, "out of memory");
    return r;
}

int tls_system_cas(struct buf *out, struct err *reterr)
{
    const char *file = tls_system_ca_file(), *own = named("SSL_CERT_DIR");
    int r = file ? add_ca_file(file, out, reterr) : 0;
    if (r < 0 && (r == -ENOMEM || !own))
        return r;
    r = 0;
    if (own)
        r = add_named(own, out);
    for (size_t i = 0; r == 0 && !file && !own && i < ARRAY_SIZE(folders); i++)
        r = add_folder(folders[i], out);
    return r < 0 ? err_set(reterr, -ENOMEM, "out of memory") : 0;
}
