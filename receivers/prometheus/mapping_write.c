/* The samples of a scrape as an ExportMetricsServiceRequest,
 * opentelemetry/proto/metrics/v1/metrics.proto. */
#include <errno.h>
#include <math.h>

#include "proto/otlp_fields.h"
#include "proto/writer.h"
#include "receivers/prometheus/mapper.h"
#include "receivers/prometheus/names.h"

#define SCOPE                                                                                      \
    "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"

enum { /* what proto/otlp_fields.h does not name */
       REQUEST_RESOURCES = 1,
       ENTRY_RESOURCE = 1,
       ENTRY_SCOPES = 2,
       ENTRY_SCOPE = 1,
       ENTRY_RECORDS = 2,
       ENTRY_SCHEMA_URL = 3,
       TEMPORALITY_CUMULATIVE = 2,
       FLAG_NO_RECORDED_VALUE = 1
};

struct writer {
    struct pb_writer pb;
    struct prom_mapper *m;
    uint32_t points;
};

/* Nothing for an empty one. */
static void put_bytes(struct writer *w, uint32_t number, struct bytes b)
{
    if (b.len)
        pb_bytes(&w->pb, number, b);
}

/* Zero is left out. */
static void put_fixed(struct writer *w, uint32_t number, uint64_t v)
{
    if (v)
        pb_fixed64(&w->pb, number, v);
}

/* ---- points ---- */

bool map_point_complete(const struct point *p)
{
    return p->has_value;
}

uint64_t map_start_ns(double seconds)
{
    if (!(seconds > 0 && seconds < 1.8e10))
        return 0;
    const double whole = floor(seconds);
    return (uint64_t)whole * 1000000000 + (uint64_t)((seconds - whole) * 1e9);
}

static void put_times(struct writer *w, const struct point *p)
{
    if (p->family->kind != KIND_GAUGE)
        put_fixed(w, POINT_START, map_start_ns(p->created));
    put_fixed(w, POINT_TIME, (uint64_t)p->time_ms * 1000000);
}

static void put_exemplars(struct writer *w, uint32_t number, const struct point *p)
{
    for (const struct kept_exemplar *e = p->exemplars; e; e = e->next)
        put_bytes(w, number, e->message);
}

static void put_number(struct writer *w, const struct point *p)
{
    put_times(w, p);
    if (!p->stale)
        pb_double(&w->pb, NUMBER_AS_DOUBLE, p->value);
    put_exemplars(w, NUMBER_EXEMPLARS, p);
    pb_fields(&w->pb, p->attributes);
    if (p->stale)
        pb_uint(&w->pb, NUMBER_FLAGS, FLAG_NO_RECORDED_VALUE);
}

/* ---- buckets and quantiles ---- */

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = *(struct part *const *)a, *y = *(struct part *const *)b;
    return (x->bound > y->bound) - (x->bound < y->bound);
}

/* The parts of a point in the order of their bounds; of a point with a value, those that have one.
 * The array is in the arena. */
static size_t sorted_parts(struct writer *w, const struct point *p, struct part ***ret)
{
    size_t n = 0;
    struct part **parts = arena_alloc(w->m->arena, ((size_t)p->nparts + 1) * sizeof(struct part *));
    if (!parts) {
        w->pb.error = w->pb.error ? w->pb.error : -ENOMEM;
        return 0;
    }
    for (struct part *part = p->parts; part; part = part->next)
        if (p->stale || !part->stale)
            parts[n++] = part;
    qsort(parts, n, sizeof(struct part *), compare_parts);
    *ret = parts;
    return n;
}

uint64_t map_count(double v)
{
    return !(v > 0) ? 0 : v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

/* Keeps one part of each bound, with the highest value; without the one at +Inf. How many are left.
 */
static size_t merge_bounds(struct part **parts, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (isinf(parts[i]->bound) && parts[i]->bound > 0)
            break;
        if (kept && !(parts[kept - 1]->bound < parts[i]->bound)) {
            if (parts[i]->value > parts[kept - 1]->value)
                parts[kept - 1] = parts[i];
            continue;
        }
        parts[kept++] = parts[i];
    }
    return kept;
}

static void put_packed(struct writer *w, uint64_t bits)
{
    uint8_t out[8];
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(bits >> (8 * i));
    pb_fields(&w->pb, bytes_of(out, sizeof(out)));
}

/* Differences of cumulative counts, made to rise from 0 to `count`; what is left is in the last
 * bucket. */
