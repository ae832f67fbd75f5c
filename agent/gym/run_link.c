/* The connection between `motel run` and its pipeline, and the beginning of the pipeline's process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "agent/base/number.h"
#include "agent/gym/run_parts.h"
#include "agent/pipeline/console_source.h"

enum { READ_END, WRITE_END };

struct pipes {
    int control[2], status[2], tees[2][2];
};

static void pipes_close(struct pipes *p, int end)
{
    int *const fds[] = {p->control, p->status, p->tees[0], p->tees[1]};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i][end] >= 0)
            close(TAKE_FD(fds[i][end]));
}

static int pipes_open(struct pipes *p, unsigned ntees)
{
    *p = (struct pipes){{-1, -1}, {-1, -1}, {{-1, -1}, {-1, -1}}};
    int r = pipe2(p->control, O_CLOEXEC);
    if (r == 0)
        r = pipe2(p->status, O_CLOEXEC);
    for (unsigned i = 0; r == 0 && i < ntees; i++)
        r = pipe2(p->tees[i], O_CLOEXEC);
    return r < 0 ? -errno : 0;
}

/* ---- the pipeline's process ---- */

/* What was inherited belongs to the command: somebody may wait for it to be closed. */
static void close_inherited(const struct pipes *p)
{
    const int keep[] = {p->control[READ_END], p->status[WRITE_END], p->tees[0][READ_END],
                        p->tees[1][READ_END]};
    DIR *d = opendir("/proc/self/fd");
    int64_t fd;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        bool kept =
            !number_parse_int(bytes_str(e->d_name), &fd) || fd <= STDERR_FILENO || fd == dirfd(d);
        for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
            kept = kept || fd == keep[i];
        if (!kept)
            close((int)fd);
    }
    if (d)
        closedir(d);
}

/* stdin and stdout are the command's: there is nothing to read, and what an exporter prints goes to
 * stderr. */
static void replace_standard_fds(void)
{
    _cleanup_close_ int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none >= 0)
        dup2(none, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

static int register_streams(const struct pipes *p, unsigned ntees)
{
    static const char *const labels[] = {"stdout", "stderr"};
    int r = 0;
    for (unsigned i = 0; r == 0 && i < ntees; i++) {
        struct console_source s = {.fd = p->tees[i][READ_END], .pass_fd = -1};
        snprintf(s.label, sizeof(s.label), "%s", labels[i]);
        r = console_source_add(NULL, &s);
    }
    return r;
}

static _Noreturn void be_the_pipeline(const struct run_command *c, struct pipes *p, unsigned ntees,
                                      pid_t job)
{
    const struct run_link l = {p->control[READ_END], p->status[WRITE_END], job};
    setpgid(0, 0); /* Ctrl-C is the command's */
    signal(SIGTTOU, SIG_IGN);
    close_inherited(p);
    replace_standard_fds();
    if (register_streams(p, ntees) < 0)
        _exit(1);
    const int code = c->pipeline(c->ctx, &l);
    console_source_drop();
    exit(code);
}

void run_link_ready(const struct run_link *l, const struct run_ready *r)
{
    if (write(l->status_fd, r, sizeof(*r)) < 0)
        return; /* the supervisor has ended; the control pipe says so, too */
}

void run_link_done(const struct run_link *l, const struct run_done *d)
{
    if (write(l->status_fd, d, sizeof(*d)) < 0)
        return;
}

struct watch {
    pthread_t thread; /* to be told */
    int fd, signal;
};

static void *watch_control(void *arg)
{
    const struct watch w = *(struct watch *)arg;
    char byte;
    free(arg);
    while (read(w.fd, &byte, 1) < 0 && errno == EINTR)
        ;
    pthread_kill(w.thread, w.signal);
    return NULL;
}

int run_link_watch(const struct run_link *l, int signal)
{
    struct watch *w = malloc(sizeof(*w));
    pthread_t thread;
    if (!w)
        return -ENOMEM;
    *w = (struct watch){pthread_self(), l->control_fd, signal};
    int r = pthread_create(&thread, NULL, watch_control, w);
    if (r)
        free(w);
    else
        pthread_detach(thread);
    return -r;
}

/* ---- the supervisor's side ---- */

int link_fork(struct link *l, const struct run_command *c, unsigned ntees, pid_t job)
{
    struct pipes p;
    *l = (struct link){.control_fd = -1, .status_fd = -1, .tee_fds = {-1, -1}};
    int r = pipes_open(&p, ntees);
    const pid_t pid = r == 0 ? fork() : -1;
    if (r == 0 && pid < 0)
        r = -errno;
    if (pid == 0) {
        be_the_pipeline(c, &p, ntees, job);
    }
    if (r == 0) {
        *l = (struct link){
            .pid = pid,
            .control_fd = TAKE_FD(p.control[WRITE_END]),
            .status_fd = TAKE_FD(p.status[READ_END]),
            .tee_fds = {TAKE_FD(p.tees[0][WRITE_END]), TAKE_FD(p.tees[1][WRITE_END])}};
        fcntl(l->status_fd, F_SETFL, O_NONBLOCK);
    }
    pipes_close(&p, READ_END);
    pipes_close(&p, WRITE_END);
    return r;
}

void link_close(struct link *l)
{
    int *const fds[] = {&l->control_fd, &l->status_fd, &l->tee_fds[0], &l->tee_fds[1]};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
}

int link_read(struct link *l, void *ret, size_t size)
{
    ssize_t n;
    do
        n = read(l->status_fd, ret, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? -EAGAIN : 0;
    return n == (ssize_t)size;
}
