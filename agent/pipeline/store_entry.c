/*
 * One request as records of the file. The key is its id and the number of the piece; the first
 * piece begins with a head: checksum, signal, what was changed. Pieces are of a few whole pages, so
 * that room that others have left can be used again.
 */
#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#include "agent/base/secrets.h"
#include "agent/pipeline/store_parts.h"

struct store_key store_key(uint64_t id, uint32_t chunk)
{
    struct store_key k;
    const uint64_t big_id = htobe64(id);
    const uint32_t big_chunk = htobe32(chunk);
    memcpy(k.text, &big_id, sizeof(big_id));
    memcpy(k.text + sizeof(big_id), &big_chunk, sizeof(big_chunk));
    return k;
}

bool store_key_read(const MDB_val *key, uint64_t *ret_id, uint32_t *ret_chunk)
{
    if (key->mv_size != STORE_KEY_BYTES)
        return false;
    memcpy(ret_id, key->mv_data, sizeof(*ret_id));
    memcpy(ret_chunk, (const uint8_t *)key->mv_data + sizeof(*ret_id), sizeof(*ret_chunk));
    *ret_id = be64toh(*ret_id);
    *ret_chunk = be32toh(*ret_chunk);
    return true;
}

/* ---- head ---- */

enum {
    AT_CRC = 0,
    AT_SIGNAL = 4,
    AT_FLAGS = 5,
    AT_RECORDS = 8,
    AT_STORED = 16,
    AT_BYTES = 24,
    AT_MARKER = 32
};

#define BYTES_MOST ((uint64_t)1 << 32)

static void put32(uint8_t *at, uint32_t v)
{
    v = htole32(v);
    memcpy(at, &v, sizeof(v));
}

static void put64(uint8_t *at, uint64_t v)
{
    v = htole64(v);
    memcpy(at, &v, sizeof(v));
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return le32toh(v);
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return le64toh(v);
}

bool store_head_read(struct bytes value, struct store_head *ret)
{
    if (value.len < STORE_HEAD_BYTES)
        return false;
    *ret = (struct store_head){.crc = get32(value.data + AT_CRC),
                               .signal = value.data[AT_SIGNAL],
                               .flags = value.data[AT_FLAGS],
                               .records = get32(value.data + AT_RECORDS),
                               .stored = get64(value.data + AT_STORED),
                               .bytes = get64(value.data + AT_BYTES)};
    memcpy(ret->marker, value.data + AT_MARKER, sizeof(ret->marker));
    return ret->signal < SIGNAL_COUNT && (ret->flags & ~STORE_HAS_PLACEHOLDERS) == 0 &&
           ret->stored < BYTES_MOST && ret->bytes < BYTES_MOST &&
           (ret->flags || ret->stored == ret->bytes);
}

/* ---- out ---- */

static uint32_t checksum(const struct store_image *im)
{
    uint32_t crc = libdeflate_crc32(0, im->head + AT_SIGNAL, (size_t)STORE_HEAD_BYTES - AT_SIGNAL);
    if (im->masked)
        return libdeflate_crc32(crc, im->masked->data, im->masked->len);
    for (unsigned i = 0; i < im->batch->nsegs; i++)
        if (im->batch->segs[i]->len)
            crc = libdeflate_crc32(crc, im->batch->segs[i]->data, im->batch->segs[i]->len);
    return crc;
}

int store_image_make(const struct store_put *put, struct store_image *ret)
{
    *ret = (struct store_image){.id = put->id,
                                .batch = put->batch,
                                .bytes = put->batch->bytes,
                                .records = put->batch->records};
    const int r = store_mask(put->batch, ret->head + AT_MARKER, &ret->masked);
    if (r < 0)
        return r;
    ret->stored = ret->masked ? ret->masked->len : ret->bytes;
    ret->head[AT_SIGNAL] = (uint8_t)put->batch->signal;
    ret->head[AT_FLAGS] = ret->masked ? STORE_HAS_PLACEHOLDERS : 0;
    put32(ret->head + AT_RECORDS, ret->records);
    put64(ret->head + AT_STORED, ret->stored);
    put64(ret->head + AT_BYTES, ret->bytes);
    put32(ret->head + AT_CRC, checksum(ret));
    return 0;
}

void store_image_done(struct store_image *im)
{
    im->masked = buf_unref(im->masked);
}

uint32_t store_image_chunks(const struct store_image *im)
{
    return (uint32_t)((im->stored + STORE_HEAD_BYTES + STORE_CHUNK_BYTES - 1) / STORE_CHUNK_BYTES);
}

/* Where the next byte of the payload is. */
struct source {
    const struct store_image *im;
    unsigned seg;
    size_t at;
};

static struct buf *segment(const struct source *s)
{
    return s->im->masked ? s->im->masked : s->im->batch->segs[s->seg];
}

static void copy(struct source *s, uint8_t *to, size_t len)
{
    while (len > 0) {
        const struct buf *b = segment(s);
        const size_t n = b->len - s->at < len ? b->len - s->at : len;
        if (n)
            memcpy(to, b->data + s->at, n);
        to += n;
        len -= n;
        s->at += n;
        if (s->at == b->len) {
            s->seg++;
            s->at = 0;
        }
    }
}

int store_image_put(const struct store_image *im, MDB_cursor *c, bool last)
{
    const unsigned flags = (last ? MDB_APPEND : MDB_NOOVERWRITE) | MDB_RESERVE;
    struct source s = {.im = im};
    size_t left = im->stored, head = STORE_HEAD_BYTES;
    int rc = 0;
    for (uint32_t chunk = 0; rc == 0 && (left > 0 || head > 0); chunk++, head = 0) {
        const size_t room = STORE_CHUNK_BYTES - head, n = left < room ? left : room;
        struct store_key k = store_key(im->id, chunk);
        MDB_val key = {sizeof(k.text), k.text}, value = {head + n, NULL};
        rc = mdb_cursor_put(c, &key, &value, flags);
        if (rc == 0) {
            memcpy(value.mv_data, im->head, head);
            copy(&s, (uint8_t *)value.mv_data + head, n);
        }
        left -= n;
    }
    return rc;
}

/* ---- in ---- */

int store_image_read(const struct store_head *h, const uint8_t head[STORE_HEAD_BYTES],
                     struct buf *payload, struct batch **ret, struct err *reterr)
{
    _cleanup_buf_ struct buf *stored = payload;
    uint32_t crc = libdeflate_crc32(0, head + AT_SIGNAL, (size_t)STORE_HEAD_BYTES - AT_SIGNAL);
    if (stored->len) /* of nothing at no place it would be 0 */
        crc = libdeflate_crc32(crc, stored->data, stored->len);
    if (crc != h->crc)
        return err_set(reterr, -EBADMSG, "its checksum is wrong");
    if (h->flags & STORE_HAS_PLACEHOLDERS) {
        struct buf *whole;
        const int r = store_unmask(buf_bytes(stored), h->marker, &whole, reterr);
        if (r < 0)
            return r;
        buf_unref(stored);
        stored = whole;
    }
    struct batch *b;
    const int r = batch_from_wire((enum signal)h->signal, TAKE_PTR(stored), &b, reterr);
    if (r < 0)
        return r;
    if (b->records != h->records) {
        const uint32_t n = b->records;
        batch_unref(b);
        return err_set(reterr, -EBADMSG, "%u records, expected %u", n, h->records);
    }
    *ret = b;
    return 0;
}
