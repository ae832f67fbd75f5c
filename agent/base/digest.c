#include "agent/base/digest.h"

#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

#include "agent/base/encode.h"

_Static_assert(MD5_BYTES == MD5_DIGEST_SIZE && SHA1_BYTES == SHA1_DIGEST_SIZE &&
                   SHA256_BYTES == SHA256_DIGEST_SIZE && SHA512_BYTES == SHA512_DIGEST_SIZE,
               "sizes of digests");

static void digest(const struct nettle_hash *h, struct bytes text, uint8_t *ret)
{
    union {
        struct md5_ctx md5;
        struct sha1_ctx sha1;
        struct sha256_ctx sha256;
        struct sha512_ctx sha512;
    } c;
    h->init(&c);
    h->update(&c, text.len, text.data);
    h->digest(&c, h->digest_size, ret);
}

void digest_md5(struct bytes text, uint8_t ret[MD5_BYTES])
{
    digest(&nettle_md5, text, ret);
}

void digest_sha1(struct bytes text, uint8_t ret[SHA1_BYTES])
{
    digest(&nettle_sha1, text, ret);
}

void digest_sha256(struct bytes text, uint8_t ret[SHA256_BYTES])
{
    digest(&nettle_sha256, text, ret);
}

void digest_sha512(struct bytes text, uint8_t ret[SHA512_BYTES])
{
    digest(&nettle_sha512, text, ret);
}

void digest_sha256_hex(struct bytes text, char ret[2 * SHA256_BYTES])
{
    uint8_t sum[SHA256_BYTES];
    digest_sha256(text, sum);
    encode_hex(bytes_of(sum, sizeof(sum)), ret);
}
