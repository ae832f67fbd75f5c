/* zstd frames (RFC 8878). */
#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "agent/net/codec_impl.h"

#define WINDOW_LOG_MAX 25 /* 32 MiB, the largest window that the reference's encoder asks for */
#define KEEP_BYTES (1024 * 1024) /* a larger decompressor is not kept between calls */

void codec_zstd_done(struct codec_local *l)
{
    ZSTD_freeDCtx(l->unzstd);
    ZSTD_freeCCtx(l->zstd);
    l->unzstd = NULL;
    l->zstd = NULL;
}

static int bad_frame(size_t code, struct err *reterr)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_prefix_unknown:
        return err_set(reterr, -EBADMSG, "invalid input: magic number mismatch");
    case ZSTD_error_checksum_wrong: return err_set(reterr, -EBADMSG, "invalid checksum");
    case ZSTD_error_frameParameter_windowTooLarge:
        return err_set(reterr, -EBADMSG, "window size exceeded");
    case ZSTD_error_memory_allocation: return err_set(reterr, -ENOMEM, "out of memory");
    default: return err_set(reterr, -EBADMSG, "zstd: %s", ZSTD_getErrorName(code));
    }
}

/* Room for the frame that starts at `rest`: what it says that it holds, else a guess. -EMSGSIZE
 * when it says too much. */
static int frame_room(struct bytes rest, struct buf *out, struct err *reterr)
{
    size_t limit = out->max - out->len, room = rest.len * 6 + 4096;
    unsigned long long says = ZSTD_getFrameContentSize(rest.data, rest.len);
    if (says != ZSTD_CONTENTSIZE_UNKNOWN && says != ZSTD_CONTENTSIZE_ERROR) {
        if (says > limit)
            return codec_too_large(out, reterr);
        room = (size_t)says;
    }
    return buf_reserve(out, room > limit ? limit : room) < 0
               ? err_set(reterr, -ENOMEM, "out of memory")
               : 0;
}

/* 1 = the frame ended, 0 = it goes on. */
static int stream_step(ZSTD_DCtx *d, ZSTD_inBuffer *src, struct buf *out, struct err *reterr)
{
    uint8_t none;
    size_t room = out->cap - out->len, before = src->pos;
    if (room > out->max - out->len)
        room = out->max - out->len;
    ZSTD_outBuffer dst = {room ? buf_tail(out) : &none, room, 0};
    size_t left = ZSTD_decompressStream(d, &dst, src);
    buf_commit(out, dst.pos);
    if (ZSTD_isError(left))
        return bad_frame(left, reterr);
    if (left == 0)
        return 1;
    if (dst.pos < dst.size && src->pos == src->size)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    if (dst.pos < dst.size || src->pos > before)
        return 0;
    size_t limit = out->max - out->len, more = out->cap < 65536 ? 65536 : out->cap;
    if (limit == 0)
        return codec_too_large(out, reterr);
    return buf_reserve(out, more > limit ? limit : more) < 0
               ? err_set(reterr, -ENOMEM, "out of memory")
               : 0;
}

static int all_frames(ZSTD_DCtx *d, struct bytes in, struct buf *out, struct err *reterr)
{
    ZSTD_inBuffer src = {in.data, in.len, 0};
    while (src.pos < src.size) {
        int r = frame_room(bytes_of(in.data + src.pos, in.len - src.pos), out, reterr);
        while (r == 0)
            r = stream_step(d, &src, out, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int zstd_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr)
{
    if (!l->unzstd && !(l->unzstd = ZSTD_createDCtx()))
        return err_set(reterr, -ENOMEM, "out of memory");
    ZSTD_DCtx_reset(l->unzstd, ZSTD_reset_session_only);
    ZSTD_DCtx_setParameter(l->unzstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    int r = all_frames(l->unzstd, in, out, reterr);
    if (ZSTD_sizeof_DCtx(l->unzstd) > KEEP_BYTES) {
        ZSTD_freeDCtx(l->unzstd);
        l->unzstd = NULL;
    }
    buf_shrink(out);
    return r;
}

int zstd_compress(struct codec_local *l, int level, const struct bytes *parts, unsigned n,
                  struct buf *out)
{
    if (!l->zstd && !(l->zstd = ZSTD_createCCtx()))
        return -ENOMEM;
    size_t total = codec_total(parts, n);
    int r = buf_reserve(out, ZSTD_compressBound(total));
    if (r < 0)
        return r;
    ZSTD_CCtx_reset(l->zstd, ZSTD_reset_session_only);
    ZSTD_CCtx_setParameter(l->zstd, ZSTD_c_compressionLevel, level == 0 || level == -1 ? 1 : level);
    ZSTD_CCtx_setParameter(l->zstd, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(l->zstd, total);
    ZSTD_outBuffer dst = {buf_tail(out), out->cap - out->len, 0};
    size_t left = 1;
    for (unsigned i = 0; i < n || (i == 0 && n == 0); i++) {
        ZSTD_inBuffer src = {n ? parts[i].data : NULL, n ? parts[i].len : 0, 0};
        left = ZSTD_compressStream2(l->zstd, &dst, &src, i + 1 >= n ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left) || src.pos < src.size)
            return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
    }
    buf_commit(out, dst.pos);
    buf_shrink(out);
    return left == 0 ? 0 : -EIO;
}
