#include "exporters/file/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "exporters/file/repair.h"

struct outfile {
    pthread_mutex_t lock;
    char *path, *content;
    bool framed, rotates;
    int64_t mode;
    struct rotation rotation;
    int fd;
    bool torn;  /* a part of a record may stand at the end */
    bool stuck; /* the last rotation failed; said once */
    off_t size; /* when the last write began */
};

/* ---- opening ---- */

static int open_fd(const struct outfile *f, bool truncate)
{
    const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (truncate ? O_TRUNC : 0);
    const mode_t mode = f->mode >= 0 ? (mode_t)f->mode : 0644;
    int fd = open(f->path, O_RDWR | flags, mode);
    if (fd < 0 && errno == EACCES)
        fd = open(f->path, O_WRONLY | flags, mode);
    return fd < 0 ? -errno : fd;
}

static void log_repair(const struct outfile *f, const struct logger *lg, enum repair what,
                       off_t cut)
{
    if (what == REPAIR_CUT)
        log_warn(lg, "Unfinished record at the end of the file was cut off",
                 LOG_STR("path", f->path), LOG_INT("bytes", cut));
    else if (what == REPAIR_ENDED)
        log_warn(lg, "Last line of the file had no newline; it got one", LOG_STR("path", f->path));
}

static int repair(struct outfile *f, const struct logger *lg)
{
    enum repair what;
    off_t cut;
    int r = file_repair(f->fd, f->framed, &what, &cut);
    if (r == -EBADF) /* write only: nothing can be seen, nothing be mended */
        return 0;
    if (r == 0)
        log_repair(f, lg, what, cut);
    return r;
}

static struct outfile *outfile_free(struct outfile *f)
{
    if (!f)
        return NULL;
    if (f->fd >= 0)
        close(f->fd);
    pthread_mutex_destroy(&f->lock);
    free(f->path);
    free(f->content);
    free(f);
    return NULL;
}
DEFINE_CLEANUP(struct outfile *, outfile_free)

static void close_shared(void *thing)
{
    outfile_free(thing);
}

static struct outfile *outfile_new(const struct outfile_options *o)
{
    struct outfile *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->fd = -1;
    f->path = strdup(o->path);
    f->content = strdup(o->content);
    f->framed = o->framed;
    f->mode = o->mode;
    return f->path && f->content ? f : outfile_free(f);
}

struct opening {
    const struct outfile_options *options;
    int result;
};

static int open_first(const struct outfile_options *o, struct outfile *f, struct err *reterr)
{
    int fd = open_fd(f, o->truncate);
    if (fd < 0)
        return err_set(reterr, fd, "cannot open \"%s\": %s", f->path, strerror(-fd));
    f->fd = fd;
    int r = o->truncate ? 0 : repair(f, o->logger);
    if (r == -EBADMSG)
        return err_set(reterr, r, "\"%s\" is no file of length-prefixed messages; move it away",
                       f->path);
    if (r < 0)
        return err_set(reterr, r, "cannot look at the end of \"%s\": %s", f->path, strerror(-r));
    return 0;
}

static int open_shared(void *ctx, void **ret, struct err *reterr)
{
    struct opening *opening = ctx;
    _cleanup_(outfile_freep) struct outfile *f = outfile_new(opening->options);
    opening->result =
        f ? open_first(opening->options, f, reterr) : err_set(reterr, -ENOMEM, "out of memory");
    if (opening->result == 0)
        *ret = TAKE_PTR(f);
    return opening->result;
}

/* "file:" and the absolute path; links on the way are followed, so that one file has one key. */
static char *key_of(const char *path)
{
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *dir =
        slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : NULL;
    char *key = NULL;
    if (realpath(path, real))
        return asprintf(&key, "file:%s", real) < 0 ? NULL : key;
    if (!realpath(dir ? dir : ".", real))
        return asprintf(&key, "file:%s", path) < 0 ? NULL : key;
    return asprintf(&key, "file:%s/%s", real, slash ? slash + 1 : path) < 0 ? NULL : key;
}

int outfile_open(struct host *h, const struct outfile_options *o, struct shared **ret,
                 struct err *reterr)
{
    struct opening opening = {o, -ENOMEM};
    _cleanup_free_ char *key = key_of(o->path);
    if (!key)
        return err_set(reterr, -ENOMEM, "out of memory");
    struct shared *s = host_share(h, key, open_shared, &opening, close_shared, reterr);
    if (!s)
        return opening.result < 0 ? opening.result : -ENOMEM;
    struct outfile *f = outfile_of(s);
    if (strcmp(f->content, o->content) != 0) {
        err_set(reterr, -EBUSY,
                "\"%s\" is being written as %s and cannot be written as %s at the same time",
                o->path, f->content, o->content);
        host_unshare(h, s);
        return -EBUSY;
    }
    pthread_mutex_lock(&f->lock);
    f->rotates = o->rotation != NULL;
    if (o->rotation)
        f->rotation = *o->rotation;
    pthread_mutex_unlock(&f->lock);
    *ret = s;
    return 0;
}

