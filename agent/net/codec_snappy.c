/* Snappy blocks (format_description.txt) and the framing format (framing_format.txt), both of
 * google/snappy. */
#include <errno.h>
#include <pthread.h>

#include "agent/net/codec_impl.h"

#define CHUNK_BYTES                                                                                \
    65536 /* most uncompressed bytes in one framed chunk, and the reach of a copy that the encoder \
             makes */
#define MAGIC "\xff\x06\x00\x00sNaPpY"
#define MAGIC_BYTES 10

enum { CHUNK_COMPRESSED = 0, CHUNK_PLAIN = 1, CHUNK_MAGIC = 0xff, CHUNK_SKIPPABLE = 0x80 };

static int corrupt(struct err *reterr)
{
    return err_set(reterr, -EBADMSG, "snappy: corrupt input");
}

/* The length at the front of a block; bytes used, 0 = bad. */
static size_t block_length(struct bytes in, uint32_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < in.len && i < 5; i++) {
        v |= (uint64_t)(in.data[i] & 127) << (7 * i);
        if (in.data[i] < 128) {
            *ret = (uint32_t)v;
            return v <= UINT32_MAX ? i + 1 : 0;
        }
    }
    return 0;
}

struct reader {
    const uint8_t *p, *end;
    uint8_t *dst, *dst_start, *dst_end;
};

static uint32_t le_bytes(const uint8_t *p, unsigned n)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

static bool read_literal(struct reader *r, uint8_t tag)
{
    uint64_t len = tag >> 2;
    if (len >= 60) {
        unsigned n = (unsigned)len - 59;
        if ((size_t)(r->end - r->p) < n)
            return false;
        len = le_bytes(r->p, n);
        r->p += n;
    }
    len++;
    if (len > (uint64_t)(r->end - r->p) || len > (uint64_t)(r->dst_end - r->dst))
        return false;
    memcpy(r->dst, r->p, len);
    r->p += len;
    r->dst += len;
    return true;
}

static bool read_copy(struct reader *r, uint8_t tag)
{
    unsigned extra = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if ((size_t)(r->end - r->p) < extra)
        return false;
    size_t len = extra == 1 ? 4u + ((tag >> 2) & 7) : 1u + (tag >> 2);
    size_t offset = le_bytes(r->p, extra) + (extra == 1 ? (size_t)(tag >> 5) << 8 : 0);
    r->p += extra;
    if (offset == 0 || offset > (size_t)(r->dst - r->dst_start) ||
        len > (size_t)(r->dst_end - r->dst))
        return false;
    if (offset >= len) {
        memcpy(r->dst, r->dst - offset, len);
    } else {
        const uint8_t *from = r->dst - offset; /* overlaps: byte by byte */
        for (size_t i = 0; i < len; i++)
            r->dst[i] = from[i];
    }
    r->dst += len;
    return true;
}

static int block_decode(struct bytes in, uint64_t most, struct buf *out, struct err *reterr)
{
    uint32_t len;
    size_t head = block_length(in, &len);
    if (!head || len > most)
        return corrupt(reterr);
    if (len > out->max - out->len)
        return codec_too_large(out, reterr);
    if (len / 64 > in.len) /* a copy of 3 bytes makes at most 64 */
        return corrupt(reterr);
    if (len == 0)
        return in.len == head ? 0 : corrupt(reterr);
    if (buf_reserve(out, len) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    uint8_t *to = buf_tail(out);
    struct reader r = {in.data + head, in.data + in.len, to, to, to + len};
    while (r.p < r.end) {
        uint8_t tag = *r.p++;
        if (!((tag & 3) == 0 ? read_literal(&r, tag) : read_copy(&r, tag)))
            return corrupt(reterr);
    }
    if (r.dst != r.dst_end)
        return corrupt(reterr);
    buf_commit(out, len);
    return 0;
}

static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
        crc_table[0][i] = c;
    }
    for (unsigned t = 1; t < 8; t++)
        for (unsigned i = 0; i < 256; i++)
            crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 255];
}

