/*
 * Text on its way to a file descriptor that may be slow (stdout, a pipe): one thread writes, whole lines at a time, and a bound on
 * what waits makes the callers notice. Nothing is torn or mixed, not even with other processes on the same pipe where lines
 * are at most PIPE_BUF long. Thread safe. SIGPIPE is to be ignored.
 */
#ifndef MOTEL_BASE_OUTLET_H
#define MOTEL_BASE_OUTLET_H

#include "agent/base/buf.h"

struct outlet;

/* What became of a text: called once for each, on the writer's thread or in outlet_flush(), with locks held: be short and do not
 * call back. `error`: 0 = written; -EPIPE and the like = the reader has gone away; -ETIMEDOUT = not in time. */
struct outlet_note {
    void (*done)(void *ctx, int error, unsigned kind, uint32_t count); /* NULL = nobody wants to know */
    void *ctx;
    unsigned kind; /* passed through */
    uint32_t count;
};

/* Writes to `fd`, which stays the caller's, and lets `max_bytes` wait. NULL when out of memory or threads. */
struct outlet *outlet_new(int fd, size_t max_bytes);
/* Takes `text` when it answers 0 or the reader's error (then it is dropped and noted). -EAGAIN: too much waits already. A full disk
 * and other errors that pass are waited out. */
int outlet_put(struct outlet *o, struct buf *text, struct outlet_note note);
/* Waits until everything of `ctx` is written, up to `deadline_ns` (clock_now_ns); what is not is dropped. No note of `ctx` comes
 * after it. */
void outlet_flush(struct outlet *o, const void *ctx, uint64_t deadline_ns);
/* Drops what still waits, ends the thread; NULL ok; returns NULL. */
struct outlet *outlet_free(struct outlet *o);

#endif
