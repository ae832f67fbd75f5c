/*
 * A durable first-in first-out set of requests on disk: one LMDB file per queue. What store_write() has returned 0 for survives the death of
 * the process at any instant. One owner (a queue) at a time; the calls are serialised inside and safe from any thread; they block on
 * the disk, so never from an I/O thread.
 */
#ifndef MOTEL_PIPELINE_STORE_H
#define MOTEL_PIPELINE_STORE_H

#include "agent/pipeline/host.h"
#include "proto/batch.h"

struct store_settings { /* what the extension's keys or the spill directory say; an extension gives it as its CAP_STORAGE. Copied by store_open() */
    const char *directory;
    int64_t lock_timeout_ns;     /* how long to wait for another process to let go of a file */
    int64_t max_bytes;           /* of the file of one store; 0 = what the disk holds */
    bool fsync;                  /* every commit reaches the disk itself, not only the kernel */
    bool create_directory, recreate, compact_on_start, compact_on_rebound;
    int64_t directory_mode;      /* 0750 */
    int64_t rebound_needed_bytes, rebound_trigger_bytes; /* the file is made smaller when it was larger than the one and holds less than the other */
    const char *compact_directory; /* where the smaller file is written, if on the same file system; NULL = directory */
    int64_t compact_max_items;     /* pieces of requests that are copied in one transaction; 0 = all */
    int64_t compact_interval_ns;   /* between two looks at the thresholds */
};

struct store;
/* Opens or makes <directory>/<name, made safe for a file name>.mdb. Shared by key across a reload. -errno with reterr: "…: the queue file is held by
 * another process", "…: not a queue file of this version (…); set recreate: true to move it aside and start empty". With `recreate` such a file is
 * renamed to <file>.backup-<time> and a warning logged. */
int store_open(struct host *h, const struct store_settings *s, const char *name, struct store **ret, struct err *reterr);
struct store *store_close(struct store *st); /* NULL ok; returns NULL; syncs */
const char *store_path(const struct store *st);
/* The name of the queue of component `id` ("otlp_http/backend") of `kind` ("exporter") for `part` ("traces"), as the reference composes it:
 * "exporter_otlp_http_backend_traces". A string to free(); NULL when out of memory. */
char *store_name(const char *kind, const char *id, const char *part);
/* Makes the directory (with its parents) if create_directory says so, and checks that files can be made in it. 0 or -errno with reterr. */
int store_directory_check(const struct store_settings *s, struct err *reterr);

struct store_entry { /* one request on disk */
    uint64_t id;     /* ascending; larger = later; 1 or more */
    uint32_t records; /* 0 when it is damaged */
    size_t bytes;    /* of the request in protobuf */
};
/* All entries in order, e.g. at a start. `see` returns false to stop; it must not call the store. 0 or -errno. */
int store_each(struct store *st, bool (*see)(void *ctx, const struct store_entry *e), void *ctx, struct err *reterr);
/* Larger than all ids that are there. */
uint64_t store_next_id(struct store *st);
struct store_put {
    uint64_t id; /* not there yet; from store_next_id() on, in any order */
    const struct batch *batch; /* secrets are replaced by placeholders on the way in and put back by store_read() */
};
/* Puts and deletions as one transaction: all or nothing. 0; -ENOSPC when the disk or max_bytes is full (nothing was written; deletions
 * alone always work, also on a full disk; there they may be several transactions); -EIO and others with reterr. An id that is not there is no
 * error to delete. */
int store_write(struct store *st, const struct store_put *puts, size_t nputs, const uint64_t *deletions, size_t ndeletions, struct err *reterr);
/* The request itself. -ENOENT; -EBADMSG when it is damaged or holds a placeholder whose secret is not known any more (then it is to be deleted and
 * counted as lost, with reterr saying which). */
int store_read(struct store *st, uint64_t id, struct batch **ret, struct err *reterr);
/* Live bytes and the size of the file, for metrics. */
size_t store_live_bytes(const struct store *st);
size_t store_file_bytes(const struct store *st);

#endif
