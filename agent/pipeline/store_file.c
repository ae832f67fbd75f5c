/* One LMDB file: opening, its first record, and the room in it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/pipeline/store_parts.h"

#define GROW_LEAST_BYTES ((size_t)1 << 20)
#define GROW_MOST_BYTES ((size_t)64 << 20)
#define TREE_PAGES                                                                                 \
    24 /* that one transaction copies of the trees, at the most, beside those that it fills */
#define FREE_PER_PAGE 256 /* free pages that one page lists, at the least */

/* The first record, under id 0: what this file is. */
#define FORMAT_TEXT "motel queue\n1\n"

int store_error(int rc, const char *what, struct err *reterr)
{
    if (rc == 0)
        return 0;
    int r = rc > 0 ? -rc : -EIO;
    if (rc == MDB_MAP_FULL || rc == MDB_TXN_FULL || rc == EFBIG || rc == EDQUOT)
        r = -ENOSPC;
    else if (rc == MDB_NOTFOUND)
        r = -ENOENT;
    else if (rc == MDB_KEYEXIST)
        r = -EEXIST;
    else if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID ||
             rc == MDB_VERSION_MISMATCH || rc == MDB_BAD_VALSIZE || rc == MDB_INCOMPATIBLE)
        r = -EBADMSG;
    return err_set(reterr, r, "%s: %s", what, mdb_strerror(rc));
}

void store_file_close(struct store_file *f)
{
    if (f->env)
        mdb_env_close(f->env);
    if (f->fd >= 0)
        close(f->fd);
    *f = STORE_FILE_NONE;
}

size_t store_file_pages(const struct store_file *f)
{
    MDB_envinfo info;
    return mdb_env_info(f->env, &info) == 0 ? info.me_last_pgno + 1 : 0;
}

/* ---- opening ---- */

static int open_env(struct store_file *f, const char *path, bool fsync, struct err *reterr)
{
    MDB_stat stat;
    MDB_txn *txn = NULL;
    int rc = mdb_env_create(&f->env);
    if (rc == 0)
        rc = mdb_env_set_mapsize(f->env, f->bytes > GROW_LEAST_BYTES ? f->bytes : GROW_LEAST_BYTES);
    if (rc == 0)
        rc = mdb_env_open(f->env, path, MDB_NOSUBDIR | MDB_NOLOCK | (fsync ? 0 : MDB_NOSYNC), 0600);
    if (rc == 0)
        rc = mdb_env_stat(f->env, &stat);
    if (rc == 0)
        f->page_bytes = stat.ms_psize;
    if (rc == 0)
        rc = mdb_txn_begin(f->env, NULL, MDB_RDONLY, &txn);
    if (rc == 0)
        rc = mdb_dbi_open(txn, NULL, 0, &f->dbi);
    if (txn && rc == 0)
        rc = mdb_txn_commit(txn);
    else if (txn)
        mdb_txn_abort(txn);
    return store_error(rc, path, reterr);
}

/* All bytes of the file become real ones: a copy may have holes. The end that is not in use may go.
 */
int store_file_settle(struct store_file *f, struct err *reterr)
{
    struct stat st;
    const size_t used = store_file_pages(f) * f->page_bytes;
    if (fstat(f->fd, &st) < 0)
        return err_set(reterr, -errno, "%s", strerror(errno));
    f->bytes = (size_t)st.st_size / f->page_bytes * f->page_bytes;
    if (f->bytes > used && fallocate(f->fd, 0, (off_t)used, (off_t)(f->bytes - used)) < 0)
        store_file_trim(f);
    if (f->bytes < used)
        f->bytes = used;
    return store_error(mdb_env_set_mapsize(f->env, f->bytes), "cannot map the queue file", reterr);
}

