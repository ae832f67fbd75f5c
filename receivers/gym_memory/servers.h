/*
 * The servers: which processes belong to each, what they hold together, and the peaks. A server has roots, found in one of three ways, and
 * consists of them and all processes below. Not thread safe.
 */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_SERVERS_H
#define MOTEL_RECEIVERS_GYM_MEMORY_SERVERS_H

#include "agent/base/regex.h"
#include "agent/config/bind.h"
#include "agent/pipeline/component.h"
#include "receivers/gym_memory/memory.h"

/* One element of `servers`: by pids, by a pattern, or, with neither, a discovered one whose type is given. */
struct server_config {
    const char *name, *type, *command_pattern;
    struct cfg_list pids; /* of int64_t */
};

struct root {
    int pid;
    uint64_t start; /* struct proc_stat; 0 = not seen yet */
};
struct server {
    char *name, *type;     /* type "" = not known */
    bool fixed;            /* roots are given by the config and stay */
    struct regex *pattern; /* NULL = none */
    struct root *roots;
    size_t nroots;
    struct proc **members; /* valid until the next refresh of the table that changes it */
    size_t nmembers, cap;
    uint64_t identity; /* of the set of members */
    int pid; /* the first root; 0 = none was found so far, and nothing is told of it */

    /* The latest sample. */
    int64_t rss, pss; /* bytes; pss may be PSS_UNKNOWN */
    unsigned processes;
    int64_t peak_rss, peak_pss; /* -1 = never measured */
};
struct servers {
    struct server **items;
    size_t n;
    bool changed; /* roots were added or dropped: the members have to be collected again */
    struct proc **all; /* the members of all servers, each once */
    size_t nall, all_cap;
};
/* `config`: struct server_config; NULL = none. 0 or a negative errno with reterr. */
int servers_init(struct servers *s, const struct cfg_list *config, struct err *reterr);
void servers_done(struct servers *s);
/* The server of that name, made when there is none; NULL when out of memory or when there are SERVERS_MAX. */
struct server *servers_named(struct servers *s, const char *name);
#define SERVERS_MAX 1000
/* Adds or drops a root. 0 or -ENOMEM. */
int server_add_root(struct servers *s, struct server *server, const struct proc *p);
void server_drop_root(struct servers *s, struct server *server, const struct proc *p);
bool server_has_root(const struct server *server, const struct proc *p);

/* Collects the members after a refresh. 0 or -ENOMEM. */
int servers_collect(struct servers *s, struct proc_table *t);
/* Adds up what was measured. */
void servers_sum(struct servers *s);

#endif
