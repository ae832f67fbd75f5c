/* Between codec.c and the files of the single codecs. */
#ifndef MOTEL_NET_CODEC_IMPL_H
#define MOTEL_NET_CODEC_IMPL_H

#include "agent/net/codec.h"

/* Compressors and decompressors that a thread keeps between calls; freed when it ends. Every
 * pointer is made on first use. */
struct codec_local {
    struct libdeflate_decompressor *inflater;
    struct libdeflate_compressor *deflater;
    int deflater_level;
    struct fast_deflate *fast; /* ISA-L */
    struct ZSTD_DCtx_s *unzstd;
    struct ZSTD_CCtx_s *zstd;
};
struct codec_local *codec_local(void); /* NULL when out of memory */

void codec_deflate_done(struct codec_local *l);
void codec_zstd_done(struct codec_local *l);

/* The same contracts as codec_decompress() and codec_compress(). */
int gzip_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr);
int zlib_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr);
int zstd_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr);
int lz4_decompress(struct bytes in, struct buf *out, struct err *reterr);
int snappy_decompress(struct bytes in, struct buf *out,
                      struct err *reterr); /* framed or not, by the magic */
int deflate_compress(struct codec_local *l, bool gzip, int level, const struct bytes *parts,
                     unsigned n, struct buf *out);
/* gzip or zlib at the default level through ISA-L, piece by piece; -ENOTSUP without ISA-L. */
int fast_compress_pull(struct codec_local *l, bool gzip, int (*next)(void *ctx, struct bytes *ret), void *ctx, struct buf *out);
int zstd_compress(struct codec_local *l, int level, const struct bytes *parts, unsigned n,
                  struct buf *out);
int lz4_compress(int level, const struct bytes *parts, unsigned n, struct buf *out);
int snappy_compress(bool framed, const struct bytes *parts, unsigned n, struct buf *out);

/* -EMSGSIZE in words. */
int codec_too_large(const struct buf *out, struct err *reterr);
size_t codec_total(const struct bytes *parts, unsigned n);
/* The parts as one piece: the first one itself, or a copy in *ret_copy, which the caller drops. 0
 * or -ENOMEM. */
int codec_join(const struct bytes *parts, unsigned n, struct bytes *ret, struct buf **ret_copy);

#endif
