/* Writing protobuf without looking at every answer: appending stops at the first failure, which is kept. */
#ifndef MOTEL_PROTO_WRITER_H
#define MOTEL_PROTO_WRITER_H

#include "proto/wire.h"

struct pb_writer {
    struct buf *out;
    int error; /* 0, -ENOMEM or -EMSGSIZE: what was appended is of no use then */
};

/* A nested message; the mark is for pb_end(). */
static inline size_t pb_begin(struct pb_writer *w, uint32_t number)
{
    size_t mark = 0;
    if (!w->error)
        w->error = wire_begin(w->out, number, &mark);
    return mark;
}
static inline void pb_end(struct pb_writer *w, size_t mark)
{
    if (!w->error)
        w->error = wire_end(w->out, mark);
}
/* Fields, also when they are zero or empty. */
static inline void pb_uint(struct pb_writer *w, uint32_t number, uint64_t v)
{
    if (!w->error)
        w->error = wire_put_uint(w->out, number, v);
}
static inline void pb_fixed64(struct pb_writer *w, uint32_t number, uint64_t v)
{
    if (!w->error)
        w->error = wire_put_fixed64(w->out, number, v);
}
static inline void pb_double(struct pb_writer *w, uint32_t number, double v)
{
    if (!w->error)
        w->error = wire_put_double(w->out, number, v);
}
static inline void pb_bytes(struct pb_writer *w, uint32_t number, struct bytes v)
{
    if (!w->error)
        w->error = wire_put_bytes(w->out, number, v);
}
static inline void pb_str(struct pb_writer *w, uint32_t number, const char *s) { pb_bytes(w, number, bytes_str(s)); }
/* Fields that are encoded already. */
static inline void pb_fields(struct pb_writer *w, struct bytes fields)
{
    if (!w->error && fields.len)
        w->error = buf_append(w->out, fields.data, fields.len);
}

#endif
