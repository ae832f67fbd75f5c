#include "connectors/span_metrics/stamps.h"

#include <stdlib.h>

#include "agent/base/buf.h"

static uint64_t hash_of(uint64_t resource, uint64_t series)
{
    return sm_hash_mix(resource ^ 0x9e3779b97f4a7c15, series ^ 0xd6e8feb86659fd93);
}

static struct stamp *find(const struct stamps *s, uint64_t resource, uint64_t series)
{
    const struct sm_table *t = &s->table;
    if (!t->cap)
        return NULL;
    for (size_t i = sm_table_first(t, hash_of(resource, series)); t->slots[i].item;
         i = sm_table_next(t, i)) {
        struct stamp *it = t->slots[i].item;
        if (it->resource == resource && it->series == series)
            return it;
    }
    return NULL;
}

static void unlink_stamp(struct stamps *s, struct stamp *it)
{
    *(it->older ? &it->older->newer : &s->oldest) = it->newer;
    *(it->newer ? &it->newer->older : &s->newest) = it->older;
}

static void link_newest(struct stamps *s, struct stamp *it)
{
    it->older = s->newest;
    it->newer = NULL;
    *(s->newest ? &s->newest->newer : &s->oldest) = it;
    s->newest = it;
}

static void drop_oldest(struct stamps *s)
{
    struct stamp *it = s->oldest;
    unlink_stamp(s, it);
    sm_table_remove(&s->table, hash_of(it->resource, it->series), it);
    mem_release(sizeof(*it));
    free(it);
}

static struct stamp *add(struct stamps *s, uint64_t resource, uint64_t series)
{
    while (s->oldest && s->table.n >= s->max)
        drop_oldest(s);
    if (sm_table_reserve(&s->table) < 0)
        return NULL;
    struct stamp *it = calloc(1, sizeof(*it));
    if (!it)
        return NULL;
    mem_charge(sizeof(*it));
    it->resource = resource;
    it->series = series;
    sm_table_put(&s->table, hash_of(resource, series), it);
    link_newest(s, it);
    return it;
}

static void touch(struct stamps *s, struct stamp *it)
{
    unlink_stamp(s, it);
    link_newest(s, it);
}

uint64_t stamps_get(struct stamps *s, uint64_t resource, uint64_t series)
{
    struct stamp *it = find(s, resource, series);
    if (!it)
        return 0;
    touch(s, it);
    return it->time_ns;
}

void stamps_set(struct stamps *s, uint64_t resource, uint64_t series, uint64_t time_ns)
{
    struct stamp *it = find(s, resource, series);
    if (it)
        touch(s, it);
    else
        it = add(s, resource, series);
    if (it)
        it->time_ns = time_ns;
}

void stamps_done(struct stamps *s)
{
    while (s->oldest)
        drop_oldest(s);
    sm_table_done(&s->table);
}
