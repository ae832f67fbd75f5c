/*
 * JSON text on its way out; only proto/json_*.c use it. Where the next byte goes is passed from function to function and lies
 * in a register: each takes `p` and returns it moved on. Room is asked for once for several things at a time.
 */
#ifndef MOTEL_PROTO_JSON_OUT_H
#define MOTEL_PROTO_JSON_OUT_H

#include "agent/base/buf.h"
#include "proto/json.h"

#define JOUT_ROOM 4096u /* the most that may be asked for at a time */
#define JOUT_SLACK 16u  /* jout_plain() may write that much behind its text */
#define JOUT_RUN 512u   /* the longest text for jout_run(), which needs JOUT_RUN_ROOM(its length) */
#define JOUT_RUN_ROOM(len) (6 * (size_t)(len) + 2 * JOUT_SLACK)

struct jout {
    struct buf *out;
    const uint8_t *limit;         /* the end of the room behind `p` */
    const struct json_spill *spill; /* where the text goes when `out` is full; NULL = it grows */
    unsigned flags;
    int error;  /* the first one; what is written after it goes nowhere */
    bool aside; /* `p` is in `scratch`, for `out` has no room of that size */
    uint8_t scratch[JOUT_ROOM];
};

uint8_t *jout_begin(struct jout *j, unsigned flags, const struct json_spill *spill, struct buf *out);
/* 0, -ENOMEM, -EMSGSIZE, or the error of the spill. After an error `out` holds a part. */
int jout_end(struct jout *j, uint8_t *p);
uint8_t *jout_more(struct jout *j, uint8_t *p, size_t n);

/* Room for `n` bytes, JOUT_ROOM at most. There is always some: after an error it is of no consequence. */
static inline uint8_t *jout_room(struct jout *j, uint8_t *p, size_t n)
{
    return (size_t)(j->limit - p) >= n ? p : jout_more(j, p, n);
}

/*
 * `s` escaped, without the quotes and without a look at secrets, at most JOUT_RUN bytes of it; there is JOUT_RUN_ROOM(s.len). Up to `safe`
 * (>= the end of `s`) may be read.
 */
uint8_t *jout_run(uint8_t *p, struct bytes s, const uint8_t *safe);
/* `s` quoted, escaped and without secrets; any length. */
uint8_t *jout_string(struct jout *j, uint8_t *p, struct bytes s, const uint8_t *safe);

#endif
