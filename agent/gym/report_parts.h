/* What a report is made of: report.c collects, report_judge.c judges, report_text.c and report_json.c say it. */
#ifndef MOTEL_GYM_REPORT_PARTS_H
#define MOTEL_GYM_REPORT_PARTS_H

#include "agent/gym/report_data.h"

/* ---- report_tables.c: each finds the item or adds it; 0 or -ENOMEM ---- */
/* *ret = 0: there is no room for another one. */
int report_put_service(struct report *r, struct bytes name, enum server_type type, uint32_t *ret);
int report_put_name(struct report *r, struct bytes name, uint32_t service, uint32_t *ret);
int report_put_set(struct report *r, const uint16_t *services, uint32_t n, uint32_t *ret);
int report_put_url(struct report *r, uint64_t hash, uint32_t *ret);
/* `id`: 16 bytes. *ret = INDEX_NONE: it is one too many. */
int report_put_trace(struct report *r, const uint8_t *id, uint32_t *ret);
int report_put_span(struct report *r, const struct span *s); /* that is not there */
/* The span of trace `trace` with this id; INDEX_NONE. */
uint32_t report_find_span(const struct report *r, uint32_t trace, uint64_t id);

/* ---- report_span.c ---- */
enum { SPAN_KIND_SERVER = 2, SPAN_KIND_CLIENT = 3, SPAN_KIND_CONSUMER = 5 };
struct seen_span {
    struct bytes name;
    uint64_t id, parent, start_ns, end_ns;
    uint32_t kind;
    bool error, truncated;
    uint64_t url; /* hash of the port and path that the request goes to; 0 = none */
};
struct seen_span report_see_span(struct bytes record);

/* ---- report_judge.c ---- */

/* Both keep 64 at most. The span names with most time first: numbers of r->names in ret[max]; how many there are. */
size_t report_slowest(const struct report *r, uint32_t *ret, size_t max);
/* The sets with most good traces first, those of several services only. */
size_t report_largest_sets(const struct report *r, uint32_t *ret, size_t max);
/* "the agent, model and resources servers" when all are servers of NeMo Gym, else their names. */
int report_set_text(const struct report *r, const struct service_set *s, struct buf *out);
/* Why the trace is broken, in words: "2 spans have a parent that was never seen, the first is …". Several faults with "; ". */
int report_fault_text(const struct report *r, const struct trace *t, struct buf *out);
const char *report_fault_name(enum fault f); /* "orphans", … for JSON */

#endif
