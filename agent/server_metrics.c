#include "agent/server_metrics.h"

#include "agent/net/limits.h"

static int64_t read_connections(void *ctx _unused_)
{
    return server_connections();
}

/* `ctx` is the event's name, which stands for it. */
static int64_t read_event(void *ctx)
{
    for (unsigned e = 0; e < SERVER_EVENTS; e++)
        if (server_event_name((enum server_event)e) == ctx)
            return server_counted((enum server_event)e);
    return 0;
}

void server_metrics_show(struct host *h)
{
    metric_observe(h, "motel_server_connections", "Connections of clients to all listeners.", "",
                   read_connections, NULL);
    for (unsigned i = 0; i < SERVER_EVENTS; i++) {
        const enum server_event e = (enum server_event)i;
        char labels[METRIC_LABELS_MAX] = "";
        metric_label(labels, "reason", server_event_name(e));
        if (server_event_refuses(e))
            metric_observe_counter(h, "motel_server_refused_connections",
                                   "Connections that were not let in.", labels, read_event,
                                   (void *)server_event_name(e));
        else
            metric_observe_counter(h, "motel_server_closed_connections",
                                   "Connections and streams that were ended by a limit.", labels,
                                   read_event, (void *)server_event_name(e));
    }
}
