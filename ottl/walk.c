/*
 * Three levels of messages are walked on their bytes: request, resource entry, scope entry. Nothing
 * is written before something changes. Then the level's own buffer takes the items as they are now
 * and, in one piece, what lies between two changes. The resource or scope and the schema URL are
 * left out of it: they may still be edited by what is below, and are put in front when the level is
 * closed. Below that, spans, metrics and log records are items, and so are the events, points and
 * exemplars in them.
 */
#include "ottl/walk.h"

#include <errno.h>

#include "ottl/item.h"
#include "proto/check.h"
#include "proto/otlp_fields.h"
#include "proto/schema.h"

#define ADDED_PER_METRIC 16 /* metrics that editors may add to a scope for each it has */
#define ADDED_MIN 10000

#define SPARE_MAX_BYTES                                                                            \
    ((size_t)16 << 10) /* of one buffer or arena that is kept for the next walk */

#define VISIT_MIN_BYTES ((size_t)8 << 20)
#define VISIT_MAX_BYTES ((size_t)128 << 20)

enum { REQUEST, ENTRY, SCOPE_ENTRY, LEVELS };

/* One message of the three levels. */
struct level {
    struct wire_field field; /* of the message in its parent */
    struct wire_field head;  /* resource or scope as it came; whole.len 0 = none */
    struct wire_field url;
    struct ottl_item item;  /* the resource or scope */
    const uint8_t *pending; /* first byte of the message that was not copied */
    bool open;              /* something was written to `out` */
    uint32_t kept, dropped; /* items below */
    struct buf *out;        /* what was written: all but head and URL */
};

struct walk {
    const struct ottl_walk *w;
    enum signal signal;
    struct ottl_env env;
    struct err err;
    struct arena *heads, *records, *visits; /* for a resource entry, a record, a visit */
    struct buf *scratch, *message;
    struct ottl_item_memory head_mem, record_mem;
    struct ottl_added added;
    size_t visit_bytes; /* what the values made for one item may take */
    struct level levels[LEVELS];
};

/* What became of an item. */
enum fate { KEPT, CHANGED, GONE };

/* ---- visits ---- */

/* A share of what the process may use. */
static size_t visit_bytes(void)
{
    const size_t share = mem_lowest_limit() / 4;
    return share < VISIT_MIN_BYTES   ? VISIT_MIN_BYTES
           : share < VISIT_MAX_BYTES ? share
                                     : VISIT_MAX_BYTES;
}

/* For statements only: what they did is put together whatever that takes. */
static void limit_memory(struct walk *w, size_t bytes)
{
    arena_set_limit(w->visits, bytes);
    arena_set_limit(w->records, bytes);
    arena_set_limit(w->heads, bytes);
}

/* 0; *ret_drop; -EINVAL or -ENOMEM. */
static int visit(struct walk *w, bool *ret_drop)
{
    w->env.cache[w->w->context] = NULL;
    limit_memory(w, w->visit_bytes);
    enum ottl_visit v = w->w->visit(w->w->ctx, &w->env);
    limit_memory(w, 0);
    arena_reset(w->visits);
    *ret_drop = v == OTTL_DROP;
    return v == OTTL_STOP ? -EINVAL : v == OTTL_NO_MEMORY ? -ENOMEM : 0;
}

struct tally {
    uint32_t kept, dropped;
};

static int visit_exemplars(struct walk *w, struct ottl_item *point);

static int visit_child(struct walk *w, enum ottl_context c, struct ottl_item *child, bool *ret_drop)
{
    w->env.items[c] = child;
    *ret_drop = false;
    int r = w->w->context == c ? visit(w, ret_drop) : visit_exemplars(w, child);
    w->env.items[c] = NULL;
    return r;
}

/* Every field `number` of `parent` in its turn, as an item of context `c`. */
static int visit_children(struct walk *w, struct ottl_item *parent, uint32_t number,
                          enum ottl_context c, enum ottl_point point, struct tally *ret)
{
    struct ottl_field_iter iter = ottl_fields(parent);
    struct ottl_item child;
    struct wire_field f;
    uint32_t index;
    int r = 0;
    *ret = (struct tally){0};
    while (r == 0 && ottl_field_seek(&iter, number, &f, &index)) {
        bool drop;
        ottl_item_init(&child, f.bytes, parent->mem);
        child.point = point;
        parent->live = &child;
        parent->live_index = index;
        w->env.event_index = ret->kept + ret->dropped;
        r = visit_child(w, c, &child, &drop);
        if (r == 0)
            r = drop ? ottl_item_remove_at(parent, index) : ottl_item_settle(parent);
        parent->live = NULL;
        ret->dropped += drop;
        ret->kept += !drop;
    }
    return r;
}

