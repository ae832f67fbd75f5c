/* The I/O threads: epoll, tasks from other threads, deadlines. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "agent/base/clock.h"
#include "agent/net/conn.h"
#include "agent/net/h1_probe.h"
#include "agent/net/tls_session.h"

#define MAX_LOOPS 4
#define EVENTS_PER_WAIT 64
#define MIN_SCAN_NS (20 * NS_PER_MS)
#define RESERVED_FDS                                                                               \
    32 /* for files, exporters and storage; a quarter of the limit when that is more */

static struct {
    pthread_mutex_t lock;
    unsigned users, nloops;
    struct loop *loops;
    atomic_uint nconns;
    atomic_uint fds; /* of connections, besides one each */
    unsigned max_conns;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

int loop_watch(struct loop *l, int fd, uint32_t events, struct watch *w)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int loop_rewatch(struct loop *l, int fd, uint32_t events, struct watch *w)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &e) < 0 ? -errno : 0;
}

void loop_unwatch(struct loop *l, int fd)
{
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

uint8_t *loop_scratch(struct loop *l)
{
    if (!l->scratch)
        l->scratch = malloc(SCRATCH_BYTES);
    return l->scratch;
}

uint8_t *loop_cipher(struct loop *l)
{
    if (!l->cipher)
        l->cipher = malloc(TLS_CIPHER_BYTES);
    return l->cipher;
}

void loop_post(struct loop *l, struct task *t)
{
    uint64_t one = 1;
    t->next = NULL;
    pthread_mutex_lock(&l->lock);
    bool first = !l->tasks;
    *l->tasks_end = t;
    l->tasks_end = &t->next;
    if (first && write(l->wake_fd, &one, sizeof(one)) < 0) {
        /* the counter is full: it is readable anyway */
    }
    pthread_mutex_unlock(&l->lock);
}

static void run_tasks(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct task *t = l->tasks;
    l->tasks = NULL;
    l->tasks_end = &l->tasks;
    pthread_mutex_unlock(&l->lock);
    while (t) {
        struct task *next = t->next;
        t->run(t);
        t = next;
    }
}

static void on_wake(struct watch *w, _unused_ uint32_t events)
{
    struct loop *l = container_of(w, struct loop, wake);
    uint64_t n;
    if (read(l->wake_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        return;
    run_tasks(l);
}

static void scan_deadlines(struct loop *l, uint64_t now)
{
    struct conn *next;
    for (struct conn *c = l->conns; c; c = next) {
        next = c->next;
        if (c->deadline_ns <= now)
            c->ops->expired(c, now);
    }
    uint64_t at = UINT64_MAX;
    for (struct conn *c = l->conns; c; c = c->next)
        at = c->deadline_ns < at ? c->deadline_ns : at;
    l->scan_at_ns = at == UINT64_MAX ? at : at > now + MIN_SCAN_NS ? at : now + MIN_SCAN_NS;
}

static int wait_ms(const struct loop *l)
{
    if (l->mhd_dirty)
        return 0;
    uint64_t at = l->paused && l->resume_at_ns < l->scan_at_ns ? l->resume_at_ns : l->scan_at_ns;
    at = l->mhd_at_ns < at ? l->mhd_at_ns : at;
    at = l->tidy_at_ns < at ? l->tidy_at_ns : at;
    if (at == UINT64_MAX)
        return -1;
    uint64_t now = clock_now_ns();
    uint64_t ms = at <= now ? 0 : (at - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 3600000 ? 3600000 : (int)ms;
}

static void free_dead(struct loop *l)
{
    while (l->dead) {
        struct conn *c = l->dead;
        l->dead = c->next;
        free(c->attached);
        free(c);
    }
}

static void run_timers(struct loop *l)
{
    if (l->scan_at_ns == UINT64_MAX && l->mhd_at_ns == UINT64_MAX && l->tidy_at_ns == UINT64_MAX &&
        !l->paused)
        return;
    uint64_t now = clock_now_ns();
    if (now >= l->scan_at_ns)
        scan_deadlines(l, now);
    if (l->paused && now >= l->resume_at_ns)
        acceptors_resume(l);
    if (now >= l->mhd_at_ns)
        l->mhd_dirty = true;
    if (now >= l->tidy_at_ns)
        h1_tidy(l, now);
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    struct epoll_event events[EVENTS_PER_WAIT];
    pthread_setname_np(pthread_self(), "net");
    while (!l->stop || l->conns || l->owed) {
        int n = epoll_wait(l->epoll_fd, events, EVENTS_PER_WAIT, wait_ms(l));
        for (int i = 0; i < n; i++) {
            struct watch *w = events[i].data.ptr;
            w->event(w, events[i].events);
        }
        const bool ran = l->mhd_dirty;
        if (ran) {
            l->mhd_dirty = false;
            h1_run(l);
        }
        h1_look_at_woken(l, ran);
        run_timers(l);
        free_dead(l);
    }
    h1_stop(l);
    free_dead(l);
    return NULL;
}

static void loop_done(struct loop *l)
{
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    if (l->spare_fd >= 0)
        close(l->spare_fd);
    pthread_mutex_destroy(&l->lock);
    free(l->scratch);
    free(l->cipher);
    buf_unref(l->out);
}

static int loop_init(struct loop *l)
{
    *l = (struct loop){.epoll_fd = -1,
                       .wake_fd = -1,
                       .spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
                       .wake.event = on_wake,
                       .scan_at_ns = UINT64_MAX,
                       .mhd_at_ns = UINT64_MAX,
                       .tidy_at_ns = UINT64_MAX};
    l->tasks_end = &l->tasks;
    pthread_mutex_init(&l->lock, NULL);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll_fd < 0 || l->wake_fd < 0 || loop_watch(l, l->wake_fd, EPOLLIN, &l->wake) < 0)
        return -errno;
    return 0;
}

/* Signals are for the main thread. */
static int loop_start(struct loop *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&l->thread, NULL, loop_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -r;
}

static unsigned count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    unsigned n = (unsigned)CPU_COUNT(&set);
    return n > MAX_LOOPS ? MAX_LOOPS : n;
}

/* Raises the soft limit of descriptors to the hard one, and keeps a part of it from connections. */
static unsigned connection_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return 512;
    if (r.rlim_cur < r.rlim_max) {
        rlim_t old = r.rlim_cur;
        r.rlim_cur = r.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &r) < 0)
            r.rlim_cur = old;
    }
    rlim_t n = r.rlim_cur > 1000000 ? 1000000 : r.rlim_cur;
    rlim_t reserved = n / 4 > RESERVED_FDS ? n / 4 : RESERVED_FDS;
    return (unsigned)(n > reserved + 8 ? n - reserved : 8);
}

