#include "connectors/span_metrics/span.h"

#include <errno.h>

#include "proto/otlp_fields.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "next_field() reads numbers in place");

static uint32_t at_most(uint64_t value, uint32_t last)
{
    return value <= last ? (uint32_t)value : last + 1;
}

/*
 * The next field, like wire_next() but without its answers for bad bytes: these are checked. Nearly
 * all tags and lengths are one byte; the rest goes the long way.
 */
static inline bool next_field(struct wire_reader *r, uint32_t *ret_tag, struct bytes *ret_bytes,
                              uint64_t *ret_value)
{
    struct wire_field f;
    const uint8_t *p = r->p;
    const size_t left = (size_t)(r->end - p);
    if (left >= 2 && p[0] < 0x80) {
        const uint32_t type = p[0] & 7;
        *ret_tag = p[0] >> 3;
        if (type == WIRE_LEN && p[1] < 0x80 && p[1] <= left - 2) {
            *ret_bytes = bytes_of(p + 2, p[1]);
            r->p = p + 2 + p[1];
            return true;
        }
        if (type == WIRE_I64 && left >= 9) {
            memcpy(ret_value, p + 1, sizeof(*ret_value));
            r->p = p + 9;
            return true;
        }
    }
    if (wire_next(r, &f) <= 0)
        return false;
    *ret_tag = f.number;
    *ret_bytes = f.bytes;
    *ret_value = f.value;
    return true;
}

int span_read(struct bytes msg, struct span *ret, struct attributes *attributes)
{
    struct wire_reader r = wire_reader(msg);
    struct bytes bytes = {0};
    uint32_t number = 0;
    uint64_t value = 0;
    *ret = (struct span){.name = bytes_str("")};
    while (next_field(&r, &number, &bytes, &value))
        switch (number) {
        case SPAN_TRACE_ID: ret->trace_id = bytes; break;
        case SPAN_ID: ret->span_id = bytes; break;
        case SPAN_TRACE_STATE: ret->tracestate = bytes; break;
        case SPAN_NAME: ret->name = bytes; break;
        case SPAN_KIND: ret->kind = at_most(value, SPAN_KIND_LAST); break;
        case SPAN_START: ret->start_ns = value; break;
        case SPAN_END: ret->end_ns = value; break;
        case SPAN_STATUS:
            if (bytes.len)
                ret->status = at_most(wire_uint(bytes, STATUS_CODE), SPAN_STATUS_LAST);
            break;
        case SPAN_ATTRIBUTES:
            if (attributes && attributes_add_kv(attributes, bytes) < 0)
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
