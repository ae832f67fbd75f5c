/* Linear probing with backward-shift deletion: no tombstones, so lookups stay short. */
#include "connectors/span_metrics/hash.h"

#include <errno.h>

#include "agent/base/buf.h"

#define FIRST_CAP 8

static void insert(struct sm_table *t, uint64_t hash, void *item)
{
    size_t i = sm_table_first(t, hash);
    while (t->slots[i].item)
        i = sm_table_next(t, i);
    t->slots[i] = (struct sm_slot){.hash = hash, .item = item};
}

/* At most three quarters are in use. */
int sm_table_reserve(struct sm_table *t)
{
    if (4 * (t->n + 1) <= 3 * t->cap)
        return 0;
    struct sm_table bigger = {.n = t->n, .cap = t->cap ? 2 * t->cap : FIRST_CAP};
    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    mem_charge(bigger.cap * sizeof(*bigger.slots));
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i].item)
            insert(&bigger, t->slots[i].hash, t->slots[i].item);
    sm_table_done(t);
    *t = bigger;
    return 0;
}

void sm_table_put(struct sm_table *t, uint64_t hash, void *item)
{
    insert(t, hash, item);
    t->n++;
}

void sm_table_remove(struct sm_table *t, uint64_t hash, const void *item)
{
    size_t hole = sm_table_first(t, hash);
    while (t->slots[hole].item != item)
        hole = sm_table_next(t, hole);
    for (size_t i = sm_table_next(t, hole); t->slots[i].item; i = sm_table_next(t, i)) {
        size_t home = sm_table_first(t, t->slots[i].hash);
        bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
        if (stays)
            continue;
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole] = (struct sm_slot){0};
    t->n--;
}

void sm_table_done(struct sm_table *t)
{
    if (t->cap)
        mem_release(t->cap * sizeof(*t->slots));
    free(t->slots);
    *t = (struct sm_table){0};
}
