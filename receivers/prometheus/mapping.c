/* Takes in the samples of a scrape. */
#include "receivers/prometheus/mapping.h"

#include <errno.h>
#include <math.h>
#include <strings.h>

#include "agent/base/number.h"
#include "proto/otlp_fields.h"
#include "proto/wire.h"
#include "receivers/prometheus/mapper.h"
#include "receivers/prometheus/names.h"
#include "receivers/prometheus/recorder.h"
#include "receivers/prometheus/scan.h"

#define ARENA_BLOCK_BYTES 16384
#define SCRATCH_KEPT_BYTES 4096
#define POINT_BYTES 40 /* of a request, besides the attributes */

/* What decides where a sample goes. */
struct essence {
    struct bytes name, job, instance;
    bool scoped; /* there are otel_scope_* labels */
};

struct prom_mapper *prom_mapper_new(const char *version)
{
    struct prom_mapper *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->version = version;
    m->arena = arena_new(ARENA_BLOCK_BYTES);
    m->scratch = buf_new(0);
    m->resources_end = &m->resources;
    return m->arena && m->scratch ? m : prom_mapper_free(m);
}

static void forget(struct prom_mapper *m)
{
    struct prom_table *const tables[] = {&m->resource_table, &m->scope_table, &m->family_table,
                                         &m->name_table, &m->point_table};
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        prom_table_clear(tables[i]);
    arena_reset(m->arena);
    m->resources = m->last_resource = NULL;
    m->resources_end = &m->resources;
    m->last_name = NULL;
    m->expected_bytes = 0;
    m->left_out = (struct prom_left_out){0};
    m->recorder = NULL;
    buf_truncate(m->scratch, 0);
    if (m->scratch->cap > SCRATCH_KEPT_BYTES)
        buf_shrink(m->scratch);
}

struct prom_mapper *prom_mapper_free(struct prom_mapper *m)
{
    if (!m)
        return NULL;
    prom_table_done(&m->resource_table);
    prom_table_done(&m->scope_table);
    prom_table_done(&m->family_table);
    prom_table_done(&m->name_table);
    prom_table_done(&m->point_table);
    arena_free(m->arena);
    buf_unref(m->scratch);
    free(m);
    return NULL;
}

void prom_mapper_begin(struct prom_mapper *m, const struct prom_origin *origin)
{
    forget(m);
    m->origin = origin;
}

void prom_mapper_record(struct prom_mapper *m, struct prom_recorder *r)
{
    m->recorder = r;
}

bool mapper_keep(struct prom_mapper *m, struct bytes b, struct bytes *ret)
{
    *ret = (struct bytes){0};
    if (b.len == 0)
        return true;
    uint8_t *copy = arena_alloc(m->arena, b.len);
    if (!copy)
        return false;
    memcpy(copy, b.data, b.len);
    *ret = bytes_of(copy, b.len);
    return true;
}

/* ---- labels ---- */

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static uint8_t *put_field(uint8_t *p, uint32_t number, size_t len)
{
    return put_varint(put_varint(p, (uint64_t)number << 3 | WIRE_LEN), len);
}

static uint8_t *put_text(uint8_t *p, struct bytes text)
{
    if (text.len)
        memcpy(p, text.data, text.len);
    return p + text.len;
}

int map_put_attribute(struct buf *out, uint32_t number, struct bytes key, struct bytes value)
{
    enum { KEY = 1, VALUE = 2, STRING = 1, HEADS = 40 /* at most, of the four fields */ };
    const size_t any = 1 + wire_varint_size(value.len) + value.len;
    const size_t pair = 1 + wire_varint_size(key.len) + key.len + 1 + wire_varint_size(any) + any;
    int r = buf_reserve(out, HEADS + key.len + value.len);
    if (r < 0)
        return r;
    uint8_t *start = buf_tail(out), *p = put_field(start, number, pair);
    p = put_text(put_field(p, KEY, key.len), key);
    p = put_field(p, VALUE, any);
    p = put_text(put_field(p, STRING, value.len), value);
    buf_commit(out, (size_t)(p - start));
    return 0;
}

static bool starts(struct bytes b, const char *with)
{
    const size_t n = strlen(with);
    return b.len >= n && memcmp(b.data, with, n) == 0;
}

