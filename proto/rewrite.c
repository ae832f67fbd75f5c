/*
 * Copy-through editing. Three levels of messages are walked: request, resource entry, scope entry.
 * Of each level we remember up to where its bytes were copied to the output; nothing is written
 * before the first change, and then all that lies between two changes is copied at once.
 */
#include "proto/rewrite.h"

#include <errno.h>

#include "proto/check.h"
#include "proto/count.h"

#define LEVELS (LEVEL_SCOPE + 1)

struct place {
    struct wire_field field;       /* of this message in its parent */
    const uint8_t *pending;        /* first byte of the message that was not copied */
    bool open;                     /* something was written; then: */
    size_t at, length_at, payload; /* offsets in the output of its tag, length and content */
    uint32_t kept, dropped;        /* items */
};

struct rewrite {
    const struct otlp_rewriter *rw;
    struct place places[LEVELS];
    struct bytes resource, scope; /* as they will be */
    struct buf *out;
    struct buf *new_resource, *new_scope, *new_record; /* NULL: not edited */
    size_t growth; /* by which the change that comes next makes the message longer */
    bool dropped;  /* something with all below it */
};

static int copy_before(struct rewrite *w, unsigned i, const uint8_t *upto);
static int rewrite_message(struct rewrite *w, unsigned i);

static const uint8_t *field_end(const struct wire_field *f)
{
    return f->whole.data + f->whole.len;
}

/* Writes the tag of level `i` and leaves room for its length, guessed by the old one. */
static int open_level(struct rewrite *w, struct place *l, unsigned i)
{
    static const uint8_t room[10];
    size_t old = l->field.bytes.len;
    int r = 0;
    if (i == LEVEL_REQUEST)
        r = buf_reserve(w->out, old + w->growth + (w->rw->record ? old / 8 : 16));
    else
        r = copy_before(w, i - 1, l->field.whole.data);
    l->at = w->out->len;
    if (r == 0 && i != LEVEL_REQUEST)
        r = wire_put_tag(w->out, l->field.number, WIRE_LEN);
    l->length_at = w->out->len;
    if (r == 0 && i != LEVEL_REQUEST)
        r = buf_append(w->out, room, wire_varint_size(old));
    l->payload = w->out->len;
    l->open = r == 0;
    return r;
}

/* Copies what is pending of level `i` before `upto`, after opening the level and those around it.
 */
static int copy_before(struct rewrite *w, unsigned i, const uint8_t *upto)
{
    struct place *l = &w->places[i];
    int r = l->open ? 0 : open_level(w, l, i);
    if (r == 0)
        r = buf_append(w->out, l->pending, (size_t)(upto - l->pending));
    l->pending = upto;
    return r;
}

static void put_length(uint8_t *p, size_t len)
{
    for (; len >= 0x80; len >>= 7)
        *p++ = (uint8_t)(len | 0x80);
    *p = (uint8_t)len;
}

/* Puts the real length of a written level between its tag and its content. */
static int fix_length(struct rewrite *w, const struct place *l)
{
    size_t len = w->out->len - l->payload, size = wire_varint_size(len),
           room = l->payload - l->length_at;
    if (size > room) {
        int r = buf_insert_gap(w->out, l->payload, size - room);
        if (r < 0)
            return r;
    } else if (size < room) {
        memmove(w->out->data + l->length_at + size, w->out->data + l->payload, len);
        buf_truncate(w->out, w->out->len - (room - size));
    }
    put_length(w->out->data + l->length_at, len);
    return 0;
}

/* What becomes of field `f` of level `i`. */
static int apply(struct rewrite *w, unsigned i, const struct wire_field *f, enum edit edit,
                 struct buf *new)
{
    struct place *l = &w->places[i];
    if (edit == EDIT_ERROR)
        return -ENOMEM;
    if (edit == EDIT_KEEP || (edit == EDIT_REPLACE && bytes_eq(buf_bytes(new), f->bytes)))
        return 0;
    w->growth = edit == EDIT_REPLACE && new->len > f->bytes.len ? new->len - f->bytes.len : 0;
    int r = copy_before(w, i, f->whole.data);
    if (r == 0 && edit == EDIT_REPLACE)
        r = wire_put_bytes(w->out, f->number, buf_bytes(new));
    l->pending = field_end(f);
    return r;
}

