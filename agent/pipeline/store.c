/* Reading the store: what is there, and one request. */
#include "agent/pipeline/store.h"

#include <errno.h>
#include <string.h>

#include "agent/pipeline/store_parts.h"

/* ---- SIGXFSZ ---- */

static sigset_t only_xfsz(void)
{
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGXFSZ);
    return s;
}

struct store_guard store_guard(void)
{
    struct store_guard g;
    sigset_t pending, xfsz = only_xfsz();
    pthread_sigmask(SIG_BLOCK, &xfsz, &g.before);
    g.pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
    return g;
}

void store_unguard(struct store_guard *g)
{
    static const struct timespec now = {0};
    sigset_t pending, xfsz = only_xfsz();
    const int saved = errno;
    if (!g->pending && sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ))
        sigtimedwait(&xfsz, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &g->before, NULL);
    errno = saved;
}

/* ---- all ---- */

/* The entry that the first record of a request tells of; a damaged one is there all the same. */
static struct store_entry entry_of(uint64_t id, const MDB_val *value)
{
    struct store_head h;
    if (!store_head_read(bytes_of(value->mv_data, value->mv_size), &h))
        return (struct store_entry){.id = id};
    return (struct store_entry){.id = id, .records = h.records, .bytes = h.bytes};
}

static int scan(MDB_cursor *c, bool (*see)(void *, const struct store_entry *, bool), void *ctx,
                struct err *reterr)
{
    uint64_t id = 0;
    uint32_t chunk;
    for (;;) {
        struct store_key k = store_key(++id, 0);
        MDB_val key = {sizeof(k.text), k.text}, value;
        const int rc = mdb_cursor_get(c, &key, &value, MDB_SET_RANGE);
        if (rc == MDB_NOTFOUND)
            return 0;
        if (rc != 0)
            return store_error(rc, "cannot read the queue file", reterr);
        if (!store_key_read(&key, &id, &chunk))
            return err_set(reterr, -EBADMSG, "a record that is none of a request");
        const struct store_entry e = entry_of(id, &value);
        if (!see(ctx, &e, chunk == 0) || id == UINT64_MAX)
            return 0;
    }
}

int store_scan(struct store *st, bool (*see)(void *ctx, const struct store_entry *e, bool whole),
               void *ctx, struct err *reterr)
{
    MDB_txn *txn;
    MDB_cursor *c;
    int rc = mdb_txn_begin(st->file.env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return store_error(rc, "cannot read the queue file", reterr);
    rc = mdb_cursor_open(txn, st->file.dbi, &c);
    int r = store_error(rc, "cannot read the queue file", reterr);
    if (rc == 0) {
        r = scan(c, see, ctx, reterr);
        mdb_cursor_close(c);
    }
    mdb_txn_abort(txn);
    return r;
}

struct each {
    bool (*see)(void *ctx, const struct store_entry *e);
    void *ctx;
};

static bool see_whole(void *ctx, const struct store_entry *e, bool whole)
{
    const struct each *each = ctx;
    return !whole || each->see(each->ctx, e);
}

int store_each(struct store *st, bool (*see)(void *ctx, const struct store_entry *e), void *ctx,
               struct err *reterr)
{
    struct each each = {see, ctx};
    pthread_mutex_lock(&st->lock);
    int r = store_ready(st, reterr);
    if (r == 0)
        r = store_scan(st, see_whole, &each, reterr);
    pthread_mutex_unlock(&st->lock);
    return r;
}

/* ---- one ---- */

struct found {
    struct store_head head;
    uint8_t head_bytes[STORE_HEAD_BYTES];
    struct buf *payload;
};

static int take(struct found *f, const void *data, size_t len, struct err *reterr)
{
    if (f->payload->len + len > f->head.stored)
        return err_set(reterr, -EBADMSG, "it is longer than it should be");
    return buf_append(f->payload, data, len) < 0 ? err_set(reterr, -ENOMEM, "out of memory") : 0;
}

static int begin(struct found *f, const MDB_val *value, struct err *reterr)
{
    const struct bytes b = bytes_of(value->mv_data, value->mv_size);
    if (!store_head_read(b, &f->head))
        return err_set(reterr, -EBADMSG, "its first record is damaged");
    memcpy(f->head_bytes, b.data, STORE_HEAD_BYTES);
    f->payload = buf_new(0);
    return f->payload ? take(f, b.data + STORE_HEAD_BYTES, b.len - STORE_HEAD_BYTES, reterr)
                      : err_set(reterr, -ENOMEM, "out of memory");
}

static int collect(MDB_cursor *c, uint64_t id, struct found *f, struct err *reterr)
{
    struct store_key k = store_key(id, 0);
    MDB_val key = {sizeof(k.text), k.text}, value;
    int rc = mdb_cursor_get(c, &key, &value, MDB_SET);
    if (rc != 0)
        return store_error(rc, "cannot read it", reterr);
    int r = begin(f, &value, reterr);
    for (uint32_t n = 1; r == 0 && f->payload->len < f->head.stored; n++) {
        uint64_t at_id = 0;
        uint32_t chunk = 0;
        rc = mdb_cursor_get(c, &key, &value, MDB_NEXT);
        if (rc != 0 && rc != MDB_NOTFOUND)
            return store_error(rc, "cannot read it", reterr);
        if (rc != 0 || !store_key_read(&key, &at_id, &chunk) || at_id != id || chunk != n)
            return err_set(reterr, -EBADMSG, "a part of it is missing");
        r = take(f, value.mv_data, value.mv_size, reterr);
    }
    return r;
}

static int find(struct store *st, uint64_t id, struct found *f, struct err *reterr)
{
    MDB_txn *txn;
    MDB_cursor *c;
    int r = store_ready(st, reterr);
    if (r < 0)
        return r;
    int rc = mdb_txn_begin(st->file.env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return store_error(rc, "cannot read the queue file", reterr);
    rc = mdb_cursor_open(txn, st->file.dbi, &c);
    r = store_error(rc, "cannot read the queue file", reterr);
    if (rc == 0) {
        r = collect(c, id, f, reterr);
        mdb_cursor_close(c);
    }
    mdb_txn_abort(txn);
    return r;
}

int store_read(struct store *st, uint64_t id, struct batch **ret, struct err *reterr)
{
    struct found f = {.payload = NULL};
    pthread_mutex_lock(&st->lock);
    int r = find(st, id, &f, reterr);
    pthread_mutex_unlock(&st->lock);
    if (r == 0)
        r = store_image_read(&f.head, f.head_bytes, TAKE_PTR(f.payload), ret, reterr);
    buf_unref(f.payload);
    if (r < 0)
        err_prefix(reterr, "request %llu in %s: ", (unsigned long long)id, st->path);
    return r;
}

/* ---- figures ---- */

uint64_t store_next_id(struct store *st)
{
    pthread_mutex_lock(&st->lock);
    const uint64_t id = st->next_id;
    pthread_mutex_unlock(&st->lock);
    return id;
}

size_t store_live_bytes(const struct store *st)
{
    return atomic_load_explicit(&st->live_bytes, memory_order_relaxed);
}

size_t store_file_bytes(const struct store *st)
{
    return atomic_load_explicit(&st->file_bytes, memory_order_relaxed);
}
