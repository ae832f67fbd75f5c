/*
 * Finds servers by what is in their environment or on their command line. A process is looked at once, and again when it has executed another
 * program, which is noticed within a sample while it is young and later in turn.
 */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_DISCOVERY_H
#define MOTEL_RECEIVERS_GYM_MEMORY_DISCOVERY_H

#include "receivers/gym_memory/servers.h"

#define GYM_SERVER_VARIABLE "NEMO_GYM_CONFIG_PATH" /* the key of a server in Gym's config, which is its name */
#define GYM_CONFIG_VARIABLE "NEMO_GYM_CONFIG_DICT" /* that config as YAML: NAME: {TYPE: {IMPLEMENTATION: …}} */

struct discovery {
    const struct procfs *fs;
    struct servers *servers;
    int root_pid;     /* where to look for the variable; 0 = nowhere */
    int own_pid;      /* its command line counts for no pattern; 0 = it is not below this /proc */
    bool patterns;    /* some server has one */
    uint64_t young;   /* who started after this time, in the unit of struct proc_stat, is looked at every time */
    size_t hidden;    /* processes below the root whose environment may not be read */
    struct buf *text;
    struct proc **queue;
    size_t queue_cap;
};
/* 0 or -ENOMEM. */
int discovery_init(struct discovery *d, const struct procfs *fs, struct servers *servers);
void discovery_done(struct discovery *d);
/* Adds and drops roots of servers after a refresh of the table. 0 or -ENOMEM: what is left out is found next time. */
int discovery_run(struct discovery *d, struct proc_table *t);

/* The value of a variable in the text of an environ file, NUL ended; NULL when there is none. */
const char *environ_value(struct bytes text, const char *name);
/* The type of server `name` in Gym's config: the first key below it; "" = not known. */
void gym_server_type(const char *config, const char *name, char *ret, size_t size);

#endif
