/*
 * All processes below a /proc, as a tree. A refresh costs one listing, if anything has begun or ended at all; a process is looked at when it is new, when its parent has gone, or
 * when it is asked for. Pids are used again by the system: what is kept of a process is never taken for that of a later one. Not thread
 * safe.
 */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_TABLE_H
#define MOTEL_RECEIVERS_GYM_MEMORY_TABLE_H

#include <dirent.h>

#include "receivers/gym_memory/procfs.h"

struct proc {
    int pid;
    bool here;         /* as far as the latest look says */
    bool has_stat;     /* `stat` is filled */
    struct proc_stat stat;
    struct proc *parent, *child, *sibling;
    uint64_t serial;   /* another one for every process */
    uint64_t mark;     /* for walks: proc_table_mark() */

    /* memory.c: what was measured, and the counters at that time. */
    bool measured;
    uint64_t measured_at, related_at; /* numbers of refreshes: of the measure, and when its server last gained or lost processes */
    int64_t rss, pss, measured_rss, measured_pss; /* bytes; pss may be PSS_UNKNOWN */
    struct proc_stat then;

    /* discovery.c */
    struct look {
        bool done;
        uint64_t env_start; /* at that time; another one now: it has executed another program */
    } environment, command;
    bool hidden;        /* its environment may not be read */
    uint64_t server_at; /* number of the refresh after which it was last found to be a discovered server */

    /* table.c */
    uint64_t ino, read_at;
    int fd;
    uint64_t born; /* number of the refresh that first saw it */
    bool gone;
};

struct listed {
    int pid;
    uint64_t ino;
};
struct proc_table {
    const struct procfs *fs;
    struct proc **items; /* by pid */
    size_t n;
    uint64_t refreshes;  /* so far */
    bool changed;        /* by the latest refresh: processes came, went, or have another parent */

    char population[POPULATION_SIZE]; /* before the last listing that was good */
    unsigned skipped;                 /* listings since */
    DIR *dir;
    struct listed *listed;
    size_t nlisted, listed_cap;
    struct proc **next;  /* the table that a refresh makes */
    size_t cap, nnext, next_cap;
    struct proc **dead;  /* those that it drops */
    size_t ndead, dead_cap;
    unsigned open_files, open_max;
    uint64_t marks, serials;
};
/* `fs` lives longer. 0 or a negative errno. */
int proc_table_init(struct proc_table *t, const struct procfs *fs);
void proc_table_done(struct proc_table *t);

/* Lists /proc anew; pointers to processes that are not there any more become invalid. 0 or a negative errno (the table is as before). */
int proc_table_refresh(struct proc_table *t);
/* Reads the counters of `p`, once a refresh; `keep` holds its file open for next time. False when it has gone. */
bool proc_table_look(struct proc_table *t, struct proc *p, bool keep);
struct proc *proc_table_find(const struct proc_table *t, int pid); /* NULL when there is none */
/* A number that no process has as its mark. */
static inline uint64_t proc_table_mark(struct proc_table *t) { return ++t->marks; }

#endif