/* CRC-32C, eight bytes at a time, masked as the framing format wants it. */
static uint32_t masked_crc(struct bytes b)
{
    pthread_once(&crc_once, crc_init);
    uint32_t c = UINT32_MAX;
    const uint8_t *p = b.data;
    size_t n = b.len;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = c ^ le_bytes(p, 4), high = le_bytes(p + 4, 4);
        c = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
            crc_table[4][low >> 24] ^ crc_table[3][high & 255] ^ crc_table[2][high >> 8 & 255] ^
            crc_table[1][high >> 16 & 255] ^ crc_table[0][high >> 24];
    }
    for (; n; n--, p++)
        c = c >> 8 ^ crc_table[0][(c ^ *p) & 255];
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8;
}

static int data_chunk(bool compressed, struct bytes body, struct buf *out, struct err *reterr)
{
    if (body.len < 4)
        return corrupt(reterr);
    size_t start = out->len;
    struct bytes data = bytes_of(body.data + 4, body.len - 4);
    int r = 0;
    if (compressed)
        r = block_decode(data, CHUNK_BYTES, out, reterr);
    else if (data.len > CHUNK_BYTES)
        r = corrupt(reterr);
    else if (data.len > out->max - out->len)
        r = codec_too_large(out, reterr);
    else if (buf_append(out, data.data, data.len) < 0)
        r = err_set(reterr, -ENOMEM, "out of memory");
    if (r == 0 && masked_crc(bytes_of(out->data ? out->data + start : data.data,
                                      out->len - start)) != le_bytes(body.data, 4))
        r = corrupt(reterr);
    return r;
}

static int frames_decode(struct bytes in, struct buf *out, struct err *reterr)
{
    while (in.len) {
        size_t len = in.len >= 4 ? le_bytes(in.data + 1, 3) : 0;
        if (in.len < 4 || len > in.len - 4)
            return err_set(reterr, -EBADMSG, "unexpected EOF");
        struct bytes body = bytes_of(in.data + 4, len);
        uint8_t type = in.data[0];
        int r = 0;
        if (type == CHUNK_COMPRESSED || type == CHUNK_PLAIN)
            r = data_chunk(type == CHUNK_COMPRESSED, body, out, reterr);
        else if (type == CHUNK_MAGIC)
            r = bytes_eq(body, bytes_of(&MAGIC[4], MAGIC_BYTES - 4)) ? 0 : corrupt(reterr);
        else if (type < CHUNK_SKIPPABLE)
            r = err_set(reterr, -EBADMSG, "snappy: unsupported input");
        if (r < 0)
            return r;
        in = bytes_of(body.data + len, in.len - 4 - len);
    }
    return 0;
}

int snappy_decompress(struct bytes in, struct buf *out, struct err *reterr)
{
    if (in.len >= MAGIC_BYTES && memcmp(in.data, MAGIC, MAGIC_BYTES) == 0)
        return frames_decode(in, out, reterr);
    return block_decode(in, UINT32_MAX, out, reterr);
}

/* ---- encoder: greedy, one hash table of 4-byte sequences for each 64 KiB */

#define HASH_BITS 13

static uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint8_t *put_literal(uint8_t *o, const uint8_t *from, size_t len)
{
    size_t n = len - 1;
    if (n < 60) {
        *o++ = (uint8_t)(n << 2);
    } else {
        *o++ = n < 256 ? 60 << 2 : 61 << 2;
        *o++ = (uint8_t)n;
        if (n >= 256)
            *o++ = (uint8_t)(n >> 8);
    }
    memcpy(o, from, len);
    return o + len;
}

