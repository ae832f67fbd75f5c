/*
 * One stream of the command's output. The way through comes first and waits for its reader as a
 * pipe does; the copy for the pipeline never waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/gym/run_parts.h"

#define READ_BYTES ((size_t)64 * 1024)
#define TEE_PIPE_BYTES (1 << 20)    /* asked of the kernel */
#define TEE_BYTES ((size_t)4 << 20) /* kept here when the pipe is full */
#define LEFTOVER_NS (2 * NS_PER_S)  /* for processes that the command has left behind */
#define FLUSH_NS (10 * NS_PER_S)    /* for the tee, at the end */
#define STALL_NS (3 * NS_PER_S)     /* of it without anything taken */

struct tee {
    int fd; /* -1 = nobody reads it */
    uint8_t *bytes;
    size_t at, len; /* of `bytes`: what waits */
    bool skipping;  /* lines are left out until there is room again */
    bool mid_line;  /* what was put in last has no line end */
    uint64_t left_out;
};

struct pump {
    pthread_t thread;
    int from_fd, to_fd, done_fd, wake_fd;
    atomic_bool job_ended, hurry, done;
    uint64_t deadline_ns; /* once the command has ended */
    int due_bytes;        /* that it had written by then and are still to be passed on */
    bool draining, left_open;
    struct tee tee;
    uint8_t buffer[READ_BYTES];
};

/* ---- the tee ---- */

static void tee_close(struct tee *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
    free(t->bytes);
    t->bytes = NULL;
    t->at = t->len = 0;
}

/* Writes what it can; the bytes written. */
static size_t tee_write(struct tee *t, const uint8_t *p, size_t len)
{
    size_t n = 0;
    while (n < len) {
        const ssize_t w = write(t->fd, p + n, len - n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno != EAGAIN)
            tee_close(t); /* the pipeline has ended */
        if (w < 0)
            break;
        n += (size_t)w;
    }
    return n;
}

static void tee_flush(struct tee *t)
{
    if (t->fd < 0 || t->len == 0)
        return;
    const size_t n = tee_write(t, t->bytes + t->at, t->len);
    if (t->fd < 0)
        return;
    t->at += n;
    t->len -= n;
    if (t->len == 0)
        t->at = 0;
}

/* Room is kept for the line end that tee_skip() may put. */
static size_t tee_room(const struct tee *t)
{
    return TEE_BYTES - 1 - t->len;
}

static void tee_store(struct tee *t, const uint8_t *p, size_t len)
{
    if (!t->bytes && !(t->bytes = malloc(TEE_BYTES))) {
        t->left_out += len;
        return;
    }
    if (t->at + t->len + len > TEE_BYTES) {
        memmove(t->bytes, t->bytes + t->at, t->len);
        t->at = 0;
    }
    memcpy(t->bytes + t->at + t->len, p, len);
    t->len += len;
}

static void tee_put(struct tee *t, const uint8_t *p, size_t len)
{
    size_t n = t->len == 0 ? tee_write(t, p, len) : 0;
    if (t->fd >= 0 && n < len)
        tee_store(t, p + n, len - n);
    if (len)
        t->mid_line = p[len - 1] != '\n';
}

/* Leaves out what does not fit, up to the line end behind it. */
static void tee_skip(struct tee *t, size_t len)
{
    t->left_out += len;
    t->skipping = true;
    if (t->mid_line && t->bytes && t->len < TEE_BYTES) {
        tee_store(t, (const uint8_t *)"\n", 1);
        t->mid_line = false;
    }
}

/* Takes `p` or leaves it out, and returns at once. */
static void tee_take(struct tee *t, const uint8_t *p, size_t len)
{
    tee_flush(t);
    if (t->fd < 0)
        return;
    if (t->skipping && t->len <= TEE_BYTES / 2) {
        const uint8_t *end = memchr(p, '\n', len);
        const size_t skipped = end ? (size_t)(end - p) + 1 : len;
        t->left_out += skipped;
        t->skipping = !end;
        p += skipped;
        len -= skipped;
    }
    if (t->skipping || len > tee_room(t))
        tee_skip(t, len);
    else
        tee_put(t, p, len);
}

/* ---- the way through ---- */

