/* gzip (RFC 1952) and zlib (RFC 1950) around libdeflate; ISA-L for the default level of gzip where
 * it was built in. */
#include <errno.h>
#include <libdeflate.h>

#include "agent/net/codec_impl.h"
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

#define MAX_RATIO 1032 /* of deflate: 258 bytes out of two bits */
#define FAST_TAIL 320  /* libdeflate's fast loop wants this much room behind what it writes */

#ifdef HAVE_ISAL
struct fast_deflate {
    struct isal_zstream stream;
    uint8_t level_buf[ISAL_DEF_LVL2_SMALL];
};
#endif

void codec_deflate_done(struct codec_local *l)
{
    libdeflate_free_decompressor(l->inflater);
    libdeflate_free_compressor(l->deflater);
    free(l->fast);
}

/* Why libdeflate refused a raw deflate stream: it does not tell an early end from wrong bits. */
static const char *bad_deflate_reason(_unused_ struct bytes in)
{
#ifdef HAVE_ISAL
    _cleanup_free_ struct inflate_state *s = malloc(sizeof(*s));
    _cleanup_free_ uint8_t *scratch = malloc(65536);
    int r = s && scratch ? ISAL_DECOMP_OK : ISAL_INVALID_BLOCK;
    if (r == ISAL_DECOMP_OK) {
        isal_inflate_init(s);
        s->next_in = (uint8_t *)in.data;
        s->avail_in = (uint32_t)in.len;
    }
    while (r == ISAL_DECOMP_OK && s->block_state != ISAL_BLOCK_FINISH) {
        s->next_out = scratch;
        s->avail_out = 65536;
        r = isal_inflate(s);
        if (r == ISAL_DECOMP_OK && s->avail_out == 65536)
            return "unexpected EOF";
    }
    return r == ISAL_END_INPUT ? "unexpected EOF" : "flate: corrupt input";
#else
    return "flate: corrupt input or unexpected EOF";
#endif
}

/* One raw deflate stream at the front of `in`; libdeflate needs the room at once, so it is tried
 * with more and more. */
