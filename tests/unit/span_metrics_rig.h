/* Batches of spans from short descriptions, and batches of metrics as text, one line a data point. */
#ifndef SPAN_METRICS_RIG_H
#define SPAN_METRICS_RIG_H

#include "proto/check.h"
#include "proto/any_value.h"
#include "proto/json.h"
#include "proto/otlp_fields.h"

/* Attributes are "key=text,key=#5,key=": texts, integers, empty values. */
struct a_span {
    const char *name, *attributes;
    uint64_t start_ns, end_ns;
    uint32_t kind, status;
    const char *tracestate, *event /* attributes of one event */;
    int id; /* of trace and span; 0 = none */
};

static inline void put_attribute_text(struct buf *b, uint32_t number, const char *text, size_t len)
{
    const char *value = memchr(text, '=', len);
    size_t kv, any, n = (size_t)(value - text);
    wire_begin(b, number, &kv);
    wire_put_bytes(b, 1, bytes_of(text, n));
    wire_begin(b, 2, &any);
    if (n + 1 < len && value[1] == '#')
        wire_put_uint(b, 3, (uint64_t)atoll(value + 2));
    else if (n + 1 < len)
        wire_put_bytes(b, 1, bytes_of(value + 1, len - n - 1));
    wire_end(b, any);
    wire_end(b, kv);
}

static inline void put_attributes_text(struct buf *b, uint32_t number, const char *text)
{
    for (size_t len; text && *text; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        put_attribute_text(b, number, text, len);
    }
}

static inline void put_a_span(struct buf *b, const struct a_span *s)
{
    size_t mark, inner;
    uint8_t id[16] = {[15] = (uint8_t)s->id};
    wire_begin(b, 2, &mark);
    if (s->id) {
        wire_put_bytes(b, SPAN_TRACE_ID, bytes_of(id, 16));
        wire_put_bytes(b, SPAN_ID, bytes_of(id + 8, 8));
    }
    if (s->tracestate)
        wire_put_str(b, SPAN_TRACE_STATE, s->tracestate);
    wire_put_str(b, SPAN_NAME, s->name ? s->name : "");
    wire_put_uint(b, SPAN_KIND, s->kind);
    wire_put_fixed64(b, SPAN_START, s->start_ns);
    wire_put_fixed64(b, SPAN_END, s->end_ns);
    put_attributes_text(b, SPAN_ATTRIBUTES, s->attributes);
    if (s->event) {
        wire_begin(b, SPAN_EVENTS, &inner);
        put_attributes_text(b, EVENT_ATTRIBUTES, s->event);
        wire_end(b, inner);
    }
    if (s->status) {
        wire_begin(b, SPAN_STATUS, &inner);
        wire_put_uint(b, STATUS_CODE, s->status);
        wire_end(b, inner);
    }
    wire_end(b, mark);
}

/* One resource with these attributes, one scope "name/version" (NULL = none), these spans. */
static inline struct batch *make_spans(const char *resource, const char *scope, const struct a_span *s, size_t n)
{
    struct buf *b = buf_new(0);
    struct batch *ret = NULL;
    struct err e;
    size_t entry, scopes, mark;
    wire_begin(b, 1, &entry);
    wire_begin(b, 1, &mark);
    put_attributes_text(b, RESOURCE_ATTRIBUTES, resource);
    wire_end(b, mark);
    wire_begin(b, 2, &scopes);
    if (scope) {
        const size_t len = strcspn(scope, "/");
        wire_begin(b, 1, &mark);
        wire_put_bytes(b, SCOPE_NAME, bytes_of(scope, len));
        if (scope[len])
            wire_put_str(b, SCOPE_VERSION, scope + len + 1);
        wire_end(b, mark);
    }
    for (size_t i = 0; i < n; i++)
        put_a_span(b, &s[i]);
    wire_end(b, scopes);
    wire_end(b, entry);
    if (batch_from_wire(SIGNAL_TRACES, b, &ret, &e) < 0)
        fail_msg("%s", e.text);
    return ret;
}

/* ---- metrics as text ---- */

static inline void show_attributes(struct bytes msg, uint32_t number, struct buf *out)
{
    struct wire_reader r = wire_reader(msg);
    for (struct bytes kv; wire_each(&r, number, &kv);) {
        const struct key_value v = key_value_read(kv);
        buf_printf(out, " %.*s=", (int)v.key.len, (const char *)v.key.data);
        any_value_text(v.value, out);
    }
}

static inline void show_numbers(struct bytes packed, enum wire_type type, bool real, struct buf *out)
{
    struct wire_reader r = wire_reader(packed);
    const char *gap = "";
    for (uint64_t v; wire_next_packed(&r, type, &v) > 0; gap = ",")
        real ? buf_printf(out, "%s%g", gap, wire_double(v)) : buf_printf(out, "%s%llu", gap, (unsigned long long)v);
}

