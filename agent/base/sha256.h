/* SHA-256, FIPS 180-4. */
#ifndef MOTEL_BASE_SHA256_H
#define MOTEL_BASE_SHA256_H

#include "agent/base/bytes.h"

#define SHA256_BYTES 32
void sha256(struct bytes text, uint8_t ret[SHA256_BYTES]);
/* 64 lower-case hexadecimal digits, no NUL. */
void sha256_hex(struct bytes text, char ret[2 * SHA256_BYTES]);

#endif
