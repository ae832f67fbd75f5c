/* Whether there is memory for new data: asked by receivers before they read it. */
#ifndef MOTEL_PIPELINE_MEMORY_GATE_H
#define MOTEL_PIPELINE_MEMORY_GATE_H

#include "agent/base/mem.h"
#include "agent/pipeline/host.h"

/* The reference collector's words, for clients. */
#define MEMORY_REFUSED "data refused due to high memory usage"

struct memory_gate { /* all zero = always room */
    size_t limit;           /* the lowest of the memory limiters in the pipelines of the receiver; MEM_NO_LIMIT = none */
    struct metric *refused; /* motel_receiver_memory_refused_requests */
};
/* For one signal of a receiver, whose next[] is filled (start() and later). */
void memory_gate_get(struct component *receiver, enum signal s, const char *transport, struct memory_gate *ret);
/* Counts a refusal; the first one in 10 s is logged. */
void memory_gate_refused(const struct memory_gate *a);
/* Whether `bytes` more can be taken now; also within the limit of the process. A refusal is counted. */
bool memory_gate_room(const struct memory_gate *a, size_t bytes);

/* The lowest memory limit among the processors that data of signal `s` from `c` comes to; MEM_NO_LIMIT = none. */
size_t component_memory_limit(const struct component *c, enum signal s);

#endif
