#include "agent/gym/index.h"

#include <errno.h>

#define FIRST_SLOTS 64

struct index_slot {
    uint32_t tag;  /* high half of the hash; its low bits say where the search begins */
    uint32_t item; /* plus one; 0 = free */
};

uint64_t hash_u64(uint64_t v, uint64_t seed)
{
    v = (v ^ seed) * 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
    return v ^ v >> 32;
}

uint64_t hash_bytes(struct bytes b, uint64_t seed)
{
    uint64_t h = seed ^ b.len, word;
    size_t i = 0;
    for (; i + 8 <= b.len; i += 8) {
        memcpy(&word, b.data + i, 8);
        h = hash_u64(word, h);
    }
    word = 0;
    if (i < b.len)
        memcpy(&word, b.data + i, b.len - i);
    return hash_u64(word, h);
}

/* The slot that has the item, or the free one where it would go. */
static struct index_slot *probe(const struct index *x, uint32_t tag,
                                bool (*same)(const void *ctx, uint32_t item), const void *ctx)
{
    size_t i = tag & (x->cap - 1);
    for (; x->slots[i].item; i = (i + 1) & (x->cap - 1))
        if (same && x->slots[i].tag == tag && same(ctx, x->slots[i].item - 1))
            break;
    return &x->slots[i];
}

uint32_t index_find(const struct index *x, uint64_t hash,
                    bool (*same)(const void *ctx, uint32_t item), const void *ctx)
{
    if (!x->cap)
        return INDEX_NONE;
    return probe(x, (uint32_t)(hash >> 32), same, ctx)->item - 1; /* 0 - 1 is INDEX_NONE */
}

static int grow(struct index *x)
{
    struct index bigger = {.cap = x->cap ? x->cap * 2 : FIRST_SLOTS};
    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < x->cap; i++)
        if (x->slots[i].item)
            *probe(&bigger, x->slots[i].tag, NULL, NULL) = x->slots[i];
    bigger.n = x->n;
    free(x->slots);
    *x = bigger;
    return 0;
}

int index_add(struct index *x, uint64_t hash, uint32_t item)
{
    if (x->n >= x->cap - x->cap / 4) {
        int r = grow(x);
        if (r < 0)
            return r;
    }
    const uint32_t tag = (uint32_t)(hash >> 32);
    *probe(x, tag, NULL, NULL) = (struct index_slot){tag, item + 1};
    x->n++;
    return 0;
}

void index_done(struct index *x)
{
    free(x->slots);
    *x = (struct index){0};
}
