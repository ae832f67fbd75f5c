#include "agent/base/cond.h"

#include <time.h>

#include "agent/base/clock.h"

int cond_init_monotonic(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int r = pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
    return -r;
}

int cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX)
        return pthread_cond_wait(c, m);
    struct timespec ts = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                          .tv_nsec = (long)(until_ns % NS_PER_S)};
    return pthread_cond_timedwait(c, m, &ts);
}
