/* Arithmetic: int64 wraps and truncates, a mix with a float is a float, times and durations know +
 * and -. */
#include <errno.h>

#include "ottl/expr.h"

/* A value as it stands in an error text. */
static const char *shown(struct arena *a, const struct ottl_value *v)
{
    struct bytes text;
    bool nil;
    if (ottl_value_text(a, v, &text, &nil) < 0)
        return "a value";
    const char *s = nil ? "<nil>" : arena_strndup(a, (const char *)text.data, text.len);
    return s ? s : "a value";
}

static int64_t wrap(uint64_t v)
{
    return (int64_t)v;
}

static int int_math(int64_t x, char op, int64_t y, struct ottl_value *ret, struct err *reterr)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    switch (op) {
    case '+': *ret = ottl_int(wrap(a + b)); return 0;
    case '-': *ret = ottl_int(wrap(a - b)); return 0;
    case '*': *ret = ottl_int(wrap(a * b)); return 0;
    default:
        if (y == 0)
            return err_set(reterr, -EINVAL, "attempted to divide by 0");
        *ret = ottl_int(y == -1 ? wrap(0 - a) : x / y);
        return 0;
    }
}

static int double_math(double x, char op, double y, struct ottl_value *ret, struct err *reterr)
{
    switch (op) {
    case '+': *ret = ottl_double(x + y); return 0;
    case '-': *ret = ottl_double(x - y); return 0;
    case '*': *ret = ottl_double(x * y); return 0;
    default:
        if (y == 0)
            return err_set(reterr, -EINVAL, "attempted to divide by 0");
        *ret = ottl_double(x / y);
        return 0;
    }
}

static double as_double(const struct ottl_value *v)
{
    return v->kind == OTTL_INT ? (double)v->i : v->d;
}

static int time_error(struct arena *a, const char *rule, const struct ottl_value *y,
                      struct err *reterr)
{
    return err_set(reterr, -EINVAL, "%s; found %.200s instead", rule, shown(a, y));
}

static int time_math(struct arena *a, const struct ottl_value *x, char op,
                     const struct ottl_value *y, struct ottl_value *ret, struct err *reterr)
{
    bool time = x->kind == OTTL_TIME;
    uint64_t i = (uint64_t)x->i, j = (uint64_t)y->i;
    if (op != '+' && op != '-')
        return err_set(reterr, -EINVAL,
                       "only addition and subtraction supported for time.Time and time.Duration");
    *ret = *x;
    if (y->kind == OTTL_DURATION) {
        ret->i = wrap(op == '+' ? i + j : i - j);
        return 0;
    }
    if (y->kind == OTTL_TIME && time == (op == '-')) {
        ret->kind = time ? OTTL_DURATION : OTTL_TIME;
        ret->i = wrap(op == '+' ? i + j : i - j);
        return 0;
    }
    if (op == '+')
        return time_error(a,
                          time ? "time.Time must be added to time.Duration"
                               : "time.Duration must be added to time.Duration or time.Time",
                          y, reterr);
    return time_error(a,
                      time ? "time.Time or time.Duration must be subtracted from time.Time"
                           : "time.Duration must be subtracted from time.Duration",
                      y, reterr);
}

int ottl_math(struct arena *a, const struct ottl_value *x, char op, const struct ottl_value *y,
              struct ottl_value *ret, struct err *reterr)
{
    if (x->kind == OTTL_TIME || x->kind == OTTL_DURATION)
        return time_math(a, x, op, y, ret, reterr);
    if (x->kind != OTTL_INT && x->kind != OTTL_DOUBLE)
        return err_set(reterr, -EINVAL, "%.200s must be int64, float64, time.Time or time.Duration",
                       shown(a, x));
    if (y->kind != OTTL_INT && y->kind != OTTL_DOUBLE)
        return err_set(reterr, -EINVAL, "%.200s must be int64 or float64", shown(a, y));
    if (x->kind == OTTL_INT && y->kind == OTTL_INT)
        return int_math(x->i, op, y->i, ret, reterr);
    return double_math(as_double(x), op, as_double(y), ret, reterr);
}

int ottl_minus(const struct ottl_value *x, struct ottl_value *ret, struct err *reterr)
{
    if (x->kind == OTTL_INT)
        *ret = ottl_int(wrap(0 - (uint64_t)x->i));
    else if (x->kind == OTTL_DOUBLE)
        *ret = ottl_double(-x->d);
    else
        return err_set(reterr, -EINVAL, "unsupported unary minus operation on type %s",
                       ottl_kind_name(x->kind));
    return 0;
}
