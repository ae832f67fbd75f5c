/* The parts of a replay: target and configuration, the window of requests under way, the state file, the progress line. */
#ifndef MOTEL_GYM_REPLAY_PARTS_H
#define MOTEL_GYM_REPLAY_PARTS_H

#include <pthread.h>
#include <signal.h>

#include "agent/gym/replay.h"
#include "proto/console.h"

/* ---- replay_target.c ---- */
struct replay_target {
    char shown[1024];      /* the place without secrets, for people and the state file */
    enum { TARGET_HTTP, TARGET_GRPC, TARGET_FILE, TARGET_STDOUT } kind;
    const char *place;    /* URL or path */
    const char *exporter; /* its id */
    bool json;            /* TARGET_HTTP: as JSON */
};
/* 0 or -EINVAL with a text for the user. */
int replay_target_find(const struct replay_command *c, struct replay_target *ret, struct err *reterr);
/* The configuration of the pipeline from the source to the target. 0, -EINVAL (a header or attribute without "=") or -ENOMEM. */
int replay_config(const struct replay_command *c, const struct replay_target *t, struct buf *out, struct err *reterr);
/* The receiver that stands at the beginning: it does nothing itself; window_send() emits through it. */
extern const struct component_type replay_source;
struct component *replay_source_made(void); /* the one instance; NULL = none */

/* ---- replay_window.c ---- */
/* How far a file is read, with the places before it that are not used yet. */
struct replay_place {
    uint64_t offset;
    struct console_range *held;
    size_t nheld;
};
struct checkpoint;
struct window {
    struct component *source;
    const char *place;           /* the target, for the user */
    bool local;                  /* a file or stdout: refusals pass */
    pthread_mutex_t lock;        /* of all below */
    pthread_cond_t changed;
    unsigned under_way;
    size_t bytes;
    uint64_t sequence, last_good; /* of requests: the newest; the newest that was delivered */
    unsigned refused_in_a_row;
    uint64_t delivered[SIGNAL_COUNT], refused[SIGNAL_COUNT], failed[SIGNAL_COUNT]; /* records */
    char reason[300];            /* of the last refusal or failure */
    char waiting[300];           /* why nothing moves just now; "" = it does */
    uint64_t moved_ns;           /* when something was sent after nothing, or answered */
    bool told;                   /* the user, that nothing moves */
    bool stopped;                /* no more is to be sent: the target is out of reach or refuses everything */
    struct checkpoint *first, *open; /* in the order in which they were read; the last one is filled */
    struct replay_place *safe;   /* of each file: everything before it is delivered */
    size_t nfiles;
};
int window_init(struct window *w, struct component *source, const char *place, bool local, size_t nfiles); /* 0 or -ENOMEM */
void window_done(struct window *w);
/* Takes `b`. Waits until it may go out. 0, -ECANCELED when `*stop` was set or nothing more is to be sent, or -ENOMEM. */
int window_send(struct window *w, struct batch *b, const volatile sig_atomic_t *stop);
/* What was sent since the last call belongs to the text of `file` up to `place` (which is taken). 0 or -ENOMEM. */
int window_mark(struct window *w, size_t file, struct replay_place *place);
/* Waits until nothing is under way, `*stop` is set or the time is over, also when nothing more is to be sent; true when nothing is under way. */
bool window_settle(struct window *w, uint64_t until_ns, const volatile sig_atomic_t *stop);
void replay_place_done(struct replay_place *p);

/* ---- replay_state.c ---- */
struct replay_state;
/* Reads the file, which may be missing. `to`: what it has to be about. 0 or a negative errno with reterr. */
int replay_state_open(const char *path, const char *to, struct replay_state **ret, struct err *reterr);
struct replay_state *replay_state_free(struct replay_state *s); /* NULL ok */
/* Finds the entry of `file`, open as `fd`, or adds it: its number, and where to go on (offset 0 = at the beginning; the place is the
 * caller's). 0 or a negative errno. */
int replay_state_find(struct replay_state *s, const char *file, int fd, size_t *ret_entry, struct replay_place *ret);
/* Notes a place; replay_state_write() then replaces the state file as a whole. 0 or -ENOMEM. */
int replay_state_note(struct replay_state *s, size_t entry, const struct replay_place *p);
int replay_state_write(const struct replay_state *s, struct err *reterr);

/* ---- replay_progress.c ---- */
struct progress {
    bool on;              /* stderr is a terminal */
    uint64_t start_ns, shown_ns;
    uint64_t total_bytes; /* of all files; 0 = unknown */
};
struct progress_now {
    uint64_t bytes, records;
    size_t file, nfiles;
    const char *name, *waiting;
};
void progress_start(struct progress *p, uint64_t total_bytes);
bool progress_due(const struct progress *p);
void progress_show(struct progress *p, const struct progress_now *n);
void progress_clear(struct progress *p);
/* "1,234,567"; ret has 32 bytes; returns it. */
const char *grouped(uint64_t n, char *ret);

#endif
