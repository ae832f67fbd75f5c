/*
 * Scrapes on their way down the pipeline. One that is refused for now is kept and offered again in its turn, within bounds: when
 * too much waits, the oldest is dropped, counted and logged. The scraping thread sends and offers; answers may come from any.
 */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_OUTBOX_H
#define MOTEL_RECEIVERS_PROMETHEUS_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/pipeline/component.h"
#include "agent/pipeline/host.h"

#define OUTBOX_MAX_BYTES (16u * 1024 * 1024) /* of scrapes that wait to be offered again */
#define OUTBOX_MAX_UNDER_WAY 1024            /* offered and not answered */

struct prom_outbox {
    struct component *owner;
    void (*wake)(void *ctx); /* of the thread that calls prom_outbox_offer(), from any thread */
    void *ctx;
    struct receiver_metrics metrics;
    pthread_mutex_t lock;        /* of all below; not held while something is offered */
    struct letter *head, **tail; /* those that wait, oldest first */
    size_t held_bytes;
    uint64_t due_ns;             /* when the first one is offered again */
    unsigned under_way;          /* letters that are offered and not answered */
    bool closing;
    atomic_bool refused;         /* the log has said so */
};
void prom_outbox_init(struct prom_outbox *o, struct component *owner, void (*wake)(void *ctx), void *ctx);
/* Drops and counts what waits; after all was answered. */
void prom_outbox_done(struct prom_outbox *o);
void prom_outbox_send(struct prom_outbox *o, struct batch *b); /* takes `b` */
/* Offers what is due. Returns when the next one is; UINT64_MAX = nothing waits. */
uint64_t prom_outbox_offer(struct prom_outbox *o, uint64_t now_ns);
/* From now on refused scrapes are offered again sooner, for the process stops. */
void prom_outbox_closing(struct prom_outbox *o);
/* True when nothing waits and all was answered. */
bool prom_outbox_empty(struct prom_outbox *o);

#endif
