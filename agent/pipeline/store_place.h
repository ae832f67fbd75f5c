/* What is done about a queue file that others remove, replace or cut while it is in use; for agent/pipeline/store*.c. The lock of the store is
 * held, there is no transaction. */
#ifndef MOTEL_PIPELINE_STORE_PLACE_H
#define MOTEL_PIPELINE_STORE_PLACE_H

#include "agent/pipeline/store_parts.h"

/* The file is what stands at the path. Not so right after it was opened: on this file system numbers of files mean nothing. */
bool store_is_placed(const struct store *st);
/* A file that has lost its place is written anew there, with the lock beside it; one that took its place is set aside. 0 or -errno; for a
 * second after an error another call is one, too. */
int store_keep_place(struct store *st, struct err *reterr);
/* The open file is shorter than it was: to read it would be fatal. */
bool store_was_cut(const struct store *st);
/* Renames what is at the path to <path>.backup-<time>, a string to free(). 0 or -errno. */
int store_set_aside(const struct store *st, char **ret_backup, struct err *reterr);

#endif
