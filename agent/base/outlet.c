/* A writer thread with a bounded queue in front of a file descriptor. */
#include "agent/base/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "agent/base/cond.h"
#include "agent/base/log.h"

#define PAUSE_MS 1000 /* before another try after an error that may pass */

struct item {
    struct item *next;
    struct buf *text;
    struct outlet_note note;
};

struct outlet {
    pthread_mutex_t lock;
    pthread_cond_t more; /* there is something to write, or the end has come */
    pthread_cond_t less; /* a text is done */
    pthread_t thread;
    int fd, wake;
    bool regular; /* a file: never waits for a reader */
    bool ending;
    bool complained; /* about an error that has not passed yet */
    int gone;        /* the error after which nobody reads any more */
    size_t waiting_bytes, max_bytes;
    struct item *head, **tail; /* the first one is being written */
};

static struct item *item_free(struct item *i)
{
    buf_unref(i->text);
    free(i);
    return NULL;
}

static void note_done(struct item *i, int error)
{
    if (i->note.done)
        i->note.done(i->note.ctx, error, i->note.kind, i->note.count);
    i->note = (struct outlet_note){0};
}

/* As many whole lines as a pipe takes in one piece, or a part of a longer one. */
static size_t piece(const struct outlet *o, const uint8_t *p, size_t n)
{
    if (o->regular || n <= PIPE_BUF)
        return n;
    const uint8_t *end = memrchr(p, '\n', PIPE_BUF);
    return end ? (size_t)(end + 1 - p) : PIPE_BUF;
}

/* Waits until the descriptor takes something (or, `pause`, for a while). */
static void wait_ready(struct outlet *o, bool pause)
{
    struct pollfd fds[] = {{.fd = o->wake, .events = POLLIN}, {.fd = o->fd, .events = POLLOUT}};
    uint64_t wakes;
    poll(fds, pause ? 1 : 2, pause ? PAUSE_MS : -1);
    if (fds[0].revents && read(o->wake, &wakes, sizeof(wakes)) < 0)
        return;
}

static bool may_pass(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG;
}

static void complain(struct outlet *o, int error)
{
    if (!o->complained)
        log_error(NULL, "Cannot write", LOG_INT("fd", o->fd), LOG_STR("error", strerror(error)),
                  LOG_BOOL("will_retry", may_pass(error)));
    o->complained = true;
}

static bool is_ending(struct outlet *o)
{
    pthread_mutex_lock(&o->lock);
    bool ending = o->ending;
    pthread_mutex_unlock(&o->lock);
    return ending;
}

/* Writes all of `text`: 0, -ECANCELED at the end, or the error that lasts. */
static int write_text(struct outlet *o, struct bytes text)
{
    while (text.len) {
        if (is_ending(o))
            return -ECANCELED;
        if (!o->regular)
            wait_ready(o, false);
        if (is_ending(o))
            return -ECANCELED;
        ssize_t n = write(o->fd, text.data, piece(o, text.data, text.len));
        if (n >= 0) {
            o->complained = false;
            text = bytes_of(text.data + n, text.len - (size_t)n);
        } else if (errno != EINTR && errno != EAGAIN) {
            int error = errno;
            complain(o, error);
            if (!may_pass(error))
                return -error;
            wait_ready(o, true);
        }
    }
    return 0;
}

/* Takes the first item off; the lock is held. */
static void finish_first(struct outlet *o, int error)
{
    struct item *i = o->head;
    o->head = i->next;
    if (!o->head)
        o->tail = &o->head;
    o->waiting_bytes -= i->text->len;
    note_done(i, error);
    item_free(i);
    pthread_cond_broadcast(&o->less);
}