static int visit_exemplars(struct walk *w, struct ottl_item *point)
{
    static const uint32_t numbers[OTTL_POINT_COUNT] = {NUMBER_EXEMPLARS, HISTOGRAM_EXEMPLARS,
                                                       EXPONENTIAL_EXEMPLARS, 0};
    struct tally t;
    if (numbers[point->point] == 0)
        return 0;
    return visit_children(w, point, numbers[point->point], OTTL_EXEMPLAR, OTTL_POINT_NUMBER, &t);
}

/* Whether nothing is left below a level, or below a metric that has data. */
static bool left_empty(const struct walk *w, uint32_t kept, uint32_t dropped)
{
    return kept == 0 && (dropped > 0 || w->w->drop_empty);
}

static int visit_points(struct walk *w, struct ottl_item *metric, bool *ret_drop)
{
    struct ottl_item *data;
    struct tally t;
    int r = ottl_metric_data(metric, &data);
    if (r < 0 || !data)
        return r;
    enum ottl_point point = ottl_metric_point(metric->data_number);
    r = visit_children(w, data, DATA_POINTS, OTTL_DATAPOINT, point, &t);
    *ret_drop = left_empty(w, t.kept, t.dropped);
    return r;
}

static enum ottl_context record_context(enum signal s)
{
    return s == SIGNAL_TRACES ? OTTL_SPAN : s == SIGNAL_METRICS ? OTTL_METRIC : OTTL_LOG;
}

/* Visits a span, metric or log record, or what is inside of it. CHANGED: it is in w->message. */
static int visit_record(struct walk *w, struct bytes msg, enum fate *ret)
{
    enum ottl_context c = record_context(w->signal);
    struct ottl_item record;
    struct tally t;
    bool drop = false;
    int r;
    ottl_item_init(&record, msg, &w->record_mem);
    w->env.items[c] = &record;
    if (w->w->context == c)
        r = visit(w, &drop);
    else if (w->w->context == OTTL_SPANEVENT)
        r = visit_children(w, &record, SPAN_EVENTS, OTTL_SPANEVENT, OTTL_POINT_NUMBER, &t);
    else
        r = visit_points(w, &record, &drop);
    w->env.items[c] = NULL;
    if (r == 0 && !drop)
        r = ottl_item_settle(&record);
    *ret = drop ? GONE : record.changed ? CHANGED : KEPT;
    buf_truncate(w->message, 0);
    if (r == 0 && *ret == CHANGED)
        r = ottl_item_write(&record, w->message) < 0 ? -ENOMEM : 0;
    arena_reset(w->records);
    return r;
}

/* ---- the levels ---- */

/* Copies [from, to) of the message but for the field `f`. */
static int copy_around(struct buf *out, const uint8_t *from, const uint8_t *to,
                       const struct wire_field *f)
{
    const uint8_t *at = f->whole.data;
    if (f->whole.len == 0 || at < from || at >= to)
        return buf_append(out, from, (size_t)(to - from));
    int r = buf_append(out, from, (size_t)(at - from));
    from = at + f->whole.len;
    return r < 0 ? r : buf_append(out, from, (size_t)(to - from));
}

/* Copies [from, to) of the message of a level but for head and URL. */
static int copy_range(const struct level *l, const uint8_t *from, const uint8_t *to,
                      struct buf *out)
{
    bool url_first = l->url.whole.data < l->head.whole.data;
    const struct wire_field *a = url_first ? &l->url : &l->head;
    const struct wire_field *b = url_first ? &l->head : &l->url;
    int r = 0;
    if (a->whole.len && a->whole.data >= from && a->whole.data < to) {
        r = buf_append(out, from, (size_t)(a->whole.data - from));
        from = a->whole.data + a->whole.len;
    }
    return r < 0 ? r : copy_around(out, from, to, b);
}

static const uint8_t *level_end(const struct level *l)
{
    return l->field.bytes.data + l->field.bytes.len;
}

/* Copies what is pending before `upto` to the level's own buffer, which is made large enough at
 * once. */
