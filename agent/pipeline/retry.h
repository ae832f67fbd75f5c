/* The pause between two attempts: exponential back-off with a random part, the server's Retry-After, an end. */
#ifndef MOTEL_PIPELINE_RETRY_H
#define MOTEL_PIPELINE_RETRY_H

#include "agent/pipeline/queue.h"

struct backoff {
    uint64_t start_ns;    /* the first attempt */
    int64_t interval_ns;  /* the next pause before its random part */
};
void backoff_init(struct backoff *b, const struct retry_settings *s, uint64_t now_ns);
/* The pause after a failed attempt: the interval with its random part (`random` in 0..1), or what the server asked for if that is longer.
 * False = give up: the next attempt would be later than max_elapsed_time after the first. */
bool backoff_next(struct backoff *b, const struct retry_settings *s, uint64_t now_ns, uint32_t retry_after_ms, double random,
                  uint64_t *ret_pause_ns);
/* 0 <= x < 1; one sequence per thread. */
double backoff_random(void);

#endif
