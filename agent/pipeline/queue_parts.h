/*
 * What the exporter helper is made of: queue.c takes requests in and keeps the workers, queue_parcel.c makes parcels of them, delivery.c
 * sends those, queue_settle.c sees to what became of them, queue_disk.c and queue_writer.c keep them on disk, queue_life.c starts and stops.
 */
#ifndef MOTEL_PIPELINE_QUEUE_PARTS_H
#define MOTEL_PIPELINE_QUEUE_PARTS_H

#include "agent/pipeline/queue_request.h"
#include "agent/pipeline/store.h"

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
    struct parcel_list cut, rest, later; /* to be sent before `ready`; too small yet; tried in vain while draining */
    int64_t ready_size;     /* of `ready` and `rest`, as the batch limits count */
    int64_t size, capacity;
    size_t bytes, max_bytes;
    bool pressed;           /* somebody was refused for want of room: no waiting for larger batches */
    struct worker *workers;
    unsigned nworkers, nidle, max_workers, in_flight;
    enum queue_state state;
    uint64_t moved_ns, deadline_ns; /* when the backend last took something; of the stop, UINT64_MAX while running */
    unsigned failures;      /* in a row, while draining; the first was at: */
    uint64_t failing_ns;
    uint64_t patience_ns;   /* while draining: failing for this long makes failures final */
    bool given_up;          /* draining is over: what is left stays on disk or goes there */
    int64_t lost_records, lost_requests; /* given up because the time to stop was over */
    char last_error[256];

    /* On disk; see queue_disk.c. */
    const struct store_settings *storage; /* of the extension; NULL = none */
    struct store_settings spill;
    struct disk *disk;      /* NULL = in memory alone; set by the start */
    struct store *store;    /* of `disk`; our own reference */
    struct shared *shared;  /* the registry's entry of `disk` */
    struct queue *next_user;
    struct metric *disk_records, *disk_bytes, *disk_file_bytes, *damaged;
    struct request_list pending, gone, kept; /* to be written; to be deleted; left over at the stop */
    size_t n_writing;       /* taken from `pending` by the writer */
    size_t pending_bytes, n_on_disk, n_disk_waiting; /* …: on disk or about to be; of these, not under way */
    pthread_cond_t write;   /* for the writer: something is pending or gone, or stop_writer */
    pthread_t writer;
    bool has_writer, stop_writer, disk_failing;
    uint64_t disk_told_ns;  /* when the log last said so */
};

/* What became of a parcel that a worker had. */
enum delivery {
    DELIVERY_DONE,  /* answer it: verdict and outcome are set */
    DELIVERY_LATER, /* draining: let the others have a try first */
    DELIVERY_LOST,  /* the time to stop is over: like DONE with RETRY, reported with the others at the end */
};
/* Sends `p`, with pauses, until it is decided. Called without the lock. Frees the batch as soon as it is not needed. */
enum delivery queue_deliver(struct queue *q, struct parcel *p, enum verdict *ret_verdict, struct outcome *ret_outcome);

/* ---- with the lock held ---- */
void queue_ready_push(struct queue *q, struct request *r); /* behind the others */
void queue_ready_unpop(struct queue *q, struct request *r); /* before them */
struct request *queue_ready_pop(struct queue *q);
int queue_call_worker(struct queue *q); /* somebody will take one more than is there; -errno when there is no worker at all */
bool queue_fits(const struct queue *q, const struct request *r);
void queue_charge(struct queue *q, struct request *r);
void queue_discharge(struct queue *q, struct request *r);
void queue_drop_payload(struct queue *q, struct request *r); /* of a request on disk */
/* Requests that waited for room get in; the acks to be answered OK go to `ret`, as requests of their own. */
void queue_admit_waiting(struct queue *q, struct request_list *ret);
bool queue_busy(const struct queue *q);
/* When there is something to be sent: a clock_now_ns() time, UINT64_MAX = nothing. */
uint64_t queue_due_ns(const struct queue *q);
/* Takes what is due. Leaves the lock in between. NULL = look again. */
struct parcel *queue_take_parcel(struct queue *q);
/* One parcel, from the queue to its end or back into the queue. Leaves the lock in between. */
void queue_work_on(struct queue *q, struct parcel *p);
/* A request that cannot be read back: counted and logged, deleted. Leaves the lock in between. */
void queue_damaged(struct queue *q, struct request *r, const char *why);
/* Takes `r` for the disk: the writer answers its ack. -errno: nothing happened. */
int queue_to_disk(struct queue *q, struct request *r);
void queue_delete(struct queue *q, struct request *r); /* takes `r`, which is on disk and decided */
void queue_count_on_disk(struct queue *q, const struct request *r, int sign); /* in (1) or out of (-1) what is on disk */

/* ---- without it ---- */
void queue_answer(struct request *r, enum verdict v, const struct outcome *out); /* takes `r` */
void queue_answer_admitted(struct request_list *l);
void queue_answer_refused(struct queue *q, struct request_list *l); /* who never got room: the exporter is shutting down */
int queue_thread(pthread_t *ret, void *(*run)(void *), void *arg);  /* 0 or -errno */
void queue_join_workers(struct queue *q); /* closed, nobody sending */
void queue_drop_rest(struct queue *q);    /* what no worker had, after the join: lost, or to `kept` */
int queue_read(struct queue *q, struct request *r, struct err *reterr); /* from disk, as store_read() */
void queue_save(struct queue *q);   /* at the stop: writes all that is pending, gone or kept; ends the writer */
void queue_detach(struct queue *q); /* gives `kept` to a queue of the new graph, or leaves it on disk */
uint64_t queue_next_id(struct queue *q);
int queue_batch_sizer(const struct queue_settings *s); /* of s->batch: its own, or the queue's */
int64_t queue_request_size(const struct queue *q, uint32_t records, size_t bytes); /* as the sizer counts */
void *queue_writer_main(void *queue);
/* Whether a request of which a part was not delivered stays for the next start. */
static inline bool queue_keeps(const struct queue *q, const struct request *r)
{
    return q->disk && !r->ack && (r->on_disk || r->batch);
}

#endif
