/* Counts the records of an encoded OTLP request with a bounds-checked walk over the protobuf wire format (protobuf's
 * "Encoding" page; field numbers of opentelemetry/proto/collector). Shares no code with motel, so that it can check it. */
#ifndef TESTS_BENCH_OTLP_COUNT_H
#define TESTS_BENCH_OTLP_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_reader {
    const uint8_t *at, *end;
};

struct pb_field {
    uint32_t number, wire_type;
    struct pb_reader sub; /* of length-delimited fields */
};

static inline bool pb_varint(struct pb_reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t b = *r->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static inline bool pb_skip(struct pb_reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->at))
        return false;
    r->at += n;
    return true;
}

/* 1: a field was read; 0: end; -1: malformed */
static inline int pb_next(struct pb_reader *r, struct pb_field *ret)
{
    uint64_t v;
    if (r->at == r->end)
        return 0;
    if (!pb_varint(r, &v))
        return -1;
    ret->number = (uint32_t)(v >> 3);
    ret->wire_type = v & 7;
    switch (ret->wire_type) {
    case 0: return pb_varint(r, &v) ? 1 : -1;
    case 1: return pb_skip(r, 8) ? 1 : -1;
    case 5: return pb_skip(r, 4) ? 1 : -1;
    case 2:
        if (!pb_varint(r, &v))
            return -1;
        ret->sub.at = r->at;
        if (!pb_skip(r, v))
            return -1;
        ret->sub.end = r->at;
        return 1;
    default: return -1;
    }
}

/* Counts what lies at the end of a path of `depth` field-number ranges below `r`; -1: malformed. */
static inline long pb_count(struct pb_reader r, const uint8_t (*path)[2], unsigned depth)
{
    struct pb_field f;
    long n = 0;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1) {
        if (f.wire_type != 2 || f.number < path[0][0] || f.number > path[0][1])
            continue;
        long below = depth == 1 ? 1 : pb_count(f.sub, path + 1, depth - 1);
        if (below < 0)
            return -1;
        n += below;
    }
    return rc < 0 ? -1 : n;
}

/* Spans, log records or (`metrics`) data points of a request; -1: malformed. */
static inline long otlp_count(const uint8_t *data, size_t n, bool metrics)
{
    /* resource entries, scope entries, records or metrics, the five kinds of data (gauge 5 ... summary 11), points */
    static const uint8_t path[][2] = {{1, 1}, {2, 2}, {2, 2}, {5, 11}, {1, 1}};
    return pb_count((struct pb_reader){data, data + n}, path, metrics ? 5 : 3);
}

#endif