static void loop_set_stop(struct loop *l, _unused_ void *arg)
{
    l->stop = true;
    struct conn *next;
    for (struct conn *c = l->conns; c; c = next) {
        next = c->next;
        c->ops->cut(c);
    }
}

static void engine_stop(void)
{
    engine_barrier(loop_set_stop, NULL);
    for (unsigned i = 0; i < engine.nloops; i++) {
        pthread_join(engine.loops[i].thread, NULL);
        loop_done(&engine.loops[i]);
    }
    free(engine.loops);
    engine.loops = NULL;
    engine.nloops = 0;
}

static int engine_start(struct err *reterr)
{
    unsigned n = count_cpus();
    engine.max_conns = connection_limit();
    h1_layout_known(); /* warns here, before the first request */
    engine.loops = calloc(n, sizeof(*engine.loops));
    int r = engine.loops ? 0 : -ENOMEM;
    while (r == 0 && engine.nloops < n) {
        struct loop *l = &engine.loops[engine.nloops];
        r = loop_init(l);
        if (r == 0)
            r = loop_start(l);
        if (r < 0)
            loop_done(l);
        else
            engine.nloops++;
    }
    if (r == 0)
        return 0;
    engine_stop();
    return err_set(reterr, r, "cannot start the network threads: %s", strerror(-r));
}

int engine_acquire(struct err *reterr)
{
    pthread_mutex_lock(&engine.lock);
    int r = engine.users ? 0 : engine_start(reterr);
    if (r == 0)
        engine.users++;
    pthread_mutex_unlock(&engine.lock);
    return r;
}

void engine_release(void)
{
    pthread_mutex_lock(&engine.lock);
    if (--engine.users == 0)
        engine_stop();
    pthread_mutex_unlock(&engine.lock);
}

unsigned engine_loops(void)
{
    return engine.nloops;
}

struct loop *engine_loop(unsigned i)
{
    return &engine.loops[i];
}

struct loop *engine_least_loaded(void)
{
    struct loop *best = &engine.loops[0];
    for (unsigned i = 1; i < engine.nloops; i++)
        if (atomic_load(&engine.loops[i].nconns) < atomic_load(&best->nconns))
            best = &engine.loops[i];
    return best;
}

int64_t server_connections(void)
{
    return atomic_load(&engine.nconns);
}

bool engine_conn_admit(unsigned of_listener)
{
    const int64_t wanted = server_limits_get().max_connections;
    const unsigned most =
        wanted > 0 && wanted < engine.max_conns ? (unsigned)wanted : engine.max_conns;
    const unsigned n = atomic_fetch_add(&engine.nconns, 1);
    if (n < most && n + atomic_load(&engine.fds) < engine.max_conns &&
        of_listener < most - most / 8)
        return true;
    atomic_fetch_sub(&engine.nconns, 1);
    return false;
}

void engine_conn_leave(void)
{
    atomic_fetch_sub(&engine.nconns, 1);
}

bool engine_fds_admit(int n)
{
    const unsigned all = atomic_fetch_add(&engine.fds, (unsigned)n) + (unsigned)n;
    if (n <= 0 || all + atomic_load(&engine.nconns) <= engine.max_conns)
        return true;
    atomic_fetch_sub(&engine.fds, (unsigned)n);
    return false;
}

struct barrier {
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned left;
    void (*fn)(struct loop *l, void *arg);
    void *arg;
};
struct barrier_task {
    struct task task;
    struct barrier *barrier;
    struct loop *loop;
};

static void barrier_run(struct task *t)
{
    struct barrier_task *b = container_of(t, struct barrier_task, task);
    b->barrier->fn(b->loop, b->barrier->arg);
    pthread_mutex_lock(&b->barrier->lock);
    if (--b->barrier->left == 0)
        pthread_cond_signal(&b->barrier->done);
    pthread_mutex_unlock(&b->barrier->lock);
}

void engine_barrier(void (*fn)(struct loop *l, void *arg), void *arg)
{
    struct barrier b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, engine.nloops, fn,
                        arg};
    struct barrier_task tasks[MAX_LOOPS];
    for (unsigned i = 0; i < engine.nloops; i++) {
        tasks[i] = (struct barrier_task){{.run = barrier_run}, &b, &engine.loops[i]};
        loop_post(&engine.loops[i], &tasks[i].task);
    }
    pthread_mutex_lock(&b.lock);
    while (b.left)
        pthread_cond_wait(&b.done, &b.lock);
    pthread_mutex_unlock(&b.lock);
}
