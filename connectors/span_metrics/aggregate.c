#include "connectors/span_metrics/aggregate.h"

#include <errno.h>
#include <sys/random.h>

#include "agent/base/clock.h"
#include "connectors/span_metrics/tracestate.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

#define NS_PER_MS_REAL 1e6
#define NS_PER_S_REAL 1e9

/* ---- life cycle ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The bounds ascend, whatever order the file has them in: buckets make no sense otherwise. */
static int make_bounds(struct aggregate *a)
{
    static const int64_t usual_ms[] = {2,   4,   6,    8,    10,   50,   100,   200,
                                       400, 800, 1000, 1400, 2000, 5000, 10000, 15000};
    const struct explicit_config *own = a->config->histogram.explicit_buckets;
    const int64_t *own_ns = own ? own->buckets.items : NULL;
    const size_t n = own ? own->buckets.n : ARRAY_SIZE(usual_ms);
    a->bounds = calloc(n + 1, sizeof(*a->bounds));
    if (!a->bounds)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        a->bounds[i] =
            (own ? (double)own_ns[i] : (double)usual_ms[i] * NS_PER_MS_REAL) / a->ns_per_unit;
    qsort(a->bounds, n, sizeof(*a->bounds), compare_doubles);
    a->shape.bounds = a->bounds;
    a->shape.nbounds = (uint32_t)n;
    return 0;
}

static int make_shape(struct aggregate *a)
{
    const struct span_metrics_config *c = a->config;
    const struct histogram_config *h = &c->histogram;
    a->ns_per_unit = h->unit == UNIT_S ? NS_PER_S_REAL : NS_PER_MS_REAL;
    a->shape = (struct series_shape){
        .max_size = h->exponential ? h->exponential->max_size : 0,
        .max_exemplars = c->exemplars.enabled ? (uint32_t)c->exemplars.max_per_data_point : 0,
        .limit = (uint64_t)c->cardinality_limit,
    };
    if (h->disable)
        return 0;
    a->shape.histogram = h->exponential ? HISTOGRAM_EXPONENTIAL : HISTOGRAM_EXPLICIT;
    return h->exponential ? 0 : make_bounds(a);
}

static int make_dimensions(struct aggregate *a, struct err *reterr)
{
    const struct span_metrics_config *c = a->config;
    int r = dimensions_init(&a->common, &c->dimensions, reterr);
    if (r == 0)
        r = dimensions_init(&a->calls, &c->calls_dimensions, reterr);
    if (r == 0 && !c->histogram.disable)
        r = dimensions_init(&a->duration, &c->histogram.dimensions, reterr);
    if (r == 0 && c->events.enabled)
        r = dimensions_init(&a->events, &c->events.dimensions, reterr);
    a->name_lengths = dimensions_lengths(&a->common) | dimensions_lengths(&a->calls) |
                      dimensions_lengths(&a->duration) | dimensions_lengths(&a->events);
    return r;
}

/* One set of series serves both metrics when they have the same dimensions. */
static int make_resources(struct aggregate *a)
{
    const struct span_metrics_config *c = a->config;
    a->resources = (struct resources){
        .max = (size_t)c->resource_metrics_cache_size,
        .key_attributes = &c->resource_metrics_key_attributes,
        .histogram_in_sums =
            !c->histogram.disable && !dimensions_any(&a->calls) && !dimensions_any(&a->duration),
    };
    if (getrandom(&a->resources.seed, sizeof(a->resources.seed), 0) < 0 ||
        getrandom(&a->rng, sizeof(a->rng), 0) < 0)
        return -EIO;
    a->rng |= 1;
    return resources_init(&a->resources);
}

int aggregate_init(struct aggregate *a, const struct span_metrics_config *config,
                   struct err *reterr)
{
    *a = (struct aggregate){.config = config, .key = buf_new(0), .attributes = buf_new(0)};
    int r = identity_init(&a->identity, config, reterr);
    if (r == 0)
        r = make_dimensions(a, reterr);
    if (r < 0)
        return r;
    r = a->key && a->attributes ? make_shape(a) : -ENOMEM;
    if (r == 0)
        r = make_resources(a);
    return r < 0 ? err_set(reterr, r, r == -ENOMEM ? "out of memory" : "no random numbers") : 0;
}

