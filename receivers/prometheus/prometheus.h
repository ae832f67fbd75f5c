/* What the files of the prometheus receiver share: jobs, targets, the thread that scrapes. */
#ifndef MOTEL_RECEIVERS_PROMETHEUS_PROMETHEUS_H
#define MOTEL_RECEIVERS_PROMETHEUS_PROMETHEUS_H

#include "agent/net/http_async.h"
#include "agent/pipeline/memory_gate.h"
#include "receivers/prometheus/config.h"
#include "receivers/prometheus/mapping.h"
#include "receivers/prometheus/outbox.h"
#include "receivers/prometheus/relabel.h"
#include "receivers/prometheus/replay.h"
#include "receivers/prometheus/series.h"

#define MAX_PAGE_BYTES (256u * 1024 * 1024) /* of a page where no limit is configured, and of its compressed form */

struct job {
    struct job_settings settings;
    struct relabel_rules *target_rules, *sample_rules;
    struct tls_client_settings tls;
    struct http_client_settings http;
    bool too_many; /* more targets than target_limit: all scrapes fail */
    size_t ntargets;
};
/* `file` and `config` outlive the job. 0 or -errno with reterr. */
int prom_job_init(struct job *j, const struct prom_file_config *file, const struct scrape_config *config, struct err *reterr);
void prom_job_done(struct job *j);
/* The headers of one request as http_client_request has them, in `a`; reads the files that hold credentials. NULL with reterr. */
const char *const *prom_job_request_headers(const struct job *j, uint64_t timeout_ns, struct arena *a, struct err *reterr);

/* What a target is, after its rules ran. All in its arena. */
struct target_spec {
    struct arena *arena;
    struct prom_labels labels; /* those of its samples, sorted */
    const char *url, *scheme;
    struct bytes job, instance;
    uint64_t interval_ns, timeout_ns;
    uint64_t hash; /* of URL, labels and times: what makes a target the same one */
};
/* `b` holds what was discovered (__address__ and labels). 1; 0 = dropped by the rules; -EINVAL with the reason; -ENOMEM. */
int prom_target_spec_make(const struct job *j, struct label_builder *b, struct target_spec *ret, struct err *reterr);
void prom_target_spec_done(struct target_spec *s);

struct target {
    struct target *next;
    struct scraper *scraper;
    struct job *job;
    struct target_spec spec;
    struct http_caller *caller; /* made at the first scrape */
    struct arena *request;      /* strings of the request under way */
    struct series_table series;
    struct prom_metadata *metadata;
    struct scrape_metrics counters;
    uint64_t next_ns;       /* when the next scrape is due */
    uint64_t started_ns;    /* of the scrape under way */
    uint64_t aligned_ms;    /* time stamp that the present scrape should have; 0 = not known yet */
    int64_t time_ms;        /* time stamp of the present scrape */
    bool found;             /* discovery has it */
    uint64_t gone_at_ns;    /* not found any more: when its stale points go out */
    bool scraped;           /* at least once */
    bool down;              /* the last scrape failed, and the log has said so */
    bool final_owed;        /* the last scrape, at the stop */
    bool renamed_told;
    size_t body_bytes;      /* of the last response, and a bit more */
    bool steady;            /* the last page had nothing new */
    struct prom_replay *replay; /* for a page like the last one; NULL = none */
    unsigned replays_failed;    /* one after the other */
    unsigned replay_wait;       /* scrapes until the next page is recorded */
};
/* Takes the content of `spec`. NULL when out of memory. */
struct target *prom_target_new(struct scraper *s, struct job *j, struct target_spec *spec);
struct target *prom_target_free(struct target *t); /* NULL ok; returns NULL */

/* The thread that scrapes, and what it works with. */
struct scraper {
    struct component *owner;
    const struct prom_config *config;
    struct job *jobs;
    size_t njobs;
    struct target *targets;
    struct http_async *async;
    struct prom_outbox outbox;
    struct memory_gate memory;
    struct prom_mapper *mapper;
    struct label_builder labels;
    struct buf *scratch;
    struct prom_label *items; /* room for the labels of one series */
    size_t nitems;
    struct prom_label *external; /* global::external_labels */
    size_t nexternal;
};

/* What came back of a request. */
struct page {
    int error; /* 0 or -errno, with the reason in `reason` */
    const char *reason;
    struct http_client_response *response; /* NULL when error */
    uint64_t duration_ns;
};
/* Turns a page into points and sends them: samples, stale points, `up` and the scrape_* metrics. Keeps the counters and the log of the
 * target's state. */
void prom_scrape_finish(struct scraper *s, struct target *t, const struct page *p);
/* Stale points for everything that the target last said; for a target that is gone. */
void prom_scrape_forget(struct scraper *s, struct target *t, int64_t time_ms);
/* The reason phrase of an HTTP status; "" = not a known one. */
const char *prom_status_text(int status);

/* Targets that files name; one for each file_sd_configs entry of each job. */
struct discovery;
struct discovery *prom_discovery_new(struct scraper *s); /* NULL when out of memory */
struct discovery *prom_discovery_free(struct discovery *d); /* NULL ok; returns NULL */
/* Reads what has changed and updates s->targets. Returns when it wants to be called again; UINT64_MAX = never. */
uint64_t prom_discovery_run(struct discovery *d, uint64_t now_ns);

/* Starts the scrape of a target; its end comes through prom_scrape_finish(). */
void prom_target_scrape(struct target *t, uint64_t deadline_ns);
/* When a new target is scraped first, and how its time stamps are aligned. */
void prom_target_schedule(struct target *t, uint64_t now_ns);

#endif
