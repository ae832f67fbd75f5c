/* Counts from the lowest bucket in use to the highest, in one array that grows to both sides. */
#include "connectors/span_metrics/exponential.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"

#define FIRST_CAP 4
#define EXPONENT_BIAS 1023
#define MANTISSA_BITS 52

/* ---- the mapping ---- */

/* Exact powers of two belong to the bucket that they end; logarithms would not always say so. */
int32_t exponential_index(int32_t scale, double value)
{
    uint64_t bits;
    if (value < 0x1p-1022)
        value = 0x1p-1022; /* subnormal numbers count as the smallest normal one */
    memcpy(&bits, &value, sizeof(bits));
    const int32_t exponent = (int32_t)(bits >> MANTISSA_BITS & 0x7ff) - EXPONENT_BIAS;
    const bool power = (bits & ((1ull << MANTISSA_BITS) - 1)) == 0;
    if (scale <= 0)
        return (exponent - power) >> -scale;
    if (power)
        return exponent * (1 << scale) - 1;
    const double index = floor(log(value) * ldexp(M_LOG2E, scale));
    const int64_t max = (1024ll << scale) - 1;
    return index >= (double)max ? (int32_t)max : (int32_t)index;
}

/* ---- the array ---- */

struct exponential *exponential_new(int64_t max)
{
    struct exponential *e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    max = max <= 0 ? EXPONENTIAL_SIZE_DEFAULT : max;
    max = max < EXPONENTIAL_SIZE_MIN ? EXPONENTIAL_SIZE_MIN : max;
    e->max = (uint32_t)(max > EXPONENTIAL_SIZE_MAX ? EXPONENTIAL_SIZE_MAX : max);
    e->scale = EXPONENTIAL_SCALE_MAX;
    e->cap = e->max < FIRST_CAP ? e->max : FIRST_CAP;
    e->counts = calloc(e->cap, sizeof(*e->counts));
    mem_charge(sizeof(*e) + e->cap * sizeof(*e->counts));
    return e->counts ? e : exponential_free(e);
}

struct exponential *exponential_free(struct exponential *e)
{
    if (!e)
        return NULL;
    mem_release(sizeof(*e) + e->cap * sizeof(*e->counts));
    free(e->counts);
    free(e);
    return NULL;
}

/* False when there is no memory. */
static bool grow(struct exponential *e, int64_t size)
{
    int64_t cap = 2ll * e->cap > size ? 2ll * e->cap : size;
    cap = cap > e->max ? e->max : cap;
    uint64_t *counts = realloc(e->counts, (size_t)cap * sizeof(*counts));
    if (!counts)
        return false;
    mem_charge(((size_t)cap - e->cap) * sizeof(*counts));
    e->counts = counts;
    e->cap = (uint32_t)cap;
    return true;
}

/* Each bucket of the scale below holds two of this one. */
static void halve_scale(struct exponential *e)
{
    const int32_t first = e->first >> 1, last = (e->first + (int32_t)e->n - 1) >> 1;
    uint32_t out = 0;
    for (uint32_t in = 0; in < e->n; in++) {
        const uint32_t at = (uint32_t)(((e->first + (int32_t)in) >> 1) - first);
        const uint64_t count = e->counts[in];
        if (at >= out || in == 0) {
            e->counts[at] = count;
            out = at + 1;
        } else {
            e->counts[at] += count;
        }
    }
    e->first = first;
    e->n = (uint32_t)(last - first + 1);
    e->scale--;
}

/* Makes the array begin at `index` or reach up to it, with zeros between. There is room. */
static void stretch(struct exponential *e, int32_t index)
{
    if (index < e->first) {
        const uint32_t by = (uint32_t)(e->first - index);
        memmove(e->counts + by, e->counts, e->n * sizeof(*e->counts));
        memset(e->counts, 0, by * sizeof(*e->counts));
        e->first = index;
        e->n += by;
        return;
    }
    const uint32_t n = (uint32_t)(index - e->first) + 1;
    if (n > e->n) {
        memset(e->counts + e->n, 0, (n - e->n) * sizeof(*e->counts));
        e->n = n;
    }
}

/* Buckets that are needed when one more index is in use. */
static int64_t size_with(const struct exponential *e, int32_t index)
{
    const int64_t low = index < e->first ? index : e->first;
    const int64_t last = (int64_t)e->first + e->n - 1;
    return (index > last ? index : last) - low + 1;
}

static void add_positive(struct exponential *e, double value, uint64_t times)
{
    int32_t index = exponential_index(e->scale, value);
    if (!e->n)
        e->first = index;
    for (;;) {
        const int64_t size = size_with(e, index);
        if (size <= e->cap || (size <= e->max && grow(e, size)))
            break;
        halve_scale(e);
        index = exponential_index(e->scale, value);
    }
    stretch(e, index);
    e->counts[index - e->first] += times;
}

void exponential_add(struct exponential *e, double value, uint64_t times)
{
    e->lowest = !e->any || value < e->lowest ? value : e->lowest;
    e->highest = !e->any || value > e->highest ? value : e->highest;
    e->any = true;
    if (value == 0)
        e->zeros += times;
    else
        add_positive(e, value, times);
}
