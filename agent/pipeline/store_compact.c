/* A file of LMDB never gets smaller: room is given back to the disk by a new file that takes the
 * place of the old one. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/pipeline/store_parts.h"

#define WORTH_IT_BYTES ((size_t)1 << 20)    /* what a compaction has to give back */
#define LARGE_EMPTY_BYTES ((size_t)4 << 20) /* an empty file of this size is made anew */

struct copy {
    MDB_txn *from, *to;
    MDB_cursor *in, *out;
    struct store_file *target;
    int64_t most, done; /* records of one transaction */
};

static int copy_begin(struct copy *c)
{
    c->done = 0;
    int rc = mdb_txn_begin(c->target->env, NULL, 0, &c->to);
    return rc ? rc : mdb_cursor_open(c->to, c->target->dbi, &c->out);
}

static int copy_commit(struct copy *c)
{
    c->out = NULL; /* goes with the transaction */
    return mdb_txn_commit(TAKE_PTR(c->to));
}

/* All but the first record, which the new file has already. */
static int copy_records(struct copy *c)
{
    MDB_val key, value;
    int rc = copy_begin(c), end = mdb_cursor_get(c->in, &key, &value, MDB_FIRST);
    while (rc == 0 && (end = mdb_cursor_get(c->in, &key, &value, MDB_NEXT)) == 0) {
        rc = mdb_cursor_put(c->out, &key, &value, MDB_APPEND);
        if (rc == 0 && c->most > 0 && ++c->done >= c->most && (rc = copy_commit(c)) == 0)
            rc = copy_begin(c);
    }
    if (rc == 0)
        rc = end == MDB_NOTFOUND ? copy_commit(c) : end;
    return rc;
}

static int copy_all(struct store *st, struct store_file *target, struct err *reterr)
{
    struct copy c = {.target = target, .most = st->settings.compact_max_items};
    int rc = mdb_env_set_mapsize(target->env, 2 * st->file.bytes);
    if (rc == 0)
        rc = mdb_txn_begin(st->file.env, NULL, MDB_RDONLY, &c.from);
    if (rc == 0)
        rc = mdb_cursor_open(c.from, st->file.dbi, &c.in);
    if (rc == 0)
        rc = copy_records(&c);
    if (c.in)
        mdb_cursor_close(c.in);
    if (c.from)
        mdb_txn_abort(c.from);
    if (c.to)
        mdb_txn_abort(c.to);
    if (rc == 0)
        rc = mdb_env_sync(target->env, 1);
    return store_error(rc, "cannot copy the queue file", reterr);
}

static int write_new(struct store *st, struct store_file *target, struct err *reterr)
{
    int r = store_file_make(st->temp_path, st->settings.fsync, target, reterr);
    if (r == 0 && st->entries > 0)
        r = copy_all(st, target, reterr);
    if (r == 0 && st->entries > 0)
        r = store_file_settle(target, reterr);
    if (r == 0 && rename(st->temp_path, st->path) < 0)
        r = err_set(reterr, -errno, "cannot rename %s: %s", st->temp_path, strerror(errno));
    return r;
}

int store_compact(struct store *st, struct err *reterr)
{
    struct store_file target = STORE_FILE_NONE;
    if (st->entries == 0) /* on a full disk the reserve makes room for the new file */
        store_file_trim(&st->file);
    const int r = write_new(st, &target, reterr);
    if (r < 0) {
        store_file_close(&target);
        unlink(st->temp_path);
        return r;
    }
    store_file_close(&st->file);
    st->file = target;
    store_sync_directory(st);
    st->was_large = false;
    store_note_size(st);
    return 0;
}

static bool rebound(struct store *st, uint64_t now_ns)
{
    const struct store_settings *s = &st->settings;
    const size_t live = atomic_load(&st->live_bytes);
    if (!s->compact_on_rebound)
        return false;
    if (st->file.bytes > (size_t)s->rebound_needed_bytes)
        st->was_large = true;
    return st->was_large && live < (size_t)s->rebound_trigger_bytes &&
           now_ns >= st->compact_at_ns && st->file.bytes > live + WORTH_IT_BYTES;
}

static bool empty_and_large(const struct store *st)
{
    const size_t most = (size_t)st->settings.max_bytes / 2;
    return st->entries == 0 && st->file.bytes > WORTH_IT_BYTES &&
           (st->file.bytes > LARGE_EMPTY_BYTES || (most > 0 && st->file.bytes > most));
}

void store_give_back(struct store *st)
{
    struct err e;
    const uint64_t now_ns = clock_now_ns();
    const bool empty = empty_and_large(st);
    if (!empty && !rebound(st, now_ns))
        return;
    if (empty && now_ns < st->compact_at_ns) /* it has failed a moment ago */
        return;
    const int r = store_compact(st, &e);
    st->compact_at_ns =
        now_ns + (st->settings.compact_interval_ns > 0 ? (uint64_t)st->settings.compact_interval_ns
                                                       : NS_PER_S);
    if (r < 0)
        log_warn(NULL, "Cannot make the queue file smaller", LOG_STR("file", st->path),
                 LOG_STR("error", e.text));
    else if (empty)
        st->compact_at_ns = 0;
}
