/*
 * Writing backwards: what is declared first is written first, at the end of the buffer, so every
 * length is known when its prefix is written, and one pass does. Fields are skipped from one to the
 * next to find where each begins, and copied whole where they are in the shortest form. Attributes,
 * which are most of a request, change places only within themselves: a run of them is as long after
 * as before, and is written forwards.
 */
#include "proto/wire_order.h"

#include <endian.h>
#include <errno.h>

#include "agent/base/block.h"
#include "proto/plain_attributes.h"
#include "proto/schema_tables.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline, cold))

#define PREFETCH_BYTES (256u << 10)
#define PREFETCH_ELEMENT_BYTES 1024u

/* Bytes written so far are [p, end) of a block that starts at `start`. */
struct back {
    uint8_t *start, *p, *end;
};

/* A field of the message at hand, or neighbours of the same number. */
struct run {
    const uint8_t *start, *body, *end; /* body: of the first field, behind its tag and length */
    uint32_t prev; /* index + 1 of the run of this number before, on the stack; 0 = none */
};

struct wire_order {
    struct back out;
    struct run *runs; /* a stack of what messages have more of than one */
    uint32_t nruns, cap;
};

static int put_message(struct wire_order *o, unsigned m, struct bytes msg);

static int grow(struct back *b, size_t n)
{
    size_t used = (size_t)(b->end - b->p), cap = (size_t)(b->end - b->start);
    size_t grown = cap + cap / 2 + n + 256;
    uint8_t *start = block_alloc(grown);
    if (!start)
        return -ENOMEM;
    if (used)
        memcpy(start + grown - used, b->p, used);
    mem_charge(grown);
    mem_release(cap);
    block_free(b->start, cap);
    *b = (struct back){start, start + grown - used, start + grown};
    return 0;
}

static inline int make_room(struct back *b, size_t n)
{
    return (size_t)(b->p - b->start) >= n ? 0 : grow(b, n);
}

static inline int put_bytes(struct back *b, struct bytes v)
{
    int r = make_room(b, v.len);
    if (r < 0)
        return r;
    b->p -= v.len;
    copy_short(b->p, v.data, v.len);
    return 0;
}

/* Room was made for ten bytes. */
static inline void put_varint(struct back *b, uint64_t v)
{
    if (v < 0x80) {
        *--b->p = (uint8_t)v;
        return;
    }
    size_t n = wire_varint_size(v);
    b->p -= n;
    uint8_t *p = b->p;
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p = (uint8_t)v;
}

/* Room was made for two bytes. */
static inline void put_tag(struct back *b, uint8_t tag)
{
    if (tag >= 0x80)
        *--b->p = 1;
    *--b->p = tag; /* its highest bit says that there is one more */
}

static int put_prefix(struct back *b, uint8_t tag, size_t len)
{
    int r = make_room(b, 12);
    if (r < 0)
        return r;
    put_varint(b, len);
    put_tag(b, tag);
    return 0;
}

static int put_len(struct back *b, uint8_t tag, struct bytes v)
{
    int r = put_bytes(b, v);
    return r < 0 ? r : put_prefix(b, tag, v.len);
}

/* ---- reading ---- */

/* A tag or length, 32 bits at most; NULL when it is none. */
static const uint8_t *read_long(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35 && p < end; shift += 7) {
        v |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80) {
            *ret = (uint32_t)v;
            return v <= UINT32_MAX ? p : NULL;
        }
    }
    return NULL;
}

static inline const uint8_t *read_tag(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
    *ret = *p;
    if (LIKELY(*p < 0x80))
        return p + 1;
    if (end - p >= 2 && p[1] == 1) /* of two bytes, up to 255 */
        return p + 2;
    return read_long(p, end, ret);
}

/* From a length to what it is the length of. */
static inline const uint8_t *read_len(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
    if (LIKELY(p < end && *p < 0x80)) {
        *ret = *p++;
        return *ret <= (size_t)(end - p) ? p : NULL;
    }
    p = read_long(p, end, ret);
    return p && *ret <= (size_t)(end - p) ? p : NULL;
}

/* Behind the number at `p`; NULL when it is cut off, or no number. */
static inline const uint8_t *skip_number(const uint8_t *p, const uint8_t *end, unsigned type)
{
    switch (type) {
    case WIRE_I64: return end - p >= 8 ? p + 8 : NULL;
    case WIRE_I32: return end - p >= 4 ? p + 4 : NULL;
    case WIRE_VARINT:
        while (p < end)
            if (*p++ < 0x80)
                return p;
        return NULL;
    default: return NULL;
    }
}

