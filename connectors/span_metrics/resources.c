#include "connectors/span_metrics/resources.h"

#include <errno.h>

/* ---- one resource ---- */

static size_t charge_of(const struct resource *r)
{
    return sizeof(*r) + r->key.len + r->raw.len;
}

static struct resource *resource_new(const struct resources *all, struct bytes key,
                                     struct bytes raw)
{
    struct resource *r = calloc(1, sizeof(*r) + key.len + raw.len);
    if (!r)
        return NULL;
    uint8_t *at = (uint8_t *)(r + 1);
    memcpy(at, key.data, key.len);
    if (raw.len)
        memcpy(at + key.len, raw.data, raw.len);
    r->key = bytes_of(at, key.len);
    r->raw = bytes_of(at + key.len, raw.len);
    r->sums.histogram = all->histogram_in_sums;
    r->histograms.histogram = true;
    mem_charge(charge_of(r));
    return r;
}

static void resource_free(struct resource *r)
{
    series_set_done(&r->sums);
    series_set_done(&r->histograms);
    series_set_done(&r->events);
    mem_release(charge_of(r));
    free(r);
}

/* ---- lists ---- */

static void unlink_from(struct resource_list *l, struct resource *r)
{
    *(r->older ? &r->older->newer : &l->oldest) = r->newer;
    *(r->newer ? &r->newer->older : &l->newest) = r->older;
    l->n--;
}

static void link_newest(struct resource_list *l, struct resource *r)
{
    r->older = l->newest;
    r->newer = NULL;
    *(l->newest ? &l->newest->newer : &l->oldest) = r;
    l->newest = r;
    l->n++;
}

static void put_aside(struct resources *all, struct resource *r)
{
    unlink_from(&all->used, r);
    link_newest(&all->aside, r);
    r->aside = true;
}

/* Now the newest of those in use. */
static void touch(struct resources *all, struct resource *r)
{
    if (all->used.newest == r)
        return;
    unlink_from(r->aside ? &all->aside : &all->used, r);
    r->aside = false;
    link_newest(&all->used, r);
    if (all->used.n > all->max)
        put_aside(all, all->used.oldest);
}

static void drop(struct resources *all, struct resource_list *l, struct resource *r)
{
    struct resource **recent = &all->recent[r->raw_hash % RESOURCES_RECENT];
    if (*recent == r)
        *recent = NULL;
    unlink_from(l, r);
    sm_table_remove(&all->table, r->hash, r);
    resource_free(r);
}

/* ---- keys ---- */

static bool is_key(const struct resources *all, struct bytes name)
{
    const char *const *names = all->key_attributes->items;
    for (size_t i = 0; i < all->key_attributes->n; i++)
        if (bytes_eq_str(name, names[i]))
            return true;
    return all->key_attributes->n == 0;
}

static int put_sized(struct buf *out, struct bytes b)
{
    const uint32_t len = (uint32_t)b.len;
    int r = buf_append(out, &len, sizeof(len));
    return r == 0 ? buf_append(out, b.data, b.len) : r;
}

/* The same for attributes in any order. */
static int make_key(struct resources *all, const struct attributes *attributes)
{
    all->sorted.n = 0;
    for (size_t i = 0; i < attributes->n; i++)
        if (is_key(all, attributes->items[i].key) &&
            attributes_add(&all->sorted, attributes->items[i].key, attributes->items[i].value) < 0)
            return -ENOMEM;
    attributes_sort(&all->sorted, 0);
    buf_truncate(all->key, 0);
    int r = buf_reserve(all->key, 1);
    for (size_t i = 0; r == 0 && i < all->sorted.n; i++) {
        r = put_sized(all->key, all->sorted.items[i].key);
        if (r == 0)
            r = put_sized(all->key, all->sorted.items[i].value);
    }
    return r;
}

static struct resource *find(const struct resources *all, uint64_t hash, struct bytes key)
{
    const struct sm_table *t = &all->table;
    if (!t->cap)
        return NULL;
    for (size_t i = sm_table_first(t, hash); t->slots[i].item; i = sm_table_next(t, i)) {
        struct resource *r = t->slots[i].item;
        if (t->slots[i].hash == hash && bytes_eq(r->key, key))
            return r;
    }
    return NULL;
}

static struct resource *add(struct resources *all, uint64_t hash, struct bytes raw)
{
    if (sm_table_reserve(&all->table) < 0)
        return NULL;
    struct resource *r = resource_new(all, buf_bytes(all->key), raw);
    if (!r)
        return NULL;
    r->hash = hash;
    r->raw_hash = sm_hash(all->seed, raw);
    sm_table_put(&all->table, hash, r);
    link_newest(&all->used, r);
    if (all->used.n > all->max)
        put_aside(all, all->used.oldest);
    return r;
}

/* ---- public ---- */

int resources_init(struct resources *all)
{
    all->key = buf_new(0);
    return all->key ? 0 : -ENOMEM;
}

void resources_done(struct resources *all)
{
    resources_drop_all(all);
    sm_table_done(&all->table);
    attributes_done(&all->sorted);
    all->key = buf_unref(all->key);
}

struct resource *resources_recent(struct resources *all, struct bytes raw)
{
    const uint64_t hash = sm_hash(all->seed, raw);
    struct resource *r = all->recent[hash % RESOURCES_RECENT];
    if (!r || r->raw_hash != hash || !bytes_eq(r->raw, raw))
        return NULL;
    touch(all, r);
    return r;
}

struct resource *resources_get(struct resources *all, struct bytes raw,
                               const struct attributes *attributes)
{
    if (make_key(all, attributes) < 0)
        return NULL;
    const uint64_t hash = sm_hash(all->seed, buf_bytes(all->key));
    struct resource *r = find(all, hash, buf_bytes(all->key));
    if (r)
        touch(all, r);
    else
        r = add(all, hash, raw);
    if (r && bytes_eq(r->raw, raw))
        all->recent[r->raw_hash % RESOURCES_RECENT] = r;
    return r;
}

void resources_drop_aside(struct resources *all)
{
    while (all->aside.oldest)
        drop(all, &all->aside, all->aside.oldest);
}

void resources_expire(struct resources *all, uint64_t before_ns)
{
    for (struct resource *r = all->used.oldest, *newer; r; r = newer) {
        newer = r->newer;
        if (r->seen_ns <= before_ns)
            put_aside(all, r);
    }
}

void resources_drop_all(struct resources *all)
{
    resources_drop_aside(all);
    while (all->used.oldest)
        drop(all, &all->used, all->used.oldest);
}
