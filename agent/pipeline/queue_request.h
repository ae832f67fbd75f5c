/* A request in a queue, the parcels that are sent, and their lists; for the exporter helper alone. */
#ifndef MOTEL_PIPELINE_QUEUE_REQUEST_H
#define MOTEL_PIPELINE_QUEUE_REQUEST_H

#include <pthread.h>

#include "agent/pipeline/retry.h"

struct request {
    struct request *next;
    struct batch *batch;     /* NULL while only the disk has it, or a parcel */
    struct ack *ack;         /* who waits for the answer, or for room; NULL = answered already */
    struct outcome *outcome; /* of the worst part that was decided; NULL = none to be kept */
    uint64_t id;             /* ascending by arrival; 0 = of a queue that is in memory alone */
    uint64_t since_ns;       /* when it came into `ready` */
    int64_t size;            /* as the sizer counts; 0 = takes no room in memory (spilled) */
    size_t bytes;
    uint32_t records;
    unsigned parts;          /* parcels that hold some of it */
    enum verdict verdict;    /* the worst of the parts that were decided */
    bool on_disk;            /* written */
    bool for_disk;           /* on disk or about to be */
    bool charged;            /* its bytes count as in memory */
    bool undelivered;        /* the time to stop was over before a part of it was decided */
};
struct request *queue_request_new(struct batch *b, struct ack *ack); /* takes `b`, unless NULL is returned: out of memory */
struct request *queue_request_free(struct request *r);         /* NULL ok; returns NULL */

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

static inline void list_unpop(struct request_list *l, struct request *r)
{
    r->next = l->first;
    l->first = r;
    if (!r->next)
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

static inline void list_move(struct request_list *to, struct request_list *from)
{
    for (struct request *r; (r = list_pop(from));)
        list_push(to, r);
}

/* What is sent at once: a request, several of them, or a part. */
struct share {
    struct request *request;
    uint32_t records;
};
struct parcel {
    struct parcel *next;
    struct batch *batch; /* NULL once the backend has it or refused it for good */
    uint32_t records;
    uint32_t attempts;   /* from the first one on `backoff` is set */
    struct backoff backoff;
    uint64_t since_ns;   /* when it began to wait for more */
    size_t nshares;
    struct share shares[];
};
struct parcel *parcel_new(size_t nshares);       /* NULL when out of memory */
struct parcel *parcel_free(struct parcel *p);    /* NULL ok; returns NULL */

struct parcel_list {
    struct parcel *first, *last;
    size_t n;
};
static inline void parcels_push(struct parcel_list *l, struct parcel *p)
{
    p->next = NULL;
    *(l->first ? &l->last->next : &l->first) = p;
    l->last = p;
    l->n++;
}

static inline struct parcel *parcels_pop(struct parcel_list *l)
{
    struct parcel *p = l->first;
    if (!p)
        return NULL;
    l->first = p->next;
    l->n--;
    return p;
}

#endif