static int inflate_raw(struct codec_local *l, struct bytes in, size_t hint, struct buf *out,
                       size_t *ret_used, struct err *reterr)
{
    if (!l->inflater && !(l->inflater = libdeflate_alloc_decompressor()))
        return err_set(reterr, -ENOMEM, "out of memory");
    size_t limit = out->max - out->len;
    for (size_t room = hint + FAST_TAIL;; room *= 4) {
        if (room > limit)
            room = limit;
        if (buf_reserve(out, room) < 0)
            return err_set(reterr, -ENOMEM, "out of memory");
        uint8_t none;
        size_t made = 0;
        enum libdeflate_result r = libdeflate_deflate_decompress_ex(
            l->inflater, in.data, in.len, room ? buf_tail(out) : &none, room, ret_used, &made);
        if (r == LIBDEFLATE_SUCCESS) {
            buf_commit(out, made);
            return 0;
        }
        if (r != LIBDEFLATE_INSUFFICIENT_SPACE)
            return err_set(reterr, -EBADMSG, "%s", bad_deflate_reason(in));
        if (room == limit)
            return codec_too_large(out, reterr);
    }
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Skips a NUL ended string of the header; 0 = it does not end. */
static size_t skip_text(struct bytes in, size_t at)
{
    const uint8_t *end = at < in.len ? memchr(in.data + at, 0, in.len - at) : NULL;
    return end ? (size_t)(end - in.data) + 1 : 0;
}

enum { FHCRC = 2, FEXTRA = 4, FNAME = 8, FCOMMENT = 16 };

/* The length of the optional parts of a member header, from byte 10 on; 0 = it is cut off. */
static size_t gzip_options_end(struct bytes in)
{
    size_t at = 10;
    unsigned flags = in.data[3];
    if (flags & FEXTRA) {
        if (in.len < at + 2)
            return 0;
        at += 2 + (size_t)(in.data[at] | in.data[at + 1] << 8);
    }
    if (flags & FNAME && !(at = skip_text(in, at)))
        return 0;
    if (flags & FCOMMENT && !(at = skip_text(in, at)))
        return 0;
    if (flags & FHCRC)
        at += 2;
    return at <= in.len ? at : 0;
}

static int gzip_header(struct bytes in, size_t *ret_len, struct err *reterr)
{
    if (in.len < 10)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    if (in.data[0] != 0x1f || in.data[1] != 0x8b || in.data[2] != 8)
        return err_set(reterr, -EBADMSG, "gzip: invalid header");
    size_t n = gzip_options_end(in);
    if (!n)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    if (in.data[3] & FHCRC) {
        uint32_t want = (uint32_t)(in.data[n - 2] | in.data[n - 1] << 8);
        if ((libdeflate_crc32(0, in.data, n - 2) & 0xffff) != want)
            return err_set(reterr, -EBADMSG, "gzip: invalid header");
    }
    *ret_len = n;
    return 0;
}

/* What the last member says that it holds, when it can be true. */
static size_t gzip_size_hint(struct bytes in)
{
    uint32_t says = le32(in.data + in.len - 4);
    return says / MAX_RATIO <= in.len ? says : in.len * 8;
}

static int gzip_member(struct codec_local *l, struct bytes in, struct buf *out, size_t *ret_used,
                       struct err *reterr)
{
    size_t head = 0, body = 0, start = out->len;
    int r = gzip_header(in, &head, reterr);
    if (r < 0)
        return r;
    struct bytes rest = bytes_of(in.data + head, in.len - head);
    r = inflate_raw(l, rest, gzip_size_hint(in), out, &body, reterr);
    if (r < 0)
        return r;
    if (rest.len - body < 8)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    const uint8_t *trailer = rest.data + body;
    size_t made = out->len - start;
    if (le32(trailer) != libdeflate_crc32(0, made ? out->data + start : trailer, made) ||
        le32(trailer + 4) != (uint32_t)made)
        return err_set(reterr, -EBADMSG, "gzip: invalid checksum");
    *ret_used = head + body + 8;
    return 0;
}

int gzip_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr)
{
    if (in.len == 0)
        return err_set(reterr, -EBADMSG, "EOF");
    while (in.len) {
        size_t used = 0;
        int r = gzip_member(l, in, out, &used, reterr);
        if (r < 0)
            return r;
        in = bytes_of(in.data + used, in.len - used);
    }
    buf_shrink(out);
    return 0;
}

int zlib_decompress(struct codec_local *l, struct bytes in, struct buf *out, struct err *reterr)
{
    size_t used = 0, start = out->len;
    if (in.len < 2)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    if ((in.data[0] & 15) != 8 || in.data[0] >> 4 > 7 || (in.data[0] << 8 | in.data[1]) % 31)
        return err_set(reterr, -EBADMSG, "zlib: invalid header");
    if (in.data[1] & 0x20)
        return err_set(reterr, -EBADMSG, "zlib: invalid dictionary");
    struct bytes rest = bytes_of(in.data + 2, in.len - 2);
    int r = inflate_raw(l, rest, in.len * 8, out, &used, reterr);
    if (r < 0)
        return r;
    if (rest.len - used < 4)
        return err_set(reterr, -EBADMSG, "unexpected EOF");
    const uint8_t *p = rest.data + used;
    uint32_t want = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    size_t made = out->len - start;
    if (libdeflate_adler32(1, made ? out->data + start : p, made) != want)
        return err_set(reterr, -EBADMSG, "zlib: invalid checksum");
    buf_shrink(out);
    return 0;
}

#ifdef HAVE_ISAL
/* Feeds one part of less than 4 GiB; the last one ends the stream. Output grows as it is needed. */
static int feed_slice(struct isal_zstream *z, struct bytes part, bool last, struct buf *out)
{
    z->next_in = (uint8_t *)part.data;
    z->avail_in = (uint32_t)part.len;
    z->end_of_stream = last;
    for (;;) {
        int r = buf_reserve(out, part.len / 4 + 512);
        if (r < 0)
            return r;
        size_t room = out->cap - out->len;
        z->next_out = buf_tail(out);
        z->avail_out = (uint32_t)(room > UINT32_MAX ? UINT32_MAX : room);
        uint32_t before = z->avail_out;
        if (isal_deflate(z) != COMP_OK)
            return -EIO;
        buf_commit(out, before - z->avail_out);
        if (z->avail_in == 0 && z->avail_out > 0 &&
            (!last || z->internal_state.state == ZSTATE_END))
            return 0;
    }
}