/* The first record says that it is one of ours. */
static int check_format(struct store_file *f, struct err *reterr)
{
    struct store_key k = store_key(0, 0);
    MDB_val key = {sizeof(k.text), k.text}, value;
    MDB_txn *txn;
    int rc = mdb_txn_begin(f->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        return store_error(rc, "cannot read", reterr);
    rc = mdb_get(txn, f->dbi, &key, &value);
    int r = 0;
    if (rc == MDB_NOTFOUND)
        r = err_set(reterr, -EBADMSG, "an LMDB file, but not a queue");
    else if (rc != 0)
        r = store_error(rc, "cannot read", reterr);
    else if (!bytes_eq(bytes_of(value.mv_data, value.mv_size), bytes_str(FORMAT_TEXT)))
        r = err_set(reterr, -EBADMSG, "another format");
    mdb_txn_abort(txn);
    return r;
}

static int open_verified(struct store_file *f, const char *path, bool fsync, struct err *reterr)
{
    struct stat st;
    struct store_verified v;
    f->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (f->fd < 0)
        return err_set(reterr, -errno, "%s", strerror(errno));
    int r = store_verify(f->fd, &v, reterr);
    if (r == 0 && fstat(f->fd, &st) < 0)
        r = err_set(reterr, -errno, "%s", strerror(errno));
    if (r < 0)
        return r;
    f->bytes = (size_t)st.st_size;
    r = open_env(f, path, fsync, reterr);
    if (r == 0)
        r = check_format(f, reterr);
    return r < 0 ? r : store_file_settle(f, reterr);
}

int store_file_open(const char *path, bool fsync, struct store_file *ret, struct err *reterr)
{
    *ret = STORE_FILE_NONE;
    const int r = open_verified(ret, path, fsync, reterr);
    if (r < 0)
        store_file_close(ret);
    return r;
}

static int put_format(struct store_file *f, struct err *reterr)
{
    struct store_key k = store_key(0, 0);
    MDB_val key = {sizeof(k.text), k.text}, value = {strlen(FORMAT_TEXT), (void *)FORMAT_TEXT};
    MDB_txn *txn;
    int rc = mdb_txn_begin(f->env, NULL, 0, &txn);
    if (rc != 0)
        return store_error(rc, "cannot write", reterr);
    rc = mdb_put(txn, f->dbi, &key, &value, 0);
    if (rc == 0)
        rc = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    return store_error(rc, "cannot write", reterr);
}

static int make(struct store_file *f, const char *path, bool fsync, struct err *reterr)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set(reterr, -errno, "cannot remove %s: %s", path, strerror(errno));
    int r = open_env(f, path, fsync, reterr);
    if (r == 0)
        r = put_format(f, reterr);
    if (r == 0)
        r = store_error(mdb_env_sync(f->env, 1), "cannot write", reterr);
    if (r < 0)
        return r;
    f->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return f->fd < 0 ? err_set(reterr, -errno, "cannot open %s: %s", path, strerror(errno))
                     : store_file_settle(f, reterr);
}

int store_file_make(const char *path, bool fsync, struct store_file *ret, struct err *reterr)
{
    *ret = STORE_FILE_NONE;
    const int r = make(ret, path, fsync, reterr);
    if (r < 0) {
        store_file_close(ret);
        unlink(path);
    }
    return r;
}

/* ---- room ---- */

/* Some file systems cannot promise room: there it is taken by writing. */
static int write_zeros(int fd, size_t from, size_t to)
{
    const uint8_t zeros[4096] = {0};
    while (from < to) {
        const size_t n = to - from < sizeof(zeros) ? to - from : sizeof(zeros);
        const ssize_t w = pwrite(fd, zeros, n, (off_t)from);
        if (w < 0 && errno != EINTR)
            return -errno;
        from += w > 0 ? (size_t)w : 0;
    }
    return 0;
}

