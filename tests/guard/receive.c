/* A request of 100 spans as it comes from a client: checked and counted; in protobuf, and in JSON.
 */
#include "proto/check.h"
#include "proto/json.h"
#include "tests/guard/guard.h"

#define SPANS 100

static struct buf *body;

static void prepare(void)
{
    body = body_traces(0, 0, SPANS);
}

static uint32_t receive(void)
{
    struct batch *b = NULL;
    guard_must(batch_from_wire(SIGNAL_TRACES, buf_ref(body), &b, NULL) == 0, "a body was refused");
    const uint32_t records = b->records;
    guard_must(records == SPANS && otlp_count(SIGNAL_TRACES, buf_bytes(body)) == SPANS,
               "spans were lost");
    batch_unref(b);
    return records;
}

static void finish(void)
{
    buf_unref(body);
}

const struct workload workload_receive = {
    .name = "receive", .rounds = 100, .prepare = prepare, .round = receive, .finish = finish};

static void prepare_json(void)
{
    struct batch *b = body_batch(0, 0, SPANS);
    body = buf_new(0);
    guard_must(body && json_write_batch(b, 0, body) == 0, "no memory");
    batch_unref(b);
}

static uint32_t receive_json(void)
{
    struct buf *wire = buf_new(0);
    struct batch *b = NULL;
    guard_must(wire && json_read(schema_request(SIGNAL_TRACES), buf_bytes(body), wire, NULL) == 0 &&
                   batch_from_wire(SIGNAL_TRACES, wire, &b, NULL) == 0,
               "a body was refused");
    const uint32_t records = b->records;
    guard_must(records == SPANS, "spans were lost");
    batch_unref(b);
    return records;
}

const struct workload workload_json_receive = {.name = "json_receive",
                                               .rounds = 10,
                                               .prepare = prepare_json,
                                               .round = receive_json,
                                               .finish = finish};