/* Labels that are told otherwise than as attributes of a point. */
static bool is_used_up(struct bytes name, enum point_kind kind)
{
    switch (name.data[0]) {
    case '_':
        return bytes_eq_str(name, "__name__") || bytes_eq_str(name, "__scheme__") ||
               bytes_eq_str(name, "__metrics_path__");
    case 'i': return bytes_eq_str(name, "instance");
    case 'j': return bytes_eq_str(name, "job");
    case 'l': return kind == KIND_HISTOGRAM && bytes_eq_str(name, "le");
    case 'o': return starts(name, "otel_scope_");
    case 'q': return kind == KIND_SUMMARY && bytes_eq_str(name, "quantile");
    default: return false;
    }
}

static int bad_sample(struct err *reterr, const char *what, struct bytes name)
{
    return err_set(reterr, -EINVAL, "%s \"%.*s\"", what, (int)(name.len > 200 ? 200 : name.len),
                   (const char *)name.data);
}

static int read_essence(const struct prom_mapper *m, struct prom_labels l, struct essence *e,
                        struct err *reterr)
{
    *e = (struct essence){.job = m->origin->job, .instance = m->origin->instance};
    for (size_t i = 0; i < l.n; i++) {
        const struct prom_label *label = &l.items[i];
        if (label->name.len == 0)
            return bad_sample(reterr, "expected a name for each label, got none for the value",
                              label->value);
        if (i && bytes_eq(label->name, l.items[i - 1].name))
            return bad_sample(reterr, "expected each label once, got twice", label->name);
        if (label->value.len == 0)
            continue;
        if (bytes_eq_str(label->name, "__name__"))
            e->name = label->value;
        else if (bytes_eq_str(label->name, "job"))
            e->job = label->value;
        else if (bytes_eq_str(label->name, "instance"))
            e->instance = label->value;
        else if (label->name.data[0] == 'o' && starts(label->name, "otel_scope_"))
            e->scoped = true;
    }
    if (e->name.len == 0)
        return err_set(reterr, -EINVAL, "expected a metric's name, got a sample without __name__");
    if (e->job.len == 0 || e->instance.len == 0)
        return bad_sample(reterr, "expected a job and an instance, got none for", e->name);
    return 0;
}

/* ---- points ---- */

struct point_key {
    const struct family *family;
    struct bytes attributes;
};

static bool same_point(const struct prom_node *node, const void *key)
{
    const struct point *p = container_of(node, const struct point, node);
    const struct point_key *k = key;
    return p->family == k->family && bytes_eq(p->attributes, k->attributes);
}

static struct point *new_point(struct prom_mapper *m, struct family *f, struct bytes attributes,
                               uint64_t hash, int64_t time_ms)
{
    struct point *p = arena_calloc(m->arena, sizeof(*p));
    if (!p || !mapper_keep(m, attributes, &p->attributes))
        return NULL;
    p->node.hash = hash;
    p->family = f;
    p->time_ms = time_ms;
    p->exemplars_end = &p->exemplars;
    if (prom_table_add(&m->point_table, &p->node) < 0)
        return NULL;
    m->expected_bytes += POINT_BYTES + attributes.len;
    *f->points_end = p;
    f->points_end = &p->next;
    return p;
}

/* The point that the sample is (part of). NULL when out of memory. */
static struct point *find_point(struct prom_mapper *m, struct family *f,
                                const struct prom_sample *s)
{
    const uint32_t number = f->kind == KIND_HISTOGRAM ? HISTOGRAM_ATTRIBUTES : NUMBER_ATTRIBUTES;
    buf_truncate(m->scratch, 0);
    for (size_t i = 0; i < s->labels.n; i++) {
        const struct prom_label *l = &s->labels.items[i];
        if (l->value.len && !is_used_up(l->name, f->kind) &&
            map_put_attribute(m->scratch, number, l->name, l->value) < 0)
            return NULL;
    }
    const struct point_key key = {f, buf_bytes(m->scratch)};
    if (f->last && bytes_eq(f->last->attributes, key.attributes))
        return f->last;
    const uint64_t hash = prom_hash((uintptr_t)f, key.attributes);
    struct prom_node *node = prom_table_find(&m->point_table, hash, same_point, &key);
    f->last = node ? container_of(node, struct point, node)
                   : new_point(m, f, key.attributes, hash, s->time_ms);
    return f->last;
}