static int copy_pending(struct level *l, const uint8_t *upto)
{
    const uint8_t *from = l->pending;
    size_t size = l->field.bytes.len;
    if (!l->open && buf_reserve(l->out, size + size / 8 + 64) < 0)
        return -ENOMEM;
    l->open = true;
    l->pending = upto;
    return copy_range(l, from, upto, l->out);
}

/* An item below `l` is now `now`, or gone when that is NULL. */
static int replace(struct level *l, const struct wire_field *f, const struct bytes *now)
{
    int r = copy_pending(l, f->whole.data);
    if (r == 0 && now)
        r = wire_put_bytes(l->out, f->number, *now);
    l->pending = f->whole.data + f->whole.len;
    return r < 0 ? -ENOMEM : 0;
}

static void level_init(struct walk *w, unsigned i, const struct wire_field *f)
{
    struct level *l = &w->levels[i];
    struct buf *out = l->out;
    *l = (struct level){.field = *f, .pending = f->bytes.data, .out = out};
    buf_truncate(out, 0);
    if (i == REQUEST)
        return;
    struct wire_reader r = wire_reader(f->bytes);
    struct wire_field part;
    while (wire_next(&r, &part) > 0)
        if (part.number == ENTRY_HEAD)
            l->head = part;
        else if (part.number == ENTRY_SCHEMA_URL)
            l->url = part;
    ottl_item_init(&l->item, l->head.bytes, &w->head_mem);
    l->item.schema_url = l->url.bytes;
}

static size_t field_size(size_t len)
{
    return 1 + wire_varint_size(len) + len; /* fields of entries have numbers below 16 */
}

/* Appends the message of a level: head and URL as they are now, and the rest as written or as it
 * came. */
static int put_level(const struct level *l, const struct buf *head, struct buf *out)
{
    bool has_head = l->head.whole.len || l->item.changed;
    struct bytes url = l->item.schema_url;
    size_t rest = l->open ? l->out->len : l->field.bytes.len - l->head.whole.len - l->url.whole.len;
    size_t size =
        rest + (has_head ? field_size(head->len) : 0) + (url.len ? field_size(url.len) : 0);
    int r = wire_put_tag(out, l->field.number, WIRE_LEN);
    if (r == 0)
        r = wire_put_varint(out, size);
    if (r == 0 && has_head)
        r = wire_put_bytes(out, ENTRY_HEAD, buf_bytes(head));
    if (r == 0)
        r = l->open ? buf_append(out, l->out->data, l->out->len)
                    : copy_range(l, l->field.bytes.data, level_end(l), out);
    if (r == 0 && url.len)
        r = wire_put_bytes(out, ENTRY_SCHEMA_URL, url);
    return r;
}

static int compose(struct walk *w, struct level *l, struct level *parent)
{
    struct buf *head = w->message;
    buf_truncate(head, 0);
    int r = copy_pending(parent, l->field.whole.data);
    if (r == 0 && l->open)
        r = copy_pending(l, level_end(l));
    if (r == 0)
        r = ottl_item_write(&l->item, head);
    if (r == 0)
        r = put_level(l, head, parent->out);
    parent->pending = l->field.whole.data + l->field.whole.len;
    return r < 0 ? -ENOMEM : 0;
}

/* The end of an entry: what became of it goes into the level above. */
static int level_close(struct walk *w, unsigned i, bool drop)
{
    struct level *l = &w->levels[i], *parent = &w->levels[i - 1];
    bool gone = drop || left_empty(w, l->kept, l->dropped);
    parent->dropped += gone;
    parent->kept += !gone;
    if (gone)
        return replace(parent, &l->field, NULL);
    if (!l->open && !l->item.changed && !l->item.schema_changed)
        return 0;
    return compose(w, l, parent);
}

static int walk_record(struct walk *w, struct level *l, const struct wire_field *f)
{
    enum fate fate;
    int r = visit_record(w, f->bytes, &fate);
    l->kept += fate != GONE;
    l->dropped += fate == GONE;
    if (r < 0 || fate == KEPT)
        return r;
    struct bytes now = buf_bytes(w->message);
    return replace(l, f, fate == GONE ? NULL : &now);
}

/* Metrics that editors made stand behind the others, and may lead to more. */
static int walk_added(struct walk *w, struct level *l)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->added.n; i++) {
        enum fate fate;
        struct bytes metric = w->added.items[i];
        r = visit_record(w, metric, &fate);
        if (r < 0 || fate == GONE)
            continue;
        l->kept++;
        if (copy_pending(l, level_end(l)) < 0 ||
            wire_put_bytes(l->out, ENTRY_ITEMS, fate == CHANGED ? buf_bytes(w->message) : metric) <
                0)
            return -ENOMEM;
    }
    return r;
}

