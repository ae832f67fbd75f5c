#include "agent/pipeline/memory_gate.h"

#include "agent/pipeline/graph.h"

size_t component_memory_limit(const struct component *c, enum signal s)
{
    return c->next[s] ? fanout_memory_limit(c->next[s]) : MEM_NO_LIMIT;
}

void memory_gate_get(struct component *receiver, enum signal s, const char *transport,
                     struct memory_gate *ret)
{
    char labels[METRIC_LABELS_MAX] = "";
    metric_label(labels, "receiver", receiver->id);
    metric_label(labels, "transport", transport);
    ret->limit = component_memory_limit(receiver, s);
    ret->refused = metric_counter(
        receiver->host, "motel_receiver_memory_refused_requests",
        "Requests, reads and scrapes that were put off because memory was short.", labels);
}

bool memory_gate_room(const struct memory_gate *a, size_t bytes)
{
    const bool room = !a->limit || mem_room(a->limit, bytes);
    if (!room)
        metric_add(a->refused, 1);
    return room;
}
