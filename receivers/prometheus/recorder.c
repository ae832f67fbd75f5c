#include "receivers/prometheus/recorder.h"

#include <math.h>

#include "proto/otlp_fields.h"
#include "proto/wire.h"
#include "receivers/prometheus/mapper.h"

#define MAX_GAP ((1u << 28) - 1)

struct recorded {
    struct place place;
    uint32_t gap;
};

void prom_recorder_init(struct prom_recorder *r, enum prom_format format, struct bytes page)
{
    *r = (struct prom_recorder){.at = page.data, .end = page.data + page.len};
    struct prom_replay *replay = r->replay = calloc(1, sizeof(*replay));
    r->samples = buf_new(0);
    r->gaps = buf_new(0);
    r->reports = buf_new(0);
    r->unfit = !r->replay || !r->samples || !r->gaps || !r->reports;
    if (!replay)
        return;
    replay->format = format;
    replay->slots = buf_new(0);
    replay->times = buf_new(0);
    replay->buckets = buf_new(0);
    r->unfit |= !replay->slots || !replay->times || !replay->buckets;
}

void prom_recorder_done(struct prom_recorder *r)
{
    buf_unref(r->samples);
    buf_unref(r->gaps);
    buf_unref(r->reports);
    prom_replay_free(r->replay);
}

/* ---- while the page is read ---- */

static void append(struct prom_recorder *r, struct buf *to, const void *data, size_t len)
{
    r->unfit = r->unfit || buf_append(to, data, len) < 0;
}

void prom_recorder_sample(struct prom_recorder *r, struct bytes raw, const struct prom_mapper *m)
{
    if (r->unfit)
        return;
    const size_t gap = (size_t)(raw.data - r->at);
    const uint8_t *behind = raw.data + raw.len;
    const uint8_t *line_end = memchr(behind, '\n', (size_t)(r->end - behind));
    r->unfit = gap > MAX_GAP || !line_end;
    append(r, r->gaps, r->at, gap);
    const struct recorded sample = {.place = m ? m->place : (struct place){NULL, NULL, ROLE_NONE},
                                    .gap = (uint32_t)gap};
    append(r, r->samples, &sample, sizeof(sample));
    r->at = line_end ? line_end + 1 : r->end;
}

void prom_recorder_report(struct prom_recorder *r, size_t number, const struct prom_mapper *m)
{
    static const struct recorded none;
    while (!r->unfit && r->reports->len < number * sizeof(none))
        append(r, r->reports, &none, sizeof(none));
    const struct recorded report = {.place = m->place};
    append(r, r->reports, &report, sizeof(report));
}

/* ---- places ---- */

/* The field `number` of a message for the `index`th time; false when there is none. */
static bool find(struct bytes message, uint32_t number, uint32_t index, struct wire_field *ret)
{
    struct wire_reader reader = wire_reader(message);
    while (wire_next(&reader, ret) > 0)
        if (ret->number == number && index-- == 0)
            return true;
    return false;
}

/* A slot for the fixed64 field `number`: `there` when the message has it, else `absent`. */
static struct slot fixed_slot(struct bytes request, struct bytes message, uint32_t number,
                              enum slot_kind there, enum slot_kind absent)
{
    struct wire_field f;
    if (!find(message, number, 0, &f))
        return (struct slot){.kind = absent};
    return (struct slot){.at = (uint32_t)(f.whole.data + f.whole.len - 8 - request.data),
                         .kind = there};
}

static struct slot quantile_slot(struct bytes request, struct bytes message, uint32_t index)
{
    struct wire_field f;
    if (!find(message, SUMMARY_QUANTILES, index, &f))
        return (struct slot){.kind = SLOT_NONE};
    return fixed_slot(request, f.bytes, QUANTILE_VALUE, SLOT_BITS, SLOT_NO_BITS);
}

static struct slot bucket_slot(struct prom_recorder *r, struct bytes request, struct bytes message,
                               const struct part *part)
{
    struct wire_field f;
    if (part->index == PART_UNWRITTEN) { /* the one of all, or of several with the same bound */
        r->unfit |= !(isinf(part->bound) && part->bound > 0);
        return (struct slot){.kind = SLOT_NONE};
    }
    if (!find(message, HISTOGRAM_BUCKETS, 0, &f)) {
        r->unfit = true;
        return (struct slot){.kind = SLOT_NONE};
    }
    const size_t at = (size_t)(f.bytes.data - request.data) + 8 * (size_t)part->index;
    return (struct slot){.at = (uint32_t)at, .kind = SLOT_DOUBLE};
}

static struct slot value_slot(struct bytes request, struct bytes message, enum point_kind kind)
{
    switch (kind) {
    case KIND_GAUGE:
    case KIND_SUM: return fixed_slot(request, message, NUMBER_AS_DOUBLE, SLOT_DOUBLE, SLOT_NONE);
    case KIND_HISTOGRAM:
        return fixed_slot(request, message, HISTOGRAM_COUNT, SLOT_COUNT, SLOT_NO_COUNT);
    case KIND_SUMMARY:
        return fixed_slot(request, message, SUMMARY_COUNT, SLOT_COUNT, SLOT_NO_COUNT);
    }
    return (struct slot){.kind = SLOT_NONE};
}