static int walk_records(struct walk *w, struct level *l)
{
    struct wire_reader reader = wire_reader(l->field.bytes);
    struct wire_field f;
    int r = 0;
    w->added.n = 0;
    w->added.limit = ADDED_MIN;
    while (r == 0 && wire_next(&reader, &f) > 0) {
        if (f.number != ENTRY_ITEMS)
            continue;
        w->added.limit += ADDED_PER_METRIC;
        r = walk_record(w, l, &f);
    }
    return r < 0 ? r : walk_added(w, l);
}

/* Visits a resource or scope itself. */
static int visit_head(struct walk *w, struct level *l, bool *ret_drop)
{
    struct wire_reader reader = wire_reader(l->field.bytes);
    struct wire_field f;
    while (w->w->drop_empty && wire_next(&reader, &f) > 0)
        l->kept += f.number == ENTRY_ITEMS;
    return visit(w, ret_drop);
}

static int walk_scope(struct walk *w, const struct wire_field *f)
{
    struct level *l = &w->levels[SCOPE_ENTRY];
    bool drop = false;
    level_init(w, SCOPE_ENTRY, f);
    w->env.items[OTTL_SCOPE] = &l->item;
    int r = w->w->context == OTTL_SCOPE ? visit_head(w, l, &drop) : walk_records(w, l);
    w->env.items[OTTL_SCOPE] = NULL;
    return r < 0 ? r : level_close(w, SCOPE_ENTRY, drop);
}

static int walk_scopes(struct walk *w, struct level *l)
{
    struct wire_reader reader = wire_reader(l->field.bytes);
    struct wire_field f;
    int r = 0;
    while (r == 0 && wire_next(&reader, &f) > 0)
        if (f.number == ENTRY_ITEMS)
            r = walk_scope(w, &f);
    return r;
}

static int walk_resource(struct walk *w, const struct wire_field *f)
{
    struct level *l = &w->levels[ENTRY];
    bool drop = false;
    level_init(w, ENTRY, f);
    w->env.items[OTTL_RESOURCE] = &l->item;
    int r = w->w->context == OTTL_RESOURCE ? visit_head(w, l, &drop) : walk_scopes(w, l);
    w->env.items[OTTL_RESOURCE] = NULL;
    if (r == 0)
        r = level_close(w, ENTRY, drop);
    arena_reset(w->heads);
    return r;
}

/* *ret: the new segment, a reference of the old one, or NULL when all is gone. */
static int walk_segment(struct walk *w, struct buf *seg, struct buf **ret)
{
    struct level *l = &w->levels[REQUEST];
    struct wire_field all = {.bytes = buf_bytes(seg), .whole = buf_bytes(seg)}, f;
    struct wire_reader reader = wire_reader(all.bytes);
    int r = 0;
    *ret = NULL;
    level_init(w, REQUEST, &all);
    while (r == 0 && wire_next(&reader, &f) > 0)
        if (f.number == OTLP_ENTRIES)
            r = walk_resource(w, &f);
    if (r < 0 || left_empty(w, l->kept, l->dropped))
        return r;
    if (!l->open) {
        *ret = buf_ref(seg);
        return 0;
    }
    if (copy_pending(l, level_end(l)) < 0)
        return -ENOMEM;
    *ret = l->out;
    l->out = buf_new(0);
    buf_shrink(*ret);
    return l->out ? 0 : -ENOMEM;
}

/* ---- batches ---- */

static bool in_signal(enum ottl_context c, enum signal s)
{
    switch (c) {
    case OTTL_SPAN:
    case OTTL_SPANEVENT: return s == SIGNAL_TRACES;
    case OTTL_METRIC:
    case OTTL_DATAPOINT:
    case OTTL_EXEMPLAR: return s == SIGNAL_METRICS;
    case OTTL_LOG: return s == SIGNAL_LOGS;
    default: return true;
    }
}

static struct walk *walk_free(struct walk *w)
{
    if (!w)
        return NULL;
    for (unsigned i = 0; i < LEVELS; i++)
        buf_unref(w->levels[i].out);
    buf_unref(w->message);
    buf_unref(w->scratch);
    arena_free(w->visits);
    arena_free(w->records);
    arena_free(w->heads);
    free(w->added.items);
    free(w);
    return NULL;
}

