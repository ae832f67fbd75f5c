#include "connectors/span_metrics/encode.h"

#include <errno.h>

#include "agent/base/clock.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"
#include "proto/writer.h"

#define SCOPE "spanmetricsconnector"
#define SEGMENT_BYTES (256u << 10) /* a fuller one takes no more resources */

enum { DELTA = 1, CUMULATIVE = 2 };

/* Packed fields are copied as they are in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bucket counts and bounds");

struct writer {
    struct pb_writer pb;
    const struct encoding *e;
    enum counts counts; /* of the present list */
    struct buf **segs;  /* full ones */
    unsigned nsegs, cap;
    uint64_t records;
};

/* ---- primitives ---- */

static uint64_t zigzag(int32_t v)
{
    return ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
}

/* ---- data points ---- */

/* The stored attributes are fields 7; other kinds of points have them in another one, also
 * below 16. */
static void put_attributes(struct writer *w, uint32_t number, const struct series *s)
{
    const struct bytes stored = series_attributes(s);
    if (w->pb.error || (w->pb.error = buf_reserve(w->pb.out, stored.len)) < 0)
        return;
    uint8_t *p = buf_tail(w->pb.out), *const limit = p + stored.len;
    memcpy(p, stored.data, stored.len);
    buf_commit(w->pb.out, stored.len);
    while (p < limit) {
        *p++ = (uint8_t)(number << 3 | WIRE_LEN);
        uint64_t len = 0;
        for (unsigned shift = 0;; shift += 7) {
            const uint8_t byte = *p++;
            len |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80)
                break;
        }
        p += len;
    }
}

static void put_exemplars(struct writer *w, uint32_t number, const struct series *s)
{
    for (uint32_t i = 0; i < s->nexemplars; i++) {
        const struct exemplar *x = &s->exemplars[i];
        const size_t mark = pb_begin(&w->pb, number);
        pb_fixed64(&w->pb, EXEMPLAR_TIME, w->e->time_ns);
        pb_double(&w->pb, EXEMPLAR_AS_DOUBLE, x->value);
        pb_bytes(&w->pb, EXEMPLAR_SPAN_ID, bytes_of(x->span_id, sizeof(x->span_id)));
        pb_bytes(&w->pb, EXEMPLAR_TRACE_ID, bytes_of(x->trace_id, sizeof(x->trace_id)));
        pb_end(&w->pb, mark);
    }
}

/* Two points of one series are apart also for who counts in milliseconds. */
static uint64_t time_of(const struct writer *w, const struct series *s)
{
    const uint64_t after_zero = s->start_ns + NS_PER_MS;
    if (w->counts == COUNTS_ZERO_ONLY)
        return s->start_ns;
    if (w->counts == COUNTS_REAL && !s->exports && after_zero > w->e->time_ns)
        return after_zero;
    return w->e->time_ns;
}

static void put_times(struct writer *w, const struct resource *r, const struct series *s)
{
    uint64_t last_ns = w->e->delta ? stamps_get(w->e->stamps, r->hash, s->hash) : 0;
    pb_fixed64(&w->pb, POINT_START, last_ns ? last_ns : s->start_ns);
    pb_fixed64(&w->pb, POINT_TIME, time_of(w, s));
    w->records++;
}

static void put_count(struct writer *w, const struct resource *r, const struct series *s)
{
    const bool zero = !w->e->delta && !s->exports && w->counts != COUNTS_REAL;
    const size_t point = pb_begin(&w->pb, DATA_POINTS);
    put_attributes(w, NUMBER_ATTRIBUTES, s);
    put_times(w, r, s);
    pb_fixed64(&w->pb, NUMBER_AS_INT, zero ? 0 : s->count);
    if (w->counts != COUNTS_ZERO_ONLY)
        put_exemplars(w, NUMBER_EXEMPLARS, s);
    pb_end(&w->pb, point);
}