static struct slot slot_of(struct prom_recorder *r, struct bytes request, const struct place *place)
{
    const struct point *p = place->point;
    if (place->role == ROLE_NONE || p->at == 0)
        return (struct slot){.kind = SLOT_NONE};
    const struct bytes message = bytes_of(request.data + p->at, p->len);
    const bool histogram = p->family->kind == KIND_HISTOGRAM;
    switch (place->role) {
    case ROLE_NONE: break;
    case ROLE_VALUE: return value_slot(request, message, p->family->kind);
    case ROLE_SUM:
        return histogram ? fixed_slot(request, message, HISTOGRAM_SUM, SLOT_DOUBLE, SLOT_NONE)
                         : fixed_slot(request, message, SUMMARY_SUM, SLOT_BITS, SLOT_NO_BITS);
    case ROLE_PART:
        return histogram ? bucket_slot(r, request, message, place->part)
                         : quantile_slot(request, message, place->part->index);
    case ROLE_START: return fixed_slot(request, message, POINT_START, SLOT_START, SLOT_NO_START);
    }
    return (struct slot){.kind = SLOT_NONE};
}

/* The time of a point, and its buckets. */
static void add_point(struct prom_recorder *r, struct bytes request, const struct point *p)
{
    const struct bytes message = bytes_of(request.data + p->at, p->len);
    const struct slot time = fixed_slot(request, message, POINT_TIME, SLOT_DOUBLE, SLOT_NONE);
    struct wire_field f;
    r->unfit |= time.kind == SLOT_NONE || p->stale;
    append(r, r->replay->times, &time.at, sizeof(time.at));
    if (p->family->kind != KIND_HISTOGRAM)
        return;
    if (!find(message, HISTOGRAM_BUCKETS, 0, &f)) {
        r->unfit = true;
        return;
    }
    const struct slot_buckets b = {
        .count_at = value_slot(request, message, KIND_HISTOGRAM).at,
        .at = (uint32_t)(f.bytes.data - request.data),
        .n = (uint32_t)(f.bytes.len / 8 - 1),
    };
    append(r, r->replay->buckets, &b, sizeof(b));
}

static void add_points(struct prom_recorder *r, const struct prom_mapper *m, struct bytes request)
{
    for (const struct resource *res = m->resources; res; res = res->next)
        for (const struct scope *s = res->scopes; s; s = s->next)
            for (const struct family *f = s->families; f; f = f->next)
                for (const struct point *p = f->points; p; p = p->next)
                    if (p->at)
                        add_point(r, request, p);
}

static const struct recorded *recorded(const struct buf *b, size_t *ret_n)
{
    *ret_n = b->len / sizeof(struct recorded);
    return (const struct recorded *)(const void *)b->data;
}

void prom_recorder_settle(struct prom_recorder *r, struct prom_mapper *m, struct bytes request)
{
    r->unfit |= request.len > UINT32_MAX || m->left_out.samples;
    if (r->unfit)
        return;
    size_t n;
    map_locate(m, request);
    add_points(r, m, request);
    const struct recorded *samples = recorded(r->samples, &n);
    for (size_t i = 0; i < n; i++) {
        struct slot s = slot_of(r, request, &samples[i].place);
        s.gap = samples[i].gap & MAX_GAP;
        append(r, r->replay->slots, &s, sizeof(s));
    }
    const struct recorded *reports = recorded(r->reports, &n);
    for (size_t i = 0; i < n && i < PROM_MAX_REPORTS; i++)
        r->replay->reports[i] = slot_of(r, request, &reports[i].place).at;
}

/* ---- the end ---- */

static bool has_series(const struct series_table *t, size_t n)
{
    const struct series *s = t->first;
    for (size_t i = 1; s && i < n; i++)
        s = s->next;
    return n && s && s == t->last;
}

struct prom_replay *prom_recorder_replay(struct prom_recorder *r, const struct series_table *t,
                                         const struct batch *b, int64_t time_ms)
{
    const size_t n = r->unfit ? 0 : r->replay->slots->len / sizeof(struct slot);
    append(r, r->gaps, r->at, (size_t)(r->end - r->at));
    if (r->unfit || b->nsegs != 1 || b->times.last_ns != (uint64_t)time_ms * 1000000 ||
        !has_series(t, n))
        return NULL;
    struct prom_replay *replay = TAKE_PTR(r->replay);
    replay->gaps = TAKE_PTR(r->gaps);
    buf_shrink(replay->gaps);
    buf_shrink(replay->slots);
    buf_shrink(replay->times);
    buf_shrink(replay->buckets);
    replay->request = buf_ref(b->segs[0]);
    replay->records = b->records;
    replay->range = b->times;
    return replay;
}