void aggregate_done(struct aggregate *a)
{
    if (a->resources.key)
        resources_done(&a->resources);
    identity_done(&a->identity);
    dimensions_done(&a->common);
    dimensions_done(&a->calls);
    dimensions_done(&a->duration);
    dimensions_done(&a->events);
    attributes_done(&a->resource_attributes);
    attributes_done(&a->span_attributes);
    attributes_done(&a->event_attributes);
    attributes_done(&a->matches);
    attributes_done(&a->more);
    buf_unref(a->key);
    buf_unref(a->attributes);
    free(a->bounds);
}

/* ---- one span ---- */

/* Neighbours mostly have the same tracestate. */
static void weigh(struct aggregate *a, struct bytes tracestate)
{
    uint64_t threshold;
    if (bytes_eq(tracestate, a->tracestate))
        return;
    a->tracestate = tracestate;
    a->adjusted = tracestate.len && tracestate_threshold(tracestate, &threshold);
    a->times = a->adjusted ? tracestate_adjusted_count(threshold, &a->rng) : 1;
}

static struct series *get_series(struct aggregate *a, struct series_set *set,
                                 const struct subject *s)
{
    if (identity_key(&a->identity, s, a->key) < 0)
        return NULL;
    const struct bytes key = buf_bytes(a->key);
    const uint64_t hash = sm_hash(a->resources.seed, key);
    struct series *found = series_find(set, hash, key);
    if (found)
        return found;
    if (series_full(set, &a->shape))
        return series_overflow(set, &a->shape, a->wall_ns);
    if (identity_attributes(&a->identity, s, a->attributes) < 0)
        return NULL;
    return series_add(set, &a->shape, hash, key, buf_bytes(a->attributes), a->wall_ns);
}

static bool is_id(struct bytes id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i])
            return true;
    return false;
}

/* False when there is no memory. */
static bool count(struct aggregate *a, struct series_set *set, const struct subject *s,
                  double duration)
{
    struct series *it = get_series(a, set, s);
    if (!it)
        return false;
    it->seen_ns = a->now_ns;
    series_observe(it, &a->shape, duration, a->times);
    if (a->shape.max_exemplars && !it->overflow && is_id(s->span->trace_id))
        series_exemplify(it, &a->shape, s->span->trace_id, s->span->span_id, duration);
    return true;
}

/* Into `out`; true when it matters that there was no memory. */
static bool match(const struct dimensions *d, const struct sources *from, struct attributes *out)
{
    out->n = 0;
    return dimensions_any(d) && dimensions_match(d, from, out) < 0;
}

static bool count_event(struct aggregate *a, struct resource *r, struct subject *s,
                        struct bytes event, double duration)
{
    const struct sources from = {&a->span_attributes, &a->event_attributes,
                                 &a->resource_attributes};
    a->event_attributes.n = 0;
    if (attributes_read(&a->event_attributes, event, EVENT_ATTRIBUTES) < 0 ||
        match(&a->common, &from, &a->matches) || match(&a->events, &from, &a->more))
        return false;
    return count(a, &r->events, s, duration);
}

static bool count_events(struct aggregate *a, struct resource *r, struct subject *s,
                         struct bytes span, double duration)
{
    struct wire_reader events = wire_reader(span);
    struct bytes event;
    bool good = true;
    while (wire_each(&events, SPAN_EVENTS, &event))
        good &= count_event(a, r, s, event, duration);
    return good;
}

static bool count_span(struct aggregate *a, struct resource *r, struct subject *s, double duration)
{
    const struct sources from = {&a->span_attributes, NULL, &a->resource_attributes};
    if (match(&a->common, &from, &a->matches) || match(&a->calls, &from, &a->more))
        return false;
    bool good = count(a, &r->sums, s, duration);
    if (a->resources.histogram_in_sums || a->config->histogram.disable)
        return good;
    return !match(&a->duration, &from, &a->more) && count(a, &r->histograms, s, duration) && good;
}

