/* Paths to repeated messages, which are moved as they are; to lists of numbers; and to what kind a
 * metric is. */
#include <errno.h>

#include "ottl/path.h"
#include "proto/otlp_fields.h"

/* ---- repeated messages, and messages as a whole ---- */

static int get_list(struct ottl_env *env, struct ottl_item *it, uint32_t number,
                    struct ottl_value *ret)
{
    *ret = (struct ottl_value){.kind = OTTL_ITEMS};
    int r = ottl_item_settle(it);
    return r < 0 ? r : ottl_item_list(it, number, env->arena, &ret->bytes, &ret->items);
}

static int items_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    *ret = ottl_nil();
    if (r < 0 || ottl_path_number(p, it) == 0)
        return r;
    return get_list(env, it, ottl_path_number(p, it), ret);
}

/* The value must have come from a path of the same type: its elements still have their field
 * number. */
static int set_list(struct ottl_env *env, struct ottl_item *it, uint32_t number, uint32_t other,
                    const char *go_type, const struct ottl_value *v)
{
    struct wire_field f;
    if (v->kind == OTTL_NIL)
        return ottl_item_remove(it, number);
    bool right = v->kind == OTTL_ITEMS;
    struct wire_reader r = wire_reader(right && v->items ? v->bytes : bytes_of("", 0));
    if (wire_next(&r, &f) > 0)
        right = f.number == number || (other && f.number == other);
    return right ? ottl_item_set_list(it, number, v->bytes) : ottl_expects(env, go_type, v);
}

static int items_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    const struct ottl_path_row *row = ottl_path_self(p)->row;
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    uint32_t number = ottl_path_number(p, it);
    if (number == 0)
        return ottl_wrong_point(p, env, it);
    if (v->kind == OTTL_NIL && !row->nullable)
        return ottl_expects(env, row->go_type, v);
    return set_list(env, it, number, row->other[it->point], row->go_type, v);
}

const struct ottl_path_ops ottl_items_ops = {items_get, items_set};

/* ---- data of a metric ---- */

static int metric_data(const struct ottl_path *p, struct ottl_env *env, struct ottl_item **ret_it,
                       struct ottl_item **ret_data)
{
    int r = ottl_path_item(p, env, ret_it);
    return r < 0 ? r : ottl_metric_data(*ret_it, ret_data);
}

static int data_points_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it, *data;
    int r = metric_data(p, env, &it, &data);
    *ret = ottl_nil();
    return r < 0 || !data ? r : get_list(env, data, DATA_POINTS, ret);
}

static int data_points_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    static const char *const types[] = {
        "pmetric.NumberDataPointSlice", "pmetric.HistogramDataPointSlice",
        "pmetric.ExponentialHistogramDataPointSlice", "pmetric.SummaryDataPointSlice"};
    struct ottl_item *it, *data;
    int r = metric_data(p, env, &it, &data);
    if (r < 0 || !data)
        return r;
    return set_list(env, data, DATA_POINTS, 0, types[ottl_metric_point(it->data_number)], v);
}

const struct ottl_path_ops ottl_data_points_ops = {data_points_get, data_points_set};

static int metric_type_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    switch (ottl_metric_kind(it)) {
    case METRIC_GAUGE: *ret = ottl_int(1); break;
    case METRIC_SUM: *ret = ottl_int(2); break;
    case METRIC_HISTOGRAM: *ret = ottl_int(3); break;
    case METRIC_EXPONENTIAL: *ret = ottl_int(4); break;
    case METRIC_SUMMARY: *ret = ottl_int(5); break;
    default: *ret = ottl_int(0); break;
    }
    return 0;
}

/* Taken without effect, as in the reference. */
static int metric_type_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    (void)p;
    (void)env;
    (void)v;
    return 0;
}

const struct ottl_path_ops ottl_metric_type_ops = {metric_type_get, metric_type_set};

static bool has_temporality(uint32_t kind)
{
    return kind == METRIC_SUM || kind == METRIC_HISTOGRAM || kind == METRIC_EXPONENTIAL;
}

static int data_field_get(const struct ottl_path *p, struct ottl_env *env, uint32_t number,
                          struct ottl_value *ret)
{
    struct ottl_item *it, *data;
    struct wire_field f;
    int r = metric_data(p, env, &it, &data);
    *ret = ottl_nil();
    if (r < 0 || !data)
        return r;
    bool there = ottl_item_find(data, number, &f);
    if (number == DATA_MONOTONIC && it->data_number == METRIC_SUM)
        *ret = ottl_bool(there && f.value != 0);
    if (number == DATA_TEMPORALITY && has_temporality(it->data_number))
        *ret = ottl_int(there ? (int32_t)f.value : 0);
    return 0;
}

static int data_field_set(const struct ottl_path *p, struct ottl_env *env, uint32_t number,
                          uint64_t value)
{
    struct ottl_item *it, *data;
    int r = metric_data(p, env, &it, &data);
    if (r < 0 || !data)
        return r;
    bool has =
        number == DATA_MONOTONIC ? it->data_number == METRIC_SUM : has_temporality(it->data_number);
    if (!has)
        return 0;
    return value ? ottl_item_set(data, number, WIRE_VARINT, value, bytes_of(NULL, 0))
                 : ottl_item_remove(data, number);
}

static int temporality_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    return data_field_get(p, env, DATA_TEMPORALITY, ret);
}

static int temporality_set(const struct ottl_path *p, struct ottl_env *env,
                           const struct ottl_value *v)
{
    if (v->kind != OTTL_INT)
        return ottl_expects(env, "int64", v);
    return data_field_set(p, env, DATA_TEMPORALITY, (uint64_t)(int64_t)(int32_t)v->i);
}

static int monotonic_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    return data_field_get(p, env, DATA_MONOTONIC, ret);
}

