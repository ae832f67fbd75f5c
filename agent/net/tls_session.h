/* One TLS connection of a server, used like a non-blocking socket. Loop thread only. */
#ifndef MOTEL_NET_TLS_SESSION_H
#define MOTEL_NET_TLS_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/net/tls_server.h"

#define TLS_SESSION_BYTES (24u << 10) /* what one costs, for the memory account */
#define TLS_CIPHER_BYTES (128u << 10) /* the buffer that tls_session_recv() reads into */

struct tls_session;
/* On the connected socket `fd`, which stays the caller's. NULL when out of memory. */
struct tls_session *tls_session_new(struct tls_server *t, int fd);
struct tls_session *tls_session_free(struct tls_session *s); /* NULL ok; returns NULL */
/* 0 = done, -EAGAIN = to be called again when tls_session_wants_write() or data is there; else the alert was sent, and `reason` says what
 * was wrong. */
int tls_session_shake(struct tls_session *s, char *reason, size_t size);
bool tls_session_wants_write(const struct tls_session *s); /* the handshake waits for room */
bool tls_session_is_h2(const struct tls_session *s);       /* ALPN */
/* As recv(): all that has arrived, through `cipher` (TLS_CIPHER_BYTES); `size` must be larger than that by 32 KiB. 0 = the peer said that it
 * sends no more, -ECONNRESET in errno when its data end without that word. */
ssize_t tls_session_recv(struct tls_session *s, uint8_t *data, size_t size, uint8_t *cipher);
/* True when recv() will never give data again, and no event will tell. */
bool tls_session_ended(const struct tls_session *s);
/* As send(). What was not taken is to be offered again, first of all and unchanged. */
ssize_t tls_session_send(struct tls_session *s, const uint8_t *data, size_t len);
void tls_session_bye(struct tls_session *s); /* says that we send no more, when there is room for it; does nothing before the handshake is done */

#endif
