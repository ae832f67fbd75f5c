/* A server seen from outside, step by step: which addresses its name has, whether one takes a connection, what TLS says, what it speaks. For
 * `doctor`; the exporters go the same ways (getaddrinfo(), agent/net/tls.h) without telling so much. */
#ifndef MOTEL_NET_REACH_H
#define MOTEL_NET_REACH_H

#include <sys/socket.h>

#include "agent/net/tls.h"
#include "agent/net/tls_certificate.h"

#define REACH_ADDRESSES 16
struct reach_address {
    struct sockaddr_storage addr;
    socklen_t len;
};
struct reach_addresses {
    struct reach_address items[REACH_ADDRESSES];
    unsigned n;
};
/* getaddrinfo() for at most `timeout_ns`. 0; -ETIMEDOUT; -EHOSTUNREACH with the resolver's words. */
int reach_resolve(const char *host, const char *port, uint64_t timeout_ns, struct reach_addresses *ret, struct err *reterr);
/* The address of a unix socket. 0 or -ENAMETOOLONG. */
int reach_unix(const char *path, struct reach_addresses *ret);
/* The first of the addresses that takes a connection: a non-blocking socket, *ret_at = which one. Or the -errno of the last one. */
int reach_connect(const struct reach_addresses *a, uint64_t deadline_ns, unsigned *ret_at);

enum reach_trust { TRUST_GOOD, TRUST_UNKNOWN_CA, TRUST_SELF_SIGNED, TRUST_WRONG_NAME, TRUST_EXPIRED, TRUST_NOT_YET, TRUST_BAD };
struct reach_tls {
    char version[16], alpn[16];          /* after a good handshake; alpn "" = none was agreed on */
    struct certificate_info certificate; /* subject "" = none was seen */
    enum reach_trust trust;              /* why it was refused, as far as that was the reason */
    bool asks_certificate;               /* the server wants one of the client */
    bool no_tls;                         /* what came back is no TLS */
    char alert[64];                      /* the server said so */
};
/* A handshake by the rules of `s` on a connected socket. `http2_only`: offers h2 alone, else http/1.1 as well. 0 or -errno. */
int reach_tls(const struct tls_client_settings *s, int fd, const char *host, bool http2_only, uint64_t deadline_ns, struct reach_tls *ret,
              struct err *reterr);
/* The same, and then waits for what the server says to the beginning of HTTP/2 or a request: `alert` tells whether that is that it does not
 * accept our certificate, or the lack of one. */
int reach_tls_answer(const struct tls_client_settings *s, int fd, const char *host, bool http2_only, uint64_t deadline_ns,
                     struct reach_tls *ret, struct err *reterr);

enum reach_speech { SPEAKS_NOTHING, SPEAKS_HTTP1, SPEAKS_HTTP2, SPEAKS_TLS, SPEAKS_OTHER };
/* What comes back, without TLS, to the beginning of an HTTP/2 connection, or to an HTTP/1.1 request that asks for nothing. Waits for
 * `deadline_ns` at most. */
enum reach_speech reach_listen(int fd, bool http1, uint64_t deadline_ns);

#endif
