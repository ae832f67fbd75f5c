/* What the exporter helper is made of: queue.c keeps the requests and workers, delivery.c sends, queue_life.c starts and stops. */
#ifndef MOTEL_PIPELINE_QUEUE_PARTS_H
#define MOTEL_PIPELINE_QUEUE_PARTS_H

#include <pthread.h>

#include "agent/pipeline/retry.h"

struct request {
    struct request *next;
    struct batch *batch;    /* NULL once the backend has it or refused it for good */
    struct ack *ack;        /* who waits for the answer, or for room; NULL = answered already */
    uint32_t records;
    int64_t size;           /* as the sizer counts */
    size_t bytes;
    uint32_t attempts;      /* from the first one on `backoff` is set */
    struct backoff backoff;
};

struct request_list {
    struct request *first, **end;
    size_t n;
};
static inline void list_init(struct request_list *l)
{
    *l = (struct request_list){.end = &l->first};
}

static inline void list_push(struct request_list *l, struct request *r)
{
    r->next = NULL;
    *l->end = r;
    l->end = &r->next;
    l->n++;
}

static inline struct request *list_pop(struct request_list *l)
{
    struct request *r = l->first;
    if (!r)
        return NULL;
    l->first = r->next;
    if (!l->first)
        l->end = &l->first;
    l->n--;
    return r;
}

enum queue_state {
    QUEUE_RUNNING,
    QUEUE_DRAINING, /* takes and sends until deadline_ns */
    QUEUE_CLOSED,   /* refuses; nothing is tried again */
};

struct queue {
    struct component *component;
    const struct exporter_settings *settings;
    enum signal signal;
    struct queue_batch batch; /* limits of what goes out; of use when `batching` */
    bool batching;
    struct logger logger;
    struct exporter_metrics metrics;
    struct metric *size_now, *size_peak, *capacity_now; /* NULL without a queue */
    struct metric *in_flight_now, *retries;

    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t work;    /* for idle workers: a request came, or the state changed */
    pthread_cond_t changed; /* for pausing workers: the state changed */
    pthread_cond_t quiet;   /* for queue_stop(): nothing is left, or a worker ended */
    struct request_list ready, waiting; /* admitted; waiting for room (block_on_overflow) */
    int64_t size, capacity;
    size_t bytes, max_bytes;
    struct worker *workers;
    unsigned nworkers, nidle, max_workers, in_flight;
    enum queue_state state;
    uint64_t deadline_ns;   /* of the stop; UINT64_MAX while running */
    unsigned failures;      /* in a row, while draining; the first was at: */
    uint64_t failing_ns;
    uint64_t patience_ns;   /* while draining: failing for this long makes failures final */
    int64_t lost_records, lost_requests; /* given up because the time to stop was over */
    char last_error[256];
};

/* What became of a request that a worker had. */
enum delivery {
    DELIVERY_DONE,  /* answer it: verdict and outcome are set */
    DELIVERY_LATER, /* draining: let the others have a try first */
    DELIVERY_LOST,  /* the time to stop is over: like DONE with RETRY, reported with the others at the end */
};
/* Sends `r`, with pauses, until it is decided. Called without the lock. Frees the batch as soon as it is not needed. */
enum delivery queue_deliver(struct queue *q, struct request *r, enum verdict *ret_verdict, struct outcome *ret_outcome);

void queue_join_workers(struct queue *q); /* closed, nobody sending */
void queue_drop_rest(struct queue *q);    /* what no worker had; after the join */

#endif
