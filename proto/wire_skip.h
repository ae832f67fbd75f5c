/* Passing over fields of a message without looking at them; for loops that are run for every field of every record. */
#ifndef MOTEL_PROTO_WIRE_SKIP_H
#define MOTEL_PROTO_WIRE_SKIP_H

#include "proto/wire.h"

/* For fields of any form; see wire_skip(). */
const uint8_t *wire_skip_any(const uint8_t *p, const uint8_t *end);

/* What is behind the field that begins at `p` (< end); NULL = malformed. Most have a tag of one byte, and a short length or value. */
static inline const uint8_t *wire_skip(const uint8_t *p, const uint8_t *end)
{
    const size_t room = (size_t)(end - p);
    if (room < 2 || p[0] < 8 || p[0] >= 0x80)
        return wire_skip_any(p, end);
    const unsigned type = p[0] & 7;
    if (type == WIRE_LEN && p[1] < 0x80 && p[1] <= room - 2)
        return p + 2 + p[1];
    if (type == WIRE_VARINT && p[1] < 0x80)
        return p + 2;
    if (type == WIRE_I64 && room >= 9)
        return p + 9;
    return wire_skip_any(p, end);
}

#endif
