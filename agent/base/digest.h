/* Hashes that configurations ask for, by Nettle: MD5 (RFC 1321), SHA-1, SHA-256 and SHA-512 (FIPS 180-4). None is for secrets here. */
#ifndef MOTEL_BASE_DIGEST_H
#define MOTEL_BASE_DIGEST_H

#include "agent/base/bytes.h"

enum { MD5_BYTES = 16, SHA1_BYTES = 20, SHA256_BYTES = 32, SHA512_BYTES = 64 };
void digest_md5(struct bytes text, uint8_t ret[MD5_BYTES]);
void digest_sha1(struct bytes text, uint8_t ret[SHA1_BYTES]);
void digest_sha256(struct bytes text, uint8_t ret[SHA256_BYTES]);
void digest_sha512(struct bytes text, uint8_t ret[SHA512_BYTES]);
/* SHA-256 as 64 lower-case hexadecimal digits, no NUL. */
void digest_sha256_hex(struct bytes text, char ret[2 * SHA256_BYTES]);

#endif
