/* What a report is made of: report.c collects, report_judge.c judges, report_text.c and report_json.c say it. */
#ifndef MOTEL_GYM_REPORT_PARTS_H
#define MOTEL_GYM_REPORT_PARTS_H

#include "agent/base/arena.h"
#include "agent/gym/index.h"
#include "agent/gym/report.h"

/* Limits of the tables beside traces and spans. What is beyond shares item 0 of its table. */
#define MAX_SERVICES 1000
#define MAX_SETS 10000
#define MAX_NAMES 20000
#define MAX_URLS 100000

/* What a service is in NeMo Gym (nemo.gym.server.type), in the order in which a sentence names them. */
enum server_type { SERVER_OTHER, SERVER_ENVIRONMENT, SERVER_AGENT, SERVER_MODEL, SERVER_RESOURCES, SERVER_ORCHESTRATOR };

struct service {
    const char *name;
    enum server_type type;
    uint64_t spans, errors, points, logs;
    uint32_t traces;     /* judged: it has spans in */
    bool starts_traces;  /* judged: some trace with its spans alone is no poll */
};
/* Services that have spans in one trace; shared by all traces with the same. */
struct service_set {
    uint32_t n;
    const uint16_t *services; /* ascending */
    uint32_t traces;          /* judged: good ones with exactly these */
};
enum { FULL_SET, EMPTY_SET }; /* the first two: what is beyond the table; no service yet */
/* All spans of a service with the same name. */
struct span_name {
    const char *name;
    uint32_t service;
    uint64_t count, errors, total_ns, max_ns;
    uint32_t joined; /* judged: whose parent is of another service */
};
/* A place that requests go to: port and path of a URL. */
struct url {
    uint64_t hash;
    uint32_t clients, joined, roots; /* CLIENT spans; SERVER spans with a parent; without one */
};
struct span {
    uint64_t id, parent; /* as they stand in memory; parent 0 = a root */
    uint32_t trace, name;
};
enum fault {
    FAULT_ORPHANS = 1, /* a parent was never seen */
    FAULT_ROOTS = 2,   /* several roots, or none */
    FAULT_ANEW = 4,    /* begins in a service that was called by another one */
    FAULT_APART = 8,   /* no trace at all goes from one service to another */
};
#define FAULT_KINDS 4

struct trace {
    uint8_t id[16];
    uint32_t spans, truncated, errors;
    uint32_t set;                       /* of services */
    uint32_t roots, root, root_url;     /* how many; name and URL of the first; root_url 0 = none */
    uint32_t orphans, orphan;           /* judged; name of the first */
    uint8_t root_kind, faults;          /* faults: judged */
    bool cut;                           /* spans of it were not kept: it cannot be judged */
};

struct remembered_service { /* of a resource, by its hash */
    uint64_t hash;
    uint32_t service;
};
#define REMEMBERED 64

struct report {
    struct arena *arena; /* of names and sets */
    struct service *services;
    struct service_set *sets;
    struct span_name *names;
    struct url *urls;
    struct trace *traces;
    struct span *spans;
    size_t nservices, nsets, nnames, nurls, ntraces, nspans;
    size_t services_cap, sets_cap, names_cap, urls_cap, traces_cap, spans_cap;
    size_t max_traces, max_spans;
    struct index service_index, set_index, name_index, url_index, trace_index, span_index;
    struct remembered_service remembered[REMEMBERED];
    uint64_t records[SIGNAL_COUNT]; /* duplicates not among them */
    uint64_t duplicates, truncated;
    uint64_t beyond; /* spans of traces that were not kept */
    /* what report_judge() found */
    enum propagation propagation;
    uint32_t judged, joined, single, broken, cut, largest;
    uint32_t faults[FAULT_KINDS]; /* traces, each under its first fault */
};

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
