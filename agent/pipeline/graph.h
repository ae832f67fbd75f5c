/* The running pipelines: instances, edges, start and stop order. */
#ifndef MOTEL_PIPELINE_GRAPH_H
#define MOTEL_PIPELINE_GRAPH_H

#include "agent/pipeline/host.h"
#include "agent/pipeline/settings.h"

struct graph;
/* Creates all instances that are used, wires fan-outs, numbers leaf branches; finds cycles. No sockets, no threads. Mistakes name the
 * component and its place in the file. 0 or -EINVAL. `s` must outlive the graph. */
int graph_build(struct host *h, const struct service_settings *s, struct cfg_errors *errs, struct graph **ret);
/* Extensions, then exporters back to receivers, then extensions are told ready. On failure everything is stopped again;
 * -errno with "cannot start pipelines: failed to start \"otlp\" receiver: …" in reterr. */
int graph_start(struct graph *g, struct err *reterr);
/* Not ready, receivers, processors and connectors in flow order, exporters, extensions. */
void graph_stop(struct graph *g, uint64_t deadline_ns);
/* Another thread is in graph_stop(): no more time for deliveries; what is left goes to the disk where there is a place for it. */
void graph_hurry(struct graph *g);
struct graph *graph_free(struct graph *g); /* NULL ok; stopped before */
const void *graph_extension(struct graph *g, const char *id, enum capability kind); /* NULL = none */

/* Calls see() for every instance: extensions, exporters, processors and connectors, receivers. `signals`: of the pipelines that it is in. */
void graph_each(struct graph *g, void (*see)(void *ctx, const struct component_settings *s, struct component *c, unsigned signals), void *ctx);

/* One fan-out point. */
struct queue;
struct fanout *fanout_new(unsigned nbranches);
/* Branch i: a component's consume(), or a queue; `leaves` are the ack.owed bits below it. */
void fanout_set(struct fanout *f, unsigned i, struct component *c, struct queue *q, uint64_t leaves);
/* Optional: counters of the records offered to all, and to one branch (the graph counts what goes into and out of processors). */
void fanout_count(struct fanout *f, struct metric *records);
void fanout_count_branch(struct fanout *f, unsigned i, struct metric *records);
/* Takes `b`. Offers to every branch with a bit in ack->owed; combines the answers (any RETRY -> RETRY with owed set to those; else any
 * REJECT; else OK; PENDING delays). */
enum verdict fanout_offer(struct fanout *f, struct batch *b, struct ack *ack);
/* The lowest memory limit of the processors below (component_type.memory_limit), up to connectors; MEM_NO_LIMIT = none. */
size_t fanout_memory_limit(const struct fanout *f);
struct fanout *fanout_free(struct fanout *f);

/* The program-wide host; one for the life of the process, across reloads. */
struct host *host_new(const struct motel_settings *s);
struct host *host_free(struct host *h);
void host_set_graph(struct host *h, struct graph *g);
void host_set_stopping(struct host *h, bool stopping);
void host_set_settings(struct host *h, const struct motel_settings *s);
/* The resource of target_info: name, value pairs, NULL ended ("service.name", "motel", …). 0 or -ENOMEM. */
int host_set_resource(struct host *h, const char *const *pairs);

#endif