/* The resource or scope of an entry; canonical messages have at most one. An absent one is zero
 * bytes at the front. */
static struct wire_field find_head(struct bytes msg)
{
    struct wire_reader r = wire_reader(msg);
    struct wire_field f;
    while (wire_next(&r, &f) > 0)
        if (f.number == ENTRY_HEAD)
            return f;
    return (struct wire_field){.bytes = {msg.data, 0}, .whole = {msg.data, 0}};
}

static enum edit call_head(struct rewrite *w, unsigned i, struct bytes head, struct buf *new)
{
    if (i == LEVEL_ENTRY)
        return w->rw->resource ? w->rw->resource(w->rw->ctx, head, new) : EDIT_KEEP;
    return w->rw->scope ? w->rw->scope(w->rw->ctx, w->resource, head, new) : EDIT_KEEP;
}

/* Edits the resource or scope before all else, wherever it stands, because the callbacks below are
 * shown it. A new one is written to the front, and *ret_old is the field it replaces. *ret_drop:
 * the whole entry goes. */
static int rewrite_head(struct rewrite *w, unsigned i, const uint8_t **ret_old, bool *ret_drop)
{
    struct place *l = &w->places[i];
    struct buf *new = i == LEVEL_ENTRY ? w->new_resource : w->new_scope;
    struct wire_field old = find_head(l->field.bytes);
    if (new)
        buf_truncate(new, 0);
    enum edit edit = call_head(w, i, old.bytes, new);
    bool changed = edit == EDIT_REPLACE && !bytes_eq(buf_bytes(new), old.bytes);
    *(i == LEVEL_ENTRY ? &w->resource : &w->scope) = changed ? buf_bytes(new) : old.bytes;
    *ret_drop = edit == EDIT_DROP;
    *ret_old = changed && old.whole.len ? old.whole.data : NULL;
    if (edit == EDIT_ERROR)
        return -ENOMEM;
    w->growth = changed && new->len > old.bytes.len ? new->len - old.bytes.len : 0;
    int r = changed ? copy_before(w, i, l->field.bytes.data) : 0;
    return r == 0 && changed ? wire_put_bytes(w->out, ENTRY_HEAD, buf_bytes(new)) : r;
}

static int rewrite_record(struct rewrite *w, const struct wire_field *f)
{
    struct place *l = &w->places[LEVEL_SCOPE];
    enum edit edit = EDIT_KEEP;
    if (w->rw->record) {
        buf_truncate(w->new_record, 0);
        edit = w->rw->record(w->rw->ctx, w->resource, w->scope, f->bytes, w->new_record);
    }
    l->dropped += edit == EDIT_DROP;
    l->kept += edit != EDIT_DROP;
    return apply(w, LEVEL_SCOPE, f, edit, w->new_record);
}

/* An entry of level `i` - 1, whose level is `i`. */
static int rewrite_entry(struct rewrite *w, unsigned i, const struct wire_field *f)
{
    struct place *parent = &w->places[i - 1];
    w->places[i] = (struct place){.field = *f, .pending = f->bytes.data};
    int r = rewrite_message(w, i);
    bool gone = w->places[i].dropped && !w->places[i].kept;
    parent->dropped += gone;
    parent->kept += !gone;
    return r;
}

/* The whole message of level `i` goes: nothing of it was written. */
static int drop_level(struct rewrite *w, unsigned i)
{
    w->places[i].dropped = 1;
    w->dropped = true;
    return apply(w, i - 1, &w->places[i].field, EDIT_DROP, NULL);
}

/* After the last field: the tail, the length, and the parent goes on behind the message. */
static int close_level(struct rewrite *w, unsigned i)
{
    struct place *l = &w->places[i];
    bool came_empty = i > 0 && w->rw->drop_empty && w->rw->record && !l->kept && !l->dropped;
    if (!l->open)
        return came_empty ? drop_level(w, i) : 0;
    l->dropped += came_empty;
    int r = 0;
    if (l->dropped && !l->kept) {
        buf_truncate(w->out, l->at);
    } else {
        r = copy_before(w, i, l->field.bytes.data + l->field.bytes.len);
        if (r == 0 && i > 0)
            r = fix_length(w, l);
    }
    if (i > 0)
        w->places[i - 1].pending = field_end(&l->field);
    return r;
}

