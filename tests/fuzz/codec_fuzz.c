/* Decompression of anything, and compression of anything and back. The first byte chooses the
 * codec. */
#include "agent/net/codec.h"
#include "agent/net/grpc.h"
#include "tests/fuzz/fuzz.h"

#define LIMIT (256u << 10)

static void inflate(enum codec c, struct bytes in)
{
    _cleanup_buf_ struct buf *out = buf_new(LIMIT);
    struct err e = {""};
    int r = codec_decompress(c, in, out, &e);
    if (out->len > LIMIT || out->cap > LIMIT + 4096 || (r < 0) != (e.text[0] != 0))
        __builtin_trap();
}

static void there_and_back(enum codec c, struct bytes in)
{
    _cleanup_buf_ struct buf *packed = buf_new(0);
    _cleanup_buf_ struct buf *out = buf_new(in.len ? in.len : 1);
    if (codec_compress(c, 0, &in, 1, packed) < 0 ||
        codec_decompress(c, buf_bytes(packed), out, NULL) < 0 || !bytes_eq(buf_bytes(out), in))
        __builtin_trap();
}

static void texts(struct bytes in)
{
    _cleanup_buf_ struct buf *encoded = buf_new(0);
    _cleanup_buf_ struct buf *decoded = buf_new(0);
    if (grpc_bin_encode(in, encoded) < 0 || grpc_bin_decode(buf_bytes(encoded), decoded) < 0 ||
        !bytes_eq(buf_bytes(decoded), in))
        __builtin_trap();
    buf_truncate(encoded, 0);
    buf_truncate(decoded, 0);
    if (grpc_percent_encode(in, encoded) < 0 ||
        grpc_percent_decode(buf_bytes(encoded), decoded) < 0 || !bytes_eq(buf_bytes(decoded), in))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum codec c = data[0] % CODEC_UNKNOWN;
    struct bytes in = bytes_of(data + 1, size - 1);
    inflate(c, in);
    there_and_back(c, in);
    texts(in);
    return 0;
}
