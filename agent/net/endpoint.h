/* Addresses to listen on: host:port by Go's rules, or the path of a unix socket. */
#ifndef MOTEL_NET_ENDPOINT_H
#define MOTEL_NET_ENDPOINT_H

#include <sys/socket.h>

#include "agent/base/err.h"

/* A non-blocking listening socket. `transport`: tcp (both families for a wildcard or empty host), tcp4, tcp6, unix. The fd, or -errno with
 * "listen tcp 127.0.0.1:4317: bind: address already in use". A unix socket that nobody serves any more is replaced. */
int endpoint_listen(const char *transport, const char *endpoint, struct err *reterr);
/* "127.0.0.1:4317", "[::1]:4317", or the path of a unix socket. Returns `text`. */
const char *endpoint_format(const struct sockaddr *a, socklen_t len, char *text, size_t size);

#endif
