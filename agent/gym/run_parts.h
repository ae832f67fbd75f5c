/* The parts of `motel run`: job.c starts the command, pump.c passes its output through, run_link.c is the pipeline's end, run.c supervises. */
#ifndef MOTEL_GYM_RUN_PARTS_H
#define MOTEL_GYM_RUN_PARTS_H

#include <signal.h>

#include "agent/base/bytes.h"
#include "agent/base/cleanup.h"
#include "agent/gym/run.h"

/* ---- run_job.c ---- */
struct job {
    pid_t pid;
    bool own_group; /* else it shares ours, with the terminal */
    int go_fd;      /* what it waits for */
    int error_fd;   /* where it says why it cannot be executed */
};
/* Whether a terminal controls this process: then the command stays in our process group, so that job control, Ctrl-C and
 * pipelines of the shell work as without motel. */
bool job_has_terminal(void);
/* Forks the command, which waits before it is executed. Its stdout and stderr are the given descriptors; `mask`: its signal mask.
 * 0 or a negative errno. */
int job_fork(struct job *j, const char *const *argv, int out_fd, int err_fd, bool own_group, const sigset_t *mask);
/* Lets it go: `environment` has "NAME=value" to be set and "NAME" to be taken out, each with its NUL. 0, or the reason why it could not be
 * executed (a negative errno). */
int job_go(struct job *j, struct bytes environment);
/* The exit code for a command that could not be executed. */
int job_exit_code(int error);
/* Whether both descriptors lead to the same open file, terminal or pipe: one pipe for both then keeps the order of what is written. */
bool job_same_output(int a, int b);

/* ---- run_terminal.c ---- */
/* A terminal whose output is read at *ret_read, of the size of the one at `like_fd`. 0 or a negative errno. */
int terminal_open(int like_fd, int *ret_read, int *ret_write);
void terminal_follow_size(int from_fd, int to_fd);

/* ---- pump.c: one stream of the command's output */
struct pump;
/* Passes what comes from `from_fd` on to `to_fd`, byte for byte, at the pace of whoever reads that; and then to `tee_fd`, without ever waiting for
 * it: what does not fit into a bounded buffer is left out there, by whole lines. Takes from_fd and tee_fd (-1 = none). `done_fd`: an eventfd that is
 * raised at the end. NULL when out of memory or threads. */
struct pump *pump_start(int from_fd, int to_fd, int tee_fd, int done_fd);
/* The command has ended: what it has written is still passed on. Whoever else holds its output open is listened to for two
 * more seconds. */
void pump_job_ended(struct pump *p);
void pump_hurry(struct pump *p);         /* does not wait for the tee any more */
bool pump_done(const struct pump *p);
struct pump_result {
    uint64_t left_out_bytes; /* of the tee */
    bool left_open;          /* somebody still has the other end */
};
/* Only when it is done. NULL ok; returns NULL. */
struct pump *pump_free(struct pump *p, struct pump_result *ret);

/* ---- run_link.c ---- */
struct link {
    pid_t pid;       /* 0 = it has ended */
    int control_fd, status_fd;
    int tee_fds[2];  /* of stdout and stderr: to write to; -1 = none */
};
/* Forks the pipeline with `ntees` streams. 0 or a negative errno. */
int link_fork(struct link *l, const struct run_command *c, unsigned ntees, pid_t job);
void link_close(struct link *l);
/* Reads what the pipeline says: 1 = it was said, 0 = the pipe has ended, -EAGAIN. */
int link_read(struct link *l, void *ret, size_t size);

/* ---- run_env.c ---- */
struct buf;
/* What is set for the command, as job_go() takes it. `ready` NULL: there is no pipeline. 0 or -ENOMEM. */
int run_environment(const struct run_command *c, const struct run_ready *ready, struct buf *out);

#endif
