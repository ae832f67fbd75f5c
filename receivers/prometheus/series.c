#include "receivers/prometheus/series.h"

#include <errno.h>

#define FIRST_CAP 64

/* Multiply and fold, 8 bytes at a time; seeded, so that nobody can choose what collides. */
static uint64_t mum(uint64_t a, uint64_t b)
{
    const __uint128_t p = (__uint128_t)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t read_le(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

static uint64_t hash(struct bytes b, uint64_t seed)
{
    uint64_t h = seed ^ mum(b.len ^ 0xa0761d6478bd642f, 0xe7037ed1a0b428db);
    const uint8_t *p = b.data;
    size_t n = b.len;
    for (; n >= 8; p += 8, n -= 8)
        h = mum(h ^ read_le(p, 8), 0x8ebc6af09c88c6e3 ^ seed);
    if (n)
        h = mum(h ^ read_le(p, n), 0x589965cc75374cc3 ^ seed);
    return mum(h, 0x1d8e4e27c47d124f);
}

void series_init(struct series_table *t, uint64_t seed)
{
    *t = (struct series_table){.seed = seed, .scrape = 1};
}

static size_t series_bytes(const struct series *s)
{
    return sizeof(*s) + s->raw_len + s->labels_len;
}

static void series_free(struct series_table *t, struct series *s)
{
    mem_release(series_bytes(s));
    t->charged -= series_bytes(s);
    free(s);
    t->n--;
}

void series_done(struct series_table *t)
{
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i])
            series_free(t, t->slots[i]);
    mem_release(t->cap * sizeof(*t->slots));
    free(t->slots);
    *t = (struct series_table){0};
}

void series_begin(struct series_table *t)
{
    t->scrape++;
}

static struct bytes raw_of(const struct series *s)
{
    return bytes_of(s->text, s->raw_len);
}

static size_t slot_of(const struct series_table *t, uint64_t h)
{
    return (size_t)h & (t->cap - 1);
}

struct series *series_find(const struct series_table *t, struct bytes raw)
{
    if (!t->cap)
        return NULL;
    const uint64_t h = hash(raw, t->seed);
    for (size_t i = slot_of(t, h); t->slots[i]; i = (i + 1) & (t->cap - 1))
        if (t->slots[i]->raw_hash == h && bytes_eq(raw_of(t->slots[i]), raw))
            return t->slots[i];
    return NULL;
}

static void place(struct series_table *t, struct series *s)
{
    size_t i = slot_of(t, s->raw_hash);
    while (t->slots[i])
        i = (i + 1) & (t->cap - 1);
    t->slots[i] = s;
}

/* Makes a table of another size; at most three quarters of it are in use. */
static int resize(struct series_table *t, size_t cap)
{
    struct series **old = t->slots, **slots = calloc(cap, sizeof(struct series *));
    const size_t old_cap = t->cap;
    if (!slots)
        return -ENOMEM;
    mem_charge(cap * sizeof(*slots));
    t->slots = slots;
    t->cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i])
            place(t, old[i]);
    mem_release(old_cap * sizeof(*slots));
    free(old);
    return 0;
}

struct series *series_add(struct series_table *t, struct bytes raw, struct prom_labels labels,
                          bool dropped, struct buf *scratch)
{
    buf_truncate(scratch, 0);
    if (!dropped && labels_encode(labels, scratch) < 0)
        return NULL;
    if ((t->n + 1) * 4 > t->cap * 3 && resize(t, t->cap ? 2 * t->cap : FIRST_CAP) < 0)
        return NULL;
    struct series *s = malloc(sizeof(*s) + raw.len + scratch->len);
    if (!s || raw.len > UINT32_MAX || scratch->len > UINT32_MAX) {
        free(s);
        return NULL;
    }
    *s = (struct series){.raw_hash = hash(raw, t->seed),
                         .labels_hash = hash(buf_bytes(scratch), t->seed),
                         .raw_len = (uint32_t)raw.len,
                         .labels_len = (uint32_t)scratch->len,
                         .nlabels = dropped ? 0 : (uint32_t)labels.n,
                         .seen = t->scrape,
                         .dropped = dropped};
    memcpy(s->text, raw.data, raw.len);
    if (scratch->len)
        memcpy(s->text + raw.len, scratch->data, scratch->len);
    mem_charge(series_bytes(s));
    t->charged += series_bytes(s);
    t->n++;
    place(t, s);
    return s;
}

