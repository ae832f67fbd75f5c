/*
 * `motel run`: a command with the collector beside it.
 *
 * Three processes: the command; the collector ("pipeline"), a child that reads what the command prints; and this one, which passes the output
 * through, forwards signals and ends as the command ended. It shares nothing with the pipeline but pipes, so whatever happens
 * there, the command does not notice.
 */
#ifndef MOTEL_GYM_RUN_H
#define MOTEL_GYM_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the pipeline says when it listens. */
struct run_ready {
    uint64_t stop_ns;  /* it ends within this after it was told to stop */
    bool idle;         /* there is no telemetry to take: it ends now */
    bool measures_memory; /* of NeMo Gym's servers: nobody else needs to */
    char http[160], grpc[160]; /* where OTLP goes to, "127.0.0.1:4318"; "" = nowhere */
};
/* What it says at its end. */
struct run_done {
    uint64_t spans, points, logs; /* received */
};
/* The pipeline's end of the connection. */
struct run_link {
    int control_fd; /* at its end, it is time to stop */
    int status_fd;
    pid_t job; /* the command, which waits */
};
/* Both once. What the command prints is registered with console_source_add() before. */
void run_link_ready(const struct run_link *l, const struct run_ready *r);
void run_link_done(const struct run_link *l, const struct run_done *d);
/* Raises `signal`, blocked, in the calling thread when it is time to stop. 0 or a negative errno. */
int run_link_watch(const struct run_link *l, int signal);

struct run_command {
    const char *const *argv; /* the command and its arguments, NULL ended */
    /* The variables OTEL_EXPORTER_OTLP_* say where the pipeline sends to; the command gets the pipeline's address in their place. */
    bool takes_otlp_variables;
    /* What to tell somebody at a terminal in the end, of a pipeline that got something; NULL = nothing. */
    const char *hint;
    /* Lives in a process of its own: is the pipeline until run_link_watch() says stop; the exit code. */
    int (*pipeline)(void *ctx, const struct run_link *l);
    void *ctx;
};
/* Runs it, with the environment of this process. Returns its exit code, or 128 + n when signal n ended it; 127 when it was not found, 126 when it
 * cannot be executed, 125 when motel itself has no way to run it. */
int run_command(const struct run_command *c);

#endif
