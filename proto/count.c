/* Counting the records of checked bytes. */
#include "proto/check.h"

/* Field of a Metric that holds its data: gauge, sum, histogram, exponential histogram, summary. */
#define METRIC_DATA (1u << 5 | 1u << 7 | 1u << 9 | 1u << 10 | 1u << 11)

static uint32_t count_points(struct bytes metric)
{
    struct wire_reader r = wire_reader(metric);
    struct wire_field f, point;
    uint32_t n = 0;
    while (wire_next(&r, &f) > 0) {
        if (f.number >= 32 || !(METRIC_DATA & 1u << f.number))
            continue;
        struct wire_reader points = wire_reader(f.bytes);
        while (wire_next(&points, &point) > 0)
            n += point.number == 1;
    }
    return n;
}

/* `level` 0 is the request, 1 a resource entry, 2 a scope entry. */
static uint32_t count_items(enum signal s, struct bytes msg, int level)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    uint32_t n = 0, items = level == 0 ? OTLP_ENTRIES : ENTRY_ITEMS;
    while (wire_next(&r, &f) > 0) {
        if (f.number != items)
            continue;
        if (level < 2)
            n += count_items(s, f.bytes, level + 1);
        else
            n += s == SIGNAL_METRICS ? count_points(f.bytes) : 1;
    }
    return n;
}

uint32_t otlp_count(enum signal s, struct bytes wire)
{
    return count_items(s, wire, 0);
}
