/* What the store is made of; for agent/pipeline/store*.c and their tests. */
#ifndef MOTEL_PIPELINE_STORE_PARTS_H
#define MOTEL_PIPELINE_STORE_PARTS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "agent/pipeline/store.h"
#include "agent/pipeline/store_file.h"

/* ---- store_entry.c: one request as records of the file ---- */

#define STORE_CHUNK_BYTES (4 * 4096 - 16) /* of a record: whole pages without their head */
#define STORE_HEAD_BYTES 40               /* in front of the first record of a request */
#define STORE_KEY_BYTES 12

struct store_key { /* big endian, so that they sort */
    uint8_t text[STORE_KEY_BYTES];
};
struct store_key store_key(uint64_t id, uint32_t chunk);
/* False when it is no key of ours. */
bool store_key_read(const MDB_val *key, uint64_t *ret_id, uint32_t *ret_chunk);

struct store_head {
    uint32_t crc; /* of the rest of the head and of the payload */
    uint8_t signal, flags;
    uint32_t records;
    uint64_t stored, bytes; /* payload as stored; as it was */
    uint8_t marker[8];      /* before each placeholder, and nowhere else in the payload */
};
enum { STORE_HAS_PLACEHOLDERS = 1 };
/* False when `value` is too short or says what cannot be. */
bool store_head_read(struct bytes value, struct store_head *ret);

/* A request made ready for writing: bytes or pieces of a batch. */
struct store_image {
    uint8_t head[STORE_HEAD_BYTES];
    uint64_t id;
    const struct batch *batch; /* its segments are the payload, unless: */
    struct buf *masked;        /* the payload with placeholders; NULL = none in it */
    size_t stored, bytes;
    uint32_t records;
};
/* 0 or -ENOMEM. */
int store_image_make(const struct store_put *put, struct store_image *ret);
void store_image_done(struct store_image *im);
uint32_t store_image_chunks(const struct store_image *im);
/* Puts all records of `im`, whose id is larger than all others (`last`) or not there yet. 0 or LMDB's error. */
int store_image_put(const struct store_image *im, MDB_cursor *c, bool last);
/* The batch out of payload and head, checked. 0; -EBADMSG with reterr; -ENOMEM. Takes `payload`. */
int store_image_read(const struct store_head *h, const uint8_t head[STORE_HEAD_BYTES], struct buf *payload, struct batch **ret,
                     struct err *reterr);

/* ---- store_secret.c ---- */

/* *ret = the bytes of `b` with placeholders in place of secrets, each behind `marker`, which is chosen; NULL when there are none. 0 or -ENOMEM. */
int store_mask(const struct batch *b, uint8_t marker[8], struct buf **ret);
/* Puts the secrets back. 0; -EBADMSG when one is not known; -ENOMEM. */
int store_unmask(struct bytes payload, const uint8_t marker[8], struct buf **ret, struct err *reterr);

/* ---- store_path.c ---- */

/* The name with what is not safe in a file name written as ~ and its code; a long one as its SHA-256. NULL when out of memory. */
char *store_safe_name(const char *name);
/* Takes the lock of the file `path`, kept in <path>.lock, waiting for at most `timeout_ns`. 0 or -errno. */
int store_lock(const char *path, int64_t timeout_ns, int *ret_fd, struct err *reterr);

/* ---- the store ---- */

struct store {
    struct host *host;
    struct shared *share;
    pthread_mutex_t lock; /* around every transaction: LMDB is used without its own locks */
    struct store_settings settings;
    char *path, *temp_path;
    int lock_fd;
    struct store_file file; /* not open: it failed, and is opened again by the next call */
    uint64_t next_id;
    size_t entries;
    _Atomic size_t live_bytes, file_bytes;
    bool was_open;          /* before, so that next_id is known */
    bool was_large;         /* the file was larger than rebound_needed_bytes */
    bool has_place;         /* the file can be told from others, see store_place.h */
    uint64_t compact_at_ns, place_at_ns; /* not before; place: see store_place.h */
    struct store_syncer *syncer; /* NULL until there is something to do */
};

/* Blocks SIGXFSZ in this thread, so that a limit on file sizes is an error; restores what was. */
struct store_guard {
    sigset_t before;
    bool pending;
};
struct store_guard store_guard(void);
void store_unguard(struct store_guard *g);

/* store_open.c: opens st->file (again). Lock held. 0 or -errno. */
int store_ready(struct store *st, struct err *reterr);
/* The file is in doubt: close it, the next call opens and checks it again. */
void store_doubt(struct store *st);
void store_note_size(struct store *st);

/* store.c: every request from the first on, and what is left of others (`whole` false). Lock held. 0 or -errno. */
int store_scan(struct store *st, bool (*see)(void *ctx, const struct store_entry *e, bool whole), void *ctx, struct err *reterr);
/* store_write.c: deletes requests; in small transactions where one has no room. Lock held. 0 or -errno. */
int store_drop(struct store *st, const uint64_t *ids, size_t n, struct err *reterr);

/* store_compact.c: writes what is live to a new file that takes the place of the present one. Lock held, no transaction. 0 or -errno (then all is
 * as before). */
int store_compact(struct store *st, struct err *reterr);
/* Gives room back when the file is empty or the thresholds say so. */
void store_give_back(struct store *st);

/* store_sync.c: syncs within a second after a commit that was not synchronous. */
#define STORE_SYNC_NS NS_PER_S
void store_sync_soon(struct store *st);
void store_sync_stop(struct store *st); /* joins the thread */
void store_sync_directory(const struct store *st); /* now */

#endif
