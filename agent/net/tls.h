/* TLS settings of clients (and, later, servers) and the one place where certificates are loaded. */
#ifndef MOTEL_NET_TLS_H
#define MOTEL_NET_TLS_H

#include "agent/config/bind.h"

struct tls_client_settings {
    bool insecure, insecure_skip_verify, include_system_ca_certs_pool;
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *server_name_override, *min_version, *max_version;
};
extern const struct cfg_field tls_client_fields[]; /* the reference's `tls:` keys of clients */
int tls_client_check(const struct tls_client_settings *s, struct err *reterr);

#endif
