/* Inside of the console receiver: configuration, batches on their way, sources, files, what is stored. */
#ifndef MOTEL_RECEIVERS_CONSOLE_H
#define MOTEL_RECEIVERS_CONSOLE_H

#include <pthread.h>
#include <sys/stat.h>

#include "agent/base/clock.h"
#include "agent/pipeline/console_source.h"
#include "agent/pipeline/output.h"
#include "proto/console.h"

enum { START_AT_END, START_AT_BEGINNING };
enum { PLAIN_DROP, PLAIN_LOG };

struct console_config {
    bool from_stdin, follow, passthrough;
    int start_at, plain_lines;
    int64_t poll_interval_ns, max_record_bytes;
    struct cfg_list include, exclude, pipes; /* of strings */
    const char *storage_file;
};

struct console;

/* ---- batches on their way (sending.c) ---- */

/* Wakes the receiver's thread; outlives it while answers are due. */
struct wake {
    atomic_uint refs;
    int fd; /* an eventfd */
};
struct wake *wake_new(void);
struct wake *wake_ref(struct wake *w);
struct wake *wake_unref(struct wake *w);
void wake_up(struct wake *w);

/* The batches of one source, in order: one is offered at a time. */
struct delivery;
struct sending {
    struct delivery *first;
    struct delivery **last;
};
void sending_init(struct sending *o);
/* Takes `b`; offers it when it is the first. 0, or -ENOMEM when it is lost. */
int sending_put(struct sending *o, struct console *c, struct batch *b);
/* Offers again what is due: true when nothing waits any more; else *ret_at_ns is lowered to when to come back (or an answer wakes). */
bool sending_run(struct sending *o, struct console *c, uint64_t *ret_at_ns);
static inline bool sending_empty(const struct sending *o) { return o->first == NULL; }
/* Another receiver offers what is left, to all branches. An answer that is still due is not waited for any more. */
void sending_reset(struct sending *o);
/* Drops what is left; returns its records. */
uint64_t sending_done(struct sending *o);

/* ---- where a file is, so that it is known again (mark.c) ---- */

#define MARK_BYTES 1024 /* of the beginning */
#define MARK_TAIL 256   /* before the place */
struct mark {
    uint64_t dev, ino, offset; /* read up to here */
    uint32_t head_len, tail_len;
    uint64_t head_hash, tail_hash;
    struct console_range *held; /* read, but not finished */
    size_t nheld;
};
void mark_done(struct mark *m);
/* Sets the place, and the hashes by what the file holds. 0 or -errno. */
int mark_set(struct mark *m, int fd, uint64_t offset);
/* Keeps what `r` holds. 1 when that is something else than before, 0, or -ENOMEM. */
int mark_hold(struct mark *m, const struct console_reader *r);
/* Whether the file still has the content that was read. */
bool mark_matches(const struct mark *m, int fd);

/* ---- sources (source.c) ---- */

enum source_kind { SOURCE_FILE, SOURCE_PIPE, SOURCE_STREAM };
struct source {
    struct source *next;
    struct console *owner;
    enum source_kind kind;
    char *path;         /* of a file or pipe; "stdin", or the label of a registered stream */
    int fd;             /* -1 = not open */
    bool borrowed;      /* the fd is not ours to close */
    bool ended;         /* nothing more comes, */
    bool keep;          /* but what is unfinished may go on another time */
    bool more;          /* the last turn did not come to the end */
    struct console_reader *reader;
    struct console_stats counted; /* in the metrics */
    struct sending sending;
    struct buf *plain;  /* text to be passed on */
    struct buf *logs;   /* LogRecords of plain lines */
    struct outlet *outlet; /* where plain text goes; NULL = nowhere */
    bool own_outlet;       /* else the instance's */
    struct buf *rest;   /* of a stream: read, but not fed */
    uint64_t rested_ns; /* when the last bytes came; 0 = what they left was looked at */
    enum console_pass pass;
    void (*on_end)(void *ctx);
    void *ctx;
    /* files */
    struct mark mark;   /* what is stored: all before it was handed over */
    uint64_t offset;    /* of the next byte to read */
    off_t size;         /* when last looked at */
    struct timespec changed;
    bool seen;          /* by the present scan */
    bool gone;          /* no longer under its name */
    bool moved;         /* a copy goes on where this one was cut */
    uint64_t quiet_ns;  /* gone, and at its end since; or a copy, and unchanged since */
    bool copy;          /* has what another one has: not read yet */
};
struct source *source_new(struct console *c, enum source_kind kind, const char *path, int fd);
struct source *source_free(struct source *s);
/* Makes `c` the one that reads it. */
void source_adopt(struct source *s, struct console *c);
/* Reads a part of what is there and hands it over. False when it has to wait; *ret_at_ns is then lowered to when to come back. */
bool source_turn(struct source *s, uint64_t *ret_at_ns);
/* Hands over what can be: false when something still waits. */
bool source_settle(struct source *s, uint64_t *ret_at_ns);
/* A stream rests: what is complete goes. */
void source_rest(struct source *s);
/* Nothing more is read: what is unfinished goes as plain lines, or stays when `keep`. */
void source_finish(struct source *s, bool keep);
/* Everything was settled: tells who wanted to know. */
void source_close(struct source *s);
/* Goes on at `offset` of the file, after the pieces that were held. 0 or -errno. */
int source_resume(struct source *s, const struct console_range *held, size_t nheld, uint64_t offset);
/* Begins anew: the file was cut or written over. 0 or -ENOMEM. */
int source_restart(struct source *s);

/* ---- files (files.c, glob.c) ---- */

struct patterns {
    char **items;
    size_t n;
};
/* Absolute. 0 or -errno. */
int patterns_init(struct patterns *p, const struct cfg_list *list);
void patterns_done(struct patterns *p);
/* Calls `found` for each regular file that a pattern includes and none excludes; some may come twice. */
void patterns_walk(const struct patterns *include, const struct patterns *exclude,
                   void (*found)(void *ctx, const char *path, const struct stat *st), void *ctx);

/* Looks which files there are; new ones become sources. */
void files_scan(struct console *c);
/* Looks whether there is more in the file, and whether it was cut or written anew: it begins again then. True when it is worth a turn. */
bool files_check(struct source *s);
/* A file that has lost its name and is quiet: nobody writes to it any more. */
bool files_is_over(struct source *s);

/* ---- what is stored (places.c) ---- */

struct stored_file {
    char *path;
    struct mark mark;
    bool used;
};
struct places {
    struct stored_file *files;
    size_t n;
    bool dirty;
};
void places_done(struct places *st);
/* Reads the file; one that is not there or empty is a new one. 0, or -errno with reterr. */
int places_load(struct places *st, const char *path, struct err *reterr);
/* Writes the marks of all files, atomically. 0 or -errno. */
int places_save(const char *path, const struct source *sources);

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
    struct wake *wake;
    struct shared *output; /* stdout, for passthrough */
    struct shared *handover;
    pthread_t thread;
    bool started; /* the thread */
    bool entered; /* it is our turn */
    atomic_bool stopping;
    _Atomic uint64_t deadline_ns;
    struct receiver_metrics metrics[SIGNAL_COUNT];
    struct metric *plain_lines, *malformed, *oversized;
    uint8_t *bytes; /* to read into */
    /* of the thread */
    struct source *sources;
    struct places stored;   /* of an earlier run */
    uint64_t look_ns;      /* when to look at the files again */
    bool scanned;          /* once: files found later are read from the beginning */
    bool dirty;            /* marks have changed since they were stored */
    bool save_failed;
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
