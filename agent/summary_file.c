/* Where the summary of a run goes, and how it gets there whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/cond.h"
#include "agent/summary.h"

#define NAME "summary.json"
#define MARK "{\"motel_summary\":" /* how a summary begins */
#define DEFAULT_MODE 0644

/* ---- where ---- */

static bool is_used(const struct service_settings *s, const struct component_settings *c)
{
    for (size_t i = 0; i < s->npipelines; i++)
        for (size_t k = 0; k < s->pipelines[i].nexporters; k++)
            if (s->pipelines[i].exporters[k] == c)
                return true;
    return false;
}

/* The path of a file exporter that is used; NULL for others, and for devices. */
static const char *path_of(const struct service_settings *s, const struct component_settings *c)
{
    if (strcmp(c->type->name, "file") != 0 || !is_used(s, c))
        return NULL;
    const struct cfg_value *v = cfg_get(c->value, "path");
    const char *path = v ? v->text : NULL;
    return path && *path && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0
               ? path
               : NULL;
}

/* The folder of `path`, or of what stands before the "*" that group_by fills in. */
static char *beside(const char *path)
{
    char *name = NULL;
    const char *star = strchr(path, '*');
    _cleanup_free_ char *copy = strndup(path, star ? (size_t)(star - path) : strlen(path));
    if (!copy)
        return NULL;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[1] = '\0';
    return asprintf(&name, "%s%s", slash ? copy : "", NAME) < 0 ? NULL : name;
}

static int default_place(const struct service_settings *s, struct summary_place *ret)
{
    for (size_t i = 0; i < s->ncomponents[KIND_EXPORTER]; i++) {
        const char *file = path_of(s, &s->components[KIND_EXPORTER][i]);
        if (!file)
            continue;
        ret->path = beside(file);
        ret->beside = strdup(file);
        return ret->path && ret->beside ? 0 : -ENOMEM;
    }
    return 0;
}

int summary_place_find(const struct service_settings *service, const char *setting,
                       struct summary_place *ret)
{
    *ret = (struct summary_place){0};
    if (setting && strcmp(setting, "none") == 0)
        return 0;
    if (!setting || !*setting)
        return default_place(service, ret);
    ret->path = strdup(setting);
    return ret->path ? 0 : -ENOMEM;
}

void summary_place_done(struct summary_place *p)
{
    free(p->path);
    free(p->beside);
    *p = (struct summary_place){0};
}

/* ---- how ---- */

/* Work for a thread that may have to be left behind: two hold it, the last one frees it. */
struct job {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    unsigned holders;
    bool done;
    struct summary_place place;
    struct buf *text;
    mode_t mode;
    int result; /* as of summary_write() */
};

static void job_release(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    const bool last = --j->holders == 0;
    pthread_mutex_unlock(&j->lock);
    if (!last)
        return;
    pthread_cond_destroy(&j->finished);
    pthread_mutex_destroy(&j->lock);
    buf_unref(j->text);
    summary_place_done(&j->place);
    free(j);
}

static struct job *job_new(const struct summary_place *p, struct bytes text, int64_t mode)
{
    struct job *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    *j = (struct job){.holders = 1, .mode = mode < 0 ? DEFAULT_MODE : (mode_t)mode};
    pthread_mutex_init(&j->lock, NULL);
    cond_init_monotonic(&j->finished);
    j->place.path = strdup(p->path);
    j->place.beside = p->beside ? strdup(p->beside) : NULL;
    j->text = buf_new(0);
    if (j->place.path && (j->place.beside || !p->beside) && j->text &&
        buf_append(j->text, text.data, text.len) == 0)
        return j;
    job_release(j);
    return NULL;
}

static int write_all(int fd, struct bytes text)
{
    while (text.len) {
        const ssize_t n = write(fd, text.data, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text = bytes_of(text.data + n, text.len - (size_t)n);
    }
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int write_to(const char *path, int flags, mode_t mode, struct bytes text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | flags, mode);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, text);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

/* Beside the file and then in its place. */
static int replace(const char *path, mode_t mode, struct bytes text)
{
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return -ENOMEM;
    int r = write_to(temporary, O_CREAT | O_TRUNC | O_NOFOLLOW, mode, text);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(temporary);
    free(temporary);
    return r;
}

/* An earlier summary is at `path`, or an empty file. */
static bool is_summary(const char *path)
{
    char head[sizeof(MARK)] = "";
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    return f && (!fgets(head, sizeof(head), f) || strcmp(head, MARK) == 0);
}

/* The file exporter's file is one on disk; with group_by there may be none. */
static bool has_place(const struct summary_place *p)
{
    struct stat st;
    return !p->beside || strchr(p->beside, '*') ||
           (stat(p->beside, &st) == 0 && S_ISREG(st.st_mode));
}

/* A device is written to; a link stays, and what it points to is replaced. */
static int write_job(const struct job *j)
{
    struct stat st;
    const char *path = j->place.path;
    if (!has_place(&j->place))
        return 1;
    const bool exists = stat(path, &st) == 0, plain = exists && S_ISREG(st.st_mode);
    if (j->place.beside && exists && (!plain || !is_summary(path)))
        return -EEXIST;
    if (exists && !plain)
        return write_to(path, 0, 0, buf_bytes(j->text));
    _cleanup_free_ char *real = realpath(path, NULL);
    return replace(real ? real : path, j->mode, buf_bytes(j->text));
}

static void *writer_main(void *arg)
{
    struct job *j = arg;
    const int r = write_job(j);
    pthread_mutex_lock(&j->lock);
    j->result = r;
    j->done = true;
    pthread_cond_signal(&j->finished);
    pthread_mutex_unlock(&j->lock);
    job_release(j);
    return NULL;
}

static int start_writer(struct job *j)
{
    sigset_t all, before; /* SIGXFSZ is an error of write() here */
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    j->holders++;
    const int r = pthread_create(&thread, NULL, writer_main, j);
    if (r == 0)
        pthread_detach(thread);
    else
        j->holders--;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

static int wait_for(struct job *j, uint64_t deadline_ns)
{
    pthread_mutex_lock(&j->lock);
    while (!j->done && cond_wait_until(&j->finished, &j->lock, deadline_ns) != ETIMEDOUT)
        ;
    const int r = j->done ? j->result : -ETIMEDOUT;
    pthread_mutex_unlock(&j->lock);
    return r;
}

int summary_write(const struct summary_place *p, struct bytes text, int64_t mode,
                  uint64_t deadline_ns, struct err *reterr)
{
    struct job *j = job_new(p, text, mode);
    if (!j)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = start_writer(j);
    if (r == 0)
        r = wait_for(j, deadline_ns);
    job_release(j);
    if (r == -EEXIST)
        return err_set(reterr, r,
                       "\"%s\" is there and is not a summary, so it stays; --summary names another "
                       "file, or none",
                       p->path);
    return r < 0 ? err_set(reterr, r, "cannot write \"%s\": %s", p->path, strerror(-r)) : r;
}
