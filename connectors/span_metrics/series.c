#include "connectors/span_metrics/series.h"

#include <errno.h>

#include "agent/base/buf.h"
#include "proto/any_value.h"
#include "proto/otlp_fields.h"

#define EXEMPLARS_FIRST 4

static size_t block_size(const struct series *s)
{
    return sizeof(*s) + s->nbuckets * sizeof(s->buckets[0]) + s->key_len + s->attributes_len;
}

static void series_free(struct series *s)
{
    mem_release(block_size(s) + s->exemplars_cap * sizeof(*s->exemplars));
    exponential_free(s->exponential);
    free(s->exemplars);
    free(s);
}

static struct series *series_new(const struct series_set *set, const struct series_shape *shape,
                                 struct bytes key, struct bytes attributes)
{
    const enum histogram_kind kind = set->histogram ? shape->histogram : HISTOGRAM_NONE;
    const struct series head = {.nbuckets = kind == HISTOGRAM_EXPLICIT ? shape->nbounds + 1 : 0,
                                .key_len = (uint32_t)key.len,
                                .attributes_len = (uint32_t)attributes.len};
    struct series *s = calloc(1, block_size(&head));
    if (!s)
        return NULL;
    *s = head;
    mem_charge(block_size(s));
    memcpy((uint8_t *)series_key(s).data, key.data, key.len);
    memcpy((uint8_t *)series_attributes(s).data, attributes.data, attributes.len);
    if (kind == HISTOGRAM_EXPONENTIAL && !(s->exponential = exponential_new(shape->max_size))) {
        series_free(s);
        return NULL;
    }
    return s;
}

static void append(struct series_set *set, struct series *s)
{
    if (set->last)
        set->last->next = s;
    else
        set->first = s;
    set->last = s;
}

/* ---- finding and making ---- */

struct series *series_find(const struct series_set *set, uint64_t hash, struct bytes key)
{
    const struct sm_table *t = &set->table;
    if (!t->cap)
        return NULL;
    for (size_t i = sm_table_first(t, hash); t->slots[i].item; i = sm_table_next(t, i)) {
        struct series *s = t->slots[i].item;
        if (t->slots[i].hash == hash && bytes_eq(series_key(s), key))
            return s;
    }
    return NULL;
}

struct series *series_add(struct series_set *set, const struct series_shape *shape, uint64_t hash,
                          struct bytes key, struct bytes attributes, uint64_t start_ns)
{
    if (sm_table_reserve(&set->table) < 0)
        return NULL;
    struct series *s = series_new(set, shape, key, attributes);
    if (!s)
        return NULL;
    s->hash = hash;
    s->start_ns = start_ns;
    sm_table_put(&set->table, hash, s);
    append(set, s);
    set->n++;
    return s;
}

static int put_overflow_attribute(struct buf *out)
{
    size_t kv, value;
    int r = wire_begin(out, NUMBER_ATTRIBUTES, &kv);
    if (r == 0)
        r = wire_put_str(out, 1, "otel.metric.overflow");
    if (r == 0)
        r = wire_begin(out, 2, &value);
    if (r == 0)
        r = any_value_write(&(struct any_value){ANY_BOOL, .b = true}, out);
    if (r == 0)
        r = wire_end(out, value);
    return r == 0 ? wire_end(out, kv) : r;
}

struct series *series_overflow(struct series_set *set, const struct series_shape *shape,
                               uint64_t start_ns)
{
    _cleanup_buf_ struct buf *attributes = NULL;
    if (set->overflow)
        return set->overflow;
    attributes = buf_new(0);
    if (!attributes || put_overflow_attribute(attributes) < 0)
        return NULL;
    struct series *s = series_new(set, shape, bytes_str(""), buf_bytes(attributes));
    if (!s)
        return NULL;
    s->start_ns = start_ns;
    s->overflow = true;
    set->overflow = s;
    append(set, s);
    return s;
}

/* ---- counting ---- */

/* The first bucket whose bound is not below the value; they include their upper bound. */
static uint32_t bucket_of(const struct series_shape *shape, double value)
{
    uint32_t low = 0, n = shape->nbounds;
    while (n > 0) {
        const uint32_t half = n / 2;
        const bool above = shape->bounds[low + half] < value;
        low = above ? low + half + 1 : low;
        n = above ? n - half - 1 : half;
    }
    return low;
}

void series_observe(struct series *s, const struct series_shape *shape, double value,
                    uint64_t times)
{
    s->count += times;
    s->sum += value * (double)times;
    if (s->nbuckets)
        s->buckets[bucket_of(shape, value)] += times;
    else if (s->exponential)
        exponential_add(s->exponential, value, times);
}

static bool exemplars_grow(struct series *s, uint32_t max)
{
    uint32_t cap = s->exemplars_cap ? 2 * s->exemplars_cap : EXEMPLARS_FIRST;
    cap = cap > max ? max : cap;
    struct exemplar *items = realloc(s->exemplars, cap * sizeof(*items));
    if (!items)
        return false;
    mem_charge((cap - s->exemplars_cap) * sizeof(*items));
    s->exemplars = items;
    s->exemplars_cap = cap;
    return true;
}

void series_exemplify(struct series *s, const struct series_shape *shape, struct bytes trace_id,
                      struct bytes span_id, double value)
{
    if (s->nexemplars >= shape->max_exemplars)
        return;
    if (s->nexemplars == s->exemplars_cap && !exemplars_grow(s, shape->max_exemplars))
        return;
    struct exemplar *e = &s->exemplars[s->nexemplars++];
    *e = (struct exemplar){.value = value};
    memcpy(e->trace_id, trace_id.data, sizeof(e->trace_id));
    if (span_id.len == sizeof(e->span_id))
        memcpy(e->span_id, span_id.data, sizeof(e->span_id));
}

/* ---- forgetting ---- */

void series_clear_exemplars(struct series_set *set)
{
    for (struct series *s = set->first; s; s = s->next)
        s->nexemplars = 0;
}

static void forget(struct series_set *set, struct series *s)
{
    if (s->overflow) {
        set->overflow = NULL;
    } else {
        sm_table_remove(&set->table, s->hash, s);
        set->n--;
    }
    series_free(s);
}

void series_expire(struct series_set *set, uint64_t before_ns, uint8_t exports)
{
    struct series **at = &set->first;
    set->last = NULL;
    while (*at) {
        struct series *s = *at;
        if (s->seen_ns <= before_ns && s->exports >= exports) {
            *at = s->next;
            forget(set, s);
            continue;
        }
        set->last = s;
        at = &s->next;
    }
}

void series_set_done(struct series_set *set)
{
    while (set->first) {
        struct series *s = set->first;
        set->first = s->next;
        series_free(s);
    }
    sm_table_done(&set->table);
    *set = (struct series_set){.histogram = set->histogram};
}