static int fast_feed(struct isal_zstream *z, struct bytes part, struct buf *out)
{
    const size_t most = 1u << 30;
    int r = 0;
    for (size_t at = 0; r == 0 && at < part.len; at += most)
        r = feed_slice(z, bytes_of(part.data + at, part.len - at < most ? part.len - at : most),
                       false, out);
    return r;
}

int fast_compress_pull(struct codec_local *l, bool gzip, int (*next)(void *ctx, struct bytes *ret),
                       void *ctx, struct buf *out)
{
    if (!l->fast && !(l->fast = malloc(sizeof(*l->fast))))
        return -ENOMEM;
    struct isal_zstream *z = &l->fast->stream;
    isal_deflate_init(z);
    z->level = 2; /* as quick as 1, and a little smaller */
    z->level_buf = l->fast->level_buf;
    z->level_buf_size = sizeof(l->fast->level_buf);
    z->gzip_flag = gzip ? IGZIP_GZIP : IGZIP_ZLIB;
    struct bytes piece = {NULL, 0};
    do {
        int r = next(ctx, &piece);
        if (r == 0)
            r = piece.len ? fast_feed(z, piece, out) : feed_slice(z, bytes_of("", 0), true, out);
        if (r < 0)
            return r;
    } while (piece.len);
    return 0;
}

struct part_list {
    const struct bytes *parts;
    unsigned n;
};

static int next_part(void *ctx, struct bytes *ret)
{
    struct part_list *l = ctx;
    while (l->n && l->parts->len == 0)
        l->parts++, l->n--;
    *ret = l->n ? *l->parts : bytes_of(NULL, 0);
    if (l->n)
        l->parts++, l->n--;
    return 0;
}
#else
int fast_compress_pull(struct codec_local *l _unused_, bool gzip _unused_,
                       int (*next)(void *ctx, struct bytes *ret) _unused_, void *ctx _unused_,
                       struct buf *out _unused_)
{
    return -ENOTSUP;
}
#endif

/* zlib's levels: 0 and -1 = default, -2 = Huffman only, which the nearest level stands for. */
static int libdeflate_level(int level)
{
    if (level == 0 || level == -1)
        return 1;
    return level < 1 ? 1 : level > 12 ? 12 : level;
}

static int deflater_of(struct codec_local *l, int level)
{
    if (l->deflater && l->deflater_level == level)
        return 0;
    libdeflate_free_compressor(l->deflater);
    l->deflater = libdeflate_alloc_compressor(level);
    l->deflater_level = level;
    return l->deflater ? 0 : -ENOMEM;
}

int deflate_compress(struct codec_local *l, bool gzip, int level, const struct bytes *parts,
                     unsigned n, struct buf *out)
{
#ifdef HAVE_ISAL
    if (level == 0 || level == -1)
        return fast_compress_pull(l, gzip, next_part, &(struct part_list){parts, n}, out);
#endif
    _cleanup_buf_ struct buf *copy = NULL;
    struct bytes all;
    int r = deflater_of(l, libdeflate_level(level));
    if (r == 0)
        r = codec_join(parts, n, &all, &copy);
    if (r < 0)
        return r;
    size_t bound = gzip ? libdeflate_gzip_compress_bound(l->deflater, all.len)
                        : libdeflate_zlib_compress_bound(l->deflater, all.len);
    r = buf_reserve(out, bound);
    if (r < 0)
        return r;
    size_t made =
        gzip ? libdeflate_gzip_compress(l->deflater, all.data, all.len, buf_tail(out), bound)
             : libdeflate_zlib_compress(l->deflater, all.data, all.len, buf_tail(out), bound);
    buf_commit(out, made);
    buf_shrink(out);
    return made ? 0 : -EIO;
}
