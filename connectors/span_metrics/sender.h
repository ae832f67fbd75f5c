/*
 * Sends what was flushed on, in its order. What downstream refuses for now is kept and offered again, and what comes meanwhile waits behind it, up to a
 * bound; beyond that the oldest goes. Thread safe; never blocks but in sender_drain().
 */
#ifndef MOTEL_CONNECTORS_SPAN_METRICS_SENDER_H
#define MOTEL_CONNECTORS_SPAN_METRICS_SENDER_H

#include <pthread.h>

#include "agent/pipeline/component.h"
#include "agent/pipeline/host.h"

#define SENDER_MAX_BYTES (32u << 20)

struct parcel;
struct sender {
    struct component *owner;
    struct metric *dropped; /* data points */
    struct timer *timer;
    pthread_mutex_t lock; /* of all below; not held while something is offered */
    pthread_cond_t changed;
    struct parcel *held, **held_end; /* the oldest first */
    size_t held_bytes;
    bool again; /* a refused one is being offered again */
    uint64_t due_ns, pause_ns; /* when the first one is offered again; 0: it is being offered */
    unsigned under_way;        /* offered or held, without an end */
    bool closing, closed;      /* closed: nothing is offered again */
    bool told;                 /* the log has said that data is refused */
};
int sender_init(struct sender *s, struct component *owner); /* -ENOMEM; sender_done() is due in any case */
void sender_done(struct sender *s); /* after all was answered */
void sender_send(struct sender *s, struct batch *b); /* takes `b` */
/* Waits until everything was taken, until_ns at most; counts and logs what was not. Then nothing is offered again. */
void sender_drain(struct sender *s, uint64_t until_ns);

#endif