static void *writer(void *arg)
{
    struct outlet *o = arg;
    pthread_mutex_lock(&o->lock);
    while (!o->ending) {
        if (!o->head) {
            pthread_cond_wait(&o->more, &o->lock);
            continue;
        }
        struct bytes text = buf_bytes(o->head->text);
        int error = o->gone;
        if (error == 0) {
            pthread_mutex_unlock(&o->lock);
            error = write_text(o, text);
            pthread_mutex_lock(&o->lock);
        }
        if (error < 0 && error != -ECANCELED)
            o->gone = error;
        finish_first(o, error);
    }
    while (o->head)
        finish_first(o, -ECANCELED);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static struct outlet *release(struct outlet *o)
{
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->more);
    pthread_cond_destroy(&o->less);
    if (o->wake >= 0)
        close(o->wake);
    free(o);
    return NULL;
}

struct outlet *outlet_new(int fd, size_t max_bytes)
{
    struct outlet *o = calloc(1, sizeof(*o));
    struct stat st;
    if (!o)
        return NULL;
    pthread_mutex_init(&o->lock, NULL);
    cond_init_monotonic(&o->more);
    cond_init_monotonic(&o->less);
    o->fd = fd;
    o->max_bytes = max_bytes;
    o->tail = &o->head;
    o->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    o->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (o->wake < 0 || pthread_create(&o->thread, NULL, writer, o) != 0)
        return release(o);
    return o;
}

/* The item to add, or NULL with the reason why not; the lock is held. */
static struct item *new_item(struct outlet *o, struct buf *text, struct outlet_note note, int *ret)
{
    struct item *i = NULL;
    *ret = o->gone;
    if (o->gone == 0 && o->head && o->waiting_bytes + text->len > o->max_bytes)
        *ret = -EAGAIN;
    else if (o->gone == 0 && !(i = calloc(1, sizeof(*i))))
        *ret = -EAGAIN;
    if (i)
        *i = (struct item){.text = text, .note = note};
    return i;
}

int outlet_put(struct outlet *o, struct buf *text, struct outlet_note note)
{
    int r;
    pthread_mutex_lock(&o->lock);
    struct item *i = new_item(o, text, note, &r);
    if (i) {
        *o->tail = i;
        o->tail = &i->next;
        o->waiting_bytes += text->len;
        pthread_cond_signal(&o->more);
    } else if (r != -EAGAIN) {
        note_done(&(struct item){.note = note}, r);
        buf_unref(text);
    }
    pthread_mutex_unlock(&o->lock);
    return r;
}

static bool has_items(const struct outlet *o, const void *ctx)
{
    for (const struct item *i = o->head; i; i = i->next)
        if (i->note.ctx == ctx)
            return true;
    return false;
}

/* Notes and unlinks what is left of `ctx`; the one that is being written only loses its note. */
static void drop_items(struct outlet *o, const void *ctx)
{
    struct item **at = &o->head;
    for (struct item *i; (i = *at);) {
        bool ours = i->note.ctx == ctx;
        if (ours)
            note_done(i, -ETIMEDOUT);
        if (!ours || i == o->head) {
            at = &i->next;
            continue;
        }
        *at = i->next;
        o->waiting_bytes -= i->text->len;
        item_free(i);
    }
    o->tail = at;
}

void outlet_flush(struct outlet *o, const void *ctx, uint64_t deadline_ns)
{
    int r = 0;
    pthread_mutex_lock(&o->lock);
    while (has_items(o, ctx) && r == 0)
        r = cond_wait_until(&o->less, &o->lock, deadline_ns);
    drop_items(o, ctx);
    pthread_mutex_unlock(&o->lock);
}

struct outlet *outlet_free(struct outlet *o)
{
    uint64_t one = 1;
    if (!o)
        return NULL;
    pthread_mutex_lock(&o->lock);
    o->ending = true;
    pthread_cond_signal(&o->more);
    pthread_mutex_unlock(&o->lock);
    if (write(o->wake, &one, sizeof(one)) < 0)
        log_error(NULL, "Cannot wake a writer", LOG_STR("error", strerror(errno)));
    pthread_join(o->thread, NULL);
    return release(o);
}