static void put_explicit(struct writer *w, const struct resource *r, const struct series *s,
                         const struct series_shape *shape)
{
    const size_t point = pb_begin(&w->pb, DATA_POINTS);
    put_attributes(w, HISTOGRAM_ATTRIBUTES, s);
    put_times(w, r, s);
    pb_fixed64(&w->pb, HISTOGRAM_COUNT, s->count);
    pb_double(&w->pb, HISTOGRAM_SUM, s->sum);
    pb_bytes(&w->pb, HISTOGRAM_BUCKETS, bytes_of(s->buckets, s->nbuckets * sizeof(s->buckets[0])));
    if (shape->nbounds)
        pb_bytes(&w->pb, HISTOGRAM_BOUNDS,
                 bytes_of(shape->bounds, shape->nbounds * sizeof(shape->bounds[0])));
    put_exemplars(w, HISTOGRAM_EXEMPLARS, s);
    pb_end(&w->pb, point);
}

static void put_positive(struct writer *w, const struct exponential *x)
{
    const size_t buckets = pb_begin(&w->pb, EXPONENTIAL_POSITIVE);
    if (x->n) {
        pb_uint(&w->pb, BUCKETS_OFFSET, zigzag(x->first));
        const size_t counts = pb_begin(&w->pb, BUCKETS_COUNTS);
        for (uint32_t i = 0; i < x->n && !w->pb.error; i++)
            w->pb.error = wire_put_varint(w->pb.out, x->counts[i]);
        pb_end(&w->pb, counts);
    }
    pb_end(&w->pb, buckets);
}

static void put_exponential(struct writer *w, const struct resource *r, const struct series *s)
{
    const struct exponential *x = s->exponential;
    const size_t point = pb_begin(&w->pb, DATA_POINTS);
    put_attributes(w, EXPONENTIAL_ATTRIBUTES, s);
    put_times(w, r, s);
    pb_fixed64(&w->pb, EXPONENTIAL_COUNT, s->count);
    pb_double(&w->pb, EXPONENTIAL_SUM, s->sum);
    pb_uint(&w->pb, EXPONENTIAL_SCALE, zigzag(x->n ? x->scale : 0));
    pb_fixed64(&w->pb, EXPONENTIAL_ZERO_COUNT, x->zeros);
    put_positive(w, x);
    pb_end(&w->pb, pb_begin(&w->pb, EXPONENTIAL_NEGATIVE));
    put_exemplars(w, EXPONENTIAL_EXEMPLARS, s);
    pb_double(&w->pb, EXPONENTIAL_MIN, x->lowest);
    pb_double(&w->pb, EXPONENTIAL_MAX, x->highest);
    pb_end(&w->pb, point);
}

/* ---- metrics ---- */

static void put_text(struct writer *w, const char *text)
{
    if (!w->pb.error)
        w->pb.error = buf_append_str(w->pb.out, text);
}

static void put_name(struct writer *w, const char *name)
{
    const char *space = w->e->config->name_space;
    const size_t mark = pb_begin(&w->pb, METRIC_NAME);
    put_text(w, space);
    put_text(w, *space ? "." : "");
    put_text(w, name);
    pb_end(&w->pb, mark);
}

static uint64_t temporality(const struct writer *w)
{
    return w->e->delta ? DELTA : CUMULATIVE;
}

static bool any_new(const struct series_set *set)
{
    for (const struct series *s = set->first; s; s = s->next)
        if (!s->exports)
            return true;
    return false;
}

static void put_sum(struct writer *w, const char *name, const struct resource *r,
                    const struct series_set *set)
{
    const bool only_new = w->counts == COUNTS_ZERO_ONLY;
    if (only_new && !any_new(set))
        return;
    const size_t metric = pb_begin(&w->pb, ENTRY_ITEMS);
    put_name(w, name);
    const size_t data = pb_begin(&w->pb, METRIC_SUM);
    for (const struct series *s = set->first; s; s = s->next)
        if (!only_new || !s->exports)
            put_count(w, r, s);
    pb_uint(&w->pb, DATA_TEMPORALITY, temporality(w));
    pb_uint(&w->pb, DATA_MONOTONIC, true);
    pb_end(&w->pb, data);
    pb_end(&w->pb, metric);
}

