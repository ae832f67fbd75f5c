/* The one interface of receivers, processors, connectors, exporters and extensions. */
#ifndef MOTEL_PIPELINE_COMPONENT_H
#define MOTEL_PIPELINE_COMPONENT_H

#include "agent/base/log.h"
#include "agent/config/bind.h"
#include "proto/batch.h"

/* RETRY: the same data may pass later. REJECT: never. PENDING: ack_done() follows, exactly once. */
enum verdict { VERDICT_OK, VERDICT_RETRY, VERDICT_REJECT, VERDICT_PENDING };

struct outcome {
    uint32_t rejected;       /* records refused inside an OK batch -> partial_success */
    uint32_t retry_after_ms; /* with RETRY; 0 = caller's back-off */
    bool retry_after_own;    /* from send(): retry_after_ms is for our own back-off and not told to clients (HTTP backends) */
    bool counted;            /* with REJECT: the metrics of who refused have the loss already; who held the data does not count it again */
    bool also_lost;          /* with RETRY: a branch that is not owed any more has refused for good, and has not counted it */
    uint32_t pause_ms;       /* with OK: more lies here than leaves at once; who can hold its clients back for so long should */
    int status;              /* gRPC code to show upstream; 0 = derive from the verdict */
    char message[256];       /* for the client; valid UTF-8 */
};

/* Who waits for the answer; lives until done() was called, or until consume() answered other than PENDING. */
struct ack {
    /* Any thread, exactly once for each PENDING; it may come before consume() has returned PENDING. `out` may be NULL. */
    void (*done)(struct ack *a, enum verdict v, const struct outcome *out);
    struct outcome now; /* the answer's details when it is not PENDING; the callee fills it before it answers */
    uint64_t owed;      /* leaf branches still to be offered: all bits (ACK_ALL) at the first offer; after RETRY those that
                           refused. Who offers the same batch again passes it on unchanged; set it anew for another batch. */
};
#define ACK_ALL UINT64_MAX

static inline void ack_done(struct ack *a, enum verdict v, const struct outcome *out) { a->done(a, v, out); }
/* Fills a->now (status 0: derived from `v`; the text is cut at a character); returns `v`. */
enum verdict ack_answer(struct ack *a, enum verdict v, int status, const char *fmt, ...) _printf_(4, 5);

enum component_kind { KIND_RECEIVER, KIND_PROCESSOR, KIND_CONNECTOR, KIND_EXPORTER, KIND_EXTENSION, KIND_COUNT };
/* "receiver", …; plural for config sections: "receivers". */
const char *component_kind_name(enum component_kind k);
const char *component_kind_section(enum component_kind k);

enum capability { CAP_STORAGE, CAP_SERVER_AUTH, CAP_CLIENT_AUTH, CAP_ENCODING };

struct host; struct component;
struct fanout; struct probe;
struct exporter_settings; /* pipeline/queue.h */

struct component_args {
    const char *id;       /* "otlp_http/backend", as written in the config */
    enum signal signal;   /* processors only */
    const char *pipeline; /* processors only: "traces/2" */
    const void *config;   /* bound by `fields`, checked; lives as long as the component */
    struct host *host;
};

/* How a processor batches, for the queues that do it in its place. time-out 0 = no wait; max 0 = never cut. */
struct batch_limits { int64_t timeout_ns, min_records, max_records; };

struct component_type {
    enum component_kind kind;
    const char *name;            /* "otlp_http" */
    const char *const *aliases;  /* { "otlphttp", NULL }; NULL = none */
    unsigned accepts, emits;     /* SIGNAL_BIT() sets; a connector has both; accepts for processors and exporters, emits for receivers */
    bool same_signal;            /* connector: every signal leaves only as itself (forward) */
    const char *stability[SIGNAL_COUNT]; /* for `components`: "stable", "beta"; NULL = signal not served */
    const char *help;            /* one sentence */

    const struct cfg_field *fields; /* NULL = no keys */
    size_t config_size;
    /* Cross-field rules; no side effects; `validate` calls it too. 0 or a negative errno with reterr (err_at() names the key). */
    int (*check)(const void *config, struct err *reterr);
    /* Exporter in a pipeline of signal `s`: whether the config serves it. NULL = always. */
    int (*check_signal)(const void *config, enum signal s, struct err *reterr);
    /* Queued exporters: where the queue, retry and time-out settings are in the config. NULL = not queued. */
    const struct exporter_settings *(*settings)(const void *config);

    /* Build only: no threads, no sockets. */
    int (*create)(const struct component_args *args, struct component **ret, struct err *reterr);
    /* Downstream is already running. Open sockets, start threads, return quickly. NULL = nothing to do. */
    int (*start)(struct component *c, struct err *reterr);
    /* Upstream has stopped. Flush to next, join threads, before `deadline_ns` (clock_now_ns). Legal without start, legal twice. */
    void (*stop)(struct component *c, uint64_t deadline_ns);
    void (*destroy)(struct component *c); /* NULL and half-built ok */

    /* Processor, connector, unqueued exporter. Any thread. MUST NOT block. Always takes the caller's reference of `b`. */
    enum verdict (*consume)(struct component *c, struct batch *b, struct ack *ack);
    /* Queued exporter instead: one blocking attempt on a worker thread; borrows b; ends by deadline_ns; interrupted by stop() (then RETRY).
     * Called by several workers at once, and, at a stop, perhaps once more after stop(): RETRY at once. */
    enum verdict (*send)(struct component *c, const struct batch *b, uint64_t deadline_ns, struct outcome *out);
    /* Processor that holds requests back to batch them: told before the start when all exporters behind it have queues on disk. From then on
     * consume() hands every request on at once, so that an OK means that it is on disk, and the queues batch by *ret. NULL = holds nothing back. */
    void (*hand_through)(struct component *c, struct batch_limits *ret);
    /* Extension: the vtable of what it offers, or NULL. */
    const void *(*capability)(struct component *c, enum capability kind);
    /* Processor: the memory in use from which on it refuses data (bytes), for receivers to know beforehand. NULL = it does not. */
    size_t (*memory_limit)(const struct component *c);
    /* Extension: all pipelines run (true), or are about to stop (false). NULL = not interested. */
    void (*ready)(struct component *c, bool ready);
    /* For `doctor` (pipeline/probe.h): looks at what it needs from outside, without having been started. NULL = needs nothing. */
    void (*probe)(struct component *c, struct probe *p);
};

struct component { /* first member of every instance struct */
    const struct component_type *type;
    const char *id;
    struct host *host;
    struct logger logger;
    struct fanout *next[SIGNAL_COUNT]; /* filled by the graph before start; NULL = signal unused */
};
/* Fills the base of an instance from its arguments (id, host, logger). */
void component_init(struct component *c, const struct component_type *type, const struct component_args *args);
/* Takes `b`; offers it to next[b->signal]. A missing branch answers OK. */
enum verdict component_emit(struct component *c, struct batch *b, struct ack *ack);

/* agent/components.c: alphabetical within a kind, NULL ended. */
extern const struct component_type *const component_types[];
/* By kind and name or alias; *ret_alias says that it was an alias. NULL when unknown. `id` may have a "/name". */
const struct component_type *component_type_find(enum component_kind kind, const char *id, bool *ret_alias);

#endif
