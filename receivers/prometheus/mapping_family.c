/* Which metric a sample belongs to. */
#include <errno.h>

#include "receivers/prometheus/mapper.h"
#include "receivers/prometheus/names.h"

static const char created_suffix[] = "_created", total_suffix[] = "_total";

/* Where a sample's name has led before. */
struct named {
    struct prom_node node;
    const struct scope *scope;
    struct bytes name;
    struct family *family;
};

/* ---- what is known of a name ---- */

#define OWN(name, unit, help)                                                                      \
    {                                                                                              \
        {(const uint8_t *)(name), sizeof(name) - 1}, {(const uint8_t *)(help), sizeof(help) - 1},  \
            {(const uint8_t *)(unit), sizeof(unit) - 1}, PROM_GAUGE                                \
    }
/* The samples that the scraper itself adds; texts of the reference. */
static const struct prom_family_info own_families[] = {
    OWN("up", "", "The scraping was successful"),
    OWN("scrape_duration_seconds", "seconds", "Duration of the scrape"),
    OWN("scrape_samples_scraped", "", "The number of samples the target exposed"),
    OWN("scrape_series_added", "", "The approximate number of new series in this scrape"),
    OWN("scrape_samples_post_metric_relabeling", "",
        "The number of samples remaining after metric relabeling was applied"),
};

static const struct prom_family_info *own_family(struct bytes name)
{
    if (name.len != 2 && (name.len < 7 || memcmp(name.data, "scrape_", 7) != 0))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(own_families); i++)
        if (bytes_eq(own_families[i].name, name))
            return &own_families[i];
    return NULL;
}

static enum point_kind kind_of(enum prom_type t)
{
    switch (t) {
    case PROM_COUNTER:
    case PROM_INFO:
    case PROM_STATESET: return KIND_SUM;
    case PROM_HISTOGRAM: return KIND_HISTOGRAM;
    case PROM_SUMMARY: return KIND_SUMMARY;
    case PROM_UNKNOWN:
    case PROM_GAUGE:
    case PROM_GAUGEHISTOGRAM: break;
    }
    return KIND_GAUGE;
}

/* Types whose samples have the family's name and suffixes to it. */
static bool is_merged(enum prom_type t)
{
    return t != PROM_GAUGE && t != PROM_UNKNOWN;
}

/* ---- tables ---- */

struct name_key {
    const struct scope *scope;
    struct bytes name;
};

static bool same_family(const struct prom_node *node, const void *key)
{
    const struct family *f = container_of(node, const struct family, node);
    const struct name_key *k = key;
    return f->scope == k->scope && bytes_eq(f->name, k->name);
}

static bool same_name(const struct prom_node *node, const void *key)
{
    const struct named *n = container_of(node, const struct named, node);
    const struct name_key *k = key;
    return n->scope == k->scope && bytes_eq(n->name, k->name);
}

static uint64_t hash_of(const struct name_key *k)
{
    return prom_hash((uintptr_t)k->scope, k->name);
}

static struct family *find_family(const struct prom_mapper *m, const struct scope *s,
                                  struct bytes name)
{
    const struct name_key key = {s, name};
    struct prom_node *node = prom_table_find(&m->family_table, hash_of(&key), same_family, &key);
    return node ? container_of(node, struct family, node) : NULL;
}

/* `name` has to live in the arena. */
static struct family *new_family(struct prom_mapper *m, struct scope *s, struct bytes name,
                                 const struct prom_family_info *info)
{
    struct family *f = arena_calloc(m->arena, sizeof(*f));
    const struct name_key key = {s, name};
    if (!f)
        return NULL;
    *f = (struct family){
        .node.hash = hash_of(&key),
        .scope = s,
        .name = name,
        .info = info,
        .type = info->type,
        .kind = kind_of(info->type),
        .points_end = &f->points,
    };
    if (prom_table_add(&m->family_table, &f->node) < 0)
        return NULL;
    *s->families_end = f;
    s->families_end = &f->next;
    return f;
}

/* ---- finding the family ---- */

static bool includes(const struct family *f, struct bytes name)
{
    if (!is_merged(f->type))
        return bytes_eq(name, f->name);
    return bytes_eq(name_trim(name), f->kind == KIND_SUM ? f->info->name : f->name);
}

static bool with_total(struct prom_mapper *m, struct bytes name, struct bytes *ret)
{
    uint8_t *s = arena_alloc(m->arena, name.len + strlen(total_suffix));
    if (!s)
        return false;
    memcpy(s, name.data, name.len);
    memcpy(s + name.len, total_suffix, strlen(total_suffix));
    *ret = bytes_of(s, name.len + strlen(total_suffix));
    return true;
}

static struct family *unknown_family(struct prom_mapper *m, struct scope *s, struct bytes name)
{
    struct prom_family_info *info = arena_calloc(m->arena, sizeof(*info));
    if (!info)
        return NULL;
    info->name = name;
    return new_family(m, s, name, info);
}

/* `info` is of `trimmed`, which is the front of the sample's name. */
static struct family *suffixed_family(struct prom_mapper *m, struct scope *s, struct bytes name,
                                      struct bytes trimmed, const struct prom_family_info *info)
{
    struct bytes family = trimmed;
    if (info->type == PROM_COUNTER && !name_ends(name, created_suffix))
        family = name;
    else if (info->type == PROM_COUNTER && !with_total(m, trimmed, &family))
        return NULL;
    else if (!is_merged(info->type))
        family = name;
    if (find_family(m, s, family)) /* of another type */
        return unknown_family(m, s, name);
    return new_family(m, s, family, info);
}

/* The first sample of that name: into a family that is there, or into one of its own. `name` lives
 * in the arena. */
static struct family *choose_family(struct prom_mapper *m, struct scope *s, struct bytes name)
{
    struct family *f = find_family(m, s, name);
    if (f)
        return f;
    const struct prom_family_info *info = own_family(name);
    if (!info)
        info = prom_metadata_find(m->origin->metadata, name);
    if (info)
        return new_family(m, s, name, info);
    const struct bytes trimmed = name_trim(name);
    struct bytes family = trimmed;
    info = prom_metadata_find(m->origin->metadata, trimmed);
    if (info && info->type == PROM_COUNTER && name_ends(name, created_suffix) &&
        !with_total(m, trimmed, &family))
        return NULL;
    f = find_family(m, s, family);
    if (f && includes(f, name))
        return f;
    return info ? suffixed_family(m, s, name, trimmed, info) : unknown_family(m, s, name);
}

static struct named *new_name(struct prom_mapper *m, struct scope *s, struct bytes name,
                              uint64_t hash)
{
    struct named *n = arena_calloc(m->arena, sizeof(*n));
    if (!n || !mapper_keep(m, name, &n->name))
        return NULL;
    n->node.hash = hash;
    n->scope = s;
    n->family = choose_family(m, s, n->name);
    if (!n->family || prom_table_add(&m->name_table, &n->node) < 0)
        return NULL;
    return n;
}

struct family *map_family(struct prom_mapper *m, struct scope *s, struct bytes name)
{
    const struct name_key key = {s, name};
    struct named *n = m->last_name;
    if (!n || !same_name(&n->node, &key)) {
        const uint64_t hash = hash_of(&key);
        struct prom_node *node = prom_table_find(&m->name_table, hash, same_name, &key);
        n = node ? container_of(node, struct named, node) : new_name(m, s, name, hash);
    }
    if (n)
        m->last_name = n;
    return n ? n->family : NULL;
}