static void take_span(struct aggregate *a, struct resource *r, struct bytes service,
                      struct bytes scope, struct bytes msg)
{
    struct span span;
    a->span_attributes.n = 0;
    if (span_read(msg, a->name_lengths, &span, &a->span_attributes) < 0) {
        a->lost++;
        return;
    }
    weigh(a, span.tracestate);
    span.scope = scope;
    struct subject s = {.service = service,
                        .span = &span,
                        .adjusted = a->adjusted,
                        .matches = &a->matches,
                        .more = &a->more};
    double duration = 0; /* also of spans that end before they start */
    if (span.end_ns > span.start_ns)
        duration = (double)(span.end_ns - span.start_ns) / a->ns_per_unit;
    bool good = count_span(a, r, &s, duration);
    if (a->config->events.enabled)
        good &= count_events(a, r, &s, msg, duration);
    a->lost += !good;
}

/* ---- one batch ---- */

static void set_resource(struct aggregate *a)
{
    if (!a->name_lengths)
        return;
    dimensions_set_resource(&a->common, &a->resource_attributes);
    dimensions_set_resource(&a->calls, &a->resource_attributes);
    dimensions_set_resource(&a->duration, &a->resource_attributes);
    dimensions_set_resource(&a->events, &a->resource_attributes);
}

/* A service name that is no string counts as empty. */
static bool read_service(const struct attributes *attributes, struct bytes *ret)
{
    const struct attribute *name = attributes_find(attributes, bytes_str("service.name"));
    if (!name)
        return false;
    const struct any_value v = any_value_read(name->value);
    *ret = v.kind == ANY_STRING ? v.bytes : bytes_str("");
    return true;
}

static struct resource *get_resource(struct aggregate *a, struct bytes raw)
{
    struct resource *r = resources_recent(&a->resources, raw);
    if (!r)
        r = resources_get(&a->resources, raw, &a->resource_attributes);
    if (r)
        r->seen_ns = a->now_ns;
    return r;
}

static void take_scope(struct aggregate *a, struct resource *r, struct bytes service,
                       struct bytes scope_spans)
{
    struct wire_reader spans = wire_reader(scope_spans);
    struct bytes scope = {0}, span;
    if (a->config->include_scopes.n)
        scope = wire_bytes(scope_spans, ENTRY_HEAD);
    while (wire_each(&spans, ENTRY_ITEMS, &span)) {
        if (r)
            take_span(a, r, service, scope, span);
        else
            a->lost++;
    }
}

static void take_scopes(struct aggregate *a, struct resource *r, struct bytes service,
                        struct bytes entry)
{
    struct wire_reader scopes = wire_reader(entry);
    struct bytes scope_spans;
    while (wire_each(&scopes, ENTRY_ITEMS, &scope_spans))
        take_scope(a, r, service, scope_spans);
}

/* Spans without a service are not counted. True when there were others. */
static bool take_entry(struct aggregate *a, struct bytes entry)
{
    const struct bytes raw = wire_bytes(entry, ENTRY_HEAD);
    struct bytes service = {0};
    struct resource *r = NULL;
    if (!raw.len)
        return false;
    a->resource_attributes.n = 0;
    if (attributes_read(&a->resource_attributes, raw, RESOURCE_ATTRIBUTES) == 0) {
        if (!read_service(&a->resource_attributes, &service))
            return false;
        r = get_resource(a, raw);
        set_resource(a);
    }
    take_scopes(a, r, service, entry);
    return r;
}

bool aggregate_batch(struct aggregate *a, const struct batch *b, uint64_t wall_ns, uint64_t now_ns)
{
    bool any = false;
    a->wall_ns = wall_ns;
    a->now_ns = now_ns;
    a->tracestate = (struct bytes){0};
    a->adjusted = false;
    a->times = 1;
    for (unsigned i = 0; i < b->nsegs; i++) {
        struct wire_reader entries = wire_reader(buf_bytes(b->segs[i]));
        struct bytes entry;
        while (wire_each(&entries, OTLP_ENTRIES, &entry))
            any |= take_entry(a, entry);
    }
    return any;
}