static bool pass_on(struct pump *p, const uint8_t *data, size_t len)
{
    while (len) {
        const ssize_t n = write(p->to_fd, data, len);
        if (n < 0 && errno == EAGAIN) { /* whoever gave us the descriptor wants it so */
            poll(&(struct pollfd){.fd = p->to_fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0 && errno != EINTR)
            return false;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void begin_draining(struct pump *p)
{
    p->draining = true;
    p->deadline_ns = clock_now_ns() + LEFTOVER_NS;
    if (ioctl(p->from_fd, FIONREAD, &p->due_bytes) < 0)
        p->due_bytes = 0;
}

/* Waits for output, for room in the tee or for news; false when there is nothing more to wait for.
 */
static bool wait_for_output(struct pump *p)
{
    struct pollfd fds[] = {{.fd = p->from_fd, .events = POLLIN},
                           {.fd = p->draining ? -1 : p->wake_fd, .events = POLLIN},
                           {.fd = p->tee.len ? p->tee.fd : -1, .events = POLLOUT}};
    for (;;) {
        const uint64_t now_ns = clock_now_ns();
        if (p->draining && p->due_bytes <= 0 && now_ns >= p->deadline_ns)
            return false;
        const int wait_ms =
            p->draining
                ? (int)((p->deadline_ns > now_ns ? p->deadline_ns - now_ns : 0) / NS_PER_MS) + 1
                : -1;
        if (poll(fds, ARRAY_SIZE(fds), wait_ms) < 0 && errno != EINTR)
            return false;
        if (fds[2].revents) {
            tee_flush(&p->tee);
            fds[2].fd = p->tee.len ? p->tee.fd : -1;
        }
        if (!p->draining && atomic_load(&p->job_ended)) {
            begin_draining(p);
            fds[1].fd = -1;
        }
        if (fds[0].revents)
            return true;
    }
}

static void pass_all(struct pump *p)
{
    while (wait_for_output(p)) {
        const ssize_t n = read(p->from_fd, p->buffer, READ_BYTES);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return;
        if (!pass_on(p, p->buffer, (size_t)n))
            return; /* the command gets SIGPIPE, as without us */
        p->due_bytes -= p->draining ? (int)n : 0;
        tee_take(&p->tee, p->buffer, (size_t)n);
    }
    p->left_open = true;
}

/* What waits for the pipeline still goes to it, while it takes some. */
static void flush_tee(struct pump *p)
{
    const uint64_t end_ns = clock_now_ns() + FLUSH_NS;
    uint64_t taken_ns = clock_now_ns();
    while (p->tee.fd >= 0 && p->tee.len && !atomic_load(&p->hurry)) {
        const uint64_t now_ns = clock_now_ns();
        if (now_ns > end_ns || now_ns - taken_ns > STALL_NS)
            break;
        if (poll(&(struct pollfd){.fd = p->tee.fd, .events = POLLOUT}, 1, 100) > 0)
            taken_ns = now_ns;
        tee_flush(&p->tee);
    }
    p->tee.left_out += p->tee.len;
    tee_close(&p->tee);
}

static void *pump_run(void *arg)
{
    struct pump *p = arg;
    pass_all(p);
    close(TAKE_FD(p->from_fd));
    flush_tee(p);
    const int done_fd = p->done_fd;
    atomic_store(&p->done, true);
    eventfd_write(done_fd, 1);
    return NULL;
}

/* ---- from outside ---- */

struct pump *pump_start(int from_fd, int to_fd, int tee_fd, int done_fd)
{
    struct pump *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->from_fd = from_fd;
    p->to_fd = to_fd;
    p->done_fd = done_fd;
    p->tee.fd = tee_fd;
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tee_fd >= 0) {
        fcntl(tee_fd, F_SETPIPE_SZ, TEE_PIPE_BYTES);
        fcntl(tee_fd, F_SETFL, O_NONBLOCK);
    }
    if (p->wake_fd >= 0 && pthread_create(&p->thread, NULL, pump_run, p) == 0)
        return p;
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    free(p);
    return NULL;
}

void pump_job_ended(struct pump *p)
{
    atomic_store(&p->job_ended, true);
    eventfd_write(p->wake_fd, 1);
}

void pump_hurry(struct pump *p)
{
    atomic_store(&p->hurry, true);
}

bool pump_done(const struct pump *p)
{
    return atomic_load(&p->done);
}

struct pump *pump_free(struct pump *p, struct pump_result *ret)
{
    if (!p)
        return NULL;
    pthread_join(p->thread, NULL);
    ret->left_out_bytes += p->tee.left_out;
    ret->left_open |= p->left_open;
    close(p->wake_fd);
    free(p);
    return NULL;
}
