#include "exporters/file/outfile_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "exporters/file/repair.h"

/* ---- opening ---- */

int outfile_open_fd(const struct outfile *f, bool truncate)
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

int outfile_repair(const struct outfile *f, const struct logger *lg)
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
    int fd = outfile_open_fd(f, o->truncate);
    if (fd < 0)
        return err_set(reterr, fd, "cannot open \"%s\": %s", f->path, strerror(-fd));
    f->fd = fd;
    int r = o->truncate ? 0 : outfile_repair(f, o->logger);
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
