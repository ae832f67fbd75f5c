/* TLS settings of clients (and, later, servers) and the one place where certificates are loaded. */
#ifndef MOTEL_NET_TLS_H
#define MOTEL_NET_TLS_H

#include "agent/base/buf.h"
#include "agent/config/bind.h"

struct tls_client_settings {
    bool insecure, insecure_skip_verify, include_system_ca_certs_pool;
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *server_name_override, *min_version, *max_version;
    int64_t reload_interval_ns; /* files are read again at every new connection, so this changes nothing */
};
extern const struct cfg_field tls_client_fields[]; /* the reference's `tls:` keys of clients */
/* Cross-field rules (certificate and key, file or PEM, versions): 0 or -EINVAL about a key below `tls`. */
int tls_client_check(const struct tls_client_settings *s, struct err *reterr);
/* True when the settings name a CA, by file or as text. */
bool tls_client_has_ca(const struct tls_client_settings *s);
/* Loads and parses what the settings name, as the first connection would: 0, or -errno naming the file. */
int tls_client_test(const struct tls_client_settings *s, struct err *reterr);
/* "1.2" -> 0x0303; `deflt` for ""; -1 for what is no version. */
int tls_version(const char *text, int deflt);
/* The system's trusted authorities as a file (PEM): SSL_CERT_FILE, or the first of the usual places that is there; NULL without. */
const char *tls_system_ca_file(void);
/* True when folders of certificates count as well: those of SSL_CERT_DIR, or the usual ones when there is no such file. */
bool tls_system_ca_folders(void);
/* Appends the PEM text of all that the system trusts, file and folders. 0; -ENOMEM; -errno when the file cannot be read and no folder is named. */
int tls_system_cas(struct buf *out, struct err *reterr);
/* True for pipes, sockets and devices, which libcurl would wait for without an end. */
bool tls_is_special_file(const char *path);
/* The whole content of a file, at most 16 MiB; -errno with "open x: No such file or directory". Who writes to a pipe is waited for, 5 s in all. */
int tls_read_file(const char *path, struct buf *out, struct err *reterr);

struct gnutls_session_int;
struct tls_client; /* credentials of one client; the system's trust store is loaded once for the process and shared */
int tls_client_new(const struct tls_client_settings *s, struct tls_client **ret, struct err *reterr);
struct tls_client *tls_client_free(struct tls_client *t); /* NULL ok; returns NULL; after its sessions */
DEFINE_CLEANUP(struct tls_client *, tls_client_free)
/* A session on the non-blocking socket `fd` that will verify `host` (or the override) and offer the protocols `alpn` ("h2", "h2,http/1.1"). The caller
 * shakes hands and ends it with gnutls_deinit(). `t` and the settings must outlive it. */
int tls_client_session(struct tls_client *t, int fd, const char *host, const char *alpn, struct gnutls_session_int **ret,
                       struct err *reterr);
/* The words for a failed handshake, with the reason when the peer's certificate was refused. */
void tls_handshake_reason(struct gnutls_session_int *session, int code, char *ret, size_t size);

#endif
