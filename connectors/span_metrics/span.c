#include "connectors/span_metrics/span.h"

#include <errno.h>

#include "proto/otlp_fields.h"

enum { ATTRIBUTE_TAG = SPAN_ATTRIBUTES << 3 | WIRE_LEN, KEY_TAG = 1 << 3 | WIRE_LEN };

static uint32_t at_most(uint64_t value, uint32_t last)
{
    return value <= last ? (uint32_t)value : last + 1;
}

/* Whether the length of the name is in the set, or cannot be told at a glance. */
static inline bool is_wanted(struct bytes kv, uint64_t lengths)
{
    return kv.len < 2 || kv.data[0] != KEY_TAG || kv.data[1] >= 0x80 ||
           lengths >> kv.data[1] % 64 & 1;
}

/* The attribute `kv`, and those that follow it if they are short. */
static inline int read_attributes(struct wire_reader *r, struct bytes kv, uint64_t lengths,
                                  struct attributes *out)
{
    for (;;) {
        if (lengths && is_wanted(kv, lengths) && attributes_add_kv(out, kv) < 0)
            return -ENOMEM;
        const uint8_t *const p = r->p;
        const size_t left = (size_t)(r->end - p);
        if (left < 2 || p[0] != ATTRIBUTE_TAG || p[1] >= 0x80 || p[1] + 2u > left)
            return 0;
        kv = bytes_of(p + 2, p[1]);
        r->p = p + 2 + p[1];
    }
}

int span_read(struct bytes msg, uint64_t lengths, struct span *ret, struct attributes *attributes)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f = {0};
    *ret = (struct span){.name = bytes_str("")};
    while (wire_next(&r, &f) > 0)
        switch (f.number) {
        case SPAN_TRACE_ID: ret->trace_id = f.bytes; break;
        case SPAN_ID: ret->span_id = f.bytes; break;
        case SPAN_TRACE_STATE: ret->tracestate = f.bytes; break;
        case SPAN_NAME: ret->name = f.bytes; break;
        case SPAN_KIND: ret->kind = at_most(f.value, SPAN_KIND_LAST); break;
        case SPAN_START: ret->start_ns = f.value; break;
        case SPAN_END: ret->end_ns = f.value; break;
        case SPAN_STATUS:
            if (f.bytes.len)
                ret->status = at_most(wire_uint(f.bytes, STATUS_CODE), SPAN_STATUS_LAST);
            break;
        case SPAN_ATTRIBUTES:
            if (read_attributes(&r, f.bytes, lengths, attributes) < 0)
                return -ENOMEM;
            break;
        default: break;
        }
    return 0;
}

const char *span_kind_name(uint32_t kind)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    return kind <= SPAN_KIND_LAST ? names[kind] : "";
}

const char *span_status_name(uint32_t status)
{
    static const char *const names[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"};
    return status <= SPAN_STATUS_LAST ? names[status] : "";
}