/* Reads the field at run->start: its tag, body and end. False on bad bytes. */
static inline bool read_field(struct run *run, const uint8_t *end, uint32_t *ret_tag)
{
    const uint8_t *p = read_tag(run->start, end, ret_tag);
    uint32_t len = 0;
    if (UNLIKELY(!p))
        return false;
    if (LIKELY((*ret_tag & 7) == WIRE_LEN)) {
        run->body = read_len(p, end, &len);
        run->end = run->body ? run->body + len : NULL;
        return run->body;
    }
    run->body = p;
    run->end = skip_number(p, end, *ret_tag & 7);
    return run->end;
}

static int grow_runs(struct wire_order *o)
{
    uint32_t cap = o->cap ? 2 * o->cap : 256;
    struct run *runs = realloc(o->runs, cap * sizeof(*runs));
    if (!runs)
        return -ENOMEM;
    o->runs = runs;
    o->cap = cap;
    return 0;
}

static inline int push(struct wire_order *o, const struct run *run)
{
    if (o->nruns == o->cap && grow_runs(o) < 0)
        return -ENOMEM;
    o->runs[o->nruns++] = *run;
    return 0;
}

/* More fields like the one of the run, as long as all have its tag of one byte. False on bad bytes.
 */
static inline bool lengthen(struct run *run, const uint8_t *end)
{
    const uint8_t tag = *run->start, *p = run->end;
    uint32_t len;
    while (p < end && *p == tag && tag < 0x80) {
        p = read_len(p + 1, end, &len);
        if (UNLIKELY(!p))
            return false;
        p += len;
    }
    run->end = p;
    return true;
}

/* The last run of each place goes into `runs`, those before it on the stack. */
static inline int find_runs(struct wire_order *o, const struct order_message *m, struct bytes msg,
                            struct run *runs, uint32_t *ret_present)
{
    const uint8_t *const end = wire_reader(msg).end;
    struct run run = {.end = msg.data};
    uint32_t present = 0, tag;
    while (run.end < end) {
        run.start = run.end;
        if (UNLIKELY(!read_field(&run, end, &tag)))
            return -EBADMSG;
        const unsigned cell = LIKELY(tag <= UINT8_MAX) ? m->places[tag >> 3] : ORDER_UNKNOWN;
        const unsigned place = (cell & 7) == (tag & 7) ? cell >> 3 : ORDER_FIELDS;
        const uint32_t bit = 1u << place;
        if (m->repeated & bit && !lengthen(&run, end))
            return -EBADMSG;
        if (UNLIKELY(present & bit)) {
            if (push(o, &runs[place]) < 0)
                return -ENOMEM;
            run.prev = o->nruns;
        }
        runs[place] = run;
        run.prev = 0;
        present |= bit;
    }
    *ret_present = present;
    return 0;
}

/* ---- numbers and texts ---- */

/* What the value is after protobuf's narrowing to the field's type. */
static uint64_t narrowed(enum field_kind kind, uint64_t v)
{
    switch (kind) {
    case KIND_INT32:
    case KIND_ENUM: return (uint64_t)(int64_t)(int32_t)v;
    case KIND_UINT32:
    case KIND_SINT32: return (uint32_t)v;
    case KIND_BOOL: return v != 0;
    default: return v;
    }
}

static uint64_t read_varint(const uint8_t *p, const uint8_t *end)
{
    uint64_t v = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7)
        v |= (uint64_t)(*p++ & 0x7f) << shift;
    return v;
}

static int put_varint_field(struct back *b, const struct order_cell *cell, const struct run *run)
{
    const uint64_t v = narrowed((enum field_kind)cell->kind, read_varint(run->body, run->end));
    if (v == 0 && cell->action == ORDER_NUMBER)
        return 0;
    int r = make_room(b, 12);
    if (r < 0)
        return r;
    put_varint(b, v);
    put_tag(b, cell->tag);
    return 0;
}

static int put_fixed32(struct back *b, const struct order_cell *cell, const struct run *run)
{
    uint32_t bits;
    memcpy(&bits, run->body, sizeof(bits));
    if (bits == 0 && cell->action == ORDER_NUMBER)
        return 0;
    int r = make_room(b, 6);
    if (r < 0)
        return r;
    b->p -= sizeof(bits);
    memcpy(b->p, &bits, sizeof(bits));
    put_tag(b, cell->tag);
    return 0;
}

