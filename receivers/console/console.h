/* The console receiver: its configuration, and what its parts share. */
#ifndef MOTEL_RECEIVERS_CONSOLE_CONSOLE_H
#define MOTEL_RECEIVERS_CONSOLE_CONSOLE_H

#include <pthread.h>

#include "agent/pipeline/memory_gate.h"
#include "receivers/console/files.h"
#include "receivers/console/places.h"

enum { START_AT_END, START_AT_BEGINNING };
enum { PLAIN_DROP, PLAIN_LOG };

struct console_config {
    bool from_stdin, follow, passthrough;
    int start_at, plain_lines;
    int64_t poll_interval_ns, max_record_bytes;
    struct cfg_list include, exclude, pipes; /* of strings */
    const char *storage_file;
};

/* ---- streams (streams.c) ---- */

/* Standard input, the pipes, and what was registered become sources. 0 or -errno with reterr. */
int streams_open(struct console *c, struct err *reterr);
/* A pipe may have come, or be another one now. */
void pipe_check(struct source *s);

/* ---- between the instances of a reload (handover.c) ---- */

/* One instance of an id reads at a time; its sources go to the next one as they are. */
int handover_open(struct console *c, struct err *reterr);
/* True when it is our turn, which may be waited for up to the stop; *ret: the sources that were left. */
bool handover_enter(struct console *c, bool wait, struct source **ret);
void handover_leave(struct console *c, struct source *sources);
void handover_wake(struct console *c); /* looks at c->stopping again */

/* ---- the instance (console.c, run.c) ---- */

struct console {
    struct component c; /* first */
    const struct console_config *config;
    struct patterns include, exclude;
    struct patterns own; /* the storage file, which is not read */
    struct wake *wake;
    struct shared *output; /* stdout, for passthrough */
    struct shared *handover;
    pthread_t thread;
    bool started; /* the thread */
    bool entered; /* it is our turn */
    atomic_bool stopping;
    _Atomic uint64_t deadline_ns;
    struct receiver_metrics metrics[SIGNAL_COUNT];
    struct memory_gate memory;
    struct metric *plain_lines, *malformed, *oversized;
    uint8_t *bytes; /* to read into */
    /* of the thread */
    struct source *sources;
    struct places stored;   /* of an earlier run */
    uint64_t look_ns;      /* when to look at the files again */
    bool scanned;          /* once: files found later are read from the beginning */
    bool dirty;            /* marks have changed since they were stored */
    bool save_failed;
    bool held;             /* nothing is read: memory is short */
};
#define READ_BYTES ((size_t)64 << 10)
static inline struct source **sources_end(struct source **at)
{
    while (*at)
        at = &(*at)->next;
    return at;
}
/* Begins to read, when it is our turn (c->entered): opens what there is. 0, or -errno with reterr. */
int console_enter(struct console *c, bool wait, struct err *reterr);
/* Reads what is there, then leaves the sources to the next instance or, when the program stops, closes them. */
void console_leave(struct console *c);
/* The thread. */
void *console_run(void *arg);

#endif