static bool anything_below(const struct rewrite *w, unsigned i)
{
    return w->rw->record || (w->rw->scope && i < LEVEL_SCOPE) ||
           (w->rw->resource && i < LEVEL_ENTRY);
}

static int rewrite_field(struct rewrite *w, unsigned i, const struct wire_field *f,
                         const uint8_t *old_head)
{
    if (f->whole.data == old_head)
        return apply(w, i, f, EDIT_DROP, NULL);
    if (f->number != (i == LEVEL_REQUEST ? OTLP_ENTRIES : ENTRY_ITEMS))
        return 0;
    return i == LEVEL_SCOPE ? rewrite_record(w, f) : rewrite_entry(w, i + 1, f);
}

static int rewrite_message(struct rewrite *w, unsigned i)
{
    const uint8_t *old_head = NULL;
    bool drop = false;
    int r = i > LEVEL_REQUEST ? rewrite_head(w, i, &old_head, &drop) : 0;
    if (r < 0)
        return r;
    if (drop)
        return drop_level(w, i);
    struct wire_reader reader = wire_reader(w->places[i].field.bytes);
    struct wire_field f;
    while ((old_head || anything_below(w, i)) && wire_next(&reader, &f) > 0) {
        r = rewrite_field(w, i, &f, old_head);
        if (r < 0)
            return r;
        if (f.whole.data == old_head)
            old_head = NULL;
    }
    return close_level(w, i);
}

/* *ret: the new segment, a reference of the old one, or NULL when all is gone. */
static int rewrite_segment(struct rewrite *w, struct buf *seg, struct buf **ret)
{
    struct bytes all = buf_bytes(seg);
    _cleanup_buf_ struct buf *out = buf_new(0);
    if (!out)
        return -ENOMEM;
    w->out = out;
    w->places[LEVEL_REQUEST] =
        (struct place){.field = {.bytes = all, .whole = all}, .pending = all.data};
    int r = rewrite_message(w, LEVEL_REQUEST);
    if (r < 0)
        return r;
    if (!w->places[LEVEL_REQUEST].open)
        *ret = buf_ref(seg);
    else
        *ret = out->len ? TAKE_PTR(out) : NULL;
    return 0;
}

/* Fills `segs` with references; *ret_n is also set on error. */
static int rewrite_segments(struct rewrite *w, struct batch *in, struct buf **segs, unsigned *ret_n,
                            uint32_t *ret_records)
{
    *ret_n = 0;
    *ret_records = 0;
    for (unsigned i = 0; i < in->nsegs; i++) {
        struct buf *seg = NULL;
        int r = rewrite_segment(w, in->segs[i], &seg);
        if (r < 0)
            return r;
        if (!seg)
            continue;
        if (seg != in->segs[i])
            buf_shrink(seg);
        segs[(*ret_n)++] = seg;
    }
    const bool same = !w->rw->record && !w->dropped;
    for (unsigned i = 0; !same && i < *ret_n; i++)
        *ret_records += otlp_count(in->signal, buf_bytes(segs[i]));
    if (same)
        *ret_records = in->records;
    return 0;
}

static bool same_segments(const struct batch *in, struct buf *const *segs, unsigned n)
{
    return n == in->nsegs && (n == 0 || memcmp(segs, in->segs, n * sizeof(*segs)) == 0);
}

int otlp_rewrite(const struct otlp_rewriter *rw, struct batch *in, struct batch **ret)
{
    _cleanup_buf_ struct buf *resource = rw->resource ? buf_new(0) : NULL,
                             *scope = rw->scope ? buf_new(0) : NULL,
                             *record = rw->record ? buf_new(0) : NULL;
    _cleanup_free_ struct buf **segs = calloc(in->nsegs + 1, sizeof(*segs));
    if (!resource != !rw->resource || !scope != !rw->scope || !record != !rw->record || !segs)
        return -ENOMEM;
    struct rewrite w = {
        .rw = rw, .new_resource = resource, .new_scope = scope, .new_record = record};
    unsigned n;
    uint32_t records;
    int r = rewrite_segments(&w, in, segs, &n, &records);
    if (r == 0 && !same_segments(in, segs, n)) {
        *ret = batch_new(in->signal, segs, n, records);
        return *ret ? 0 : -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        buf_unref(segs[i]);
    if (r == 0)
        *ret = batch_ref(in);
    return r;
}
