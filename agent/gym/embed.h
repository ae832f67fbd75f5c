/* Pipelines inside a command (replay): made from a configuration that the command writes itself. */
#ifndef MOTEL_GYM_EMBED_H
#define MOTEL_GYM_EMBED_H

#include "agent/pipeline/graph.h"

struct embed {
    struct host *host;
    struct config *config;
    struct service_settings *settings;
    struct graph *graph;
};
/*
 * Starts the pipelines of the configuration `text` (YAML, so JSON, too) with the component types of the program and `own`, a type that only
 * the command has. `settings`: those of the motel: section. 0 or a negative errno with reterr; embed_done() afterwards in any case.
 */
int embed_start(struct embed *e, const char *text, const struct component_type *own, const struct motel_settings *settings,
                struct err *reterr);
/* Stops them; what waits is delivered until the deadline (clock_now_ns). Legal twice. */
void embed_stop(struct embed *e, uint64_t deadline_ns);
void embed_done(struct embed *e);
/* Appends a JSON string that the configuration's ${...} expansion leaves as it is. 0 or -ENOMEM. */
int embed_put_string(struct buf *out, const char *text);

#endif
