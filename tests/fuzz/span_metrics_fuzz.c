/*
 * The span_metrics connector over any batch that passes the check: what it exports passes the check
 * of what comes from outside, has the counted number of points, and all memory comes back. The
 * first byte chooses the configuration.
 */
#include <stdlib.h>

#include "agent/config/config.h"
#include "connectors/span_metrics/aggregate.h"
#include "connectors/span_metrics/encode.h"
#include "proto/check.h"
#include "tests/fuzz/fuzz.h"

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x))                                                                                  \
            abort();                                                                               \
    } while (0)

static const char *const yaml[] = {
    "{}",
    "{dimensions: [{name: a}, {name: b, default: c}], resource_metrics_key_attributes: [a], "
    "aggregation_cardinality_limit: 2}",
    "{dimensions: [{glob: \"a*\"}], calls_dimensions: [{glob: \"**\"}], histogram: {exponential: "
    "{max_size: 3}, dimensions: [{name: a}]},\n"
    " exclude_dimensions: [service.name]}",
    "{events: {enabled: true, dimensions: [{name: a}, {glob: \"b.*\"}]}, exemplars: {enabled: "
    "true}, resource_metrics_cache_size: 1,\n"
    " include_instrumentation_scope: [a], enable_metrics_sampling_method: true}",
};

/* Read once; kept for the life of the program. */
static const struct span_metrics_config *config_of(unsigned i)
{
    static struct span_metrics_config bound[ARRAY_SIZE(yaml)];
    static struct config *trees[ARRAY_SIZE(yaml)];
    if (!trees[i]) {
        struct cfg_errors errs = {0};
        trees[i] = config_load_text("fuzz", yaml[i], &errs);
        MUST(trees[i]);
        struct cfg_binder b = {.arena = trees[i]->arena, .errors = &errs};
        MUST(cfg_bind(&b, span_metrics_fields, trees[i]->root, "x", &bound[i]) == 0);
        /* A glob over everything is refused by the rules; here it is the hardest case. */
        MUST(i == 2 || span_metrics_check(&bound[i], NULL) == 0);
        cfg_errors_done(&errs);
    }
    return &bound[i];
}

static void check_export(const struct aggregate *a, enum counts counts)
{
    const struct encoding e = {.config = a->config,
                               .histogram_in_sums = a->resources.histogram_in_sums,
                               .used = counts,
                               .aside = counts,
                               .time_ns = 3};
    struct batch *b = encode_metrics(&e, &a->resources, &a->shape);
    uint32_t records = 0;
    MUST(b);
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct otlp_checked c;
        MUST(otlp_check(SIGNAL_METRICS, buf_bytes(b->segs[i]), &c, NULL) == 0);
        MUST(c.canonical);
        records += c.records;
    }
    MUST(records == b->records);
    batch_unref(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aggregate a;
    struct batch *b = NULL;
    if (size < 1)
        return 0;
    const struct span_metrics_config *config = config_of(data[0] % ARRAY_SIZE(yaml));
    struct buf *wire = buf_new(0);
    const size_t before = mem_used();
    MUST(buf_append(wire, data + 1, size - 1) == 0);
    if (batch_from_wire(SIGNAL_TRACES, wire, &b, NULL) < 0)
        return 0;
    MUST(aggregate_init(&a, config, NULL) == 0);
    aggregate_batch(&a, b, 1, 1);
    aggregate_batch(&a, b, 2, 2);
    MUST(a.lost == 0);
    check_export(&a, COUNTS_ZERO_FIRST);
    check_export(&a, COUNTS_ZERO_ONLY);
    check_export(&a, COUNTS_REAL);
    aggregate_done(&a);
    batch_unref(b);
    MUST(mem_used() <= before);
    return 0;
}
