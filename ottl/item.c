#include "ottl/item.h"

#include <errno.h>

#include "proto/otlp_fields.h"

#define FIELD_BYTES 16 /* a guess at how long a field is */

void ottl_item_init(struct ottl_item *it, struct bytes msg, struct ottl_item_memory *mem)
{
    *it = (struct ottl_item){.msg = msg.data ? msg : bytes_of("", 0), .mem = mem};
}

/* ---- reading ---- */

bool ottl_field_next(struct ottl_field_iter *iter, struct wire_field *ret, uint32_t *ret_index)
{
    const struct ottl_item *it = iter->it;
    if (!it->fields) {
        if (ret_index)
            *ret_index = iter->i;
        iter->i++;
        return wire_next(&iter->r, ret) > 0;
    }
    while (iter->i < it->nfields && it->fields[iter->i].number == 0)
        iter->i++;
    if (iter->i >= it->nfields)
        return false;
    if (ret_index)
        *ret_index = iter->i;
    *ret = it->fields[iter->i++];
    return true;
}

bool ottl_field_seek(struct ottl_field_iter *iter, uint32_t number, struct wire_field *ret,
                     uint32_t *ret_index)
{
    const struct ottl_item *it = iter->it;
    uint32_t i = iter->i, passed;
    if (!it->fields) {
        if (!wire_seek(&iter->r, number, ret, &passed))
            return false;
        i += passed;
    } else {
        while (i < it->nfields && it->fields[i].number != number)
            i++;
        if (i >= it->nfields)
            return false;
        *ret = it->fields[i];
    }
    iter->i = i + 1;
    if (ret_index)
        *ret_index = i;
    return true;
}

static bool find_at(const struct ottl_item *it, uint32_t number, struct wire_field *ret,
                    uint32_t *ret_index)
{
    struct ottl_field_iter iter = ottl_fields(it);
    return ottl_field_seek(&iter, number, ret, ret_index);
}

bool ottl_item_find(const struct ottl_item *it, uint32_t number, struct wire_field *ret)
{
    return find_at(it, number, ret, NULL);
}

/* ---- writing ---- */

static int reserve(struct ottl_item *it, uint32_t n)
{
    if (n <= it->cap)
        return 0;
    uint32_t cap = it->cap ? 2 * it->cap : 16;
    cap = cap < n ? n : cap;
    struct wire_field *fields = arena_alloc(it->mem->arena, cap * sizeof(*fields));
    if (!fields)
        return -ENOMEM;
    if (it->nfields)
        memcpy(fields, it->fields, it->nfields * sizeof(*fields));
    it->fields = fields;
    it->cap = cap;
    return 0;
}

/* Half a list would be a loss of fields. */
static int open_failed(struct ottl_item *it)
{
    it->fields = NULL;
    it->nfields = it->cap = 0;
    return -ENOMEM;
}

int ottl_item_open(struct ottl_item *it)
{
    struct wire_reader r = wire_reader(it->msg);
    struct wire_field f;
    if (it->fields)
        return 0;
    if (reserve(it, (uint32_t)(it->msg.len / FIELD_BYTES) + 8) < 0)
        return -ENOMEM;
    while (wire_next(&r, &f) > 0) {
        if (it->nfields == it->cap && reserve(it, it->nfields + 1) < 0)
            return open_failed(it);
        it->fields[it->nfields++] = f;
    }
    return 0;
}

static int keep(struct ottl_item *it, struct bytes b, struct bytes *ret)
{
    uint8_t *copy = arena_alloc(it->mem->arena, b.len ? b.len : 1);
    if (!copy)
        return -ENOMEM;
    if (b.len)
        memcpy(copy, b.data, b.len);
    *ret = bytes_of(copy, b.len);
    return 0;
}

static int append(struct ottl_item *it, struct wire_field f)
{
    int r = ottl_item_open(it);
    if (r == 0)
        r = reserve(it, it->nfields + 1);
    if (r == 0) {
        it->fields[it->nfields++] = f;
        it->changed = true;
    }
    return r;
}

static bool same_value(const struct wire_field *a, const struct wire_field *b)
{
    return a->type == b->type &&
           (a->type == WIRE_LEN ? bytes_eq(a->bytes, b->bytes) : a->value == b->value);
}

/* Puts `f` at `index`, with a copy of its bytes; or at the end when `index` is UINT32_MAX. */
static int put(struct ottl_item *it, uint32_t index, struct wire_field f)
{
    struct bytes copy = {0};
    if (f.type == WIRE_LEN && keep(it, f.bytes, &copy) < 0)
        return -ENOMEM;
    f.bytes = copy;
    f.whole = bytes_of(NULL, 0);
    if (index == UINT32_MAX)
        return append(it, f);
    if (ottl_item_open(it) < 0)
        return -ENOMEM;
    it->fields[index] = f;
    it->changed = true;
    return 0;
}

int ottl_item_set(struct ottl_item *it, uint32_t number, enum wire_type type, uint64_t value,
                  struct bytes bytes)
{
    struct wire_field f = {.number = number, .type = type, .value = value, .bytes = bytes}, old;
    uint32_t index;
    if (!find_at(it, number, &old, &index))
        return put(it, UINT32_MAX, f);
    if (same_value(&old, &f))
        return 0;
    return put(it, index, f);
}

