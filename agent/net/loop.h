/*
 * The I/O threads of the server. Every connection belongs to one of them ("loop") and is touched by that thread alone; other threads
 * send it tasks. A loop is one epoll instance, inside which libmicrohttpd's own epoll instance hangs (polled by us, no thread of its own).
 */
#ifndef MOTEL_NET_LOOP_H
#define MOTEL_NET_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/base/buf.h"
#include "agent/base/err.h"

#define SCRATCH_BYTES (256u << 10)    /* read buffer, one a loop */

struct watch { /* what an epoll event belongs to */
    void (*event)(struct watch *w, uint32_t events);
};
struct task { /* work sent to a loop; owned by whoever embeds it */
    struct task *next;
    void (*run)(struct task *t);
};

struct conn;
struct MHD_Daemon;
struct loop {
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct watch wake, mhd_watch;
    pthread_mutex_t lock;       /* tasks */
    struct task *tasks, **tasks_end;
    struct conn *conns, *oldest; /* loop thread only: both ends of the list */
    struct conn *dead;          /* freed after the batch of events */
    atomic_uint nconns;
    unsigned owed;              /* replies on their way to exchanges whose connection is gone */
    uint64_t scan_at_ns;        /* when the next deadline may pass; UINT64_MAX = none */
    struct acceptor *paused;    /* no descriptors or too many connections: looked at again at resume_at_ns */
    uint64_t resume_at_ns;
    int spare_fd;               /* given up for a moment when a connection is to be told that there are no descriptors */
    struct MHD_Daemon *mhd;     /* made by the first HTTP/1 connection */
    size_t pool_bytes;          /* of memory that it gives to each connection */
    struct conn *adding;        /* being handed to libmicrohttpd right now */
    bool mhd_dirty;             /* a connection was resumed: run it before waiting */
    unsigned mhd_calls;         /* how often it called us */
    uint64_t mhd_at_ns;         /* when it is run again without an event; UINT64_MAX = not */
    struct conn *woken;         /* idle HTTP/1 connections that something may have come on, in this batch of events */
    unsigned npools;            /* HTTP/1 connections whose memory is known */
    uint64_t tidy_at_ns;        /* when idle HTTP/1 connections are looked at for memory to give back; UINT64_MAX = there is none */
    uint8_t *scratch;           /* SCRATCH_BYTES, made at first use */
    uint8_t *cipher;            /* TLS_CIPHER_BYTES, the same */
    struct buf *out;            /* gathered HTTP/2 output of one wake-up */
    bool stop;
};

/* The engine: the loops of the process, made by the first user and ended by the last one. */
int engine_acquire(struct err *reterr);
void engine_release(void);
unsigned engine_loops(void);
struct loop *engine_loop(unsigned i);
struct loop *engine_least_loaded(void);
/* Counts a connection in of a listener that has `of_listener`; false at the limit. One listener gets seven eighths of all. */
bool engine_conn_admit(unsigned of_listener);
void engine_conn_leave(void);
/* Descriptors that connections hold besides their own; negative = given back. False when there are not so many. */
bool engine_fds_admit(int n);
/* Runs fn(loop, arg) on every loop and waits for all. Not from a loop. */
void engine_barrier(void (*fn)(struct loop *l, void *arg), void *arg);

void loop_post(struct loop *l, struct task *t); /* any thread; tasks run in order */
int loop_watch(struct loop *l, int fd, uint32_t events, struct watch *w);
int loop_rewatch(struct loop *l, int fd, uint32_t events, struct watch *w);
void loop_unwatch(struct loop *l, int fd);
uint8_t *loop_scratch(struct loop *l); /* NULL when out of memory */
uint8_t *loop_cipher(struct loop *l);

void acceptors_resume(struct loop *l); /* listener.c: the pause is over */

#endif
