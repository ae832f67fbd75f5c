/* Fixed pieces of work whose instructions are counted (README.md here). Everything in them is the same in each run. */
#ifndef MOTEL_TESTS_GUARD_H
#define MOTEL_TESTS_GUARD_H

#include "agent/config/config.h"
#include "agent/pipeline/component.h"
#include "proto/batch.h"

struct workload {
    const char *name;
    unsigned rounds;      /* that are counted */
    void (*prepare)(void);
    uint32_t (*round)(void); /* the records that it worked on */
    void (*finish)(void); /* NULL = nothing to give back */
};
extern const struct workload workload_receive, workload_pipeline, workload_file_json, workload_span_metrics, workload_scrape_new,
    workload_scrape_known, workload_json_receive;

/* Ends the program unless `ok`. */
void guard_must(bool ok, const char *what);

/* ---- requests (bodies.c) ---- */

/* A traces request of one resource, number `resource`, with `n` spans of about 576 bytes and 12 attributes; `first` numbers them. */
struct buf *body_traces(unsigned resource, unsigned first, unsigned n);
/* The same, checked. */
struct batch *body_batch(unsigned resource, unsigned first, unsigned n);
/* A page of 5,000 series in the Prometheus text format: counters, gauges and histograms, whose values hang on `age`. */
#define PAGE_SERIES 5000
struct buf *body_page(unsigned age);

/* ---- components (chain.c) ---- */

/* A component made from YAML text, as the program does it, for traces. `next` NULL: what it emits is dropped. */
struct made {
    struct component *c;
    struct config *config;
    const void *bound;
};
void made_init(struct made *m, const struct component_type *type, const char *yaml, struct component *next, enum signal emits);
void made_done(struct made *m);
/* The settings in `yaml`, bound by `fields`. */
const void *guard_bind(const struct cfg_field *fields, size_t size, const char *yaml, struct config **ret);
/* What all components share. */
struct host *guard_host(void);

/* The end of a chain: keeps the last batch (end_batch) and counts. Offers are answered with OK. */
extern struct component end_component;
struct batch *end_take(void); /* the last one that came since the last call; NULL = none */
/* Offers `b`, which has to be taken at once. */
void guard_offer(struct component *c, struct batch *b);

#endif
