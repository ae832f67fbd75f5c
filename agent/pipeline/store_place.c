/* A file that is removed, replaced or cut by others while it is in use. What is in a file without a
 * name is gone with the process, so it is written anew where it belongs. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/pipeline/store_place.h"

#define AGAIN_NS (1 * NS_PER_S) /* after an attempt that failed */

static bool is_named(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static bool has_no_name(int fd)
{
    struct stat sb;
    return fstat(fd, &sb) == 0 && sb.st_nlink == 0;
}

bool store_is_placed(const struct store *st)
{
    return is_named(st->file.fd, st->path);
}

bool store_was_cut(const struct store *st)
{
    struct stat sb;
    return st->file.fd >= 0 && fstat(st->file.fd, &sb) == 0 && (size_t)sb.st_size < st->file.bytes;
}

int store_set_aside(const struct store *st, char **ret_backup, struct err *reterr)
{
    char stamp[32];
    const time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
    struct tm tm;
    _cleanup_free_ char *backup = NULL;
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
    if (asprintf(&backup, "%s.backup-%s", st->path, stamp) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (rename(st->path, backup) < 0)
        return err_set(reterr, -errno, "cannot move the queue file %s aside: %s", st->path,
                       strerror(errno));
    *ret_backup = TAKE_PTR(backup);
    return 0;
}

/* The lock may be gone as well; somebody else may have it now. */
static int lock_again(struct store *st, struct err *reterr)
{
    int fd;
    _cleanup_free_ char *name = NULL;
    if (asprintf(&name, "%s.lock", st->path) < 0)
        return err_set(reterr, -ENOMEM, "out of memory");
    if (is_named(st->lock_fd, name))
        return 0;
    int r = store_directory_check(&st->settings, reterr);
    if (r == 0)
        r = store_lock(st->path, 0, &fd, reterr);
    if (r < 0)
        return r;
    close(st->lock_fd);
    st->lock_fd = fd;
    return 0;
}

static int put_back(struct store *st, struct err *reterr)
{
    struct stat sb;
    _cleanup_free_ char *backup = NULL;
    int r = lock_again(st, reterr);
    if (r < 0 || store_is_placed(st))
        return r;
    if (lstat(st->path, &sb) == 0)
        r = store_set_aside(st, &backup, reterr);
    if (r == 0)
        r = store_compact(st, reterr);
    if (r < 0)
        return r;
    log_warn(NULL, "The queue file was removed or replaced while in use, and was written anew",
             LOG_STR("file", st->path), LOG_STR("backup", backup ? backup : ""),
             LOG_INT("requests", (int64_t)st->entries));
    return 0;
}

int store_keep_place(struct store *st, struct err *reterr)
{
    const uint64_t now_ns = clock_now_ns();
    if (!st->has_place || (store_is_placed(st) && !has_no_name(st->lock_fd)))
        return 0;
    if (now_ns < st->place_at_ns)
        return err_set(reterr, -EIO, "the queue file was removed or replaced while in use");
    const int r = put_back(st, reterr);
    if (r == 0)
        return 0;
    st->place_at_ns = now_ns + AGAIN_NS;
    err_prefix(reterr, "the queue file was removed or replaced while in use: ");
    return r;
}
