/*
 * TLS of servers: the reference's `tls:` keys, the certificates they name, and reading those again while connections go on. One object
 * serves all connections of a listener; those that were made keep the certificates they were made with.
 */
#ifndef MOTEL_NET_TLS_SERVER_H
#define MOTEL_NET_TLS_SERVER_H

#include "agent/config/bind.h"

struct tls_server_settings {
    const char *cert_file, *cert_pem, *key_file, *key_pem;
    const char *client_ca_file, *client_ca_pem; /* either: a client certificate is required and verified */
    const char *ca_file, *ca_pem;               /* no effect on a server */
    const char *min_version, *max_version;      /* "" = 1.2, 1.3 */
    struct cfg_list cipher_suites, curve_preferences; /* Go's names; empty = motel's choice */
    int64_t reload_interval_ns; /* 0 = certificate and key are read once */
    bool client_ca_file_reload, include_system_ca_certs_pool;
};
extern const struct cfg_field tls_server_fields[];
/* Cross-field rules; no file is opened. 0 or -EINVAL about a key below `tls`. */
int tls_server_check(const struct tls_server_settings *s, struct err *reterr);

/* Loaded certificates and rules, refcounted; all functions are thread safe. */
struct tls_server;
/* Reads and parses what the settings name and copies the rest: 0, or -errno with "failed to load TLS config: …". */
int tls_server_new(const struct tls_server_settings *s, struct tls_server **ret, struct err *reterr);
struct tls_server *tls_server_ref(struct tls_server *t);   /* NULL ok */
struct tls_server *tls_server_unref(struct tls_server *t); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct tls_server *, tls_server_unref)
/* `failed` is called for every handshake that fails, on an I/O thread; `ctx` lives as long as the process. Set before it serves. */
void tls_server_on_failure(struct tls_server *t, void (*failed)(void *ctx), void *ctx);
/* A connection of `peer` to `address` ended before it was one: counts, and logs at most one line in ten seconds. */
void tls_server_failed(struct tls_server *t, const char *address, const char *peer, const char *reason);

/* ---- for sessions (tls_session.c) ---- */

struct gnutls_session_int;
struct tls_creds; /* the certificates of one reading, refcounted */
struct tls_creds *tls_creds_unref(struct tls_creds *c); /* NULL ok; returns NULL */
/* Makes a session with the certificates as they are now (read again first, when it is time); *ret_creds must outlive it. */
int tls_server_session(struct tls_server *t, struct gnutls_session_int **ret, struct tls_creds **ret_creds);

#endif
