/* Supervising: the command and the pipeline side by side, until the command has ended. */
#include "agent/gym/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/gym/run_id.h"
#include "agent/gym/run_parts.h"

#define START_NS (10 * NS_PER_S) /* for the pipeline, until it listens */
#define GRACE_NS (3 * NS_PER_S)  /* beyond the time that the pipeline says it needs for its end */
#define LONG_NS (2 * NS_PER_S)   /* an end that takes so long is explained at a terminal */
#define STREAMS 2

struct run {
    const struct run_command *c;
    sigset_t before; /* the signal mask that we came with */
    int signal_fd, done_fd;
    struct job job;
    struct link link;
    int streams[STREAMS];   /* to read the command's output from; -1 = the other one has both */
    int terminals[STREAMS]; /* the same where it is a terminal; else -1 */
    struct pump *pumps[STREAMS];
    struct run_ready ready;
    struct run_done done;
    bool has_pipeline; /* it was ready */
    bool job_ended;
    int job_status;
    int stop_signal; /* one that came before the command ran */
};

/* For the user, on the stderr that is the command's, too: only when something is wrong. */
static void warn(const char *text)
{
    fprintf(stderr, "Warning: motel run: %s\n", text);
}

/* ---- signals ---- */

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
static const int group_only[] = {SIGTSTP,
                                 SIGCONT}; /* with the terminal they reach all by themselves */

static const int outputs[STREAMS] = {STDOUT_FILENO, STDERR_FILENO};

static int take_signals(struct run *r, bool own_group)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
        sigaddset(&set, forwarded[i]);
    sigaddset(&set, SIGWINCH);
    for (size_t i = 0; own_group && i < ARRAY_SIZE(group_only); i++)
        sigaddset(&set, group_only[i]);
    if (sigprocmask(SIG_BLOCK, &set, &r->before) < 0)
        return -errno;
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit status away */
    r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    r->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return r->signal_fd < 0 || r->done_fd < 0 ? -errno : 0;
}

/* The command may have looked at its terminal before that had its new size. */
static void follow_size(struct run *r)
{
    for (int i = 0; i < STREAMS; i++)
        if (r->terminals[i] >= 0) {
            terminal_follow_size(outputs[i], r->terminals[i]);
            kill(r->job.pid, SIGWINCH);
        }
}

static void forward(struct run *r, const struct signalfd_siginfo *i)
{
    const int s = (int)i->ssi_signo;
    if (s == SIGWINCH) {
        follow_size(r);
        return;
    }
    if (!r->job.own_group) {
        if (i->ssi_code <= 0) /* the terminal's own reach the command by themselves */
            kill(r->job.pid, s);
        return;
    }
    kill(-r->job.pid, s);
    if (s == SIGTSTP)
        raise(SIGSTOP);
}

/* Notes every child that has ended; as process 1 of a container also those of others. */
static void reap(struct run *r)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == r->job.pid) {
            r->job_ended = true;
            r->job_status = status;
        } else if (pid == r->link.pid) {
            r->link.pid = 0;
        }
}

/* The next signal; 0 when there is none. */
static int next_signal(struct run *r, struct signalfd_siginfo *ret)
{
    if (read(r->signal_fd, ret, sizeof(*ret)) != sizeof(*ret))
        return 0;
    if (ret->ssi_signo == SIGCHLD)
        reap(r);
    return (int)ret->ssi_signo;
}

/* ---- set-up ---- */

static int open_stream(struct run *r, int i, int *ret_write)
{
    int fds[2];
    if (isatty(outputs[i]) == 1 && terminal_open(outputs[i], &r->streams[i], ret_write) == 0) {
        r->terminals[i] = fcntl(r->streams[i], F_DUPFD_CLOEXEC, 3);
        return 0;
    }
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    r->streams[i] = fds[0];
    *ret_write = fds[1];
    return 0;
}

/* One pipe for both when both lead to the same place, so that their order stays. */
static int open_streams(struct run *r, int ret_write[STREAMS])
{
    const bool one = job_same_output(STDOUT_FILENO, STDERR_FILENO);
    int e = 0;
    for (int i = 0; i < STREAMS; i++)
        r->streams[i] = r->terminals[i] = ret_write[i] = -1;
    for (int i = 0; e == 0 && i < (one ? 1 : STREAMS); i++)
        e = open_stream(r, i, &ret_write[i]);
    return e;
}

static void close_all(int *fds)
{
    for (int i = 0; i < STREAMS; i++)
        if (fds[i] >= 0)
            close(TAKE_FD(fds[i]));
}