static void put_buckets(struct writer *w, struct part **parts, size_t n, uint64_t count)
{
    uint64_t before = 0;
    size_t packed = pb_begin(&w->pb, HISTOGRAM_BUCKETS);
    for (size_t i = 0; i < n; i++) {
        parts[i]->index = (uint32_t)i;
        const uint64_t up_to = map_rise(map_count(parts[i]->value), before, count);
        put_packed(w, up_to - before);
        before = up_to;
    }
    put_packed(w, count - before);
    pb_end(&w->pb, packed);
    if (n == 0)
        return;
    packed = pb_begin(&w->pb, HISTOGRAM_BOUNDS);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &parts[i]->bound, sizeof(bits));
        put_packed(w, bits);
    }
    pb_end(&w->pb, packed);
}

static void put_histogram(struct writer *w, const struct point *p)
{
    struct part **parts = NULL;
    const size_t n = sorted_parts(w, p, &parts);
    const uint64_t count = p->stale ? 0 : map_count(p->value);
    put_times(w, p);
    put_fixed(w, HISTOGRAM_COUNT, count);
    if (p->has_sum && !p->stale)
        pb_double(&w->pb, HISTOGRAM_SUM, p->sum);
    put_buckets(w, parts, merge_bounds(parts, n), count);
    put_exemplars(w, HISTOGRAM_EXEMPLARS, p);
    pb_fields(&w->pb, p->attributes);
    if (p->stale)
        pb_uint(&w->pb, HISTOGRAM_FLAGS, FLAG_NO_RECORDED_VALUE);
}

/* A double in a field without presence: zero (but not minus zero) is left out. */
static void put_plain_double(struct writer *w, uint32_t number, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_fixed(w, number, bits);
}

static void put_summary(struct writer *w, const struct point *p)
{
    struct part **parts = NULL;
    const size_t n = sorted_parts(w, p, &parts);
    put_times(w, p);
    if (!p->stale)
        put_fixed(w, SUMMARY_COUNT, map_count(p->value));
    if (p->has_sum && !p->stale)
        put_plain_double(w, SUMMARY_SUM, p->sum);
    for (size_t i = 0; i < n; i++) {
        const size_t quantile = pb_begin(&w->pb, SUMMARY_QUANTILES);
        parts[i]->index = (uint32_t)i;
        put_plain_double(w, QUANTILE_QUANTILE, parts[i]->bound);
        if (!p->stale)
            put_plain_double(w, QUANTILE_VALUE, parts[i]->value);
        pb_end(&w->pb, quantile);
    }
    pb_fields(&w->pb, p->attributes);
    if (p->stale)
        pb_uint(&w->pb, SUMMARY_FLAGS, FLAG_NO_RECORDED_VALUE);
}

/* ---- metrics ---- */

static bool any_point(const struct family *f)
{
    for (const struct point *p = f->points; p; p = p->next)
        if (map_point_complete(p))
            return true;
    return false;
}

static void put_points(struct writer *w, const struct family *f)
{
    for (const struct point *p = f->points; p && !w->pb.error; p = p->next) {
        if (!map_point_complete(p))
            continue;
        const size_t point = pb_begin(&w->pb, DATA_POINTS);
        switch (f->kind) {
        case KIND_GAUGE:
        case KIND_SUM: put_number(w, p); break;
        case KIND_HISTOGRAM: put_histogram(w, p); break;
        case KIND_SUMMARY: put_summary(w, p); break;
        }
        pb_end(&w->pb, point);
        w->points++;
    }
}

static const uint32_t data_fields[] = {
    [KIND_GAUGE] = METRIC_GAUGE,
    [KIND_SUM] = METRIC_SUM,
    [KIND_HISTOGRAM] = METRIC_HISTOGRAM,
    [KIND_SUMMARY] = METRIC_SUMMARY,
};

