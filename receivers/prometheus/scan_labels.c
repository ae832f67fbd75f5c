/* Labels of a line: collected, decoded, sorted. */
#include <errno.h>
#include <math.h>

#include "agent/base/number.h"
#include "proto/json.h"
#include "receivers/prometheus/scan.h"

#define FIRST_LABELS 16
#define FEW_LABELS 24 /* up to here insertion sort is the quickest */

struct prom_label *label_list_add(struct label_list *l)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : FIRST_LABELS;
        struct prom_label *items = realloc(l->items, cap * sizeof(*items));
        if (!items)
            return NULL;
        mem_charge((cap - l->cap) * sizeof(*items));
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n] = (struct prom_label){0};
    return &l->items[l->n++];
}

void label_list_done(struct label_list *l)
{
    mem_release(l->cap * sizeof(*l->items));
    free(l->items);
}

/* ---- decoding ---- */

/* What `\c` stands for; 0 = nothing, both bytes stay. */
static char escaped(uint8_t c, bool quotes)
{
    return c == '\\' ? '\\' : c == 'n' ? '\n' : c == '"' && quotes ? '"' : 0;
}

int prom_unescape(struct bytes s, bool quotes, struct arena *arena, struct bytes *ret)
{
    *ret = s;
    if (s.len == 0 || !memchr(s.data, '\\', s.len))
        return 0;
    uint8_t *out = arena_alloc(arena, s.len);
    if (!out)
        return -ENOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.data[i] == '\\' && i + 1 < s.len ? escaped(s.data[i + 1], quotes) : 0;
        out[n++] = c ? (uint8_t)c : s.data[i];
        i += c != 0;
    }
    *ret = bytes_of(out, n);
    return 0;
}

/* A bound as OpenMetrics writes it: Go's shortest form that shows it to be no integer. What is no
 * number stays. */
static int canonical_bound(struct bytes *value, struct arena *arena)
{
    double v;
    if (!number_parse_double(*value, &v))
        return 0;
    char *text = arena_alloc(arena, DOUBLE_MAX_BYTES + 2);
    if (!text)
        return -ENOMEM;
    size_t n = double_text(v, DOUBLE_GO, text);
    if (isfinite(v) && !memchr(text, '.', n) && !memchr(text, 'e', n)) {
        text[n++] = '.';
        text[n++] = '0';
    }
    *value = bytes_of(text, n);
    return 0;
}

static bool is_bound(const struct prom_label *l, enum prom_type type)
{
    return (type == PROM_HISTOGRAM && bytes_eq_str(l->name, "le")) ||
           (type == PROM_SUMMARY && bytes_eq_str(l->name, "quantile"));
}

static int decode(struct prom_label *l, enum prom_type type, struct arena *arena)
{
    int r = prom_unescape(l->name, true, arena, &l->name);
    if (r == 0)
        r = prom_unescape(l->value, true, arena, &l->value);
    if (r == 0 && is_bound(l, type))
        r = canonical_bound(&l->value, arena);
    return r;
}

/* ---- order ---- */

static int compare(const void *a, const void *b)
{
    const struct bytes x = ((const struct prom_label *)a)->name;
    const struct bytes y = ((const struct prom_label *)b)->name;
    const int c = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);
    return c ? c : (x.len > y.len) - (x.len < y.len);
}

static void sort(struct prom_label *items, size_t n)
{
    if (n > FEW_LABELS) {
        qsort(items, n, sizeof(*items), compare);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const struct prom_label l = items[i];
        size_t at = i;
        for (; at > 0 && compare(&items[at - 1], &l) > 0; at--)
            items[at] = items[at - 1];
        items[at] = l;
    }
}

int label_list_finish(struct label_list *l, enum prom_type type, struct arena *arena)
{
    if (l->finished)
        return 0;
    for (size_t i = 0; i < l->n; i++) {
        int r = decode(&l->items[i], type, arena);
        if (r < 0)
            return r;
    }
    sort(l->items, l->n);
    l->finished = true;
    return 0;
}

struct bytes prom_labels_get(struct prom_labels l, const char *name)
{
    for (size_t i = 0; i < l.n; i++)
        if (bytes_eq_str(l.items[i].name, name))
            return l.items[i].value;
    return (struct bytes){0};
}