static struct walk *walk_new(void)
{
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->heads = arena_new(0);
    w->records = arena_new(0);
    w->visits = arena_new(0);
    w->scratch = buf_new(0);
    w->message = buf_new(0);
    bool good = w->heads && w->records && w->visits && w->scratch && w->message;
    for (unsigned i = 0; i < LEVELS; i++)
        good = (w->levels[i].out = buf_new(0)) && good;
    w->head_mem = (struct ottl_item_memory){w->heads, w->scratch};
    w->record_mem = (struct ottl_item_memory){w->records, w->scratch};
    w->added.arena = w->heads;
    return good ? w : walk_free(w);
}

/* The one that lies ready, or a new one. NULL when out of memory. */
static struct walk *walk_begin(const struct ottl_walk *what, enum signal signal)
{
    struct walk *w = what->memory ? atomic_exchange(&what->memory->spare, NULL) : NULL;
    if (!w && !(w = walk_new()))
        return NULL;
    w->w = what;
    w->signal = signal;
    w->visit_bytes = visit_bytes();
    w->env = (struct ottl_env){.arena = w->visits, .context = what->context, .err = &w->err};
    if (what->context == OTTL_METRIC)
        w->env.added = &w->added;
    return w;
}

static bool is_small(const struct walk *w)
{
    size_t most = arena_held(w->visits);
    most = arena_held(w->records) > most ? arena_held(w->records) : most;
    most = arena_held(w->heads) > most ? arena_held(w->heads) : most;
    most = w->scratch->cap > most ? w->scratch->cap : most;
    most = w->message->cap > most ? w->message->cap : most;
    for (unsigned i = 0; i < LEVELS; i++)
        most = w->levels[i].out->cap > most ? w->levels[i].out->cap : most;
    return most <= SPARE_MAX_BYTES;
}

/* `good`: all of it is as walk_new() made it. */
static void walk_end(struct walk *w, bool good)
{
    arena_reset(w->visits);
    arena_reset(w->records);
    arena_reset(w->heads);
    if (!good || !w->w->memory || w->added.items || !is_small(w))
        walk_free(w);
    else
        walk_free(atomic_exchange(&w->w->memory->spare, w));
}

void ottl_walk_memory_done(struct ottl_walk_memory *m)
{
    walk_free(atomic_exchange(&m->spare, NULL));
}

/* Fills `segs` with references; *ret_n is also set on error. */
static int walk_segments(struct walk *w, struct batch *in, struct buf **segs, unsigned *ret_n)
{
    *ret_n = 0;
    for (unsigned i = 0; i < in->nsegs; i++) {
        struct buf *seg;
        int r = walk_segment(w, in->segs[i], &seg);
        if (seg)
            segs[(*ret_n)++] = seg;
        if (r < 0)
            return r;
    }
    return 0;
}

static int make_batch(struct batch *in, struct buf **segs, unsigned n, struct batch **ret)
{
    uint32_t records = 0;
    for (unsigned i = 0; i < n; i++)
        records += otlp_count(in->signal, buf_bytes(segs[i]));
    *ret = batch_new(in->signal, segs, n, records);
    return *ret ? 0 : -ENOMEM;
}

static bool same_segments(const struct batch *in, struct buf *const *segs, unsigned n)
{
    return n == in->nsegs && (n == 0 || memcmp(segs, in->segs, n * sizeof(*segs)) == 0);
}

static int walk_batch(struct walk *w, struct batch *in, struct batch **ret)
{
    _cleanup_free_ struct buf **segs = calloc(in->nsegs + 1, sizeof(*segs));
    unsigned n = 0;
    if (!segs)
        return -ENOMEM;
    int r = walk_segments(w, in, segs, &n);
    if (r == 0 && !same_segments(in, segs, n))
        return make_batch(in, segs, n, ret);
    for (unsigned i = 0; i < n; i++)
        buf_unref(segs[i]);
    if (r == 0)
        *ret = batch_ref(in);
    return r;
}

int ottl_walk(const struct ottl_walk *what, struct batch *in, struct batch **ret,
              struct err *reterr)
{
    if (!in_signal(what->context, in->signal)) {
        *ret = batch_ref(in);
        return 0;
    }
    struct walk *w = walk_begin(what, in->signal);
    if (!w)
        return -ENOMEM;
    int r = walk_batch(w, in, ret);
    if (r == -EINVAL && reterr)
        *reterr = w->err;
    walk_end(w, r == 0);
    return r;
}
