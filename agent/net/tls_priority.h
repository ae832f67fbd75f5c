/* Go's names of TLS versions, cipher suites and curves as a priority string of GnuTLS. */
#ifndef MOTEL_NET_TLS_PRIORITY_H
#define MOTEL_NET_TLS_PRIORITY_H

#include "agent/net/tls_server.h"

#define TLS_PRIORITY_BYTES 768
/* The string for these settings: 0, or -EINVAL about the key below `tls` that cannot be served, with the reason. */
int tls_priority_make(const struct tls_server_settings *s, char ret[TLS_PRIORITY_BYTES], struct err *reterr);

#endif
