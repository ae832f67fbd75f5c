/* The files of /proc, read with few system calls and parsed without trust. */
#include "receivers/gym_memory/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/statfs.h>

#define PROCFS_MAGIC 0x9fa0
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD in the flags of stat */
#define TEXT_MAX (4u << 20)

void procfs_close(struct procfs *fs)
{
    if (fs->dir >= 0)
        close(fs->dir);
    fs->dir = -1;
}

/* ---- reading ---- */

static int open_file(const struct procfs *fs, int pid, const char *file)
{
    char path[64];
    if (pid)
        snprintf(path, sizeof(path), "%d/%s", pid, file);
    int fd = openat(fs->dir, pid ? path : file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* A file that the kernel gives in one piece. The view is of `space`. */
static int read_small(const struct procfs *fs, int pid, const char *file, void *space, size_t size,
                      struct bytes *ret)
{
    int fd = open_file(fs, pid, file);
    if (fd < 0)
        return fd;
    ssize_t n = read(fd, space, size);
    int r = n < 0 ? -errno : 0;
    close(fd);
    *ret = bytes_of(space, n < 0 ? 0 : (size_t)n);
    return r;
}

int procfs_text(const struct procfs *fs, int pid, const char *file, struct buf *out)
{
    buf_truncate(out, 0);
    _cleanup_close_ int fd = open_file(fs, pid, file);
    if (fd < 0)
        return fd;
    for (ssize_t n = 1; n > 0 && out->len < TEXT_MAX; buf_commit(out, (size_t)n)) {
        if (buf_reserve(out, 4096) < 0)
            return -ENOMEM;
        n = read(fd, buf_tail(out), out->cap - out->len);
        if (n < 0)
            return -errno;
    }
    return 0;
}

/* ---- numbers ---- */

/* The number at the front of *t, which is moved behind it. */
static bool take_number(struct bytes *t, uint64_t *ret)
{
    size_t i = 0;
    uint64_t v = 0;
    for (; i < t->len && t->data[i] >= '0' && t->data[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(t->data[i] - '0'), &v))
            return false;
    *t = bytes_of(t->data + i, t->len - i);
    *ret = v;
    return i > 0;
}

static void skip_blanks(struct bytes *t)
{
    while (t->len && (*t->data == ' ' || *t->data == '\t'))
        *t = bytes_of(t->data + 1, t->len - 1);
}

/* A number of `unit` bytes as bytes. */
static bool take_size(struct bytes *t, int64_t unit, int64_t *ret)
{
    uint64_t n;
    skip_blanks(t);
    return take_number(t, &n) && !__builtin_mul_overflow(n, unit, ret);
}

int procfs_pid(const char *name)
{
    struct bytes t = bytes_str(name);
    uint64_t n = 0;
    return take_number(&t, &n) && t.len == 0 && n <= INT_MAX ? (int)n : 0;
}

/* ---- stat ---- */

enum { /* fields, counted from 1 */
       STATE = 3,
       PPID = 4,
       FLAGS = 9,
       MINOR_FAULTS = 10,
       MAJOR_FAULTS = 12,
       USER_TICKS = 14,
       SYSTEM_TICKS = 15,
       START = 22,
       PAGES = 24,
       ENV_START = 50,
       FIELDS
};

/* The words behind the name, from field `at` on, as numbers; what is negative is 0. Returns the
 * field behind the last. */
static int take_fields(struct bytes t, int at, uint64_t *fields)
{
    for (skip_blanks(&t); t.len && at < FIELDS; skip_blanks(&t), at++) {
        bool negative = *t.data == '-';
        t = bytes_of(t.data + negative, t.len - negative);
        if (!take_number(&t, &fields[at]))
            break;
        if (negative)
            fields[at] = 0;
    }
    return at;
}

int procfs_parse_stat(struct bytes text, struct proc_stat *ret)
{
    uint64_t f[FIELDS] = {0};
    const uint8_t *name_end = text.len ? memrchr(text.data, ')', text.len) : NULL;
    if (!name_end)
        return -EBADMSG;
    struct bytes rest = bytes_of(name_end + 1, text.len - (size_t)(name_end + 1 - text.data));
    skip_blanks(&rest);
    if (rest.len < 2)
        return -EBADMSG;
    char state = (char)*rest.data;
    int end = take_fields(bytes_of(rest.data + 1, rest.len - 1), PPID, f);
    if (end <= PAGES || f[PPID] > INT_MAX)
        return -EBADMSG;
    *ret = (struct proc_stat){.state = state,
                              .ppid = (int)f[PPID],
                              .kernel_thread = f[FLAGS] & KERNEL_THREAD,
                              .faults = f[MINOR_FAULTS] + f[MAJOR_FAULTS],
                              .ticks = f[USER_TICKS] + f[SYSTEM_TICKS],
                              .start = f[START],
                              .pages = f[PAGES],
                              .env_start = f[ENV_START]};
    return 0;
}

int procfs_stat(const struct procfs *fs, int pid, int *fd, bool keep, struct proc_stat *ret)
{
    char space[2048];
    if (*fd < 0) {
        int r = open_file(fs, pid, "stat");
        if (r < 0)
            return r;
        *fd = r;
    }
    ssize_t n = pread(*fd, space, sizeof(space), 0);
    int r = n < 0 ? -errno : procfs_parse_stat(bytes_of(space, (size_t)n), ret);
    if (r < 0 || !keep) {
        close(*fd);
        *fd = -1;
    }
    return r;
}

/* ---- memory ---- */

/* The next line of *t. */
static struct bytes take_line(struct bytes *t)
{
    const uint8_t *end = memchr(t->data, '\n', t->len);
    struct bytes line = bytes_of(t->data, end ? (size_t)(end - t->data) : t->len);
    size_t used = line.len + (end != NULL);
    *t = bytes_of(t->data + used, t->len - used);
    return line;
}

/* The value of "KEY:   123 kB" lines: for each of the `n` keys the bytes, or -1. -EBADMSG when one
 * is not a number. */
static int read_kib(struct bytes t, const char *const *keys, int64_t *ret, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = -1;
    while (t.len) {
        struct bytes line = take_line(&t);
        for (size_t i = 0; i < n; i++) {
            size_t len = strlen(keys[i]);
            if (line.len < len || memcmp(line.data, keys[i], len) != 0)
                continue;
            line = bytes_of(line.data + len, line.len - len);
            if (!take_size(&line, 1024, &ret[i]))
                return -EBADMSG;
            break;
        }
    }
    return 0;
}

static int read_statm(const struct procfs *fs, int pid, int64_t *ret_rss, int64_t *ret_pss)
{
    char space[256];
    struct bytes t;
    int64_t size;
    int r = read_small(fs, pid, "statm", space, sizeof(space), &t);
    if (r < 0)
        return r;
    if (!take_size(&t, 1, &size) || !take_size(&t, fs->page_bytes, ret_rss))
        return -EBADMSG;
    *ret_pss = size == 0 && *ret_rss == 0 ? 0 : PSS_UNKNOWN;
    return 0;
}

int procfs_memory(const struct procfs *fs, int pid, int64_t *ret_rss, int64_t *ret_pss)
{
    static const char *const keys[] = {"Rss:", "Pss:"};
    char space[4096];
    struct bytes t;
    int64_t values[ARRAY_SIZE(keys)];
    int r = read_small(fs, pid, "smaps_rollup", space, sizeof(space), &t);
    if (r < 0 || read_kib(t, keys, values, ARRAY_SIZE(keys)) < 0 || values[0] < 0)
        return read_statm(fs, pid, ret_rss, ret_pss);
    *ret_rss = values[0];
    *ret_pss = values[1]; /* -1 is PSS_UNKNOWN */
    return 0;
}

int procfs_host(const struct procfs *fs, struct host_memory *ret)
{
    enum { TOTAL, AVAILABLE, FREE, CACHED, N };
    static const char *const keys[N] = {"MemTotal:", "MemAvailable:", "MemFree:", "Cached:"};
    char space[4096];
    struct bytes t;
    int64_t v[N];
    int r = read_small(fs, 0, "meminfo", space, sizeof(space), &t);
    if (r == 0)
        r = read_kib(t, keys, v, N);
    if (r < 0)
        return r;
    if (v[AVAILABLE] < 0 && v[FREE] >= 0 && /* before Linux 3.14 */
        __builtin_add_overflow(v[FREE], v[CACHED] > 0 ? v[CACHED] : 0, &v[AVAILABLE]))
        return -EBADMSG;
    if (v[AVAILABLE] > v[TOTAL]) /* some containers show their own total and the host's rest */
        v[AVAILABLE] = v[FREE];
    if (v[TOTAL] < 0 || v[AVAILABLE] < 0 || v[AVAILABLE] > v[TOTAL])
        return -EBADMSG;
    *ret = (struct host_memory){.total = v[TOTAL], .available = v[AVAILABLE]};
    return 0;
}

/* ---- children ---- */

static void tell_children(struct bytes t, void (*child)(void *ctx, int pid), void *ctx)
{
    uint64_t pid;
    for (skip_blanks(&t); take_number(&t, &pid); skip_blanks(&t))
        if (pid > 0 && pid <= INT_MAX)
            child(ctx, (int)pid);
}

int procfs_children(const struct procfs *fs, int pid, void (*child)(void *ctx, int pid), void *ctx)
{
    _cleanup_buf_ struct buf *text = buf_new(0);
    int fd = text ? open_file(fs, pid, "task") : -ENOMEM;
    if (fd < 0)
        return fd;
    DIR *tasks = fdopendir(fd);
    if (!tasks) {
        close(fd);
        return -ENOTDIR;
    }
    int r = -ENOENT;
    for (const struct dirent *d; (d = readdir(tasks));) {
        char file[64];
        int tid = procfs_pid(d->d_name);
        snprintf(file, sizeof(file), "task/%d/children", tid);
        if (tid && procfs_text(fs, pid, file, text) == 0) {
            tell_children(buf_bytes(text), child, ctx);
            r = 0;
        }
    }
    closedir(tasks);
    return r;
}

/* ---- the whole ---- */

void procfs_population(const struct procfs *fs, char ret[POPULATION_SIZE])
{
    char space[128];
    struct bytes t; /* "0.20 0.18 0.12 1/80 11206\n" */
    *ret = '\0';
    if (!fs->own || read_small(fs, 0, "loadavg", space, sizeof(space) - 1, &t) < 0)
        return;
    space[t.len] = '\0';
    const char *threads = strchr(space, '/');
    if (threads && strlen(threads) < POPULATION_SIZE)
        memcpy(ret, threads, strlen(threads) + 1);
}

/* In a /proc of another PID namespace we have several pids. */
static bool is_own(const struct procfs *fs)
{
    char space[4096];
    struct bytes t;
    uint64_t pid;
    if (read_small(fs, 0, "self/status", space, sizeof(space), &t) < 0)
        return false;
    while (t.len) {
        struct bytes line = take_line(&t);
        if (line.len < 6 || memcmp(line.data, "NSpid:", 6) != 0)
            continue;
        line = bytes_of(line.data + 6, line.len - 6);
        skip_blanks(&line);
        return take_number(&line, &pid) && line.len == 0;
    }
    return false;
}

int procfs_open(struct procfs *fs, const char *root_path, struct err *reterr)
{
    char path[PATH_MAX];
    struct statfs s;
    *fs = (struct procfs){.dir = -1, .page_bytes = sysconf(_SC_PAGESIZE)};
    if ((size_t)snprintf(path, sizeof(path), "%s/proc", root_path) >= sizeof(path))
        return err_set(reterr, -ENAMETOOLONG, "root_path is too long");
    fs->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fs->dir < 0)
        return err_set(reterr, -errno, "cannot open \"%s\": %s", path, strerror(errno));
    fs->real = fstatfs(fs->dir, &s) == 0 && (unsigned long)s.f_type == PROCFS_MAGIC;
    fs->own = fs->real && is_own(fs);
    return 0;
}
