/* LZ4 frames (lz4_Frame_format.md). */
#include <errno.h>
#include <lz4frame.h>

#include "agent/net/codec_impl.h"

static void free_dctx(LZ4F_dctx **d)
{
    LZ4F_freeDecompressionContext(*d);
}
static void free_cctx(LZ4F_cctx **c)
{
    LZ4F_freeCompressionContext(*c);
}

static int more_room(struct buf *out, size_t want, struct err *reterr)
{
    size_t limit = out->max - out->len;
    if (want > limit)
        want = limit;
    return buf_reserve(out, want) < 0 ? err_set(reterr, -ENOMEM, "out of memory") : 0;
}

/* One call of the decoder; *ret_left is 0 at the end of a frame. */
static int lz4_step(LZ4F_dctx *d, struct bytes *in, struct buf *out, size_t *ret_left,
                    struct err *reterr)
{
    uint8_t none;
    size_t limit = out->max - out->len, room = out->cap - out->len, used = in->len;
    if (room > limit)
        room = limit;
    size_t made = room;
    *ret_left = LZ4F_decompress(d, room ? buf_tail(out) : &none, &made, in->data, &used, NULL);
    if (LZ4F_isError(*ret_left))
        return err_set(reterr, -EBADMSG, "lz4: %s", LZ4F_getErrorName(*ret_left));
    buf_commit(out, made);
    *in = bytes_of(in->data + used, in->len - used);
    if (*ret_left == 0 || used || made < room)
        return 0;
    if (room == limit)
        return codec_too_large(out, reterr);
    return more_room(out, out->cap + 65536, reterr);
}

int lz4_decompress(struct bytes in, struct buf *out, struct err *reterr)
{
    _cleanup_(free_dctx) LZ4F_dctx *d = NULL;
    if (in.len <= 4 &&
        memcmp(in.data ? in.data : (const uint8_t *)"", "\x04\x22\x4d\x18", in.len) == 0)
        return 0; /* nothing, or a bare magic number: an empty body for the reference too */
    if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)) ||
        more_room(out, in.len * 4 + 64, reterr) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    size_t left = 1;
    while (in.len || left) {
        size_t before = in.len + out->cap - out->len;
        int r = lz4_step(d, &in, out, &left, reterr);
        if (r < 0)
            return r;
        if (left && in.len + out->cap - out->len == before)
            return err_set(reterr, -EBADMSG, "unexpected EOF");
    }
    buf_shrink(out);
    return 0;
}

static int lz4_put(LZ4F_cctx *c, const LZ4F_preferences_t *p, const struct bytes *parts, unsigned n,
                   struct buf *out)
{
    size_t made = LZ4F_compressBegin(c, buf_tail(out), out->cap - out->len, p);
    for (unsigned i = 0; i < n && !LZ4F_isError(made); i++) {
        buf_commit(out, made);
        int r = buf_reserve(out, LZ4F_compressBound(parts[i].len, p));
        if (r < 0)
            return r;
        made = LZ4F_compressUpdate(c, buf_tail(out), out->cap - out->len, parts[i].data,
                                   parts[i].len, NULL);
    }
    if (LZ4F_isError(made))
        return -EIO;
    buf_commit(out, made);
    int r = buf_reserve(out, LZ4F_compressBound(0, p));
    if (r < 0)
        return r;
    made = LZ4F_compressEnd(c, buf_tail(out), out->cap - out->len, NULL);
    if (LZ4F_isError(made))
        return -EIO;
    buf_commit(out, made);
    return 0;
}

int lz4_compress(int level, const struct bytes *parts, unsigned n, struct buf *out)
{
    _cleanup_(free_cctx) LZ4F_cctx *c = NULL;
    LZ4F_preferences_t p = LZ4F_INIT_PREFERENCES;
    p.frameInfo.blockSizeID = LZ4F_max4MB;
    p.frameInfo.blockMode = LZ4F_blockIndependent;
    p.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    p.compressionLevel = level < 0 ? 0 : level;
    size_t total = codec_total(parts, n);
    if (total <= 64 * 1024)
        p.frameInfo.blockSizeID = LZ4F_max64KB;
    if (LZ4F_isError(LZ4F_createCompressionContext(&c, LZ4F_VERSION)))
        return -ENOMEM;
    int r = buf_reserve(out, LZ4F_compressFrameBound(total, &p));
    if (r == 0)
        r = lz4_put(c, &p, parts, n, out);
    buf_shrink(out);
    return r;
}
