/* Many small requests of several servers through resource, transform and batch, and the one batch
 * that they make as an exporter sends it. */
#include "agent/pipeline/otlp_client.h"
#include "proto/wire_order.h"
#include "tests/guard/guard.h"

extern const struct component_type processor_resource, processor_transform, processor_batch;

#define REQUESTS 100
#define SPANS 10 /* of a request */
#define SERVERS 4

static struct batch *requests[REQUESTS];
static struct made resource, transform, batcher;

static void prepare(void)
{
    made_init(&batcher, &processor_batch, "{send_batch_size: 1000, timeout: 1000s}", &end_component,
              SIGNAL_TRACES);
    made_init(&transform, &processor_transform,
              "trace_statements: [{context: span, statements: ["
              "'set(attributes[\"gym.step\"], 0) where attributes[\"gym.step\"] == nil', "
              "'set(attributes[\"gym.kind\"], \"model\") where attributes[\"gym.step\"] == 7', "
              "'set(status.message, \"no answer\") where status.code == 2']}]",
              batcher.c, SIGNAL_TRACES);
    made_init(&resource, &processor_resource,
              "attributes: [{key: run.id, value: run-0001, action: upsert}, "
              "{key: run.user, value: somebody, action: upsert}, "
              "{key: run.model, value: example/model-70b, action: upsert}, "
              "{key: run.attempt, value: 3, action: upsert}, "
              "{key: deployment.environment, value: cluster, action: upsert}, "
              "{key: service.namespace, value: gym, action: upsert}, "
              "{key: service.name, value: fallback, action: insert}]",
              transform.c, SIGNAL_TRACES);
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i] = body_batch(i % SERVERS, i * SPANS, SPANS);
}

static uint32_t run(void)
{
    struct wire_order *owner;
    struct bytes request;
    for (unsigned i = 0; i < REQUESTS; i++)
        guard_offer(resource.c, batch_ref(requests[i]));
    struct batch *b = end_take();
    guard_must(b && b->records == REQUESTS * SPANS, "the batch is not complete");
    guard_must(otlp_client_request(b, &owner, &request) == 0 && request.len > b->bytes / 2,
               "no request");
    wire_order_free(owner);
    const uint32_t records = b->records;
    batch_unref(b);
    return records;
}

static void finish(void)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        batch_unref(requests[i]);
    made_done(&resource);
    made_done(&transform);
    made_done(&batcher);
}

const struct workload workload_pipeline = {
    .name = "pipeline", .rounds = 3, .prepare = prepare, .round = run, .finish = finish};