const char *outfile_path(const struct outfile *f)
{
    return f->path;
}

/* ---- writing ---- */

/* Opens the path anew; the old file is left when that works. */
static int reopen(struct outfile *f)
{
    int fd = open_fd(f, false);
    if (fd < 0)
        return fd;
    close(f->fd);
    f->fd = fd;
    return repair(f, NULL);
}

/* Makes sure that the open file is the one at the path, and learns its size. */
static int check_place(struct outfile *f)
{
    struct stat here, there;
    if (fstat(f->fd, &here) < 0)
        return -errno;
    f->size = here.st_size;
    if (!S_ISREG(here.st_mode))
        return 0;
    bool found = stat(f->path, &there) == 0;
    if (!found && errno != ENOENT)
        return -errno;
    if (!found || there.st_dev != here.st_dev || there.st_ino != here.st_ino) {
        int r = reopen(f);
        if (r < 0 || fstat(f->fd, &here) < 0)
            return r < 0 ? r : -errno;
        f->size = here.st_size;
    }
    return 0;
}

/* A rotation that fails is no reason to lose data: the present file grows on. */
static void rotate(struct outfile *f)
{
    uint64_t now = clock_wall_ns();
    int r = rotate_move(f->path, &f->rotation, now);
    if (r == 0)
        r = reopen(f);
    if (r == 0) {
        f->size = 0;
        rotate_clean(f->path, &f->rotation, now);
    } else if (!f->stuck) {
        log_error(NULL, "Cannot rotate file, it grows on", LOG_STR("path", f->path),
                  LOG_STR("error", strerror(-r)));
    }
    f->stuck = r < 0;
}

/* How many records from `from` on go into the present file, at least one; before that it is rotated
 * when it is full. */
static size_t fitting(struct outfile *f, const size_t *ends, size_t n, size_t from)
{
    size_t start = from ? ends[from - 1] : 0, count = 0;
    if (!f->rotates)
        return n - from;
    if (f->size > 0 && f->size + (off_t)(ends[from] - start) > f->rotation.max_bytes)
        rotate(f);
    while (from + count < n &&
           f->size + (off_t)(ends[from + count] - start) <= f->rotation.max_bytes)
        count++;
    return count ? count : 1;
}

/* All of `text`, or as much as goes: *ret_put. 0 or a negative errno. */
static int put(int fd, struct bytes text, size_t *ret_put)
{
    *ret_put = 0;
    while (*ret_put < text.len) {
        ssize_t n = write(fd, text.data + *ret_put, text.len - *ret_put);
        if (n < 0 && errno != EINTR)
            return -errno;
        *ret_put += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* True when the file ends with `tail`, so that it is ours to take back. */
static bool ends_with(int fd, off_t size, struct bytes tail)
{
    uint8_t last[256];
    size_t n = tail.len < sizeof(last) ? tail.len : sizeof(last);
    return size >= (off_t)tail.len && pread(fd, last, n, size - (off_t)n) == (ssize_t)n &&
           memcmp(last, tail.data + tail.len - n, n) == 0;
}

/* Takes a part of a record back that stands at the end of the file. */
static void take_back(struct outfile *f, struct bytes part)
{
    struct stat st;
    if (part.len == 0)
        return;
    f->torn = true;
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && ends_with(f->fd, st.st_size, part) &&
        ftruncate(f->fd, st.st_size - (off_t)part.len) == 0)
        f->torn = false;
}

/* Writes records from..from+count; *ret_written as in outfile_write(). */
static int write_records(struct outfile *f, struct bytes text, const size_t *ends, size_t from,
                         size_t count, size_t *ret_written)
{
    size_t start = from ? ends[from - 1] : 0, done;
    struct bytes part = bytes_of(text.data + start, ends[from + count - 1] - start);
    int r = put(f->fd, part, &done);
    f->size += (off_t)done;
    size_t whole = 0;
    while (whole < count && ends[from + whole] - start <= done)
        whole++;
    *ret_written += whole;
    if (r < 0) {
        size_t kept = whole ? ends[from + whole - 1] - start : 0;
        take_back(f, bytes_of(part.data + kept, done - kept));
    }
    return r;
}

int outfile_write(struct outfile *f, struct bytes text, const size_t *ends, size_t n,
                  size_t *ret_written)
{
    *ret_written = 0;
    pthread_mutex_lock(&f->lock);
    int r = check_place(f);
    if (r == 0 && f->torn) {
        r = repair(f, NULL);
        f->torn = r < 0;
    }
    for (size_t i = 0; r == 0 && i < n; i = *ret_written)
        r = write_records(f, text, ends, i, fitting(f, ends, n, i), ret_written);
    pthread_mutex_unlock(&f->lock);
    return r;
}

int outfile_make_directory(const char *path, mode_t mode)
{
    char dir[PATH_MAX];
    if (strlen(path) >= sizeof(dir))
        return -ENAMETOOLONG;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
        if (mkdir(dir, mode) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}