static int extend(struct store_file *f, size_t bytes)
{
    int r = fallocate(f->fd, 0, (off_t)f->bytes, (off_t)(bytes - f->bytes)) < 0 ? -errno : 0;
    if (r == -EOPNOTSUPP || r == -ENOSYS)
        r = write_zeros(f->fd, f->bytes, bytes);
    if (r < 0) {
        if (ftruncate(f->fd, (off_t)f->bytes) < 0)
            return -errno;
        return r == -EFBIG || r == -EDQUOT ? -ENOSPC : r;
    }
    return 0;
}

/* Makes the file `bytes` long, or longer, to come back less often. */
static int grow(struct store_file *f, size_t bytes, int64_t max_bytes, struct err *reterr)
{
    const size_t eighth = f->bytes / 8;
    const size_t step = eighth < GROW_LEAST_BYTES  ? GROW_LEAST_BYTES
                        : eighth > GROW_MOST_BYTES ? GROW_MOST_BYTES
                                                   : eighth;
    const size_t most =
        max_bytes > 0 ? (size_t)max_bytes / f->page_bytes * f->page_bytes : SIZE_MAX;
    size_t wanted = bytes + step / f->page_bytes * f->page_bytes;
    if (bytes > most)
        return err_set(reterr, -ENOSPC, "the queue file is as large as max_size allows (%zu bytes)",
                       f->bytes);
    wanted = wanted < most ? wanted : most;
    int r = extend(f, wanted);
    if (r == -ENOSPC && wanted > bytes)
        r = extend(f, wanted = bytes);
    if (r < 0)
        return err_set(reterr, r, "cannot make the queue file larger than %zu bytes: %s", f->bytes,
                       strerror(-r));
    f->bytes = wanted;
    return store_error(mdb_env_set_mapsize(f->env, f->bytes), "cannot map the queue file", reterr);
}

struct inside { /* pages that a transaction may take from inside the file; those that the last one
                   freed wait for the next */
    size_t now, later;
};

static struct inside count_inside(struct store_file *f)
{
    MDB_txn *txn;
    MDB_cursor *c;
    MDB_val key, value;
    MDB_envinfo info;
    struct inside n = {0};
    size_t id, pages;
    if (mdb_env_info(f->env, &info) != 0 || mdb_txn_begin(f->env, NULL, MDB_RDONLY, &txn) != 0)
        return n;
    if (mdb_cursor_open(txn, 0, &c) == 0) {
        while (mdb_cursor_get(c, &key, &value, MDB_NEXT) == 0) {
            memcpy(&id, key.mv_data, sizeof(id));
            memcpy(&pages, value.mv_data, sizeof(pages));
            *(id < info.me_last_txnid ? &n.now : &n.later) += pages;
        }
        mdb_cursor_close(c);
    }
    mdb_txn_abort(txn);
    return n;
}

static bool enough(const struct store_file *f, size_t inside, size_t need)
{
    const size_t behind = f->bytes / f->page_bytes - store_file_pages(f);
    return behind + inside >= need + inside / FREE_PER_PAGE;
}

/* The file cannot grow: what is free inside has to do. */
static bool room_inside(struct store_file *f, size_t need)
{
    const struct inside n = count_inside(f);
    if (enough(f, n.now, need))
        return true;
    if (!enough(f, n.now + n.later, need) || put_format(f, NULL) < 0) /* any transaction will do */
        return false;
    return enough(f, count_inside(f).now, need);
}

int store_file_room(struct store_file *f, size_t pages, int64_t max_bytes, struct err *reterr)
{
    const size_t used = store_file_pages(f), need = pages + TREE_PAGES + STORE_RESERVE_PAGES;
    if ((used + need) * f->page_bytes <= f->bytes)
        return 0;
    const int r = grow(f, (used + need) * f->page_bytes, max_bytes, reterr);
    return r == -ENOSPC && room_inside(f, need) ? 0 : r;
}

void store_file_trim(struct store_file *f)
{
    const size_t used = store_file_pages(f) * f->page_bytes;
    if (f->bytes > used && mdb_env_set_mapsize(f->env, used) == 0 &&
        ftruncate(f->fd, (off_t)used) == 0)
        f->bytes = used;
}
