/* What is read, one by one. */
#ifndef MOTEL_RECEIVERS_CONSOLE_SOURCE_H
#define MOTEL_RECEIVERS_CONSOLE_SOURCE_H

#include <sys/stat.h>

#include "agent/pipeline/console_source.h"
#include "agent/pipeline/output.h"
#include "receivers/console/mark.h"
#include "receivers/console/sending.h"

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
/* Everything was settled: waits for its last text to be written, up to `until_ns`, and tells who wanted to know. */
void source_close(struct source *s, uint64_t until_ns);
/* Goes on at `offset` of the file, after the pieces that were held. 0 or -errno. */
int source_resume(struct source *s, const struct console_range *held, size_t nheld, uint64_t offset);
/* Begins anew: the file was cut or written over. 0 or -ENOMEM. */
int source_restart(struct source *s);

#endif