static int monotonic_set(const struct ottl_path *p, struct ottl_env *env,
                         const struct ottl_value *v)
{
    if (v->kind != OTTL_BOOL)
        return ottl_expects(env, "bool", v);
    return data_field_set(p, env, DATA_MONOTONIC, v->b);
}

const struct ottl_path_ops ottl_temporality_ops = {temporality_get, temporality_set};
const struct ottl_path_ops ottl_monotonic_ops = {monotonic_get, monotonic_set};

/* ---- lists of numbers ---- */

/* The packed payload, which may be in a message inside of the point. */
static struct bytes packed(const struct ottl_path *p, const struct ottl_item *it)
{
    const struct ottl_path_row *row = ottl_path_self(p)->row;
    uint32_t number = ottl_path_number(p, it), inside = row->inside[it->point];
    struct wire_field f;
    if (!ottl_item_find(it, inside ? inside : number, &f))
        return bytes_of("", 0);
    struct bytes payload = inside ? wire_bytes(f.bytes, number) : f.bytes;
    return payload.data ? payload : bytes_of("", 0);
}

/* Counts inside of exponential buckets are varints; the others have 64 bits. */
static enum wire_type element_type(const struct ottl_path *p, const struct ottl_item *it)
{
    return ottl_path_self(p)->row->inside[it->point] ? WIRE_VARINT : WIRE_I64;
}

static int numbers_get(const struct ottl_path *p, struct ottl_env *env, bool doubles,
                       struct ottl_value *ret)
{
    struct ottl_item *it;
    uint64_t n;
    int r = ottl_path_item(p, env, &it);
    *ret = ottl_nil();
    if (r < 0 || ottl_path_number(p, it) == 0)
        return r;
    struct wire_reader reader = wire_reader(packed(p, it));
    *ret = (struct ottl_value){OTTL_LIST, {.list = ottl_list_new(env->arena)}, 0};
    r = ret->list ? 0 : -ENOMEM;
    while (r == 0 && wire_next_packed(&reader, element_type(p, it), &n) > 0)
        r = ottl_list_append(env->arena, ret->list,
                             doubles ? ottl_double(wire_double(n)) : ottl_int((int64_t)n));
    return r;
}

static int put_number(struct ottl_env *env, bool doubles, enum wire_type type,
                      const struct ottl_value *v, struct buf *out)
{
    uint8_t le[8];
    if (v->kind != (doubles ? OTTL_DOUBLE : OTTL_INT))
        return err_set(env->err, -EINVAL, "invalid value type provided for a slice of %s: %s",
                       doubles ? "float64" : "uint64", ottl_kind_name(v->kind));
    if (type == WIRE_VARINT)
        return wire_put_varint(out, (uint64_t)v->i) < 0 ? -ENOMEM : 0;
    uint64_t n = (uint64_t)v->i;
    if (doubles)
        memcpy(&n, &v->d, sizeof(n));
    for (size_t i = 0; i < sizeof(le); i++)
        le[i] = (uint8_t)(n >> (8 * i));
    return buf_append(out, le, sizeof(le)) < 0 ? -ENOMEM : 0;
}

/* Sets a field of the message inside, the payload being in the scratch buffer. */
static int set_packed(struct ottl_item *it, uint32_t inside, uint32_t number)
{
    struct buf *out = it->mem->scratch;
    struct ottl_item child;
    struct wire_field old;
    if (!inside)
        return out->len ? ottl_item_set(it, number, WIRE_LEN, 0, buf_bytes(out))
                        : ottl_item_remove(it, number);
    bool there = ottl_item_find(it, inside, &old);
    ottl_item_init(&child, there ? old.bytes : bytes_of(NULL, 0), it->mem);
    int r = out->len ? ottl_item_set(&child, number, WIRE_LEN, 0, buf_bytes(out))
                     : ottl_item_remove(&child, number);
    if (r < 0 || !child.changed)
        return r;
    buf_truncate(out, 0);
    r = ottl_item_write(&child, out);
    return r < 0 ? -ENOMEM : ottl_item_set(it, inside, WIRE_LEN, 0, buf_bytes(out));
}

static int numbers_set(const struct ottl_path *p, struct ottl_env *env, bool doubles,
                       const struct ottl_value *v)
{
    const struct ottl_path_row *row = ottl_path_self(p)->row;
    struct ottl_item *it;
    int r = ottl_path_item(p, env, &it);
    if (r < 0)
        return r;
    if (ottl_path_number(p, it) == 0)
        return ottl_wrong_point(p, env, it);
    if (v->kind != OTTL_LIST && v->kind != OTTL_NIL)
        return err_set(env->err, -EINVAL, "cannot set a slice of %s from a value type: %s",
                       doubles ? "float64" : "uint64", ottl_kind_name(v->kind));
    buf_truncate(it->mem->scratch, 0);
    for (size_t i = 0; v->kind == OTTL_LIST && r == 0 && i < v->list->n; i++)
        r = put_number(env, doubles, element_type(p, it), &v->list->items[i], it->mem->scratch);
    return r < 0 ? r : set_packed(it, row->inside[it->point], ottl_path_number(p, it));
}

static int ints_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    return numbers_get(p, env, false, ret);
}

static int ints_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    return numbers_set(p, env, false, v);
}

static int doubles_get(const struct ottl_path *p, struct ottl_env *env, struct ottl_value *ret)
{
    return numbers_get(p, env, true, ret);
}

static int doubles_set(const struct ottl_path *p, struct ottl_env *env, const struct ottl_value *v)
{
    return numbers_set(p, env, true, v);
}

const struct ottl_path_ops ottl_ints_ops = {ints_get, ints_set};
const struct ottl_path_ops ottl_doubles_ops = {doubles_get, doubles_set};
