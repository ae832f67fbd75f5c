/* What the first bytes of a connection are, and whether an HTTP/1 head is one that two readers understand alike. */
#ifndef MOTEL_NET_HEAD_H
#define MOTEL_NET_HEAD_H

#include "agent/base/bytes.h"

enum head_kind {
    HEAD_MORE,      /* cannot tell yet */
    HEAD_HTTP1,     /* a whole, sound HTTP/1.0 or 1.1 head */
    HEAD_HTTP2,     /* the HTTP/2 connection preface (RFC 9113 3.4) */
    HEAD_TLS,       /* a TLS record */
    HEAD_BAD,       /* cannot be HTTP, or a head that is not sound: 400 */
    HEAD_TOO_LARGE, /* no end within `max` bytes: 431 */
};
/* Looks at what came so far, from the start. Never asks for more than `max` bytes. RFC 9112; stricter than it must be where readers
 * differ: bare LF, NUL and other controls, folded lines, blanks before a colon, several or odd Content-Lengths, Content-Length together
 * with Transfer-Encoding, a Transfer-Encoding other than chunked, not exactly one Host on HTTP/1.1. */
enum head_kind http_head_sniff(struct bytes in, size_t max);

/* A method or the name of a field (RFC 9110 5.6.2). */
bool http_is_token(struct bytes b);
/* The framing rules of one header field after the other; false = refuse the request. */
struct head_framing {
    unsigned lengths, encodings, hosts;
};
bool http_head_field(struct head_framing *f, struct bytes name, struct bytes value);
bool http_head_framing_ok(const struct head_framing *f, bool http10);

#endif
