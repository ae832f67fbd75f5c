/* Compression of whole bodies, with a limit on what comes out. Thread safe. */
#ifndef MOTEL_NET_CODEC_H
#define MOTEL_NET_CODEC_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

enum codec { CODEC_IDENTITY, CODEC_GZIP, CODEC_ZLIB /* "zlib" and "deflate" */, CODEC_ZSTD, CODEC_SNAPPY /* block */,
             CODEC_SNAPPY_FRAMED /* "x-snappy-framed" */, CODEC_LZ4 /* frame */, CODEC_UNKNOWN };
/* By content-coding name in lower or any case; "" and "identity" are CODEC_IDENTITY, "deflate" is CODEC_ZLIB. */
enum codec codec_find(struct bytes name);
const char *codec_name(enum codec c);
/*
 * Appends the decompressed `in` to `out`, whose limit (buf_new(max)) bounds the result. CODEC_SNAPPY detects framing by its magic;
 * several gzip members follow each other. 0; -EMSGSIZE when the limit would be passed (inflation stops there); -EBADMSG with the
 * reason for bad input; -ENOMEM. Memory while it works is charged.
 */
int codec_decompress(enum codec c, struct bytes in, struct buf *out, struct err *reterr);
/* Appends the compressed `nparts` parts as one body. level 0 = the codec's default. */
int codec_compress(enum codec c, int level, const struct bytes *parts, unsigned nparts, struct buf *out);
/* The same of pieces that are made one at a time: next() gives a piece, which stays until the next call, len 0 at the end, or a
 * negative errno, which ends it. Codecs that work on a stream hold no more than a piece; the others collect them first. */
int codec_compress_pull(enum codec c, int level, int (*next)(void *ctx, struct bytes *ret), void *ctx, struct buf *out);

#endif
