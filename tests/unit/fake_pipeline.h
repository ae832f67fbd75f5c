/* Components for tests of the machinery: they record what happens to them and answer as told. */
#ifndef FAKE_PIPELINE_H
#define FAKE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/base/clock.h"
#include "agent/pipeline/graph.h"

/* Calls `expr` until it is true; fails the test after 10 s. For what another thread is about to do.
 */
#define assert_soon(expr)                                                                          \
    do {                                                                                           \
        uint64_t end_ns_ = clock_now_ns() + 10 * NS_PER_S;                                         \
        while (!(expr) && clock_now_ns() < end_ns_)                                                \
            usleep(200);                                                                           \
        assert_true(expr);                                                                         \
    } while (0)

/* A batch of `records` records whose content nobody reads. */
static inline struct batch *fake_batch(enum signal s, uint32_t records)
{
    struct buf *b = buf_new(0);
    buf_append_str(b, "x");
    return batch_new(s, &b, 1, records);
}

/* Who waits for an answer. */
struct fake_ack {
    struct ack ack;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    unsigned answers;
    enum verdict verdict;
    struct outcome outcome;
};
static inline void fake_ack_done(struct ack *a, enum verdict v, const struct outcome *out)
{
    struct fake_ack *f = container_of(a, struct fake_ack, ack);
    pthread_mutex_lock(&f->lock);
    f->answers++;
    f->verdict = v;
    f->outcome = out ? *out : (struct outcome){0};
    pthread_cond_broadcast(&f->answered);
    pthread_mutex_unlock(&f->lock);
}
static inline void fake_ack_init(struct fake_ack *f)
{
    *f = (struct fake_ack){.ack = {.done = fake_ack_done, .owed = ACK_ALL}};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->answered, NULL);
}
static inline unsigned fake_ack_answers(struct fake_ack *f)
{
    pthread_mutex_lock(&f->lock);
    unsigned n = f->answers;
    pthread_mutex_unlock(&f->lock);
    return n;
}
/* The verdict in the end, of an offer that answered `v` at first. */
static inline enum verdict fake_ack_verdict(struct fake_ack *f, enum verdict v)
{
    if (v != VERDICT_PENDING) {
        f->outcome = f->ack.now;
        return v;
    }
    pthread_mutex_lock(&f->lock);
    while (!f->answers)
        pthread_cond_wait(&f->answered, &f->lock);
    v = f->verdict;
    pthread_mutex_unlock(&f->lock);
    return v;
}

#endif