static uint8_t *put_copy(uint8_t *o, size_t offset, size_t len)
{
    while (len > 0) {
        size_t n = len > 64 ? (len < 68 ? 60 : 64) : len; /* leaves at least 4 for the last */
        if (n < 12 && n >= 4 && offset < 2048) {
            *o++ = (uint8_t)(1 | (n - 4) << 2 | offset >> 8 << 5);
            *o++ = (uint8_t)offset;
        } else {
            *o++ = (uint8_t)(2 | (n - 1) << 2);
            *o++ = (uint8_t)offset;
            *o++ = (uint8_t)(offset >> 8);
        }
        len -= n;
    }
    return o;
}

static size_t match_length(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *start = b;
    while (b + 8 <= end) {
        uint64_t x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        if (x != y)
            break;
        a += 8;
        b += 8;
    }
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - start);
}

/* Compresses at most CHUNK_BYTES; needs chunk_bound() bytes at `o`. */
static uint8_t *chunk_encode(struct bytes in, uint8_t *o)
{
    uint16_t table[1 << HASH_BITS] = {0};
    const uint8_t *base = in.data, *end = base + in.len, *literal = base, *p = base + 1;
    while (in.len >= 16 && p + 4 < end) {
        uint32_t word = load32(p), h = word * 0x1e35a7bdu >> (32 - HASH_BITS);
        const uint8_t *seen = base + table[h];
        table[h] = (uint16_t)(p - base);
        if (load32(seen) != word || seen >= p) {
            p += 1 + ((p - literal) >> 5); /* faster through what does not compress */
            continue;
        }
        if (p > literal)
            o = put_literal(o, literal, (size_t)(p - literal));
        size_t len = 4 + match_length(seen + 4, p + 4, end);
        o = put_copy(o, (size_t)(p - seen), len);
        p += len;
        literal = p;
    }
    return literal < end ? put_literal(o, literal, (size_t)(end - literal)) : o;
}

static size_t chunk_bound(size_t n)
{
    return n + n / 6 + 32;
}

static uint8_t *put_length(uint8_t *o, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *o++ = (uint8_t)(v | 128);
    *o++ = (uint8_t)v;
    return o;
}

static int put_frame(struct bytes part, struct buf *out)
{
    int r = buf_reserve(out, 8 + 5 + chunk_bound(part.len));
    if (r < 0)
        return r;
    uint8_t *head = buf_tail(out), *end = chunk_encode(part, put_length(head + 8, part.len));
    bool plain = (size_t)(end - head - 8) >= part.len;
    if (plain) {
        memcpy(head + 8, part.data, part.len);
        end = head + 8 + part.len;
    }
    size_t len = (size_t)(end - head) - 4;
    uint32_t crc = masked_crc(part);
    head[0] = plain ? CHUNK_PLAIN : CHUNK_COMPRESSED;
    for (int i = 0; i < 3; i++)
        head[1 + i] = (uint8_t)(len >> (8 * i));
    for (int i = 0; i < 4; i++)
        head[4 + i] = (uint8_t)(crc >> (8 * i));
    buf_commit(out, len + 4);
    return 0;
}

int snappy_compress(bool framed, const struct bytes *parts, unsigned n, struct buf *out)
{
    _cleanup_buf_ struct buf *copy = NULL;
    struct bytes all;
    int r = codec_join(parts, n, &all, &copy);
    if (r == 0 && framed)
        r = buf_append(out, MAGIC, MAGIC_BYTES);
    else if (r == 0 && all.len > UINT32_MAX)
        r = -EMSGSIZE;
    else if (r == 0 &&
             (r = buf_reserve(out, 5 + chunk_bound(all.len) + 32 * (all.len / CHUNK_BYTES))) == 0)
        buf_commit(out, (size_t)(put_length(buf_tail(out), all.len) - buf_tail(out)));
    for (size_t at = 0; r == 0 && at < all.len; at += CHUNK_BYTES) {
        struct bytes part =
            bytes_of(all.data + at, all.len - at < CHUNK_BYTES ? all.len - at : CHUNK_BYTES);
        if (framed)
            r = put_frame(part, out);
        else
            buf_commit(out, (size_t)(chunk_encode(part, buf_tail(out)) - buf_tail(out)));
    }
    buf_shrink(out);
    return r;
}
