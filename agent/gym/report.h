/*
 * Whether traces hold together: spans are collected, and a verdict says whether the services of a run pass the trace context
 * on (NeMo Gym's own check is that one trace id has several spans). Spans that come twice count once. Not thread safe.
 */
#ifndef MOTEL_GYM_REPORT_H
#define MOTEL_GYM_REPORT_H

#include "proto/batch.h"

#define REPORT_MAX_TRACES 100000 /* traces that are kept by default, and per trace on average: */
#define REPORT_SPANS_PER_TRACE 50

struct report;
/* Keeps `max_traces` traces (0 = REPORT_MAX_TRACES) with REPORT_SPANS_PER_TRACE spans each on average; what is beyond is
 * only counted. About 40 bytes a span and 100 a trace. NULL when out of memory. */
struct report *report_new(size_t max_traces);
struct report *report_free(struct report *r); /* NULL ok; returns NULL */
DEFINE_CLEANUP(struct report *, report_free)
/* Takes in what a batch holds. 0 or -ENOMEM (then a part of it may count). */
int report_add(struct report *r, const struct batch *b);
bool report_is_empty(const struct report *r); /* no record of any kind came */

enum propagation {
    PROPAGATION_WORKS,
    PROPAGATION_BROKEN,
    PROPAGATION_NOT_SHOWN, /* nothing is broken, but no trace shows that it works */
};
/* Judges all that was added so far; more may be added and judged again. -ENOMEM is not possible: no memory is needed. */
enum propagation report_judge(struct report *r);

/* Each appends to `out` what report_judge() found; 0, -ENOMEM or -EMSGSIZE. */
/* "412 traces: 409 span the agent, model and resources servers; 3 are broken: …", without a line end. */
int report_sentence(const struct report *r, struct buf *out);
/* For people: the sentence, the broken traces (all of them, or the first few), services, and the spans that took most time. */
struct report_options {
    bool all;       /* every trace, not only broken ones */
    unsigned files; /* read; 0 = it came over the network */
};
int report_text(const struct report *r, const struct report_options *o, struct buf *out);
/* The same as one JSON object (docs/report.md). */
int report_json(const struct report *r, const struct report_options *o, struct buf *out);

#endif
