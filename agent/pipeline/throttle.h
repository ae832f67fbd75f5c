/*
 * Slowing clients down: the answer to data that was taken is held back until there is room again, or for THROTTLE_MAX_NS. The data is
 * ours from the first moment; only the client waits. Thread safe.
 */
#ifndef MOTEL_PIPELINE_THROTTLE_H
#define MOTEL_PIPELINE_THROTTLE_H

#include "agent/pipeline/host.h"

#define THROTTLE_MAX_NS (2 * 1000000000ull) /* less than the time-out of any client */

struct throttle;
struct throttle *throttle_new(struct host *h); /* NULL when out of memory */
/* Keeps the answer OK back; the caller answers PENDING. False when out of memory: then the caller answers OK. The caller may hold a lock
 * that throttle_release() is not called under. */
bool throttle_wait(struct throttle *t, struct ack *ack);
/* The same until `until_ns` (clock_now_ns) at most. */
bool throttle_wait_until(struct throttle *t, struct ack *ack, uint64_t until_ns);
/* There is room (or waiting has no sense any more): answers all. Not under a lock that an ack's owner may take. */
void throttle_release(struct throttle *t);
struct throttle *throttle_free(struct throttle *t); /* answers all first; NULL ok; returns NULL */
DEFINE_CLEANUP(struct throttle *, throttle_free)

#endif
