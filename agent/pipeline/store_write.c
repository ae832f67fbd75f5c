/* Puts and deletions: one transaction a call. */
#include <errno.h>

#include "agent/pipeline/store_place.h"

#define PAGES_OF_DELETION 4 /* that it may have to copy */
#define ROOM_FOR_DELETIONS 64
#define PAGE_HEAD_BYTES 16
#define CHUNKS_OF_LEAF 64   /* that a page of the tree lists, at the least */
#define CHUNKS_OF_SLICE 128 /* that are deleted at once where there is little room */

/* What a transaction changes once it is committed. */
struct change {
    MDB_txn *txn;
    MDB_cursor *cursor;
    size_t entries_more, entries_less, bytes_more, bytes_less;
    uint64_t next_id;
};

static int begin(struct store *st, struct change *ch)
{
    *ch = (struct change){.next_id = st->next_id};
    const int rc = mdb_txn_begin(st->file.env, NULL, 0, &ch->txn);
    return rc ? rc : mdb_cursor_open(ch->txn, st->file.dbi, &ch->cursor);
}

/* Commits when `rc` is 0. The cursor goes with the transaction. */
static int end(struct store *st, struct change *ch, int rc, struct err *reterr)
{
    if (rc == 0)
        rc = mdb_txn_commit(ch->txn);
    else if (ch->txn)
        mdb_txn_abort(ch->txn);
    const int r = store_error(rc, "cannot write the queue file", reterr);
    if (r < 0) {
        if (r != -ENOSPC && r != -ENOMEM && r != -EEXIST)
            store_doubt(st);
        return r;
    }
    st->entries += ch->entries_more - ch->entries_less;
    atomic_fetch_add(&st->live_bytes, ch->bytes_more - ch->bytes_less);
    st->next_id = ch->next_id;
    return 0;
}

static void note_deletion(struct change *ch, const MDB_val *value)
{
    struct store_head h;
    ch->entries_less++;
    if (store_head_read(bytes_of(value->mv_data, value->mv_size), &h))
        ch->bytes_less += h.bytes;
}

/* Up to `most` records of a request, the first one first; MDB_NOTFOUND when there are no more. */
static int delete_records(struct change *ch, uint64_t id, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        struct store_key k = store_key(id, 0);
        MDB_val key = {sizeof(k.text), k.text}, value;
        uint64_t at_id;
        uint32_t chunk;
        int rc = mdb_cursor_get(ch->cursor, &key, &value, MDB_SET_RANGE);
        if (rc != 0)
            return rc;
        if (!store_key_read(&key, &at_id, &chunk) || at_id != id)
            return MDB_NOTFOUND;
        if (chunk == 0)
            note_deletion(ch, &value);
        rc = mdb_cursor_del(ch->cursor, 0);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int delete_all(struct change *ch, const uint64_t *ids, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = ids[i] ? delete_records(ch, ids[i], SIZE_MAX) : 0;
        rc = rc == MDB_NOTFOUND ? 0 : rc;
    }
    return rc;
}

/* ---- deletions alone ---- */

/* Many small transactions need little more than what the ones before gave back. */
static int drop_in_slices(struct store *st, uint64_t id, struct err *reterr)
{
    struct change ch;
    bool more = id != 0;
    int r = 0;
    while (more && r == 0) {
        int rc = begin(st, &ch);
        if (rc == 0)
            rc = delete_records(&ch, id, CHUNKS_OF_SLICE);
        more = rc == 0;
        r = end(st, &ch, rc == MDB_NOTFOUND ? 0 : rc, reterr);
    }
    return r;
}

int store_drop(struct store *st, const uint64_t *ids, size_t n, struct err *reterr)
{
    struct change ch;
    const size_t pages = n * PAGES_OF_DELETION;
    store_file_room(&st->file, pages < ROOM_FOR_DELETIONS ? pages : ROOM_FOR_DELETIONS,
                    st->settings.max_bytes, NULL);
    int rc = begin(st, &ch);
    if (rc == 0)
        rc = delete_all(&ch, ids, n);
    int r = end(st, &ch, rc, reterr);
    if (r != -ENOSPC)
        return r;
    r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = drop_in_slices(st, ids[i], reterr);
    return r;
}

/* ---- puts ---- */

/* What one request takes: its runs of pages, and what the tree grows by. */
static size_t pages_of_one(const struct store_image *im, size_t page_bytes)
{
    const size_t chunks = store_image_chunks(im), run = STORE_CHUNK_BYTES + PAGE_HEAD_BYTES;
    const size_t last = im->stored + STORE_HEAD_BYTES - (chunks - 1) * STORE_CHUNK_BYTES;
    return (chunks - 1) * ((run + page_bytes - 1) / page_bytes) +
           (last + PAGE_HEAD_BYTES) / page_bytes + 1 + chunks / CHUNKS_OF_LEAF + 1;
}

static size_t pages_of(const struct store *st, const struct store_image *images, size_t n)
{
    size_t pages = 0;
    for (size_t i = 0; i < n; i++)
        pages += pages_of_one(&images[i], st->file.page_bytes);
    return pages;
}

static int put_all(struct change *ch, const struct store_image *images, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const bool last = images[i].id >= ch->next_id;
        rc = store_image_put(&images[i], ch->cursor, last);
        if (last)
            ch->next_id = images[i].id + 1;
        ch->bytes_more += images[i].bytes;
        ch->entries_more++;
    }
    return rc;
}

static int write_all(struct store *st, const struct store_image *images, size_t nimages,
                     const uint64_t *deletions, size_t ndeletions, struct err *reterr)
{
    struct change ch;
    const size_t pages = pages_of(st, images, nimages) + ndeletions * PAGES_OF_DELETION;
    const int r = store_file_room(&st->file, pages, st->settings.max_bytes, reterr);
    if (r < 0)
        return r;
    int rc = begin(st, &ch);
    if (rc == 0)
        rc = put_all(&ch, images, nimages);
    if (rc == 0)
        rc = delete_all(&ch, deletions, ndeletions);
    return end(st, &ch, rc, reterr);
}

static void images_free(struct store_image *images, size_t n)
{
    for (size_t i = 0; images && i < n; i++)
        store_image_done(&images[i]);
    free(images);
}

static int images_make(const struct store_put *puts, size_t n, struct store_image **ret)
{
    struct store_image *images = calloc(n ? n : 1, sizeof(*images));
    int r = images ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        r = store_image_make(&puts[i], &images[i]);
    if (r < 0)
        images_free(images, n);
    else
        *ret = images;
    return r;
}

int store_write(struct store *st, const struct store_put *puts, size_t nputs,
                const uint64_t *deletions, size_t ndeletions, struct err *reterr)
{
    struct store_image *images;
    if (images_make(puts, nputs, &images) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    struct store_guard g = store_guard();
    pthread_mutex_lock(&st->lock);
    int r = store_ready(st, reterr);
    if (r == 0 && store_keep_place(st, reterr) < 0 && nputs) /* deletions need no name */
        r = -EIO;
    if (r == 0)
        r = nputs ? write_all(st, images, nputs, deletions, ndeletions, reterr)
                  : store_drop(st, deletions, ndeletions, reterr);
    if (r == 0 && !st->settings.fsync)
        store_sync_soon(st);
    if (r == 0)
        store_give_back(st);
    store_note_size(st);
    pthread_mutex_unlock(&st->lock);
    store_unguard(&g);
    images_free(images, nputs);
    if (r < 0)
        err_prefix(reterr, "%s: ", st->path);
    return r;
}
