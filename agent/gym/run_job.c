/* The command: forked early, executed when everything else is ready. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/base/buf.h"
#include "agent/gym/run_parts.h"

#define GO '!' /* comes before the environment */

bool job_has_terminal(void)
{
    _cleanup_close_ int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd >= 0;
}

bool job_same_output(int a, int b)
{
    struct stat sa, sb;
    if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0 || sa.st_dev != sb.st_dev || sa.st_ino != sb.st_ino)
        return false;
    if (!S_ISREG(sa.st_mode))
        return true;
    /* Two openings of one file have two positions in it. */
    return syscall(SYS_kcmp, getpid(), getpid(), 0 /* KCMP_FILE */, a, b) == 0;
}

/* ---- in the child ---- */

/* Everything up to the end of the pipe; NULL when nobody lets us go. */
static char *wait_for_go(int fd, size_t *ret_len)
{
    _cleanup_buf_ struct buf *b = buf_new(0);
    for (;;) {
        if (!b || buf_reserve(b, 4096) < 0)
            return NULL;
        const ssize_t n = read(fd, buf_tail(b), 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_commit(b, (size_t)n);
    }
    if (b->len == 0 || b->data[0] != GO)
        return NULL;
    char *text = malloc(b->len);
    *ret_len = b->len - 1;
    return text ? memcpy(text, b->data + 1, b->len - 1) : NULL;
}

static void set_environment(char *text, size_t len)
{
    for (char *entry = text; entry < text + len; entry += strlen(entry) + 1) {
        char *equals = strchr(entry, '=');
        if (!equals) {
            unsetenv(entry);
            continue;
        }
        *equals = 0;
        setenv(entry, equals + 1, 1);
        *equals = '=';
    }
}

static _Noreturn void be_the_job(const char *const *argv, int out_fd, int err_fd, bool own_group,
                                 const sigset_t *mask, int go_fd, int error_fd)
{
    size_t len = 0;
    if (own_group)
        setpgid(0, 0);
    char *environment = wait_for_go(go_fd, &len);
    if (!environment)
        _exit(125);
    set_environment(environment, len);
    if (dup2(out_fd, STDOUT_FILENO) >= 0 && dup2(err_fd, STDERR_FILENO) >= 0 &&
        sigprocmask(SIG_SETMASK, mask, NULL) == 0)
        execvp(argv[0], (char *const *)argv);
    const int error = errno;
    _exit(write(error_fd, &error, sizeof(error)) == sizeof(error) ? 127 : 125);
}

/* ---- in the parent ---- */

int job_fork(struct job *j, const char *const *argv, int out_fd, int err_fd, bool own_group,
             const sigset_t *mask)
{
    int go[2], error[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(error, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return -errno;
    }
    *j = (struct job){.pid = fork(), .own_group = own_group, .go_fd = go[1], .error_fd = error[0]};
    const int e = errno;
    if (j->pid == 0) {
        close(go[1]);
        be_the_job(argv, out_fd, err_fd, own_group, mask, go[0], error[1]);
    }
    close(go[0]);
    close(error[1]);
    if (own_group && j->pid > 0)
        setpgid(j->pid, j->pid);
    return j->pid < 0 ? -e : 0;
}

static int write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len) {
        const ssize_t n = write(fd, p, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int job_go(struct job *j, struct bytes environment)
{
    int error = 0;
    int r = write_all(j->go_fd, &(char){GO}, 1);
    if (r == 0)
        r = write_all(j->go_fd, environment.data, environment.len);
    close(TAKE_FD(j->go_fd));
    ssize_t n;
    do
        n = read(j->error_fd, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    close(TAKE_FD(j->error_fd));
    return r < 0 ? r : n == sizeof(error) ? -error : 0;
}

int job_exit_code(int error)
{
    return error == -ENOENT || error == -ENOTDIR ? 127 : 126;
}
