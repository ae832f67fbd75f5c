/* Opening and closing: the lock, what is done with a file that is not ours, what is in it, sharing
 * across a reload. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/pipeline/store_place.h"

/* ---- settings ---- */

static int copy_settings(struct store *st, const struct store_settings *s)
{
    char *dir = strdup(s->directory);
    char *compact = s->compact_directory ? strdup(s->compact_directory) : NULL;
    if (!dir || (s->compact_directory && !compact)) {
        free(dir);
        free(compact);
        return -ENOMEM;
    }
    free((char *)st->settings.directory);
    free((char *)st->settings.compact_directory);
    st->settings = *s;
    st->settings.directory = dir;
    st->settings.compact_directory = compact;
    return 0;
}

/* Where the next file is written: the place has to be on the same file system for a rename. */
static int set_temp_path(struct store *st)
{
    struct stat a, b;
    const char *dir = st->settings.compact_directory, *base = strrchr(st->path, '/') + 1;
    if (!dir || stat(dir, &a) < 0 || stat(st->settings.directory, &b) < 0 || a.st_dev != b.st_dev)
        dir = st->settings.directory;
    free(st->temp_path);
    if (asprintf(&st->temp_path, "%s/tempdb-%s", dir, base) < 0)
        st->temp_path = NULL;
    return st->temp_path ? 0 : -ENOMEM;
}

/* ---- what is in it ---- */

#define ORPHANS_MOST 256

struct stock {
    struct store *store;
    uint64_t end; /* later ones were put by a transaction that reported a failure */
    uint64_t
        orphans[ORPHANS_MOST]; /* those, and rests of requests whose deletion was interrupted */
    size_t norphans;
};

static bool count(void *ctx, const struct store_entry *e, bool whole)
{
    struct stock *s = ctx;
    struct store *st = s->store;
    if (whole && e->id < s->end) {
        st->entries++;
        atomic_fetch_add(&st->live_bytes, e->bytes);
    } else if (s->norphans < ORPHANS_MOST) {
        s->orphans[s->norphans++] = e->id;
    }
    if (e->id >= st->next_id)
        st->next_id = e->id + 1;
    return true;
}

static int take_stock(struct store *st, struct err *reterr)
{
    struct stock s = {.store = st, .end = st->was_open ? st->next_id : UINT64_MAX};
    st->entries = 0;
    atomic_store(&st->live_bytes, 0);
    const int r = store_scan(st, count, &s, reterr);
    if (r == 0 && s.norphans > 0)
        store_drop(st, s.orphans, s.norphans, NULL); /* they do no harm if that fails */
    return r == 0 && !st->file.env ? err_set(reterr, -EIO, "it cannot be written") : r;
}

/* ---- the file ---- */

void store_note_size(struct store *st)
{
    atomic_store(&st->file_bytes, st->file.bytes);
}

void store_doubt(struct store *st)
{
    store_file_close(&st->file);
}

/* Made under another name first: the file is never seen half made. */
static int make_first(struct store *st, struct err *reterr)
{
    st->entries = 0;
    atomic_store(&st->live_bytes, 0);
    int r = store_file_make(st->temp_path, st->settings.fsync, &st->file, reterr);
    if (r == 0 && rename(st->temp_path, st->path) < 0) {
        r = err_set(reterr, -errno, "cannot rename %s: %s", st->temp_path, strerror(errno));
        store_file_close(&st->file);
        unlink(st->temp_path);
    }
    if (r == 0)
        store_sync_directory(st);
    return r;
}

static int move_aside(struct store *st, const char *why, struct err *reterr)
{
    _cleanup_free_ char *backup = NULL;
    const int r = store_set_aside(st, &backup, reterr);
    if (r < 0)
        return r;
    log_warn(NULL, "The queue file cannot be used and was moved aside; the queue starts empty",
             LOG_STR("file", st->path), LOG_STR("backup", backup), LOG_STR("error", why));
    return make_first(st, reterr);
}

static int open_file(struct store *st, struct err *reterr)
{
    struct stat sb;
    struct err why;
    if (lstat(st->path, &sb) < 0)
        return errno == ENOENT ? make_first(st, reterr)
                               : err_set(reterr, -errno, "%s: %s", st->path, strerror(errno));
    if (S_ISREG(sb.st_mode) && sb.st_size == 0)
        return make_first(st, reterr);
    int r = store_file_open(st->path, st->settings.fsync, &st->file, &why);
    if (r == 0 && (r = take_stock(st, &why)) < 0)
        store_file_close(&st->file);
    if (r == -EBADMSG && st->settings.recreate)
        return move_aside(st, why.text, reterr);
    if (r == -EBADMSG)
        return err_set(
            reterr, r,
            "%s: not a queue file of this version, or damaged (%s); set recreate: true to "
            "move it aside and start empty",
            st->path, why.text);
    return r < 0 ? err_set(reterr, r, "cannot open the queue file %s: %s", st->path, why.text) : 0;
}

