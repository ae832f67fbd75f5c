/* Spans of several servers counted into series, and the metrics that come of them. */
#include "agent/base/clock.h"
#include "connectors/span_metrics/aggregate.h"
#include "connectors/span_metrics/encode.h"
#include "tests/guard/guard.h"

#define REQUESTS 10
#define SPANS 100 /* of a request */
#define SERVERS 4

static struct batch *requests[REQUESTS];
static struct config *config;
static struct aggregate aggregate;

static void prepare(void)
{
    const struct span_metrics_config *bound =
        guard_bind(span_metrics_fields, sizeof(struct span_metrics_config),
                   "dimensions: [{name: http.route}, {name: http.response.status_code}, "
                   "{name: gym.absent}]",
                   &config);
    guard_must(aggregate_init(&aggregate, bound, NULL) == 0, "no memory");
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i] = body_batch(i % SERVERS, i * SPANS, SPANS);
}

static void export_all(void)
{
    const struct encoding e = {.config = aggregate.config,
                               .histogram_in_sums = aggregate.resources.histogram_in_sums,
                               .used = COUNTS_REAL,
                               .aside = COUNTS_REAL,
                               .time_ns = 1790000000000000000u};
    struct batch *b = encode_metrics(&e, &aggregate.resources, &aggregate.shape);
    guard_must(b && b->records > SERVERS, "no metrics");
    batch_unref(b);
}

static uint32_t run(void)
{
    uint32_t records = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        guard_must(aggregate_batch(&aggregate, requests[i], 1, 1), "nothing was counted");
        records += requests[i]->records;
    }
    export_all();
    return records;
}

static void finish(void)
{
    aggregate_done(&aggregate);
    for (unsigned i = 0; i < REQUESTS; i++)
        batch_unref(requests[i]);
    config_free(config);
}

const struct workload workload_span_metrics = {
    .name = "span_metrics", .rounds = 10, .prepare = prepare, .round = run, .finish = finish};