static void put_data(struct writer *w, const struct family *f)
{
    const size_t data = pb_begin(&w->pb, data_fields[f->kind]);
    put_points(w, f);
    if (f->kind == KIND_SUM || f->kind == KIND_HISTOGRAM)
        pb_uint(&w->pb, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
    if (f->type == PROM_COUNTER)
        pb_uint(&w->pb, DATA_MONOTONIC, 1);
    pb_end(&w->pb, data);
}

static void put_unit(struct writer *w, struct bytes unit)
{
    struct buf *text = w->m->scratch;
    buf_truncate(text, 0);
    if (!w->pb.error && unit.len)
        w->pb.error = unit_to_ucum(unit, text);
    put_bytes(w, METRIC_UNIT, buf_bytes(text));
}

static void put_metric(struct writer *w, const struct family *f)
{
    const struct prom_family_info *info = f->info;
    const size_t metric = pb_begin(&w->pb, ENTRY_RECORDS);
    put_bytes(w, METRIC_NAME,
              w->m->origin->trim_suffixes
                  ? name_trim_type_and_unit(f->name, f->kind == KIND_SUM, info->unit)
                  : f->name);
    put_bytes(w, METRIC_DESCRIPTION, info->help);
    put_unit(w, info->unit);
    put_data(w, f);
    if (!w->pb.error)
        w->pb.error = map_put_attribute(w->pb.out, METRIC_METADATA, bytes_str("prometheus.type"),
                                        bytes_str(prom_type_name(f->type)));
    pb_end(&w->pb, metric);
}

/* ---- scopes and resources ---- */

static bool any_metric(const struct scope *s)
{
    for (const struct family *f = s->families; f; f = f->next)
        if (any_point(f))
            return true;
    return false;
}

static void put_scope(struct writer *w, const struct scope *s)
{
    const bool own = s->identity.len == 0;
    const size_t entry = pb_begin(&w->pb, ENTRY_SCOPES), scope = pb_begin(&w->pb, ENTRY_SCOPE);
    put_bytes(w, SCOPE_NAME, own ? bytes_str(SCOPE) : s->name);
    put_bytes(w, SCOPE_VERSION, own ? bytes_str(w->m->version) : s->version);
    pb_fields(&w->pb, s->attributes);
    pb_end(&w->pb, scope);
    for (const struct family *f = s->families; f && !w->pb.error; f = f->next)
        if (any_point(f))
            put_metric(w, f);
    put_bytes(w, ENTRY_SCHEMA_URL, s->schema_url);
    pb_end(&w->pb, entry);
}

static bool any_scope(const struct resource *r)
{
    for (const struct scope *s = r->scopes; s; s = s->next)
        if (any_metric(s))
            return true;
    return false;
}

static void put_resource(struct writer *w, const struct resource *r)
{
    const size_t entry = pb_begin(&w->pb, REQUEST_RESOURCES),
                 resource = pb_begin(&w->pb, ENTRY_RESOURCE);
    for (const struct attribute *a = r->attributes; a && !w->pb.error; a = a->next)
        w->pb.error = map_put_attribute(w->pb.out, RESOURCE_ATTRIBUTES, a->key, a->value);
    pb_end(&w->pb, resource);
    for (const struct scope *s = r->scopes; s && !w->pb.error; s = s->next)
        if (any_metric(s))
            put_scope(w, s);
    pb_end(&w->pb, entry);
}

int map_write(struct prom_mapper *m, struct buf *out, uint32_t *ret_points)
{
    struct writer w = {.pb = {.out = out}, .m = m};
    for (const struct resource *r = m->resources; r && !w.pb.error; r = r->next)
        if (any_scope(r))
            put_resource(&w, r);
    *ret_points = w.pb.error ? 0 : w.points;
    return w.pb.error;
}

/* ---- where the points are ---- */

/* The next message `number` of those behind `r`; empty when there is none. */
static struct wire_reader next_message(struct wire_reader *r, uint32_t number)
{
    struct bytes message = {0};
    return wire_reader(wire_each(r, number, &message) ? message : bytes_of(r->end, 0));
}

static void locate_points(struct bytes request, struct family *f, struct wire_reader *metrics)
{
    struct wire_reader metric = next_message(metrics, ENTRY_RECORDS),
                       data = next_message(&metric, data_fields[f->kind]);
    for (struct point *p = f->points; p; p = p->next) {
        if (!map_point_complete(p))
            continue;
        const struct wire_reader point = next_message(&data, DATA_POINTS);
        p->at = (uint32_t)(point.p - request.data);
        p->len = (uint32_t)(point.end - point.p);
    }
}

static void locate_metrics(struct bytes request, struct scope *s, struct wire_reader *scopes)
{
    struct wire_reader metrics = next_message(scopes, ENTRY_SCOPES);
    for (struct family *f = s->families; f; f = f->next)
        if (any_point(f))
            locate_points(request, f, &metrics);
}

void map_locate(struct prom_mapper *m, struct bytes request)
{
    struct wire_reader resources = wire_reader(request);
    for (struct resource *r = m->resources; r; r = r->next) {
        if (!any_scope(r))
            continue;
        struct wire_reader scopes = next_message(&resources, REQUEST_RESOURCES);
        for (struct scope *s = r->scopes; s; s = s->next)
            if (any_metric(s))
                locate_metrics(request, s, &scopes);
    }
}
