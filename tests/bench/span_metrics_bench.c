/* span_metrics_bench [ROUNDS]: CPU time per span of counting spans into series, and per series of
 * an export. */
#include <stdio.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/config/config.h"
#include "connectors/span_metrics/aggregate.h"
#include "connectors/span_metrics/encode.h"
#include "proto/wire.h"

#define SPANS 1000
#define NAMES 20

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void put_attribute(struct buf *b, uint32_t number, const char *key, const char *value)
{
    size_t kv, any;
    wire_begin(b, number, &kv);
    wire_put_str(b, 1, key);
    wire_begin(b, 2, &any);
    wire_put_str(b, 1, value);
    wire_end(b, any);
    wire_end(b, kv);
}

/* About 400 bytes, with eight attributes. */
static void put_span(struct buf *b, int i)
{
    size_t span;
    char name[32];
    const uint64_t start_ns = 1790000000000000000u + (uint64_t)i * 1000;
    snprintf(name, sizeof(name), "gym.operation.%d", i % NAMES);
    wire_begin(b, 2, &span);
    wire_put_bytes(b, 1, bytes_of("0123456789abcdef", 16));
    wire_put_bytes(b, 2, bytes_of("01234567", 8));
    wire_put_bytes(b, 4, bytes_of("01234567", 8));
    wire_put_str(b, 5, name);
    wire_put_uint(b, 6, (uint64_t)(i % 3 + 1));
    wire_put_fixed64(b, 7, start_ns);
    wire_put_fixed64(b, 8, start_ns + (uint64_t)i * 1234567);
    put_attribute(b, 9, "http.method", "GET");
    put_attribute(b, 9, "http.route", "/v1/responses");
    put_attribute(b, 9, "http.status_code", "200");
    put_attribute(b, 9, "server.address", "localhost");
    put_attribute(b, 9, "nemo.gym.rollout.id", "r-00017");
    put_attribute(b, 9, "user_agent.original", "python-httpx/0.28");
    put_attribute(b, 9, "network.protocol", "http/1.1");
    put_attribute(b, 9, "url.path", "/v1/responses");
    wire_put_bytes(b, 15, bytes_str(""));
    wire_end(b, span);
}

/* `n` spans for each of `resources` entries. */
static struct batch *make_batch(int resources, int n)
{
    struct buf *b = buf_new(0);
    struct batch *ret = NULL;
    for (int r = 0; r < resources; r++) {
        size_t entry, head, scope;
        char name[32];
        snprintf(name, sizeof(name), "server-%d", r % 10);
        wire_begin(b, 1, &entry);
        wire_begin(b, 1, &head);
        put_attribute(b, 1, "telemetry.sdk.language", "python");
        put_attribute(b, 1, "telemetry.sdk.name", "opentelemetry");
        put_attribute(b, 1, "service.instance.id", "gym-job-20260821");
        put_attribute(b, 1, "service.name", name);
        put_attribute(b, 1, "service.version", "0.7.0");
        wire_end(b, head);
        wire_begin(b, 2, &scope);
        for (int i = 0; i < n; i++)
            put_span(b, r * n + i);
        wire_end(b, scope);
        wire_end(b, entry);
    }
    if (batch_from_wire(SIGNAL_TRACES, b, &ret, NULL) < 0)
        abort();
    return ret;
}

static void report_export(const struct aggregate *a, unsigned rounds)
{
    const struct encoding e = {.config = a->config,
                               .histogram_in_sums = a->resources.histogram_in_sums,
                               .used = COUNTS_REAL,
                               .aside = COUNTS_REAL,
                               .time_ns = clock_wall_ns()};
    uint32_t points = 0;
    const double start = cpu_ns();
    for (unsigned i = 0; i < rounds / 10 + 1; i++) {
        struct batch *b = encode_metrics(&e, &a->resources, &a->shape);
        points += b->records;
        batch_unref(b);
    }
    printf("    export %15.1f ns/point\n", (cpu_ns() - start) / points);
}

static void bench(const char *what, const char *yaml, int resources, unsigned rounds)
{
    struct cfg_errors errs = {0};
    struct config *c = config_load_text("bench", yaml, &errs);
    struct cfg_binder binder = {.arena = c->arena, .errors = &errs};
    struct span_metrics_config config;
    struct aggregate a;
    struct batch *b = make_batch(resources, SPANS / resources);
    if (cfg_bind(&binder, span_metrics_fields, c->root, "x", &config) < 0 ||
        aggregate_init(&a, &config, NULL) < 0)
        abort();
    const size_t before = mem_used();
    aggregate_batch(&a, b, 1, 1);
    const double start = cpu_ns();
    for (unsigned i = 0; i < rounds; i++)
        aggregate_batch(&a, b, 1, 1);
    printf("%-26s %8.1f ns/span (%zu bytes each, %zu charged)\n", what,
           (cpu_ns() - start) / rounds / b->records, b->bytes / b->records, mem_used() - before);
    report_export(&a, rounds);
    aggregate_done(&a);
    batch_unref(b);
    config_free(c);
    cfg_errors_done(&errs);
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
    bench("defaults", "{}", 1, rounds);
    bench("two absent dimensions",
          "dimensions: [{name: service.name.override}, {name: nemo.gym.sandbox.provider}]", 1,
          rounds);
    bench("two present dimensions", "dimensions: [{name: http.method}, {name: http.route}]", 1,
          rounds);
    bench("a glob", "dimensions: [{glob: \"http.*\"}]", 1, rounds);
    bench("exponential", "histogram: {exponential: {}}", 1, rounds);
    bench("one span a resource", "{}", SPANS, rounds);
    return 0;
}
