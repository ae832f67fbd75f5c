/* What a report keeps: services, span names, traces and spans in tables that refer to each other by number. */
#ifndef MOTEL_GYM_REPORT_DATA_H
#define MOTEL_GYM_REPORT_DATA_H

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

#endif