static int leave_out(struct prom_mapper *m, struct bytes name, const char *why)
{
    if (m->left_out.samples++ == 0)
        snprintf(m->left_out.first, sizeof(m->left_out.first), "\"%.*s\": %s",
                 (int)(name.len > 80 ? 80 : name.len), (const char *)name.data, why);
    return 0;
}

static int add_part(struct prom_mapper *m, struct point *p, const struct prom_sample *s,
                    struct bytes name)
{
    const bool histogram = p->family->kind == KIND_HISTOGRAM;
    const struct bytes text = prom_labels_get(s->labels, histogram ? "le" : "quantile");
    double bound;
    if ((!prom_quick_double(text, &bound) && !number_parse_double(text, &bound)) || isnan(bound))
        return leave_out(m, name,
                         histogram ? "expected a number in its label \"le\""
                                   : "expected a number in its label \"quantile\"");
    struct part *part = arena_calloc(m->arena, sizeof(*part));
    if (!part)
        return -ENOMEM;
    *part = (struct part){p->parts, bound, s->value, PART_UNWRITTEN, s->stale};
    m->place = (struct place){p, part, ROLE_PART};
    p->parts = part;
    p->nparts++;
    m->expected_bytes += sizeof(double) + sizeof(uint64_t);
    return 1;
}

static void add_value(struct prom_mapper *m, struct point *p, const struct prom_sample *s)
{
    m->place = (struct place){p, NULL, ROLE_VALUE};
    if (s->stale && p->has_value) /* another series went on in its place */
        return;
    p->value = s->value;
    p->stale = s->stale;
    p->has_value = true;
}

/* "NAME_created" of a family NAME. */
static bool is_created(const struct family *f, struct bytes name)
{
    const size_t n = f->info->name.len;
    return name_ends(name, "_created") && name.len == n + strlen("_created") &&
           memcmp(name.data, f->info->name.data, n) == 0;
}

/* 1, or 0 when it is left out; -ENOMEM. */
static int add_sample(struct prom_mapper *m, struct point *p, const struct prom_sample *s,
                      struct bytes name)
{
    const struct family *f = p->family;
    const bool complex = f->kind == KIND_HISTOGRAM || f->kind == KIND_SUMMARY;
    if (p->time_ms != s->time_ms)
        return leave_out(m, name, "expected the time of the other samples of its point");
    if (s->created_ms)
        p->created = (double)s->created_ms / 1000;
    if (complex && name_ends(name, "_sum")) {
        m->place = (struct place){p, NULL, ROLE_SUM};
        p->sum = s->value;
        p->has_sum = !s->stale;
    } else if (complex && name_ends(name, "_count")) {
        add_value(m, p, s);
    } else if (f->kind != KIND_GAUGE && is_created(f, name)) {
        m->place = (struct place){p, NULL, ROLE_START};
        p->created = s->stale ? 0 : s->value;
    } else if (complex) {
        return add_part(m, p, s, name);
    } else {
        add_value(m, p, s);
    }
    return 1;
}

/* ---- exemplars ---- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An id of `n` bytes that is not all zero, from twice as many hexadecimal digits. */
static bool read_id(struct bytes text, size_t n, uint8_t *ret)
{
    uint8_t any = 0;
    if (text.len != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
        any |= ret[i];
    }
    return any != 0;
}

static bool is_word(struct bytes b, const char *word)
{
    return b.len == strlen(word) && strncasecmp((const char *)b.data, word, b.len) == 0;
}

struct exemplar_ids {
    uint8_t trace[16], span[8];
    bool has_trace, has_span;
};

/* Of several ids, which labels in other case or given twice can make, the last one counts. */
static int put_exemplar_label(struct buf *out, const struct prom_label *l, struct exemplar_ids *ids)
{
    const bool trace = is_word(l->name, "trace_id"), span = is_word(l->name, "span_id");
    uint8_t id[16];
    if ((trace || span) && l->value.len == 0)
        return 0;
    if ((!trace && !span) || !read_id(l->value, trace ? 16 : 8, id))
        return map_put_attribute(out, EXEMPLAR_ATTRIBUTES, l->name, l->value);
    memcpy(trace ? ids->trace : ids->span, id, trace ? 16 : 8);
    ids->has_trace |= trace;
    ids->has_span |= span;
    return 0;
}

