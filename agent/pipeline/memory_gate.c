#include "agent/pipeline/memory_gate.h"

#include "agent/base/clock.h"
#include "agent/pipeline/graph.h"

#define LOG_NS (10 * NS_PER_S) /* between two lines about refusals */

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

void memory_gate_refused(const struct memory_gate *a)
{
    static _Atomic uint64_t logged_ns;
    const uint64_t now_ns = clock_now_ns();
    uint64_t before_ns = atomic_load(&logged_ns);
    metric_add(a->refused, 1);
    if ((before_ns && now_ns - before_ns < LOG_NS) ||
        !atomic_compare_exchange_strong(&logged_ns, &before_ns, now_ns))
        return;
    const size_t soft = mem_soft_limit(), limit = a->limit < soft ? a->limit : soft;
    log_warn(NULL, "Memory is short. New data is refused until there is room.",
             LOG_INT("in_use_mib", mem_in_use() >> 20), LOG_INT("refused_from_mib", limit >> 20));
}

bool memory_gate_room(const struct memory_gate *a, size_t bytes)
{
    const bool room = !a->limit || mem_room(a->limit, bytes);
    if (!room)
        memory_gate_refused(a);
    return room;
}
