/* Condition variables on the monotonic clock, for waits up to a clock_now_ns() time. */
#ifndef MOTEL_BASE_COND_H
#define MOTEL_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

int cond_init_monotonic(pthread_cond_t *c); /* 0 or a negative errno */
/* 0, or ETIMEDOUT; `until_ns` UINT64_MAX = for ever. */
int cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns);

#endif
