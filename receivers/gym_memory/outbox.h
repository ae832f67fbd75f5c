/*
 * Sends samples on, the newest only: one that the pipeline does not take now is offered again until it is taken or a newer one is there. One
 * thread sends and waits; answers may come from any.
 */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_OUTBOX_H
#define MOTEL_RECEIVERS_GYM_MEMORY_OUTBOX_H

#include <pthread.h>

#include "agent/pipeline/component.h"
#include "agent/pipeline/host.h"

struct outbox {
    struct component *owner;
    struct receiver_metrics metrics;
    pthread_mutex_t lock; /* of all below; not held while something is offered */
    pthread_cond_t changed;
    struct letter *held;  /* the newest sample, refused; NULL = none */
    uint64_t due_ns;      /* when it is offered again */
    uint64_t sent;        /* samples so far */
    unsigned under_way;   /* offered and not answered yet, or held */
    bool refused;         /* the log has said so */
    bool closing, closed;
};
int outbox_init(struct outbox *o, struct component *owner); /* 0 or a negative errno */
void outbox_done(struct outbox *o);                         /* after its thread has ended and all was answered */

void outbox_send(struct outbox *o, struct batch *b); /* takes `b` */
/* Until the clock_now_ns() time, or outbox_close(); offers the refused sample again meanwhile. False when it is closing. */
bool outbox_wait(struct outbox *o, uint64_t until_ns);
/* Ends outbox_wait(), from another thread. */
void outbox_close(struct outbox *o);
/* Waits until everything was taken, until_ns at most; counts and logs what was not. Then nothing is sent any more. */
void outbox_drain(struct outbox *o, uint64_t until_ns);

#endif
