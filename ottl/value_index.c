/* Looking up keys of a map that grows: a table beside it, so that n entries take n steps. */
#include <errno.h>

#include "ottl/value.h"

#define SLOTS_MIN 64

static size_t hash(struct bytes key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ key.data[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of the key, or the free one where it belongs. Slots hold positions from 1 on. */
static uint32_t *slot_of(const struct ottl_index *x, struct bytes key)
{
    size_t i = hash(key) & (x->size - 1);
    while (x->slots[i] && !bytes_eq(x->map->items[x->slots[i] - 1].key, key))
        i = (i + 1) & (x->size - 1);
    return &x->slots[i];
}

/* A table for twice the entries of now. Of entries with one key the first stands in it. */
static int fill(struct ottl_index *x)
{
    size_t size = SLOTS_MIN;
    while (size < x->map->n * 4)
        size *= 2;
    x->slots = arena_calloc(x->arena, size * sizeof(*x->slots));
    x->size = size;
    if (!x->slots)
        return -ENOMEM;
    for (size_t i = 0; i < x->map->n; i++) {
        uint32_t *slot = slot_of(x, x->map->items[i].key);
        if (!*slot)
            *slot = (uint32_t)i + 1;
    }
    return 0;
}

int ottl_index_init(struct ottl_index *x, struct arena *a, struct ottl_map *m)
{
    *x = (struct ottl_index){.arena = a, .map = m};
    return fill(x);
}

struct ottl_value *ottl_index_find(const struct ottl_index *x, struct bytes key)
{
    const uint32_t *slot = slot_of(x, key);
    return *slot ? &x->map->items[*slot - 1].value : NULL;
}

int ottl_index_append(struct ottl_index *x, struct bytes key, struct ottl_value v)
{
    int r = ottl_map_append(x->arena, x->map, key, v);
    if (r < 0)
        return r;
    if (x->map->n * 2 > x->size)
        return fill(x);
    *slot_of(x, key) = (uint32_t)x->map->n;
    return 0;
}