int ottl_item_remove_at(struct ottl_item *it, uint32_t index)
{
    int r = ottl_item_open(it);
    if (r == 0) {
        it->fields[index].number = 0;
        it->changed = true;
    }
    return r;
}

int ottl_item_remove(struct ottl_item *it, uint32_t number)
{
    struct wire_field f;
    if (!ottl_item_find(it, number, &f))
        return 0;
    if (ottl_item_open(it) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < it->nfields; i++)
        if (it->fields[i].number == number)
            it->fields[i].number = 0;
    it->changed = true;
    return 0;
}

int ottl_item_set_at(struct ottl_item *it, uint32_t index, struct bytes bytes)
{
    int r = ottl_item_open(it);
    if (r < 0)
        return r;
    struct wire_field f = {.number = it->fields[index].number, .type = WIRE_LEN, .bytes = bytes};
    return same_value(&it->fields[index], &f) ? 0 : put(it, index, f);
}

int ottl_item_append(struct ottl_item *it, uint32_t number, struct bytes bytes)
{
    return put(it, UINT32_MAX,
               (struct wire_field){.number = number, .type = WIRE_LEN, .bytes = bytes});
}

static bool same_list(const struct ottl_item *it, uint32_t number, struct bytes list)
{
    struct ottl_field_iter iter = ottl_fields(it);
    struct wire_reader r = wire_reader(list);
    struct wire_field old, new;
    while (ottl_field_seek(&iter, number, &old, NULL))
        if (wire_next(&r, &new) <= 0 || !bytes_eq(old.bytes, new.bytes))
            return false;
    return r.p == r.end;
}

/* Old places are taken first, so that a list that is set again and again does not grow. */
int ottl_item_set_list(struct ottl_item *it, uint32_t number, struct bytes list)
{
    struct bytes copy;
    struct wire_field f;
    list = list.data ? list : bytes_of("", 0);
    if (same_list(it, number, list))
        return 0;
    if (ottl_item_open(it) < 0 || keep(it, list, &copy) < 0)
        return -ENOMEM;
    struct wire_reader r = wire_reader(copy);
    uint32_t n = it->nfields;
    for (uint32_t i = 0; i < n; i++) {
        if (it->fields[i].number != number)
            continue;
        bool more = wire_next(&r, &f) > 0;
        it->fields[i] = more ? (struct wire_field){number, WIRE_LEN, 0, f.bytes, {NULL, 0}}
                             : (struct wire_field){0};
    }
    it->changed = true;
    int e = 0;
    while (e == 0 && wire_next(&r, &f) > 0)
        e = append(it, (struct wire_field){number, WIRE_LEN, 0, f.bytes, {NULL, 0}});
    return e;
}

/* ---- as bytes again ---- */

static int write_field(const struct wire_field *f, struct buf *out)
{
    if (f->whole.data)
        return buf_append(out, f->whole.data, f->whole.len);
    switch (f->type) {
    case WIRE_VARINT: return wire_put_uint(out, f->number, f->value);
    case WIRE_I64: return wire_put_fixed64(out, f->number, f->value);
    case WIRE_I32: return wire_put_fixed32(out, f->number, (uint32_t)f->value);
    case WIRE_LEN: return wire_put_bytes(out, f->number, f->bytes);
    }
    return -EINVAL;
}

static int write_child(struct ottl_item *child, uint32_t number, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = ottl_item_write(child, out);
    return r < 0 ? r : wire_end(out, mark);
}

/* A metric whose data changed has changed. */
static bool is_changed(const struct ottl_item *it)
{
    return it->changed || (it->data && it->data->changed);
}

/* Fields that came one after the other are copied at once. */
static int flush(struct bytes *run, struct buf *out)
{
    int r = run->len ? buf_append(out, run->data, run->len) : 0;
    *run = bytes_of(NULL, 0);
    return r;
}

static int write_one(struct ottl_item *it, const struct wire_field *f, struct bytes *run,
                     struct buf *out)
{
    bool is_data = it->data && it->data->changed && f->number == it->data_number;
    if (f->whole.data && !is_data && run->data && run->data + run->len == f->whole.data) {
        run->len += f->whole.len;
        return 0;
    }
    int r = flush(run, out);
    if (r < 0)
        return r;
    if (is_data)
        return write_child(it->data, f->number, out);
    if (!f->whole.data)
        return write_field(f, out);
    *run = f->whole;
    return 0;
}

int ottl_item_write(struct ottl_item *it, struct buf *out)
{
    struct ottl_field_iter iter = ottl_fields(it);
    struct bytes run = {0};
    struct wire_field f;
    int r = 0;
    if (!is_changed(it))
        return buf_append(out, it->msg.data, it->msg.len);
    while (r == 0 && ottl_field_next(&iter, &f, NULL))
        r = write_one(it, &f, &run, out);
    return r < 0 ? r : flush(&run, out);
}

