#include "receivers/prometheus/labels.h"

#include <errno.h>

#include "proto/wire.h"

int prom_builder_init(struct label_builder *b)
{
    *b = (struct label_builder){.arena = arena_new(0)};
    return b->arena ? 0 : -ENOMEM;
}

void prom_builder_done(struct label_builder *b)
{
    arena_free(b->arena);
    free(b->items);
    *b = (struct label_builder){0};
}

static struct prom_label *append(struct label_builder *b)
{
    if (b->n == b->cap) {
        const size_t cap = b->cap ? 2 * b->cap : 32;
        struct prom_label *items = realloc(b->items, cap * sizeof(*items));
        if (!items) {
            b->no_memory = true;
            return NULL;
        }
        b->items = items;
        b->cap = cap;
    }
    return &b->items[b->n++];
}

void prom_builder_reset(struct label_builder *b, struct prom_labels base)
{
    arena_reset(b->arena);
    b->n = 0;
    b->no_memory = false;
    for (size_t i = 0; i < base.n; i++) {
        struct prom_label *l = append(b);
        if (l)
            *l = base.items[i];
    }
}

struct bytes prom_builder_get(const struct label_builder *b, struct bytes name)
{
    for (size_t i = 0; i < b->n; i++)
        if (bytes_eq(b->items[i].name, name))
            return b->items[i].value;
    return bytes_of(NULL, 0);
}

void prom_builder_set(struct label_builder *b, struct bytes name, struct bytes value)
{
    struct prom_label *found = NULL;
    for (size_t i = 0; i < b->n; i++) {
        if (!bytes_eq(b->items[i].name, name))
            continue;
        b->items[i].value = found ? bytes_of(NULL, 0) : value;
        found = &b->items[i];
    }
    if (!found && value.len && (found = append(b)))
        *found = (struct prom_label){name, value};
}

static int by_name(const void *a, const void *b)
{
    const struct prom_label *x = a, *y = b;
    const size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    const int r = n ? memcmp(x->name.data, y->name.data, n) : 0;
    return r ? r : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

int prom_builder_sorted(struct label_builder *b, struct prom_labels *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].value.len)
            b->items[n++] = b->items[i];
    b->n = n;
    if (n)
        qsort(b->items, n, sizeof(*b->items), by_name);
    *ret = (struct prom_labels){b->items, n};
    return b->no_memory ? -ENOMEM : 0;
}

bool prom_label_is(struct bytes name, const char *text)
{
    return bytes_eq_str(name, text);
}

bool prom_label_has_prefix(struct bytes name, const char *prefix)
{
    const size_t n = strlen(prefix);
    return name.len >= n && memcmp(name.data, prefix, n) == 0;
}

/* ---- the compact form ---- */

static int encode_one(struct bytes text, struct buf *out)
{
    int r = wire_put_varint(out, text.len);
    return r < 0 ? r : buf_append(out, text.data, text.len);
}

int prom_labels_encode(struct prom_labels l, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < l.n; i++) {
        r = encode_one(l.items[i].name, out);
        if (r == 0)
            r = encode_one(l.items[i].value, out);
    }
    return r;
}

static const uint8_t *decode_one(const uint8_t *p, struct bytes *ret)
{
    size_t len = 0;
    unsigned shift = 0;
    for (; *p & 0x80; shift += 7)
        len |= (size_t)(*p++ & 0x7f) << shift;
    len |= (size_t)*p++ << shift;
    *ret = bytes_of(p, len);
    return p + len;
}

void prom_labels_decode(struct bytes encoded, struct prom_label *items, size_t n)
{
    const uint8_t *p = encoded.data;
    for (size_t i = 0; i < n; i++) {
        p = decode_one(p, &items[i].name);
        p = decode_one(p, &items[i].value);
    }
}

void prom_labels_format(struct prom_labels l, char *ret, size_t size)
{
    size_t at = (size_t)snprintf(ret, size, "{");
    for (size_t i = 0; i < l.n && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%.*s=\"%.*s\"", i ? ", " : "",
                               (int)l.items[i].name.len, (const char *)l.items[i].name.data,
                               (int)l.items[i].value.len, (const char *)l.items[i].value.data);
    if (at < size)
        snprintf(ret + at, size - at, "}");
}
