/* motel doctor: whether a start with this configuration would find what it needs. */
#ifndef MOTEL_DOCTOR_H
#define MOTEL_DOCTOR_H

#include "agent/commands.h"

/* Prints what was found. 0 all is well (there may be warnings); 1 a mistake in the configuration; 2 at least one check failed. */
int doctor_run(const struct command_line *cl);

#endif
