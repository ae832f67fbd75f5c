#include "proto/check.h"
#include "proto/count.h"
#include "proto/rewrite.h"
#include "tests/laws/laws.h"

/* Appends a line for every leaf: a hash of all headers above it and of itself. A message without
 * items is a leaf. */
static void list_leaves(enum signal s, enum level level, struct bytes msg, uint64_t hash,
                        struct buf *out);

static uint64_t mix(uint64_t hash, struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        hash = (hash ^ b.data[i]) * 1099511628211ull;
    return hash ^ (hash >> 29);
}

static uint64_t mix_header(enum level level, struct bytes msg, uint64_t hash, bool *ret_items)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    *ret_items = false;
    while (wire_next(&r, &f) > 0) {
        if (level_items(level, f.number))
            *ret_items = true;
        else if (level != LEVEL_REQUEST)
            hash = mix(hash, f.whole);
    }
    return hash;
}

static void list_leaves(enum signal s, enum level level, struct bytes msg, uint64_t hash,
                        struct buf *out)
{
    bool items = false;
    if (level == level_counted(s))
        hash = mix(hash, msg);
    else
        hash = mix_header(level, msg, hash, &items);
    if (!items && level != LEVEL_REQUEST)
        LAW("memory", buf_append(out, &hash, sizeof(hash)) == 0);
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    while (items && wire_next(&r, &f) > 0)
        if (level_items(level, f.number))
            list_leaves(s, level + 1, f.bytes, mix(hash, bytes_of(&f.number, sizeof(f.number))),
                        out);
}

static struct buf *leaves_of(struct batch *const *batches, size_t n)
{
    struct buf *out = buf_new(0);
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < batches[i]->nsegs; k++)
            list_leaves(batches[i]->signal, LEVEL_REQUEST, buf_bytes(batches[i]->segs[k]),
                        1469598103934665603ull, out);
    return out;
}

static void check_piece(const struct batch *b)
{
    struct otlp_checked c;
    uint32_t records = 0;
    size_t bytes = 0;
    for (unsigned i = 0; i < b->nsegs; i++) {
        LAW("pieces are valid",
            otlp_check(b->signal, buf_bytes(b->segs[i]), &c, NULL) == 0 && c.canonical);
        records += c.records;
        bytes += b->segs[i]->len;
    }
    LAW("pieces know their records", records == b->records);
    LAW("pieces know their size", bytes == b->bytes);
}

static void same_leaves(struct batch *whole, struct batch *const *pieces, size_t n)
{
    _cleanup_buf_ struct buf *a = leaves_of(&whole, 1), *b = leaves_of(pieces, n);
    LAW("pieces hold the same records in the same order under the same headers",
        bytes_eq(buf_bytes(a), buf_bytes(b)));
}

static void split_once(struct batch *b, uint32_t max)
{
    struct batch *pieces[2];
    LAW("splitting works", otlp_split(b, max, &pieces[0], &pieces[1]) == 0);
    LAW("the head has as much as it may",
        pieces[0]->records == (b->records < max ? b->records : max));
    LAW("the tail has the rest",
        b->records - pieces[0]->records == (pieces[1] ? pieces[1]->records : 0));
    LAW("no tail without records", !pieces[1] || pieces[1]->records);
    for (int i = 0; i < (pieces[1] ? 2 : 1); i++)
        check_piece(pieces[i]);
    same_leaves(b, pieces, pieces[1] ? 2 : 1);
    batch_unref(pieces[0]);
    batch_unref(pieces[1]);
}

void law_split(struct batch *b, uint32_t max_records, size_t max_bytes)
{
    struct batch **pieces;
    size_t n;
    if (max_records)
        split_once(b, max_records);
    LAW("splitting works", otlp_split_all(b, max_records, max_bytes, &pieces, &n) == 0);
    same_leaves(b, pieces, n);
    for (size_t i = 0; i < n; i++) {
        check_piece(pieces[i]);
        if (max_records)
            LAW("pieces keep to the records", pieces[i]->records <= max_records);
        if (max_records && !max_bytes && i + 1 < n)
            LAW("all pieces but the last are full", pieces[i]->records == max_records);
        if (max_bytes && pieces[i]->records > 1)
            LAW("pieces keep to the bytes", pieces[i]->bytes <= max_bytes);
        batch_unref(pieces[i]);
    }
    free(pieces);
}
