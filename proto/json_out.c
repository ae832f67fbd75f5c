#include "proto/json_out.h"

#include <errno.h>

/* What was written so far belongs to the buffer. */
static void keep(struct jout *j, const uint8_t *p)
{
    if (j->error)
        return;
    if (j->aside)
        j->error = buf_append(j->out, j->scratch, (size_t)(p - j->scratch));
    else if (j->out->data)
        j->out->len = (size_t)(p - j->out->data);
}

/* The next place to write to, after buf_reserve() answered `r`. */
static uint8_t *place(struct jout *j, int r)
{
    struct buf *b = j->out;
    if (r < 0 && r != -EMSGSIZE && !j->error)
        j->error = r;
    /* -EMSGSIZE: what comes is less than what was asked for, and may fit */
    j->aside = r < 0 || j->error;
    j->limit =
        j->aside ? j->scratch + sizeof(j->scratch) : b->data + (b->cap < b->max ? b->cap : b->max);
    return j->aside ? j->scratch : buf_tail(b);
}

uint8_t *jout_more(struct jout *j, uint8_t *p, size_t n)
{
    keep(j, p);
    if (!j->error && j->spill && j->out->len)
        j->error = j->spill->take(j->spill->ctx, j->out);
    return place(j, j->error ? j->error : buf_reserve(j->out, n));
}

uint8_t *jout_begin(struct jout *j, unsigned flags, const struct json_spill *spill, struct buf *out)
{
    j->out = out;
    j->flags = flags;
    j->spill = spill;
    j->error = 0;
    return place(j, buf_reserve(out, 1));
}

int jout_end(struct jout *j, uint8_t *p)
{
    keep(j, p);
    return j->error;
}
