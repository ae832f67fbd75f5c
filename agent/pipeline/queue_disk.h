/* What the queues share that use one store; for queue_disk.c and queue_writer.c. */
#ifndef MOTEL_PIPELINE_QUEUE_DISK_H
#define MOTEL_PIPELINE_QUEUE_DISK_H

#include "agent/pipeline/queue_parts.h"

struct disk {
    struct store *store;        /* each user has a reference of its own */
    _Atomic uint64_t next_id;
    pthread_mutex_t lock;       /* of `users`; taken before a queue's lock */
    struct queue *users;        /* the newest first */
};

#endif