static inline int put_fixed64(struct back *b, const struct order_cell *cell, const struct run *run)
{
    const uint64_t sign = cell->kind == KIND_DOUBLE ? htole64(1ull << 63) : 0;
    uint64_t bits;
    memcpy(&bits, run->body, sizeof(bits));
    if ((bits & ~sign) == 0 && cell->action == ORDER_NUMBER)
        return 0;
    int r = make_room(b, 10);
    if (r < 0)
        return r;
    b->p -= sizeof(bits);
    memcpy(b->p, &bits, sizeof(bits));
    put_tag(b, cell->tag);
    return 0;
}

static inline int put_number(struct back *b, const struct order_cell *cell, const struct run *run)
{
    switch (cell->tag & 7) {
    case WIRE_I64: return put_fixed64(b, cell, run);
    case WIRE_I32: return put_fixed32(b, cell, run);
    default: return put_varint_field(b, cell, run);
    }
}

static inline struct bytes body(const struct run *run)
{
    return bytes_of(run->body, (size_t)(run->end - run->body));
}

static inline struct bytes whole(const struct run *run)
{
    return bytes_of(run->start, (size_t)(run->end - run->start));
}

static inline int put_text(struct back *b, const struct order_cell *cell, const struct run *run)
{
    if (run->body == run->end && cell->action == ORDER_TEXT)
        return 0;
    if (LIKELY(run->body - run->start == 2)) /* tag and length are in their shortest form */
        return put_bytes(b, whole(run));
    return put_len(b, cell->tag, body(run));
}

static bool all_zero(struct bytes id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i])
            return false;
    return true;
}

static inline int put_id(struct back *b, const struct order_cell *cell, const struct run *run)
{
    return all_zero(body(run)) ? put_prefix(b, cell->tag, 0) : put_text(b, cell, run);
}

/* ---- messages ---- */

static int put_submessage(struct wire_order *o, const struct order_cell *cell, struct bytes msg)
{
    const size_t before = (size_t)(o->out.end - o->out.p);
    int r = put_message(o, cell->sub, msg);
    return r < 0 ? r : put_prefix(&o->out, cell->tag, (size_t)(o->out.end - o->out.p) - before);
}

static int put_value(struct wire_order *o, const struct order_cell *cell, struct bytes value)
{
    return is_plain_value(value.data, value.len) ? put_len(&o->out, cell->tag, value)
                                                 : put_submessage(o, cell, value);
}

static inline int put_field(struct wire_order *o, const struct order_cell *cell,
                            const struct run *run)
{
    switch ((enum order_action)cell->action) {
    case ORDER_NUMBER:
    case ORDER_NUMBER_PRESENT: return put_number(&o->out, cell, run);
    case ORDER_TEXT:
    case ORDER_TEXT_PRESENT: return put_text(&o->out, cell, run);
    case ORDER_ID: return put_id(&o->out, cell, run);
    case ORDER_VALUE: return put_value(o, cell, body(run));
    default: return put_submessage(o, cell, body(run));
    }
}

/*
 * Asks for cache lines before they are needed. The walk goes from length to length and the elements
 * backwards, each step a wait for memory that another core has written.
 */
static void prefetch(struct bytes b, size_t most)
{
    for (size_t i = 0; i < b.len && i < most; i += 64)
        __builtin_prefetch(b.data + i);
}

static int put_elements(struct wire_order *o, const struct order_cell *cell, const struct run *all)
{
    const uint32_t mark = o->nruns;
    struct run it = {.end = all->start};
    int r = 0;
    while (it.end < all->end && r == 0) {
        uint32_t tag;
        it.start = it.end;
        r = read_field(&it, all->end, &tag) ? push(o, &it) : -EBADMSG;
    }
    for (uint32_t i = o->nruns; i > mark && r == 0; i--) {
        it = o->runs[i - 1]; /* a copy: the stack may move */
        if (i - 1 > mark && cell->action == ORDER_MESSAGE)
            prefetch(whole(&o->runs[i - 2]), PREFETCH_ELEMENT_BYTES);
        r = put_field(o, cell, &it);
    }
    o->nruns = mark;
    return r;
}

