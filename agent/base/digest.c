#include "agent/base/digest.h"

#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#include "agent/base/encode.h"

_Static_assert(MD5_BYTES == MD5_DIGEST_SIZE && SHA1_BYTES == SHA1_DIGEST_SIZE &&
                   SHA256_BYTES == SHA256_DIGEST_SIZE && SHA512_BYTES == SHA512_DIGEST_SIZE,
               "sizes of digests");

void digest_md5(struct bytes text, uint8_t ret[MD5_BYTES])
{
    struct md5_ctx c;
    md5_init(&c);
    md5_update(&c, text.len, text.data);
    md5_digest(&c, MD5_BYTES, ret);
}

void digest_sha1(struct bytes text, uint8_t ret[SHA1_BYTES])
{
    struct sha1_ctx c;
    sha1_init(&c);
    sha1_update(&c, text.len, text.data);
    sha1_digest(&c, SHA1_BYTES, ret);
}

void digest_sha256(struct bytes text, uint8_t ret[SHA256_BYTES])
{
    struct sha256_ctx c;
    sha256_init(&c);
    sha256_update(&c, text.len, text.data);
    sha256_digest(&c, SHA256_BYTES, ret);
}

void digest_sha512(struct bytes text, uint8_t ret[SHA512_BYTES])
{
    struct sha512_ctx c;
    sha512_init(&c);
    sha512_update(&c, text.len, text.data);
    sha512_digest(&c, SHA512_BYTES, ret);
}

void digest_sha256_hex(struct bytes text, char ret[2 * SHA256_BYTES])
{
    uint8_t sum[SHA256_BYTES];
    digest_sha256(text, sum);
    encode_hex(bytes_of(sum, sizeof(sum)), ret);
}