int ottl_item_list(struct ottl_item *it, uint32_t number, struct arena *a, struct bytes *ret,
                   uint32_t *ret_n)
{
    struct ottl_field_iter iter = ottl_fields(it);
    struct wire_field f;
    struct buf *out = it->mem->scratch;
    buf_truncate(out, 0);
    *ret_n = 0;
    while (ottl_field_seek(&iter, number, &f, NULL)) {
        if (write_field(&f, out) < 0)
            return -ENOMEM;
        (*ret_n)++;
    }
    char *copy = arena_strndup(a, (const char *)out->data, out->len);
    *ret = bytes_of(copy, out->len);
    return copy ? 0 : -ENOMEM;
}

int ottl_item_bytes(struct ottl_item *it, struct bytes *ret)
{
    *ret = it->msg;
    int r = ottl_item_settle(it);
    if (r < 0 || !it->changed)
        return r;
    buf_truncate(it->mem->scratch, 0);
    r = ottl_item_write(it, it->mem->scratch);
    return r < 0 ? -ENOMEM : keep(it, buf_bytes(it->mem->scratch), ret);
}

int ottl_item_replace(struct ottl_item *it, struct bytes msg)
{
    struct bytes copy;
    if (keep(it, msg, &copy) < 0)
        return -ENOMEM;
    it->msg = copy;
    it->fields = NULL;
    it->nfields = it->cap = 0;
    it->data_number = 0;
    it->data = it->live = NULL;
    it->changed = true;
    return ottl_item_open(it);
}

static int settle_live(struct ottl_item *it)
{
    struct buf *now = it->mem->scratch;
    int r = ottl_item_settle(it->live);
    if (r < 0 || !it->live->changed)
        return r;
    r = ottl_item_open(it);
    if (r < 0 || it->fields[it->live_index].number == 0)
        return r;
    buf_truncate(now, 0);
    r = ottl_item_write(it->live, now);
    return r < 0 ? -ENOMEM : ottl_item_set_at(it, it->live_index, buf_bytes(now));
}

int ottl_item_settle(struct ottl_item *it)
{
    int r = it->live ? settle_live(it) : 0;
    if (r == 0 && it->data)
        r = ottl_item_settle(it->data);
    it->changed = is_changed(it);
    return r;
}

/* ---- metrics ---- */

static bool is_data(uint32_t number)
{
    return number == METRIC_GAUGE || number == METRIC_SUM || number == METRIC_HISTOGRAM ||
           number == METRIC_EXPONENTIAL || number == METRIC_SUMMARY;
}

enum ottl_point ottl_metric_point(uint32_t data_number)
{
    switch (data_number) {
    case METRIC_HISTOGRAM: return OTTL_POINT_HISTOGRAM;
    case METRIC_EXPONENTIAL: return OTTL_POINT_EXPONENTIAL;
    case METRIC_SUMMARY: return OTTL_POINT_SUMMARY;
    default: return OTTL_POINT_NUMBER;
    }
}

uint32_t ottl_metric_kind(const struct ottl_item *metric)
{
    struct ottl_field_iter iter = ottl_fields(metric);
    struct wire_field f;
    if (metric->data)
        return metric->data_number;
    while (ottl_field_next(&iter, &f, NULL))
        if (is_data(f.number))
            return f.number;
    return 0;
}

int ottl_metric_data(struct ottl_item *metric, struct ottl_item **ret)
{
    struct wire_field f;
    *ret = metric->data;
    if (*ret)
        return 0;
    uint32_t number = ottl_metric_kind(metric);
    if (number == 0 || !ottl_item_find(metric, number, &f))
        return 0;
    metric->data = arena_alloc(metric->mem->arena, sizeof(*metric->data));
    if (!metric->data)
        return -ENOMEM;
    ottl_item_init(metric->data, f.bytes, metric->mem);
    metric->data_number = number;
    *ret = metric->data;
    return 0;
}

int ottl_metric_set_data(struct ottl_item *metric, uint32_t number, struct bytes data)
{
    uint32_t old = ottl_metric_kind(metric);
    metric->data = NULL;
    metric->data_number = 0;
    int r = old && old != number ? ottl_item_remove(metric, old) : 0;
    return r < 0 ? r : ottl_item_set(metric, number, WIRE_LEN, 0, data);
}

int ottl_env_add_metric(struct ottl_env *env, struct bytes metric)
{
    struct ottl_added *a = env->added;
    if (!a)
        return err_set(env->err, -EINVAL, "no metric can be added here");
    if (a->n >= a->limit)
        return err_set(env->err, -EINVAL,
                       "more than %zu metrics were added to one scope; a statement that adds "
                       "metrics is run on those too and needs a condition that ends it",
                       a->limit);
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 8;
        struct bytes *items = realloc(a->items, cap * sizeof(*items));
        if (!items)
            return -ENOMEM;
        a->items = items;
        a->cap = cap;
    }
    char *copy = arena_strndup(a->arena, (const char *)metric.data, metric.len);
    if (!copy)
        return -ENOMEM;
    a->items[a->n++] = bytes_of(copy, metric.len);
    return 0;
}
