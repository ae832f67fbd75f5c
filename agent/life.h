/*
 * The life of a collector: start, signals, reload, stop.
 */
#ifndef MOTEL_LIFE_H
#define MOTEL_LIFE_H

#include "agent/commands.h"
#include "agent/gym/run.h"

/* Runs the pipelines that the command line asks for until a signal ends them. Called once, on the main thread, before there is another one.
 * `link`: in the pipeline of `motel run`, whose supervisor ends them instead; else NULL. The exit code. */
int life_run(const struct command_line *cl, const struct run_link *link);

#endif
