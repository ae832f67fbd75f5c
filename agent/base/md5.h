/* MD5, RFC 1321: for hashes that others compute as well, never for security. */
#ifndef MOTEL_BASE_MD5_H
#define MOTEL_BASE_MD5_H

#include "agent/base/bytes.h"

#define MD5_BYTES 16
void md5(struct bytes text, uint8_t ret[MD5_BYTES]);

#endif