static int add_exemplar(struct prom_mapper *m, struct point *p, const struct prom_sample *s)
{
    const struct prom_exemplar *e = s->exemplar;
    const int64_t ms = e->has_time ? e->time_ms : s->time_ms;
    struct exemplar_ids ids = {.has_trace = false};
    buf_truncate(m->scratch, 0);
    int r = wire_put_fixed64(m->scratch, EXEMPLAR_TIME, (uint64_t)ms * 1000000);
    if (r == 0)
        r = wire_put_double(m->scratch, EXEMPLAR_AS_DOUBLE, e->value);
    for (size_t i = 0; r == 0 && i < e->labels.n; i++)
        r = put_exemplar_label(m->scratch, &e->labels.items[i], &ids);
    if (r == 0 && ids.has_span)
        r = wire_put_bytes(m->scratch, EXEMPLAR_SPAN_ID, bytes_of(ids.span, sizeof(ids.span)));
    if (r == 0 && ids.has_trace)
        r = wire_put_bytes(m->scratch, EXEMPLAR_TRACE_ID, bytes_of(ids.trace, sizeof(ids.trace)));
    struct kept_exemplar *kept = r == 0 ? arena_calloc(m->arena, sizeof(*kept)) : NULL;
    if (!kept || !mapper_keep(m, buf_bytes(m->scratch), &kept->message))
        return -ENOMEM;
    *p->exemplars_end = kept;
    p->exemplars_end = &kept->next;
    return 0;
}

/* ---- samples ---- */

/* Its labels become resource attributes. */
static int add_target_info(struct prom_mapper *m, struct resource *r, struct prom_labels labels)
{
    for (size_t i = 0; i < labels.n; i++) {
        const struct prom_label *l = &labels.items[i];
        if (l->value.len == 0 || bytes_eq_str(l->name, "__name__") ||
            bytes_eq_str(l->name, "job") || bytes_eq_str(l->name, "instance"))
            continue;
        if (map_resource_set(m, r, l->name, l->value) < 0)
            return -ENOMEM;
    }
    return 0;
}

int prom_mapper_add(struct prom_mapper *m, const struct prom_sample *s, struct err *reterr)
{
    struct essence e;
    m->place = (struct place){NULL, NULL, ROLE_NONE};
    int r = read_essence(m, s->labels, &e, reterr);
    if (r < 0)
        return r;
    struct resource *resource = map_resource(m, e.job, e.instance);
    if (!resource)
        return -ENOMEM;
    if (bytes_eq_str(e.name, "target_info"))
        return add_target_info(m, resource, s->labels);
    struct scope *scope =
        e.scoped || !resource->own_scope ? map_scope(m, resource, s->labels) : resource->own_scope;
    struct family *family = scope ? map_family(m, scope, e.name) : NULL;
    struct point *point = family ? find_point(m, family, s) : NULL;
    if (!point)
        return -ENOMEM;
    r = add_sample(m, point, s, e.name);
    if (r >= 0 && s->exemplar && add_exemplar(m, point, s) < 0)
        return -ENOMEM;
    return r;
}

/* ---- end ---- */

static void count_incomplete(struct prom_mapper *m)
{
    for (struct resource *r = m->resources; r; r = r->next)
        for (struct scope *s = r->scopes; s; s = s->next)
            for (struct family *f = s->families; f; f = f->next)
                for (struct point *p = f->points; p; p = p->next)
                    if (!map_point_complete(p) && (p->parts || p->has_sum))
                        leave_out(m, f->name, "expected a sample with the suffix \"_count\"");
}

int prom_mapper_finish(struct prom_mapper *m, struct buf **ret, uint32_t *ret_points,
                       struct prom_left_out *left_out)
{
    _cleanup_buf_ struct buf *out = buf_new(0);
    *ret = NULL;
    *ret_points = 0;
    int r = out ? buf_reserve(out, m->expected_bytes) : -ENOMEM;
    if (r == 0)
        r = map_write(m, out, ret_points);
    count_incomplete(m);
    if (r == 0 && m->recorder)
        prom_recorder_settle(m->recorder, m, buf_bytes(out));
    if (left_out)
        *left_out = m->left_out;
    forget(m);
    if (r == 0 && *ret_points)
        *ret = TAKE_PTR(out);
    return r;
}