struct prom_labels series_labels(const struct series *s, struct prom_label *items)
{
    labels_decode(bytes_of(s->text + s->raw_len, s->labels_len), items, s->nlabels);
    return (struct prom_labels){items, s->nlabels};
}

/* ---- the end of a scrape ---- */

/* Hashes of the label sets that were tracked in this scrape, made when the first series is found to be gone. */
struct present {
    uint64_t *hashes;
    size_t cap;
};

static int present_make(const struct series_table *t, struct present *p)
{
    p->cap = t->cap;
    p->hashes = calloc(p->cap, sizeof(*p->hashes));
    if (!p->hashes)
        return -ENOMEM;
    for (size_t k = 0; k < t->cap; k++) {
        const struct series *s = t->slots[k];
        if (!s || s->tracked != t->scrape)
            continue;
        size_t i = (size_t)s->labels_hash & (p->cap - 1);
        while (p->hashes[i])
            i = (i + 1) & (p->cap - 1);
        p->hashes[i] = s->labels_hash | 1;
    }
    return 0;
}

static bool present_has(const struct present *p, uint64_t h)
{
    for (size_t i = (size_t)h & (p->cap - 1); p->hashes[i]; i = (i + 1) & (p->cap - 1))
        if (p->hashes[i] == (h | 1))
            return true;
    return false;
}

static int tell_gone(const struct series_table *t, struct series *s, bool failed, struct present *p,
                     int (*gone)(void *ctx, const struct series *s), void *ctx)
{
    s->live = false;
    if (!failed && !p->hashes && present_make(t, p) < 0)
        return -ENOMEM;
    return !failed && present_has(p, s->labels_hash) ? 0 : gone(ctx, s);
}

/* Series of pages that were bad in the end are kept, up to a point: the next page may be good and have them again. */
static bool is_forgetful(const struct series_table *t, bool failed)
{
    return !failed || t->n > 2 * t->good + 1000;
}

/* Moves what was seen to a new table; without memory for that nothing is forgotten this time. */
static void forget_unseen(struct series_table *t, size_t unseen)
{
    struct series_table next = *t;
    next.cap = FIRST_CAP;
    while ((t->n - unseen + 1) * 4 > next.cap * 3)
        next.cap *= 2;
    next.slots = calloc(next.cap, sizeof(struct series *));
    if (!next.slots)
        return;
    mem_charge(next.cap * sizeof(*next.slots));
    for (size_t i = 0; i < t->cap; i++) {
        struct series *s = t->slots[i];
        if (s && s->seen == t->scrape)
            place(&next, s);
        else if (s)
            series_free(&next, s);
    }
    mem_release(t->cap * sizeof(*t->slots));
    free(t->slots);
    *t = next;
}

int series_end(struct series_table *t, bool failed, int (*gone)(void *ctx, const struct series *s),
               void *ctx)
{
    struct present p = {NULL, 0};
    const size_t before = t->n;
    size_t unseen = 0;
    int r = 0;
    for (size_t i = 0; i < t->cap; i++) {
        struct series *s = t->slots[i];
        if (!s)
            continue;
        unseen += s->seen != t->scrape;
        if (!failed && s->tracked == t->scrape) {
            s->live = true;
        } else if (s->live) {
            const int e = tell_gone(t, s, failed, &p, gone, ctx);
            r = r < 0 ? r : e;
        }
    }
    free(p.hashes);
    if (unseen && is_forgetful(t, failed))
        forget_unseen(t, unseen);
    if (!failed)
        t->good = before;
    return r;
}