/* 1 = done: the attributes are plain. */
static int put_attributes(struct back *b, const struct run *run)
{
    const size_t len = (size_t)(run->end - run->start);
    int r = make_room(b, len);
    if (r < 0)
        return r;
    if (!swap_attributes(b->p - len, run->start, run->end))
        return 0;
    b->p -= len;
    return 1;
}

static int put_repeated(struct wire_order *o, const struct order_cell *cell, const struct run *run)
{
    if (cell->action == ORDER_ATTRIBUTE) {
        int done = put_attributes(&o->out, run);
        if (done)
            return done < 0 ? done : 0;
    }
    return put_elements(o, cell, run);
}

static inline int put_run(struct wire_order *o, const struct order_cell *cell, bool repeated,
                          const struct run *run)
{
    return repeated ? put_repeated(o, cell, run) : put_field(o, cell, run);
}

/* The runs before the last one. */
static NOINLINE int put_more(struct wire_order *o, const struct order_cell *cell, bool repeated,
                             uint32_t prev)
{
    int r = 0;
    while (prev && r == 0) {
        const struct run run = o->runs[prev - 1]; /* a copy: the stack may move */
        r = put_run(o, cell, repeated, &run);
        prev = run.prev;
    }
    return r;
}

/* A field that is not there; the reference writes ids and singular messages all the same. */
static int put_absent(struct wire_order *o, const struct order_cell *cell)
{
    return cell->action == ORDER_ID ? put_prefix(&o->out, cell->tag, 0)
                                    : put_submessage(o, cell, bytes_str(""));
}

static NOINLINE int put_unknown(struct wire_order *o, const struct run *last)
{
    int r = put_bytes(&o->out, whole(last));
    for (uint32_t prev = last->prev; prev && r == 0; prev = o->runs[prev - 1].prev)
        r = put_bytes(&o->out, whole(&o->runs[prev - 1]));
    return r;
}

static int put_message(struct wire_order *o, unsigned index, struct bytes msg)
{
    const struct order_message *const m = &order_messages[index];
    const uint32_t unknown = 1u << ORDER_FIELDS, mark = o->nruns;
    struct run runs[ORDER_FIELDS + 1];
    uint32_t present = 0;
    int r = find_runs(o, m, msg, runs, &present);
    for (uint32_t todo = (present | m->always) & ~unknown; todo && r == 0; todo &= todo - 1) {
        const unsigned place = (unsigned)__builtin_ctz(todo);
        const struct order_cell *const cell = &order_cells[m->first + place];
        const bool repeated = m->repeated >> place & 1;
        r = present >> place & 1 ? put_run(o, cell, repeated, &runs[place]) : put_absent(o, cell);
        if (present >> place & 1 && UNLIKELY(runs[place].prev) && r == 0)
            r = put_more(o, cell, repeated, runs[place].prev);
    }
    if (r == 0 && UNLIKELY(present & unknown))
        r = put_unknown(o, &runs[ORDER_FIELDS]);
    o->nruns = mark;
    return r;
}

struct wire_order *wire_order_new(void)
{
    return calloc(1, sizeof(struct wire_order));
}

struct wire_order *wire_order_free(struct wire_order *o)
{
    if (o) {
        mem_release((size_t)(o->out.end - o->out.start));
        block_free(o->out.start, (size_t)(o->out.end - o->out.start));
        free(o->runs);
        free(o);
    }
    return NULL;
}

int wire_order_reserve(struct wire_order *o, size_t bytes)
{
    return make_room(&o->out, bytes);
}

int wire_order_put(struct wire_order *o, const struct schema_message *m, struct bytes msg)
{
    prefetch(msg, PREFETCH_BYTES);
    int r = make_room(&o->out, msg.len + msg.len / 8);
    return r < 0 ? r : put_message(o, (unsigned)schema_index(m), msg);
}

struct bytes wire_order_bytes(const struct wire_order *o)
{
    return bytes_of(o->out.p, (size_t)(o->out.end - o->out.p));
}

void wire_order_reset(struct wire_order *o)
{
    o->out.p = o->out.end;
}

int otlp_wire_order(const struct schema_message *m, struct bytes msg, struct buf *out)
{
    _cleanup_(wire_order_freep) struct wire_order *o = wire_order_new();
    int r = o ? wire_order_put(o, m, msg) : -ENOMEM;
    struct bytes made = o ? wire_order_bytes(o) : bytes_of(NULL, 0);
    return r < 0 ? r : buf_append(out, made.data, made.len);
}
