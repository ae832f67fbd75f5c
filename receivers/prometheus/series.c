#include "receivers/prometheus/series.h"

#include <errno.h>

static size_t series_bytes(const struct series *s)
{
    return sizeof(*s) + s->raw_len + s->labels_len;
}

static struct series *series_at(const struct prom_table *t, size_t i)
{
    return (struct series *)t->slots[i];
}

static void series_free(struct series *s)
{
    mem_release(series_bytes(s));
    free(s);
}

void prom_series_done(struct series_table *t)
{
    for (size_t i = 0; i < t->table.nslots; i++)
        if (t->table.slots[i])
            series_free(series_at(&t->table, i));
    prom_table_done(&t->table);
}

void prom_series_begin(struct series_table *t)
{
    t->scrape++;
    t->last = NULL;
    t->ntracked = t->nkept = 0;
}

void prom_series_page(struct series_table *t, enum prom_format format)
{
    if (t->format != format)
        t->first = NULL;
    t->format = format;
}

static struct series *expected(const struct series_table *t)
{
    return t->last ? t->last->next : t->first;
}

struct bytes prom_series_expected(const struct series_table *t)
{
    const struct series *s = expected(t);
    return s ? bytes_of(s->text, s->raw_len) : bytes_of(NULL, 0);
}

bool prom_series_see(struct series_table *t, struct series *s)
{
    const bool again = s->seen == t->scrape;
    if (t->last)
        t->last->next = s;
    else
        t->first = s;
    t->last = s;
    s->seen = t->scrape;
    return again;
}

void prom_series_track(struct series_table *t, struct series *s)
{
    if (s->tracked == t->scrape)
        return;
    s->tracked = t->scrape;
    t->ntracked++;
    t->nkept += s->live;
}

static bool same_text(const struct prom_node *n, const void *raw)
{
    const struct series *s = (const struct series *)n;
    return bytes_eq(bytes_of(s->text, s->raw_len), *(const struct bytes *)raw);
}

struct series *prom_series_find(const struct series_table *t, struct bytes raw)
{
    struct series *next = expected(t);
    if (next && same_text(&next->node, &raw))
        return next;
    return (struct series *)prom_table_find(&t->table, prom_hash(0, raw), same_text, &raw);
}

struct series *prom_series_add(struct series_table *t, struct bytes raw, struct prom_labels labels,
                               bool dropped, struct buf *scratch)
{
    buf_truncate(scratch, 0);
    if ((!dropped && prom_labels_encode(labels, scratch) < 0) || raw.len > UINT32_MAX ||
        scratch->len > UINT32_MAX)
        return NULL;
    struct series *s = malloc(sizeof(*s) + raw.len + scratch->len);
    if (!s)
        return NULL;
    *s = (struct series){.node.hash = prom_hash(0, raw),
                         .labels_hash = prom_hash(0, buf_bytes(scratch)),
                         .raw_len = (uint32_t)raw.len,
                         .labels_len = (uint32_t)scratch->len,
                         .nlabels = dropped ? 0 : (uint32_t)labels.n,
                         .dropped = dropped};
    memcpy(s->text, raw.data, raw.len);
    if (scratch->len)
        memcpy(s->text + raw.len, scratch->data, scratch->len);
    mem_charge(series_bytes(s));
    if (prom_table_add(&t->table, &s->node) < 0) {
        series_free(s);
        return NULL;
    }
    s->next = expected(t); /* it came in between */
    prom_series_see(t, s);
    return s;
}

struct prom_labels prom_series_labels(const struct series *s, struct prom_label *items)
{
    prom_labels_decode(bytes_of(s->text + s->raw_len, s->labels_len), items, s->nlabels);
    return (struct prom_labels){items, s->nlabels};
}

/* ---- the end of a scrape ---- */

/* Hashes of the label sets that were tracked in this scrape, made when the first series is found to
 * be gone. */
struct present {
    uint64_t *hashes;
    size_t cap;
};

static int present_make(const struct series_table *t, struct present *p)
{
    p->cap = t->table.nslots;
    p->hashes = calloc(p->cap, sizeof(*p->hashes));
    if (!p->hashes)
        return -ENOMEM;
    for (size_t k = 0; k < t->table.nslots; k++) {
        const struct series *s = series_at(&t->table, k);
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

/* A quarter of what is known may be of pages that were before. After bad pages more of it is kept,
 * up to a point: the next page may be good and have all of it again. */
static bool is_forgetful(const struct series_table *t, size_t unseen, bool failed)
{
    return failed ? unseen && t->table.n > 2 * t->good + 1000 : unseen > t->table.n / 4 + 64;
}

/* Moves what was seen to a new table; without memory for that nothing is forgotten this time. */
static void forget_unseen(struct series_table *t)
{
    struct prom_table next = {.n = 0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->table.nslots; i++) {
        struct series *s = series_at(&t->table, i);
        if (s && s->seen == t->scrape)
            r = prom_table_add(&next, &s->node);
    }
    if (r < 0) {
        prom_table_done(&next);
        return;
    }
    for (size_t i = 0; i < t->table.nslots; i++) {
        struct series *s = series_at(&t->table, i);
        if (s && s->seen != t->scrape)
            series_free(s);
    }
    prom_table_done(&t->table);
    t->table = next;
    /* Who is left was seen in this scrape, and so was the one behind each, but for the last. */
    if (t->last)
        t->last->next = NULL;
    else
        t->first = NULL;
}

/* Everything that was live was tracked again, and nothing else was. */
static bool is_unchanged(const struct series_table *t)
{
    return t->nkept == t->nlive && t->ntracked == t->nkept;
}

int prom_series_end(struct series_table *t, bool failed,
                    int (*gone)(void *ctx, const struct series *s), void *ctx)
{
    struct present p = {NULL, 0};
    size_t unseen = 0;
    int r = 0;
    for (size_t i = 0; (failed || !is_unchanged(t)) && i < t->table.nslots; i++) {
        struct series *s = series_at(&t->table, i);
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
    if (is_forgetful(t, unseen, failed))
        forget_unseen(t);
    t->nlive = failed ? 0 : t->ntracked;
    if (!failed) {
        t->good = t->table.n;
        t->good_scrape = t->scrape;
    }
    return r;
}
