/* Levels of an export request, for what handles all of them alike. Only for files in proto/. */
#ifndef MOTEL_PROTO_COUNT_H
#define MOTEL_PROTO_COUNT_H

#include "proto/schema.h"

/* The message that an item is: LEVEL_RECORD is a span, a log record or a metric; metrics go on down to data points. */
enum level { LEVEL_REQUEST, LEVEL_ENTRY, LEVEL_SCOPE, LEVEL_RECORD, LEVEL_DATA, LEVEL_POINT };

/* Fields of a Metric, one of which holds its data: gauge, sum, histogram, exponential histogram, summary. */
#define METRIC_DATA (1u << 5 | 1u << 7 | 1u << 9 | 1u << 10 | 1u << 11)

/* True when the items of a message at `level` are in field `number`. */
static inline bool level_items(enum level level, uint32_t number)
{
    static const uint32_t fields[] = {1u << OTLP_ENTRIES, 1u << ENTRY_ITEMS, 1u << ENTRY_ITEMS, METRIC_DATA, 1u << 1};
    return number < 32 && (fields[level] >> number & 1);
}
/* The level of what is counted. */
static inline enum level level_counted(enum signal s)
{
    return s == SIGNAL_METRICS ? LEVEL_POINT : LEVEL_RECORD;
}
/* Records in the checked message `msg` of `level`. */
uint32_t level_count(enum signal s, enum level level, struct bytes msg);

#endif
