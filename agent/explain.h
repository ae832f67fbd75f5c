/* motel explain: what a configuration does, told from the field tables. */
#ifndef MOTEL_EXPLAIN_H
#define MOTEL_EXPLAIN_H

#include "agent/load.h"

/* Prints the account of a loaded configuration, as text or as JSON; no secrets. 0, or -ENOMEM. */
int explain_print(FILE *f, const struct command_line *cl, const struct loaded *l, bool json);

#endif
