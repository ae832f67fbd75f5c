#include "exporters/file/rotate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

#define STAMP_LEN 23 /* 2026-08-21T10-00-00.000 */
#define NAME_TRIES 10000
#define NO_REPLACE 1u /* RENAME_NOREPLACE of the kernel */

/* A path taken apart: directory (with the slash, or ""), name up to the extension, extension with
 * its dot. */
struct parts {
    int dir_len, stem_len;
    const char *dir, *stem, *ext;
};

static struct parts take_apart(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct parts p = {.dir = path, .stem = slash ? slash + 1 : path};
    const char *dot = strrchr(p.stem, '.');
    p.dir_len = (int)(p.stem - path);
    p.ext = dot ? dot : p.stem + strlen(p.stem);
    p.stem_len = (int)(p.ext - p.stem);
    return p;
}

static void put_stamp(uint64_t wall_ns, bool local, char ret[64])
{
    time_t s = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    if (local)
        localtime_r(&s, &tm);
    else
        gmtime_r(&s, &tm);
    size_t n = strftime(ret, 32, "%Y-%m-%dT%H-%M-%S", &tm);
    snprintf(ret + n, 64 - n, ".%03u", (unsigned)(wall_ns / NS_PER_MS % 1000));
}

/* rename(2) that does not replace; not every file system has the atomic one. */
static int rename_free(const char *from, const char *to)
{
    /* musl has no name for the call yet */
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    struct stat st;
    if (lstat(to, &st) == 0)
        return -EEXIST;
    return rename(from, to) == 0 ? 0 : -errno;
}

int rotate_move(const char *path, const struct rotation *r, uint64_t wall_ns)
{
    struct parts p = take_apart(path);
    int e = -EEXIST;
    for (int i = 0; e == -EEXIST && i < NAME_TRIES; i++, wall_ns += NS_PER_MS) {
        char stamp[64], to[PATH_MAX];
        put_stamp(wall_ns, r->localtime, stamp);
        int n = snprintf(to, sizeof(to), "%.*s%.*s-%s-size%s", p.dir_len, p.dir, p.stem_len, p.stem,
                         stamp, p.ext);
        e = n < (int)sizeof(to) ? rename_free(path, to) : -ENAMETOOLONG;
    }
    return e;
}

/* The time in the name of a rotated file of `p`, in seconds; -1 = it is none. Names without the
 * "-size" are of older collectors. */
static time_t backup_time(const struct parts *p, const char *name, bool local)
{
    size_t len = strlen(name), ext = strlen(p->ext);
    if (len < (size_t)p->stem_len + 1 + STAMP_LEN + ext ||
        strncmp(name, p->stem, (size_t)p->stem_len) != 0)
        return -1;
    const char *stamp = name + p->stem_len, *tail = stamp + 1 + STAMP_LEN;
    size_t tail_len = len - (size_t)(tail - name) - ext;
    if (*stamp != '-' || strcmp(name + len - ext, p->ext) != 0)
        return -1;
    if (tail_len > 0 && (*tail != '-' || tail_len == 1 || memchr(tail + 1, '-', tail_len - 1)))
        return -1;
    struct tm tm = {.tm_isdst = -1};
    const char *end = strptime(stamp + 1, "%Y-%m-%dT%H-%M-%S", &tm);
    if (!end || end != stamp + 1 + 19 || *end != '.' || strspn(end + 1, "0123456789") < 3)
        return -1;
    return local ? mktime(&tm) : timegm(&tm);
}

struct backups {
    char **names;
    size_t n, cap;
};

static void backups_done(struct backups *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->names[i]);
    free(b->names);
}

static void add(struct backups *b, const char *name)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 32;
        char **names = realloc(b->names, cap * sizeof(*names));
        if (!names)
            return;
        b->names = names;
        b->cap = cap;
    }
    if ((b->names[b->n] = strdup(name)))
        b->n++;
}

/* Newest first: the stamps sort as text. */
static int newest_first(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

static void remove_old(int dir, const struct backups *b, const struct parts *p,
                       const struct rotation *r, uint64_t wall_ns)
{
    time_t oldest = (time_t)(wall_ns / NS_PER_S) - (time_t)r->max_days * 24 * 3600;
    for (size_t i = 0; i < b->n; i++) {
        bool many = r->max_backups && i >= (size_t)r->max_backups;
        bool old = r->max_days && backup_time(p, b->names[i], r->localtime) < oldest;
        if (many || old)
            unlinkat(dir, b->names[i], 0);
    }
}

static void cleanup_dir(DIR **d)
{
    if (*d)
        closedir(*d);
}

void rotate_clean(const char *path, const struct rotation *r, uint64_t wall_ns)
{
    struct parts p = take_apart(path);
    char dir[PATH_MAX];
    if ((!r->max_backups && !r->max_days) || p.dir_len >= (int)sizeof(dir))
        return;
    snprintf(dir, sizeof(dir), "%.*s", p.dir_len, p.dir_len ? p.dir : "");
    _cleanup_(cleanup_dir) DIR *d = opendir(p.dir_len ? dir : ".");
    struct backups b = {0};
    for (const struct dirent *e; d && (e = readdir(d));)
        if (backup_time(&p, e->d_name, r->localtime) >= 0)
            add(&b, e->d_name);
    qsort(b.names, b.n, sizeof(*b.names), newest_first);
    if (d)
        remove_old(dirfd(d), &b, &p, r, wall_ns);
    backups_done(&b);
}
