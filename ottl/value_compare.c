/* Comparing values: what the language's == != < <= > >= mean. */
#include "ottl/value.h"

/* The answer for an order of -1, 0 or 1. */
static bool ordered(int order, enum ottl_compare_op op)
{
    switch (op) {
    case OTTL_EQ: return order == 0;
    case OTTL_NE: return order != 0;
    case OTTL_LT: return order < 0;
    case OTTL_LE: return order <= 0;
    case OTTL_GT: return order > 0;
    case OTTL_GE: return order >= 0;
    }
    return false;
}

static int order_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int order_bytes(struct bytes a, struct bytes b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int d = n ? memcmp(a.data, b.data, n) : 0;
    return d ? d : (a.len > b.len) - (a.len < b.len);
}

/* Not by an order: not-a-number has none. */
static bool compare_doubles(double a, enum ottl_compare_op op, double b)
{
    switch (op) {
    case OTTL_EQ: return a == b;
    case OTTL_NE: return a != b;
    case OTTL_LT: return a < b;
    case OTTL_LE: return a <= b;
    case OTTL_GT: return a > b;
    case OTTL_GE: return a >= b;
    }
    return false;
}

/* ---- equality inside lists and maps: same kind, same value ---- */

static bool same(const struct ottl_value *a, const struct ottl_value *b);

static bool same_lists(const struct ottl_list *a, const struct ottl_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same(&a->items[i], &b->items[i]))
            return false;
    return true;
}

static bool same_maps(const struct ottl_map *a, const struct ottl_map *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct ottl_value *v = ottl_map_find(b, a->items[i].key);
        if (!v || !same(&a->items[i].value, v))
            return false;
    }
    return true;
}

static bool same(const struct ottl_value *a, const struct ottl_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case OTTL_NIL: return true;
    case OTTL_BOOL: return a->b == b->b;
    case OTTL_DOUBLE: return a->d == b->d;
    case OTTL_INT:
    case OTTL_TIME:
    case OTTL_DURATION: return a->i == b->i;
    case OTTL_LIST: return same_lists(a->list, b->list);
    case OTTL_MAP: return same_maps(a->map, b->map);
    case OTTL_STRING:
    case OTTL_BYTES:
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_ITEMS: return bytes_eq(a->bytes, b->bytes);
    }
    return false;
}

/* ---- whole values ---- */

static bool is_number(const struct ottl_value *v)
{
    return v->kind == OTTL_INT || v->kind == OTTL_DOUBLE;
}

static double as_double(const struct ottl_value *v)
{
    return v->kind == OTTL_INT ? (double)v->i : v->d;
}

/* Empty bytes are nothing, as an attribute without a value is. */
static bool is_nil(const struct ottl_value *v)
{
    return v->kind == OTTL_NIL || (v->kind == OTTL_BYTES && v->bytes.len == 0);
}

static bool compare_same_kind(const struct ottl_value *a, enum ottl_compare_op op,
                              const struct ottl_value *b)
{
    switch (a->kind) {
    case OTTL_BOOL: return ordered(a->b - b->b, op);
    case OTTL_INT:
    case OTTL_TIME:
    case OTTL_DURATION: return ordered(order_int(a->i, b->i), op);
    case OTTL_DOUBLE: return compare_doubles(a->d, op, b->d);
    case OTTL_STRING:
    case OTTL_BYTES: return ordered(order_bytes(a->bytes, b->bytes), op);
    default: break;
    }
    bool equal = same(a, b);
    return op == OTTL_EQ ? equal : op == OTTL_NE && !equal;
}

bool ottl_compare(const struct ottl_value *a, enum ottl_compare_op op, const struct ottl_value *b)
{
    if (is_nil(a) || is_nil(b))
        return is_nil(a) && is_nil(b) ? ordered(0, op) : op == OTTL_NE;
    if (a->kind == b->kind)
        return compare_same_kind(a, op, b);
    if (is_number(a) && is_number(b))
        return compare_doubles(as_double(a), op, as_double(b));
    return op == OTTL_NE;
}
