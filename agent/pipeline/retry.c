#include "agent/pipeline/retry.h"

#include "agent/base/clock.h"

#define MIN_PAUSE_NS NS_PER_MS /* whatever the settings say: no spinning */

void backoff_init(struct backoff *b, const struct retry_settings *s, uint64_t now_ns)
{
    *b = (struct backoff){.start_ns = now_ns, .interval_ns = s->initial_interval_ns};
}

static int64_t grow(int64_t interval_ns, const struct retry_settings *s)
{
    double next = (double)interval_ns * s->multiplier;
    return next >= (double)s->max_interval_ns ? s->max_interval_ns : (int64_t)next;
}

bool backoff_next(struct backoff *b, const struct retry_settings *s, uint64_t now_ns,
                  uint32_t retry_after_ms, double random, uint64_t *ret_pause_ns)
{
    double spread = s->randomization_factor * (double)b->interval_ns;
    uint64_t pause_ns = (uint64_t)((double)b->interval_ns - spread + 2 * spread * random);
    uint64_t asked_ns = retry_after_ms * NS_PER_MS;
    b->interval_ns = grow(b->interval_ns, s);
    if (pause_ns < asked_ns)
        pause_ns = asked_ns;
    if (pause_ns < MIN_PAUSE_NS)
        pause_ns = MIN_PAUSE_NS;
    *ret_pause_ns = pause_ns;
    uint64_t most_ns = (uint64_t)s->max_elapsed_time_ns;
    return most_ns == 0 || now_ns - b->start_ns + pause_ns <= most_ns;
}

double backoff_random(void)
{
    static _Thread_local uint64_t x;
    if (!x)
        x = (clock_wall_ns() ^ (uintptr_t)&x) | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / (double)(1ull << 53);
}