int store_ready(struct store *st, struct err *reterr)
{
    if (st->file.env && store_was_cut(st)) {
        log_error(NULL, "The queue file was cut while in use; what it held is lost",
                  LOG_STR("file", st->path), LOG_INT("requests", (int64_t)st->entries));
        store_doubt(st);
    }
    if (st->file.env)
        return 0;
    struct store_guard g = store_guard();
    const int r = open_file(st, reterr);
    store_unguard(&g);
    if (r == 0) {
        st->was_open = true;
        st->has_place = store_is_placed(st);
        store_note_size(st);
    }
    return r;
}

/* ---- life ---- */

/* What the file holds is for the next start. */
static void put_away(struct store *st)
{
    struct err e;
    if (!st->file.env || store_was_cut(st))
        return;
    st->place_at_ns = 0;
    struct store_guard g = store_guard();
    if (st->entries > 0 && store_keep_place(st, &e) < 0)
        log_error(NULL, "The queue file is lost with what it held", LOG_STR("file", st->path),
                  LOG_STR("error", e.text), LOG_INT("requests", (int64_t)st->entries));
    mdb_env_sync(st->file.env, 1);
    store_unguard(&g);
}

static void store_free(void *thing)
{
    struct store *st = thing;
    store_sync_stop(st);
    put_away(st);
    store_file_close(&st->file);
    if (st->lock_fd >= 0)
        close(st->lock_fd);
    pthread_mutex_destroy(&st->lock);
    free((char *)st->settings.directory);
    free((char *)st->settings.compact_directory);
    free(st->path);
    free(st->temp_path);
    free(st);
}

struct opening {
    const struct store_settings *settings;
    const char *path;
    int result;
};

static int open_locked(struct store *st, struct err *reterr)
{
    struct store_guard g = store_guard();
    struct err e;
    const int r = store_ready(st, reterr);
    if (r == 0 && st->settings.compact_on_start && st->entries > 0 && store_compact(st, &e) < 0)
        log_warn(NULL, "Cannot make the queue file smaller", LOG_STR("file", st->path),
                 LOG_STR("error", e.text));
    store_unguard(&g);
    return r;
}

static int open_store(void *ctx, void **ret, struct err *reterr)
{
    struct opening *o = ctx;
    struct store *st = calloc(1, sizeof(*st));
    if (!st)
        return err_set(reterr, o->result, "out of memory");
    st->lock_fd = -1;
    st->file = STORE_FILE_NONE;
    st->next_id = 1;
    pthread_mutex_init(&st->lock, NULL);
    st->path = strdup(o->path);
    int r = st->path ? copy_settings(st, o->settings) : -ENOMEM;
    if (r == 0)
        r = set_temp_path(st);
    if (r < 0)
        err_set(reterr, r, "out of memory");
    if (r == 0)
        r = store_lock(st->path, st->settings.lock_timeout_ns, &st->lock_fd, reterr);
    if (r == 0)
        r = open_locked(st, reterr);
    if (r < 0)
        store_free(st);
    else
        *ret = st;
    return o->result = r;
}

/* After a reload: the newer settings count. */
static int apply_settings(struct store *st, struct host *h, struct shared *share,
                          const struct store_settings *s, struct err *reterr)
{
    pthread_mutex_lock(&st->lock);
    st->host = h;
    st->share = share;
    int r = copy_settings(st, s);
    if (r == 0)
        r = set_temp_path(st);
    if (r == 0 && st->file.env)
        mdb_env_set_flags(st->file.env, MDB_NOSYNC, !s->fsync);
    pthread_mutex_unlock(&st->lock);
    return r < 0 ? err_set(reterr, r, "out of memory") : 0;
}

/* The key of sharing and the path: absolute, whatever the directory is called. */
static int full_path(const struct store_settings *s, const char *name, char **ret,
                     struct err *reterr)
{
    _cleanup_free_ char *safe = store_safe_name(name), *dir = realpath(s->directory, NULL);
    if (!dir)
        return err_set(reterr, -errno, "cannot use the storage directory %s: %s", s->directory,
                       strerror(errno));
    if (!safe || asprintf(ret, "%s/%s.mdb", dir, safe) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

int store_open(struct host *h, const struct store_settings *s, const char *name, struct store **ret,
               struct err *reterr)
{
    _cleanup_free_ char *path = NULL, *key = NULL;
    int r = store_directory_check(s, reterr);
    if (r == 0)
        r = full_path(s, name, &path, reterr);
    if (r < 0)
        return r;
    if (asprintf(&key, "store:%s", path) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    struct opening o = {s, path, -ENOMEM};
    struct shared *share = host_share(h, key, open_store, &o, store_free, reterr);
    if (!share)
        return o.result;
    struct store *st = share->thing;
    r = apply_settings(st, h, share, s, reterr);
    if (r < 0)
        host_unshare(h, share);
    else
        *ret = st;
    return r;
}

struct store *store_close(struct store *st)
{
    if (st)
        host_unshare(st->host, st->share);
    return NULL;
}

const char *store_path(const struct store *st)
{
    return st->path;
}
