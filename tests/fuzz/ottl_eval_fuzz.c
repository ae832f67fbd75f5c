/*
 * A fixed set of statements on arbitrary checked batches. The first byte chooses the signal. What
 * comes out must pass the check again, hold as many records as it says, and be the same when it is
 * made twice from the same bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ottl/ottl.h"
#include "ottl/walk.h"
#include "proto/check.h"
#include "tests/fuzz/fuzz.h"

static const struct {
    enum ottl_context context;
    const char *statements[20];
} groups[] = {
    {OTTL_RESOURCE,
     {"set(attributes[\"r\"], attributes[\"a\"][0]) where attributes[\"a\"] != nil",
      "set(attributes[\"x\"][\"y\"][2], schema_url)",
      "set(schema_url, \"u\") where schema_url == \"\"", "delete_key(attributes, \"a\")",
      "set(dropped_attributes_count, 3)", "set(cache[\"a\"], attributes)",
      "set(attributes[\"copy\"], cache[\"a\"])", "flatten(attributes, \"f\", 2)",
      "limit(attributes, 5, [\"r\"])", "truncate_all(attributes, 4)"}},
    {OTTL_SCOPE,
     {"set(name, version)", "set(attributes, resource.attributes)",
      "set(schema_url, resource.schema_url)", "set(resource.attributes[\"scope\"], name)",
      "keep_keys(attributes, [\"r\", \"a\"])"}},
    {OTTL_SPAN,
     {"set(attributes[\"k\"], kind.string)",
      "set(kind.string, \"Server\") where kind == SPAN_KIND_CLIENT",
      "set(status.code, STATUS_CODE_OK) where status.message == \"\"", "set(status.message, name)",
      "set(trace_state[\"m\"], \"v\")", "set(attributes[\"ts\"], trace_state[\"a\"])",
      "set(parent_span_id, span_id)", "set(attributes[\"id\"], trace_id.string)",
      "set(attributes[\"d\"], end_time_unix_nano - start_time_unix_nano)",
      "set(links, nil) where dropped_links_count > 0", "set(resource.attributes[\"last\"], name)",
      "set(events, events)", "replace_pattern(name, \"^(.)\", \"$1$1\")",
      "merge_maps(attributes, resource.attributes, \"upsert\")",
      "replace_all_patterns(attributes, \"value\", \"a+\", \"b\")",
      "set(attributes[\"bad\"], \"\\xff\")", "set(scope.name, name)"}},
    {OTTL_SPANEVENT,
     {"set(attributes[\"i\"], event_index)", "set(span.name, name)", "set(time, span.start_time)",
      "set(span.attributes[\"e\"], true) where span.events != nil",
      "delete_matching_keys(attributes, \"^ex\")",
      "set(span.dropped_events_count, 1) where name == \"\"",
      "set(span.events, nil) where name == \"a\""}},
    {OTTL_METRIC,
     {"replace_pattern(name, \"^([^:]+):(.+)$\", \"${1}_${2}\")", "set(is_monotonic, false)",
      "set(aggregation_temporality, AGGREGATION_TEMPORALITY_DELTA)", "set(metadata[\"m\"], type)",
      "set(data_points, nil) where name == \"\"", "set(unit, description)"}},
    {OTTL_DATAPOINT,
     {"set(value_double, 1.5) where value_int == 0", "set(attributes[\"n\"], metric.name)",
      "set(count, 99)", "set(sum, sum)", "set(bucket_counts, [5, 6])",
      "set(explicit_bounds, explicit_bounds)", "set(scale, scale)", "set(positive.offset, 8)",
      "set(positive.bucket_counts, positive.bucket_counts)", "set(negative, positive)",
      "set(quantile_values, nil)", "set(metric.unit, \"p\")", "set(exemplars, exemplars)",
      "set(flags, 1)"}},
    {OTTL_EXEMPLAR,
     {"set(filtered_attributes[\"x\"], double_value)", "set(int_value, 3) where int_value == 1",
      "set(datapoint.attributes[\"ex\"], time_unix_nano)",
      "set(trace_id.string, \"ffffffffffffffffffffffffffffffff\")", "set(metric.name, \"ex\")"}},
    {OTTL_LOG,
     {"set(body[\"a\"], 1)", "set(body[0], body[1])", "set(attributes[\"b\"], body)",
      "set(body.string, severity_text)", "set(severity_number, severity_number + 1)",
      "set(observed_time, time)", "set(attributes[\"l\"][0][\"z\"], flags)",
      "set(event_name, body.string)", "set(span_id.string, span_id.string)",
      "append(attributes[\"list\"], values=[1, \"a\"])"}},
};

#define GROUPS (sizeof(groups) / sizeof(*groups))
#define STATEMENTS (sizeof(groups[0].statements) / sizeof(*groups[0].statements))

static struct ottl_statement *compiled[GROUPS][STATEMENTS];

static void compile(void)
{
    static const struct ottl_function *const tables[] = {ottl_editors, ottl_converters, NULL};
    for (size_t g = 0; g < GROUPS; g++) {
        struct ottl_dialect d = {.context = (int)groups[g].context,
                                 .allowed = ottl_context_reach(groups[g].context),
                                 .functions = tables};
        for (size_t i = 0; i < STATEMENTS && groups[g].statements[i]; i++) {
            struct err e = {.text = ""};
            if (ottl_statement_parse(bytes_str(groups[g].statements[i]), &d, &compiled[g][i], &e) <
                0) {
                fprintf(stderr, "%s\n", e.text);
                abort();
            }
        }
    }
}

static enum ottl_visit run(void *ctx, struct ottl_env *env)
{
    struct ottl_statement **statements = ctx;
    for (size_t i = 0; i < STATEMENTS && statements[i]; i++)
        if (ottl_statement_run(statements[i], env, NULL) == -ENOMEM)
            return OTTL_NO_MEMORY;
    return OTTL_KEEP;
}

static struct batch *transform(struct batch *in)
{
    struct batch *b = batch_ref(in);
    for (size_t g = 0; g < GROUPS; g++) {
        struct ottl_walk w = {.context = groups[g].context, .visit = run, .ctx = compiled[g]};
        struct batch *out = NULL;
        struct err e;
        if (ottl_walk(&w, b, &out, &e) < 0)
            abort();
        batch_unref(b);
        b = out;
    }
    return b;
}

/* The result is a valid request in canonical form with as many records as it says. */
static void verify(const struct batch *b)
{
    struct otlp_checked checked = {0};
    struct err e = {.text = ""};
    struct buf *flat = batch_flatten(b);
    if (otlp_check(b->signal, buf_bytes(flat), &checked, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    if (checked.records != b->records || !checked.canonical)
        abort();
    buf_unref(flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch *in = NULL;
    struct err e;
    struct buf *wire = buf_new(0);
    if (!compiled[0][0])
        compile();
    if (size == 0 || !wire || buf_append(wire, data + 1, size - 1) < 0 ||
        batch_from_wire((enum signal)(data[0] % SIGNAL_COUNT), wire, &in, &e) < 0) {
        if (size == 0)
            buf_unref(wire);
        return 0;
    }
    struct batch *a = transform(in), *b = transform(in);
    verify(a);
    struct buf *x = batch_flatten(a), *y = batch_flatten(b);
    if (!bytes_eq(buf_bytes(x), buf_bytes(y)))
        abort();
    buf_unref(x);
    buf_unref(y);
    batch_unref(a);
    batch_unref(b);
    batch_unref(in);
    return 0;
}
