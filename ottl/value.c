#include "ottl/value.h"

#include <errno.h>

const char *ottl_kind_name(enum ottl_kind k)
{
    static const char *const names[] = {
        "nil",
        "bool",
        "int64",
        "float64",
        "string",
        "[]uint8",
        "pcommon.Slice",
        "pcommon.Map",
        "time.Time",
        "time.Duration",
        "pcommon.TraceID",
        "pcommon.SpanID",
        "slice of items",
    };
    return names[k];
}

/* ---- lists and maps ---- */

enum { FIRST_CAP = 4 };

struct ottl_list *ottl_list_new(struct arena *a)
{
    return arena_calloc(a, sizeof(struct ottl_list));
}

struct ottl_map *ottl_map_new(struct arena *a)
{
    return arena_calloc(a, sizeof(struct ottl_map));
}

/* An array of twice the size; the old one stays in the arena. */
static void *grow(struct arena *a, const void *items, size_t n, size_t *cap, size_t size)
{
    size_t bigger = *cap ? *cap * 2 : FIRST_CAP;
    void *p = arena_alloc(a, bigger * size);
    if (!p)
        return NULL;
    if (n)
        memcpy(p, items, n * size);
    *cap = bigger;
    return p;
}

int ottl_list_append(struct arena *a, struct ottl_list *l, struct ottl_value v)
{
    if (l->n == l->cap) {
        void *p = grow(a, l->items, l->n, &l->cap, sizeof(*l->items));
        if (!p)
            return -ENOMEM;
        l->items = p;
    }
    l->items[l->n++] = v;
    return 0;
}

struct ottl_value *ottl_map_find(const struct ottl_map *m, struct bytes key)
{
    for (size_t i = 0; i < m->n; i++)
        if (bytes_eq(m->items[i].key, key))
            return &m->items[i].value;
    return NULL;
}

int ottl_map_append(struct arena *a, struct ottl_map *m, struct bytes key, struct ottl_value v)
{
    if (m->n == m->cap) {
        void *p = grow(a, m->items, m->n, &m->cap, sizeof(*m->items));
        if (!p)
            return -ENOMEM;
        m->items = p;
    }
    m->items[m->n++] = (struct ottl_entry){key, v};
    return 0;
}

int ottl_map_put(struct arena *a, struct ottl_map *m, struct bytes key, struct ottl_value v)
{
    struct ottl_value *there = ottl_map_find(m, key);
    if (!there)
        return ottl_map_append(a, m, key, v);
    *there = v;
    return 0;
}

bool ottl_map_remove(struct ottl_map *m, struct bytes key)
{
    struct ottl_value *v = ottl_map_find(m, key);
    if (!v)
        return false;
    struct ottl_entry *e = container_of(v, struct ottl_entry, value);
    *e = m->items[--m->n];
    return true;
}

/* ---- copies ---- */

static int copy_bytes(struct arena *a, struct bytes b, struct bytes *ret)
{
    char *p = arena_strndup(a, b.len ? (const char *)b.data : "", b.len);
    if (!p)
        return -ENOMEM;
    *ret = bytes_of(p, b.len);
    return 0;
}

static int copy_list(struct arena *a, const struct ottl_list *from, struct ottl_list **ret)
{
    struct ottl_list *l = ottl_list_new(a);
    int r = l ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < from->n; i++) {
        struct ottl_value v = ottl_nil();
        r = ottl_value_copy(a, &from->items[i], &v);
        if (r == 0)
            r = ottl_list_append(a, l, v);
    }
    *ret = l;
    return r;
}

static int copy_map(struct arena *a, const struct ottl_map *from, struct ottl_map **ret)
{
    struct ottl_map *m = ottl_map_new(a);
    int r = m ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < from->n; i++) {
        struct ottl_value v = ottl_nil();
        struct bytes key = {0};
        r = copy_bytes(a, from->items[i].key, &key);
        if (r == 0)
            r = ottl_value_copy(a, &from->items[i].value, &v);
        if (r == 0)
            r = ottl_map_append(a, m, key, v);
    }
    *ret = m;
    return r;
}

int ottl_value_copy(struct arena *a, const struct ottl_value *v, struct ottl_value *ret)
{
    *ret = *v;
    switch (v->kind) {
    case OTTL_STRING:
    case OTTL_BYTES:
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_ITEMS: return copy_bytes(a, v->bytes, &ret->bytes);
    case OTTL_LIST: return copy_list(a, v->list, &ret->list);
    case OTTL_MAP: return copy_map(a, v->map, &ret->map);
    default: return 0;
    }
}