static void put_durations(struct writer *w, const struct resource *r,
                          const struct series_shape *shape)
{
    const struct series_set *set = w->e->histogram_in_sums ? &r->sums : &r->histograms;
    const bool exponential = shape->histogram == HISTOGRAM_EXPONENTIAL;
    const size_t metric = pb_begin(&w->pb, ENTRY_ITEMS);
    put_name(w, "duration");
    pb_bytes(&w->pb, METRIC_UNIT, bytes_str(w->e->config->histogram.unit == UNIT_S ? "s" : "ms"));
    const size_t data = pb_begin(&w->pb, exponential ? METRIC_EXPONENTIAL : METRIC_HISTOGRAM);
    for (const struct series *s = set->first; s; s = s->next)
        if (exponential)
            put_exponential(w, r, s);
        else
            put_explicit(w, r, s, shape);
    pb_uint(&w->pb, DATA_TEMPORALITY, temporality(w));
    pb_end(&w->pb, data);
    pb_end(&w->pb, metric);
}

/* ---- resources ---- */

static void put_resource_attributes(struct writer *w, struct bytes raw)
{
    struct wire_reader attributes = wire_reader(raw);
    struct bytes kv;
    const size_t mark = pb_begin(&w->pb, ENTRY_HEAD);
    while (wire_each(&attributes, RESOURCE_ATTRIBUTES, &kv))
        pb_bytes(&w->pb, RESOURCE_ATTRIBUTES, kv);
    pb_end(&w->pb, mark);
}

static void put_metrics(struct writer *w, const struct resource *r,
                        const struct series_shape *shape)
{
    const size_t scope = pb_begin(&w->pb, ENTRY_HEAD);
    pb_bytes(&w->pb, SCOPE_NAME, bytes_str(SCOPE));
    pb_end(&w->pb, scope);
    put_sum(w, "calls", r, &r->sums);
    if (shape->histogram != HISTOGRAM_NONE && w->counts != COUNTS_ZERO_ONLY)
        put_durations(w, r, shape);
    if (w->e->config->events.enabled)
        put_sum(w, "events", r, &r->events);
}

static void put_resource(struct writer *w, const struct resource *r,
                         const struct series_shape *shape)
{
    if (w->counts == COUNTS_ZERO_ONLY && !any_new(&r->sums) && !any_new(&r->events))
        return;
    const size_t entry = pb_begin(&w->pb, OTLP_ENTRIES);
    put_resource_attributes(w, r->raw);
    const size_t scope = pb_begin(&w->pb, ENTRY_ITEMS);
    put_metrics(w, r, shape);
    pb_end(&w->pb, scope);
    pb_end(&w->pb, entry);
}

/* ---- segments ---- */

static void finish_segment(struct writer *w)
{
    if (w->nsegs == w->cap) {
        const unsigned cap = w->cap ? 2 * w->cap : 8;
        struct buf **segs = realloc(w->segs, cap * sizeof(struct buf *));
        if (!segs) {
            w->pb.error = -ENOMEM;
            return;
        }
        w->segs = segs;
        w->cap = cap;
    }
    w->segs[w->nsegs++] = w->pb.out;
    w->pb.out = NULL;
}

static void next_segment(struct writer *w)
{
    if (w->pb.error || w->pb.out->len < SEGMENT_BYTES)
        return;
    finish_segment(w);
    if (!w->pb.error && !(w->pb.out = buf_new(0)))
        w->pb.error = -ENOMEM;
}

static void put_list(struct writer *w, const struct resource_list *l, enum counts counts,
                     const struct series_shape *shape)
{
    w->counts = counts;
    if (counts == COUNTS_NONE)
        return;
    for (const struct resource *r = l->oldest; r && !w->pb.error; r = r->newer) {
        put_resource(w, r, shape);
        next_segment(w);
    }
}

static struct batch *finish(struct writer *w)
{
    struct batch *b = NULL;
    if (!w->pb.error)
        finish_segment(w);
    if (!w->pb.error) {
        b = batch_new(SIGNAL_METRICS, w->segs, w->nsegs, (uint32_t)w->records);
        w->nsegs = 0;
    }
    while (w->nsegs)
        buf_unref(w->segs[--w->nsegs]);
    buf_unref(w->pb.out);
    free(w->segs);
    return b;
}

struct batch *encode_metrics(const struct encoding *e, const struct resources *r,
                             const struct series_shape *shape)
{
    struct writer w = {.e = e, .pb = {.out = buf_new(0)}};
    w.pb.error = w.pb.out ? 0 : -ENOMEM;
    put_list(&w, &r->used, e->used, shape);
    put_list(&w, &r->aside, e->aside, shape);
    return finish(&w);
}
