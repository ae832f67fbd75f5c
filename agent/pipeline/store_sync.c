/* Without fsync a commit is with the kernel only. This thread brings it to the disk within a
 * second, never holding the lock of the store while the disk works. It starts with the first
 * commit. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/cond.h"
#include "agent/pipeline/store_parts.h"

#define STACK_BYTES ((size_t)128 << 10)

struct store_syncer {
    struct store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool dirty, stopping, failed;
};

/* The name of a new file. */
void store_sync_directory(const struct store *st)
{
    _cleanup_close_ int fd = open(st->settings.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        fsync(fd);
}

/* The file may be replaced meanwhile: a file descriptor of our own stays good. */
static void sync_now(struct store_syncer *s)
{
    pthread_mutex_lock(&s->store->lock);
    _cleanup_close_ int fd =
        s->store->file.fd >= 0 ? fcntl(s->store->file.fd, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&s->store->lock);
    if (fd < 0 || fdatasync(fd) == 0)
        s->failed = false;
    else if (!s->failed) {
        s->failed = true;
        log_error(NULL, "Cannot bring the queue file to the disk", LOG_STR("file", s->store->path),
                  LOG_STR("error", strerror(errno)));
    }
}

static void *syncer_main(void *arg)
{
    struct store_syncer *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (!s->dirty) {
            cond_wait_until(&s->changed, &s->lock, UINT64_MAX);
            continue;
        }
        const uint64_t at_ns = clock_now_ns() + STORE_SYNC_NS;
        while (!s->stopping && cond_wait_until(&s->changed, &s->lock, at_ns) != ETIMEDOUT)
            ;
        s->dirty = false;
        pthread_mutex_unlock(&s->lock);
        sync_now(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void syncer_free(struct store_syncer *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct store_syncer *syncer_start(struct store *st)
{
    struct store_syncer *s = calloc(1, sizeof(*s));
    sigset_t all, before;
    pthread_attr_t attr;
    if (!s)
        return NULL;
    s->store = st;
    pthread_mutex_init(&s->lock, NULL);
    cond_init_monotonic(&s->changed);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    const int r = pthread_create(&s->thread, &attr, syncer_main, s);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0) {
        syncer_free(s);
        return NULL;
    }
    pthread_setname_np(s->thread, "queue sync");
    return s;
}

/* Lock of the store held. Without a thread the kernel writes in its own time. */
void store_sync_soon(struct store *st)
{
    if (!st->syncer)
        st->syncer = syncer_start(st);
    struct store_syncer *s = st->syncer;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->dirty) {
        s->dirty = true;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

void store_sync_stop(struct store *st)
{
    struct store_syncer *s = st->syncer;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    syncer_free(s);
    st->syncer = NULL;
}
