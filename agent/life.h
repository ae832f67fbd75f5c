/*
 * The life of a collector: start, signals, reload, stop.
 */
#ifndef MOTEL_LIFE_H
#define MOTEL_LIFE_H

#include "agent/commands.h"

/* Runs the pipelines that the command line asks for until a signal ends them. Called once, on the main thread, before there is another one.
 * The exit code. */
int life_run(const struct command_line *cl);

#endif
