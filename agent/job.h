/* `motel run` from the program's side: the command line, and the pipeline that the supervisor starts. */
#ifndef MOTEL_JOB_H
#define MOTEL_JOB_H

#include "agent/gym/run.h"
#include "agent/load.h"

/* Runs the command of the command line; the exit code. */
int job_run(const struct command_line *cl);
/* In the pipeline: tells the supervisor that everything listens, or that there is nothing to do (`l` idle), and at the end what came. */
void job_tell_ready(const struct run_link *link, const struct loaded *l, struct host *h);
void job_tell_done(const struct run_link *link, struct host *h);

#endif