static int start_processes(struct run *r, bool own_group)
{
    int write_fds[STREAMS];
    int e = open_streams(r, write_fds);
    const bool one = write_fds[1] < 0;
    if (e == 0)
        e = job_fork(&r->job, r->c->argv, write_fds[0], write_fds[one ? 0 : 1], own_group,
                     &r->before);
    close_all(write_fds);
    if (e < 0)
        return e;
    e = link_fork(&r->link, r->c, one ? 1 : STREAMS, r->job.pid);
    if (e < 0)
        warn("the telemetry pipeline cannot be started; the command runs without it");
    return 0;
}

static int start_pumps(struct run *r)
{
    signal(SIGPIPE, SIG_IGN); /* not for the command, which is there already */
    for (int i = 0; i < STREAMS; i++) {
        if (r->streams[i] < 0)
            continue;
        r->pumps[i] = pump_start(r->streams[i], outputs[i], r->link.tee_fds[i], r->done_fd);
        if (!r->pumps[i])
            return -ENOMEM;
        r->streams[i] = r->link.tee_fds[i] = -1;
    }
    return 0;
}

/* ---- the pipeline's start ---- */

static int ms_until(uint64_t end_ns)
{
    const uint64_t now_ns = clock_now_ns();
    return now_ns < end_ns ? (int)((end_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* Until it listens, has ended, or has had its time. A signal in between ends the wait. */
static void wait_for_pipeline(struct run *r)
{
    const uint64_t end_ns = clock_now_ns() + START_NS;
    struct signalfd_siginfo info;
    int said = -EAGAIN;
    while (said == -EAGAIN && !r->stop_signal && clock_now_ns() < end_ns) {
        struct pollfd fds[] = {{.fd = r->link.status_fd, .events = POLLIN},
                               {.fd = r->signal_fd, .events = POLLIN}};
        poll(fds, ARRAY_SIZE(fds), ms_until(end_ns));
        said = link_read(&r->link, &r->ready, sizeof(r->ready));
        const int s = next_signal(r, &info);
        if (s && s != SIGCHLD && s != SIGCONT && s != SIGWINCH)
            r->stop_signal = s;
    }
    r->has_pipeline = said == 1;
    if (r->has_pipeline || r->stop_signal)
        return;
    warn(said == -EAGAIN ? "the telemetry pipeline does not come up; the command runs without it"
                         : "the telemetry pipeline did not start, see above; the command runs "
                           "without it");
    if (r->link.pid)
        kill(r->link.pid, SIGKILL);
    link_close(&r->link);
}

/* ---- the command ---- */

static int let_go(struct run *r)
{
    _cleanup_buf_ struct buf *environment = buf_new(0);
    int e = environment ? run_environment(r->c, r->has_pipeline ? &r->ready : NULL, environment)
                        : -ENOMEM;
    if (e == 0)
        e = job_go(&r->job, buf_bytes(environment));
    /* Its stdin is its own: who writes to it sees it closed. */
    _cleanup_close_ int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (none >= 0)
        dup2(none, STDIN_FILENO);
    if (e < 0)
        fprintf(stderr, "Error: motel run: cannot run \"%s\": %s\n", r->c->argv[0], strerror(-e));
    return e;
}

static void supervise(struct run *r)
{
    struct signalfd_siginfo info;
    const bool had_pipeline = r->has_pipeline && !r->ready.idle;
    while (!r->job_ended) {
        struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
        poll(&fd, 1, -1);
        const int s = next_signal(r, &info);
        if (s && s != SIGCHLD)
            forward(r, &info);
        if (had_pipeline && r->has_pipeline && r->link.pid == 0) {
            r->has_pipeline = false;
            warn("the telemetry pipeline has ended; the command goes on without it");
        }
    }
}

/* ---- the end ---- */

static bool pumps_done(const struct run *r)
{
    bool done = true;
    for (int i = 0; i < STREAMS; i++)
        done = done && (!r->pumps[i] || pump_done(r->pumps[i]));
    return done;
}

/* True when somebody wants the end at once. */
static bool is_asked_to_hurry(struct run *r)
{
    struct signalfd_siginfo info;
    bool hurry = false;
    for (int s; (s = next_signal(r, &info)) != 0;)
        hurry = hurry || s == SIGTERM || s == SIGINT || s == SIGQUIT || s == SIGHUP;
    return hurry;
}

static void hurry(struct run *r)
{
    for (int i = 0; i < STREAMS; i++)
        if (r->pumps[i])
            pump_hurry(r->pumps[i]);
    if (r->link.pid)
        kill(r->link.pid, SIGKILL);
    warn("ended at once; telemetry that was not delivered is lost");
}

/* What the command has written goes through, also to a slow reader. A second signal there ends us:
 * what is left has nobody to go to but that reader. */
static void finish_output(struct run *r)
{
    eventfd_t n;
    bool hurried = false;
    for (int i = 0; i < STREAMS; i++)
        if (r->pumps[i])
            pump_job_ended(r->pumps[i]);
    while (!pumps_done(r)) {
        struct pollfd fds[] = {{.fd = r->done_fd, .events = POLLIN},
                               {.fd = r->signal_fd, .events = POLLIN}};
        poll(fds, ARRAY_SIZE(fds), -1);
        eventfd_read(r->done_fd, &n);
        if (!is_asked_to_hurry(r))
            continue;
        if (hurried)
            return;
        hurried = true;
        hurry(r);
    }
}

/* The user waits for a prompt. */
static void say_waiting(const struct run *r)
{
    if (isatty(STDERR_FILENO) == 1)
        fprintf(stderr,
                "motel run: the command has ended; its telemetry is delivered for at most %llu s "
                "(Ctrl-C ends at once)\n",
                (unsigned long long)(r->ready.stop_ns / NS_PER_S));
}

/* Until the pipeline has ended or the time is over. */
static void wait_for_end(struct run *r, uint64_t end_ns)
{
    while (r->link.pid && clock_now_ns() < end_ns) {
        struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};
        poll(&fd, 1, ms_until(end_ns));
        if (is_asked_to_hurry(r))
            hurry(r);
    }
}

static void stop_pipeline(struct run *r)
{
    const uint64_t now_ns = clock_now_ns(), limit_ns = r->ready.stop_ns + GRACE_NS;
    if (r->link.control_fd >= 0)
        close(TAKE_FD(r->link.control_fd));
    if (limit_ns > LONG_NS) {
        wait_for_end(r, now_ns + LONG_NS);
        if (r->link.pid)
            say_waiting(r);
    }
    wait_for_end(r, now_ns + limit_ns);
    if (r->link.pid) {
        warn("the telemetry pipeline does not end; telemetry that was not delivered is lost");
        kill(r->link.pid, SIGKILL);
        waitpid(r->link.pid, NULL, 0);
    }
    if (r->link.status_fd >= 0)
        link_read(&r->link, &r->done, sizeof(r->done));
    link_close(&r->link);
}

static void say_results(struct run *r)
{
    struct pump_result all = {0};
    for (int i = 0; i < STREAMS; i++)
        if (r->pumps[i] && pump_done(r->pumps[i]))
            r->pumps[i] = pump_free(r->pumps[i], &all);
    if (all.left_out_bytes && r->has_pipeline && !r->ready.idle)
        fprintf(stderr,
                "Warning: motel run: telemetry in %llu bytes of output was left out, because the "
                "pipeline did not keep up\n",
                (unsigned long long)all.left_out_bytes);
    if (all.left_open)
        warn("the command has ended, but a process that it left behind still has its output open; "
             "what that one writes goes nowhere now");
    if (r->c->hint && r->done.spans + r->done.points + r->done.logs && isatty(STDERR_FILENO) == 1)
        fprintf(stderr, "motel run: %llu spans, %llu data points and %llu log records: %s\n",
                (unsigned long long)r->done.spans, (unsigned long long)r->done.points,
                (unsigned long long)r->done.logs, r->c->hint);
}

static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- all of it ---- */

/* The command never began: it is taken back. */
static void take_back(struct run *r)
{
    if (r->job.go_fd >= 0)
        close(TAKE_FD(r->job.go_fd));
    if (!r->job_ended)
        waitpid(r->job.pid, NULL, 0);
    r->job_ended = true;
}

static int run_all(struct run *r)
{
    int code = 0;
    wait_for_pipeline(r);
    if (r->stop_signal) {
        take_back(r);
        code = 128 + r->stop_signal;
    } else {
        const int e = let_go(r);
        code = e < 0 ? job_exit_code(e) : 0;
        supervise(r);
        if (code == 0)
            code = exit_code(r->job_status);
    }
    finish_output(r);
    close_all(r->terminals);
    stop_pipeline(r);
    say_results(r);
    return code;
}

/* There is no way to watch over it, but it can still run. */
static int run_bare(const struct run *r, int error)
{
    fprintf(stderr, "Warning: motel run: %s; the command runs without telemetry\n",
            strerror(-error));
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    execvp(r->c->argv[0], (char *const *)r->c->argv);
    fprintf(stderr, "Error: motel run: cannot run \"%s\": %s\n", r->c->argv[0], strerror(errno));
    return job_exit_code(-errno);
}

int run_command(const struct run_command *c)
{
    struct run r = {.c = c, .job = {.go_fd = -1, .error_fd = -1}};
    const bool own_group = !job_has_terminal();
    _cleanup_free_ char *id = gym_run_id(NULL);
    if (id)
        setenv("NEMO_GYM_OTEL_RUN_ID", id, 1);
    sigprocmask(SIG_BLOCK, NULL, &r.before);
    int e = take_signals(&r, own_group);
    if (e == 0)
        e = start_processes(&r, own_group);
    if (e < 0)
        return run_bare(&r, e);
    e = start_pumps(&r);
    if (e < 0) {
        take_back(&r);
        return run_bare(&r, e);
    }
    return run_all(&r);
}
