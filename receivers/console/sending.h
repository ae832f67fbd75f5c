/* Batches on their way into the pipelines. */
#ifndef MOTEL_RECEIVERS_CONSOLE_SENDING_H
#define MOTEL_RECEIVERS_CONSOLE_SENDING_H

#include "agent/base/clock.h"
#include "agent/pipeline/component.h"

struct console;

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
    struct delivery *spare; /* for batches that come while memory is short */
    unsigned nspare;
};
/* 0 or -ENOMEM; sending_done() in any case. */
int sending_init(struct sending *o);
/* Takes `b`; offers it when it is the first. 0, or -ENOMEM when it is lost: there is room for one from each part of a reading, which ends with
 * sending_run(). */
int sending_put(struct sending *o, struct console *c, struct batch *b);
/* Offers again what is due: true when nothing waits any more; else *ret_at_ns is lowered to when to come back (or an answer wakes). */
bool sending_run(struct sending *o, struct console *c, uint64_t *ret_at_ns);
static inline bool sending_empty(const struct sending *o) { return o->first == NULL; }
/* Another receiver offers what is left, to all branches. An answer that is still due is not waited for any more. */
void sending_reset(struct sending *o);
/* Drops what is left; returns its records. */
uint64_t sending_done(struct sending *o);

#endif
