/*
 * The canonical form, made on the wire: the encodings of a message given twice, one after the
 * other, are the merged message, so nothing needs to be decoded and unknown fields survive. Two
 * passes over each message: what comes how often, then output.
 */
#include "proto/repair.h"

#include <errno.h>

#include "agent/base/utf8.h"

#define FIRST_ONEOF 32 /* slot of oneof 0; other fields have their number as slot */
#define SLOTS 40

struct tally {
    uint64_t present, again; /* slots that are there; there more than once */
    uint32_t last[SLOTS];    /* offset of the last field of the slot */
};

const struct schema_message *otlp_old_scopes(const struct schema_message *m)
{
    for (enum signal s = 0; s < SIGNAL_COUNT; s++)
        if (schema_field(schema_request(s), OTLP_ENTRIES)->message == m)
            return schema_field(m, ENTRY_ITEMS)->message;
    return NULL;
}

static unsigned slot_of(const struct schema_field *f)
{
    return f->oneof >= 0 ? (unsigned)(FIRST_ONEOF + f->oneof) : f->number;
}

static void count_fields(const struct schema_message *m, struct bytes msg, struct tally *t)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field w;
    t->present = t->again = 0;
    while (wire_next(&r, &w) > 0) {
        const struct schema_field *f = schema_field(m, w.number);
        if (!f)
            continue;
        uint64_t bit = 1ull << slot_of(f);
        t->again |= t->present & bit;
        t->present |= bit;
        t->last[slot_of(f)] = (uint32_t)(w.whole.data - msg.data);
    }
}

/* The payloads of all fields `number`, one after the other: a merged message, or packed numbers. */
static int append_all(struct bytes msg, uint32_t number, struct buf *out)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field w;
    int rc = 0;
    while (rc == 0 && wire_next(&r, &w) > 0) {
        if (w.number != number)
            continue;
        if (w.type == WIRE_LEN)
            rc = buf_append(out, w.bytes.data, w.bytes.len);
        else if (w.type == WIRE_VARINT)
            rc = wire_put_varint(out, w.value);
        else /* eight bytes at the end of the field */
            rc = buf_append(out, w.whole.data + w.whole.len - 8, 8);
    }
    return rc;
}

static int put_packed(struct bytes msg, uint32_t number, struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = append_all(msg, number, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int put_message(const struct schema_message *m, uint32_t number, struct bytes msg,
                       struct buf *out)
{
    size_t mark;
    int r = wire_begin(out, number, &mark);
    if (r == 0)
        r = otlp_repair(m, msg, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int put_merged(const struct schema_field *f, struct bytes msg, struct buf *out)
{
    _cleanup_buf_ struct buf *all = buf_new(0);
    int r = all ? append_all(msg, f->number, all) : -ENOMEM;
    return r < 0 ? r : put_message(f->message, f->number, buf_bytes(all), out);
}

static int put_string(struct wire_field *w, struct buf *out)
{
    size_t mark;
    if (utf8_valid(w->bytes))
        return buf_append(out, w->whole.data, w->whole.len);
    int r = wire_begin(out, w->number, &mark);
    if (r == 0)
        r = utf8_append(w->bytes, out);
    return r < 0 ? r : wire_end(out, mark);
}

static int put_element(const struct schema_field *f, struct wire_field *w, struct buf *out)
{
    if (f->kind == KIND_MESSAGE)
        return put_message(f->message, f->number, w->bytes, out);
    if (f->kind == KIND_STRING)
        return put_string(w, out);
    return buf_append(out, w->whole.data, w->whole.len);
}

static int put_known(const struct schema_field *f, struct wire_field *w, struct bytes msg,
                     struct tally *t, struct buf *out)
{
    uint64_t bit = 1ull << slot_of(f);
    if (f->repeated && f->wire_type == WIRE_LEN)
        return put_element(f, w, out);
    if (f->repeated) {
        bool first = t->present & bit;
        t->present &= ~bit;
        return first ? put_packed(msg, f->number, out) : 0;
    }
    if (w->whole.data != msg.data + t->last[slot_of(f)])
        return 0;
    if (f->kind == KIND_MESSAGE && f->oneof < 0 && (t->again & bit))
        return put_merged(f, msg, out);
    return put_element(f, w, out);
}

static int put_unknown(const struct schema_message *m, struct wire_field *w, const struct tally *t,
                       struct buf *out)
{
    const struct schema_message *scopes =
        w->number == OTLP_OLD_SCOPES && w->type == WIRE_LEN ? otlp_old_scopes(m) : NULL;
    if (!scopes)
        return buf_append(out, w->whole.data, w->whole.len);
    bool replaced = t->present & 1ull << ENTRY_ITEMS;
    return replaced ? 0 : put_message(scopes, ENTRY_ITEMS, w->bytes, out);
}

int otlp_repair(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    struct tally t;
    struct wire_reader reader = wire_reader(msg);
    struct wire_field w;
    int r = 0;
    count_fields(m, msg, &t);
    while (r == 0 && wire_next(&reader, &w) > 0) {
        const struct schema_field *f = schema_field(m, w.number);
        r = f ? put_known(f, &w, msg, &t, out) : put_unknown(m, &w, &t, out);
    }
    return r;
}
