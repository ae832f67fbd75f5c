/* What struct host is made of; for agent/pipeline/ alone. */
#ifndef MOTEL_PIPELINE_HOST_PARTS_H
#define MOTEL_PIPELINE_HOST_PARTS_H

#include "agent/base/cond.h"
#include "agent/pipeline/host.h"

struct timers;
struct timers *timers_new(void);
struct timers *timers_free(struct timers *t); /* joins the thread; all timers were freed before; NULL ok */
struct timers *host_timers(struct host *h);

struct metrics;
struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *m); /* NULL ok */
/* The labels of target_info; the text is copied. 0 or -ENOMEM. */
int metrics_set_target(struct metrics *m, const char *labels);
struct metrics *host_metrics(struct host *h);

struct graph;
struct graph *host_graph(const struct host *h); /* the one that answers host_extension() */

#endif