static inline int unzigzag(uint64_t v)
{
    return (int)(v >> 1) ^ -(int)(v & 1);
}

static inline void show_exemplars(struct bytes point, uint32_t number, struct buf *out)
{
    struct wire_reader r = wire_reader(point);
    for (struct bytes e; wire_each(&r, number, &e);)
        buf_printf(out, " !%d:%g", wire_bytes(e, EXEMPLAR_TRACE_ID).data[15], wire_double(wire_uint(e, EXEMPLAR_AS_DOUBLE)));
}

static inline void show_histogram(struct bytes p, struct buf *out)
{
    buf_printf(out, ": %llu %.9g [", (unsigned long long)wire_uint(p, HISTOGRAM_COUNT), wire_double(wire_uint(p, HISTOGRAM_SUM)));
    show_numbers(wire_bytes(p, HISTOGRAM_BUCKETS), WIRE_I64, false, out);
    buf_append_str(out, "] [");
    show_numbers(wire_bytes(p, HISTOGRAM_BOUNDS), WIRE_I64, true, out);
    buf_append_str(out, "]");
    show_exemplars(p, HISTOGRAM_EXEMPLARS, out);
}

static inline void show_exponential(struct bytes p, struct buf *out)
{
    const struct bytes positive = wire_bytes(p, EXPONENTIAL_POSITIVE);
    buf_printf(out, ": %llu %.9g scale %d zeros %llu %g..%g %d [", (unsigned long long)wire_uint(p, EXPONENTIAL_COUNT),
               wire_double(wire_uint(p, EXPONENTIAL_SUM)), unzigzag(wire_uint(p, EXPONENTIAL_SCALE)),
               (unsigned long long)wire_uint(p, EXPONENTIAL_ZERO_COUNT), wire_double(wire_uint(p, EXPONENTIAL_MIN)),
               wire_double(wire_uint(p, EXPONENTIAL_MAX)), unzigzag(wire_uint(positive, BUCKETS_OFFSET)));
    show_numbers(wire_bytes(positive, BUCKETS_COUNTS), WIRE_VARINT, false, out);
    buf_append_str(out, "]");
}

static inline void show_metric(struct bytes m, struct buf *out)
{
    struct wire_field f[METRIC_EXPONENTIAL + 1];
    struct bytes name = wire_bytes(m, METRIC_NAME), p;
    wire_index(m, f, ARRAY_SIZE(f));
    const uint32_t kind = f[METRIC_SUM].number ? METRIC_SUM : f[METRIC_HISTOGRAM].number ? METRIC_HISTOGRAM : METRIC_EXPONENTIAL;
    const uint32_t attributes = kind == METRIC_SUM ? NUMBER_ATTRIBUTES : kind == METRIC_HISTOGRAM ? HISTOGRAM_ATTRIBUTES : EXPONENTIAL_ATTRIBUTES;
    struct wire_reader points = wire_reader(f[kind].bytes);
    while (wire_each(&points, DATA_POINTS, &p)) {
        const size_t space = strlen("traces.span.metrics.");
        const bool usual = name.len > space && memcmp(name.data, "traces.span.metrics.", space) == 0;
        buf_printf(out, "%.*s", (int)(usual ? name.len - space : name.len), (const char *)name.data + (usual ? space : 0));
        show_attributes(p, attributes, out);
        if (kind == METRIC_HISTOGRAM) {
            show_histogram(p, out);
        } else if (kind == METRIC_EXPONENTIAL) {
            show_exponential(p, out);
        } else {
            buf_printf(out, ": %lld", (long long)wire_uint(p, NUMBER_AS_INT));
            show_exemplars(p, NUMBER_EXEMPLARS, out);
        }
        buf_append_str(out, "\n");
    }
}

/* "{ resource attributes }", then a line for each of its points; NUL ended. The batch must pass the check of what comes from outside. */
static inline const char *show_spans_metrics(const struct batch *b, struct buf *out)
{
    struct otlp_checked c;
    struct err e;
    uint32_t records = 0;
    buf_truncate(out, 0);
    for (unsigned i = 0; i < b->nsegs; i++) {
        const struct bytes seg = buf_bytes(b->segs[i]);
        struct wire_reader resources = wire_reader(seg);
        if (otlp_check(SIGNAL_METRICS, seg, &c, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(c.canonical);
        records += c.records;
        for (struct bytes rm; wire_each(&resources, 1, &rm);) {
            struct wire_reader metrics = wire_reader(wire_bytes(rm, 2));
            buf_append_str(out, "{");
            show_attributes(wire_bytes(rm, 1), RESOURCE_ATTRIBUTES, out);
            buf_append_str(out, " }\n");
            for (struct bytes m; wire_each(&metrics, 2, &m);)
                show_metric(m, out);
        }
    }
    assert_int_equal(records, b->records);
    return buf_str(out);
}

#endif
