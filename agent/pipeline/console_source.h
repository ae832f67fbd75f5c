/*
 * Streams for the console receiver that come from inside the program, such as the outputs of a child process: who starts the
 * child registers them before the graph starts, and the receiver reads them like its own sources. Thread safe.
 */
#ifndef MOTEL_PIPELINE_CONSOLE_SOURCE_H
#define MOTEL_PIPELINE_CONSOLE_SOURCE_H

#include <stdbool.h>

enum console_pass {
    CONSOLE_PASS_PLAIN, /* what is no telemetry, line by line; a prompt without a line end goes out soon, too */
    CONSOLE_PASS_ALL,   /* every byte, unchanged */
};

struct console_source {
    char label[32];    /* "stdout": for the log, and log.iostream of plain lines that become log records */
    int fd;            /* to read from, a pipe or a socket, blocking or not; whoever has the source closes it */
    int pass_fd;       /* what is read goes on to it, in order, by a thread of its own; -1 = nowhere. Stays the caller's */
    enum console_pass pass;
    /* The stream has ended (or the receiver has stopped reading it for good) and everything that came from it was handed over and passed
     * on. Once; on the receiver's thread. NULL = nobody wants to know. */
    void (*ended)(void *ctx);
    void *ctx;
};

/* Takes `s` with its fd. `receiver`: the id of the receiver that is to read it ("console/job"); NULL = whichever console
 * receiver starts first. 0 or -ENOMEM. */
int console_source_add(const char *receiver, const struct console_source *s);
/* For the receiver: the next one that is meant for it; false when there is none. */
bool console_source_take(const char *receiver, struct console_source *ret);
/* Closes those that no receiver took and says so by ended(). Returns how many there were. */
unsigned console_source_drop(void);

#endif
