/* Reading /proc: one function a file, each copes with files that vanish, cannot be read, or hold nonsense. See proc(5). */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_PROCFS_H
#define MOTEL_RECEIVERS_GYM_MEMORY_PROCFS_H

#include "agent/base/buf.h"
#include "agent/base/err.h"

struct procfs {
    int dir;             /* the folder "proc" below the root path */
    bool real;           /* a mounted procfs, whose counters say what has changed; else a copy of one, which is read whole every time */
    bool own;            /* it shows the processes of our own PID namespace */
    int64_t page_bytes;
};
/* `root_path` stands before /proc; "" = none. 0 or a negative errno with reterr. */
int procfs_open(struct procfs *fs, const char *root_path, struct err *reterr);
void procfs_close(struct procfs *fs);

/* /proc/PID/stat, as far as it is of use. */
struct proc_stat {
    char state;         /* 'R', 'S', 'Z' … */
    int ppid;
    bool kernel_thread;
    uint64_t faults;    /* minor and major page faults so far */
    uint64_t ticks;     /* CPU time so far */
    uint64_t start;     /* clock ticks since boot; with the pid it names a process for good */
    uint64_t pages;     /* resident; may lag by some pages a CPU, since the kernel counts each CPU by itself */
    uint64_t env_start; /* address of the environment, another one after every exec; 0 = not shown to us */
};
/* The text of the file. 0 or -EBADMSG. */
int procfs_parse_stat(struct bytes text, struct proc_stat *ret);
/* Reads it through *fd, which is opened when it is -1, and stays open when `keep`. 0 or a negative errno: -ESRCH, -ENOENT = gone. */
int procfs_stat(const struct procfs *fs, int pid, int *fd, bool keep, struct proc_stat *ret);

#define PSS_UNKNOWN (-1)
/* Resident and proportional set size in bytes out of smaps_rollup; when that is not to be read, the resident size of statm alone. A process
 * without memory (a zombie) has 0 of both. 0 or a negative errno. */
int procfs_memory(const struct procfs *fs, int pid, int64_t *ret_rss, int64_t *ret_pss);

struct host_memory {
    int64_t total, available; /* bytes; available is never more than total */
};
int procfs_host(const struct procfs *fs, struct host_memory *ret); /* meminfo. 0 or a negative errno */

/* A whole file of a process ("cmdline", "environ"), cut at 4 MiB, into `out`, which is emptied first. 0 or a negative errno. */
int procfs_text(const struct procfs *fs, int pid, const char *file, struct buf *out);
/* Calls `child` for every pid in task/TID/children. 0, or a negative errno when there is no such list. */
int procfs_children(const struct procfs *fs, int pid, void (*child)(void *ctx, int pid), void *ctx);
/* Something that is the same as before only when no process has begun or ended since: how many threads there are, and the last pid that was
 * given (loadavg). Empty when it cannot be told. */
#define POPULATION_SIZE 48
void procfs_population(const struct procfs *fs, char ret[POPULATION_SIZE]);
/* "123" to 123; 0 when `name` is no pid. */
int procfs_pid(const char *name);

#endif
