#include "receivers/prometheus/metadata.h"

#include <errno.h>

#include "receivers/prometheus/table.h"

#define KEPT_SCRAPES 10 /* after the last page that mentioned a family */

struct family {
    struct prom_node node;        /* by name */
    struct prom_family_info info; /* name, help and unit are its own */
    uint64_t seen;                /* number of the scrape */
    struct family *next;
};

struct prom_metadata {
    struct prom_table table;
    struct family *all;
    uint64_t scrape;  /* number of the present one, from 1 */
    size_t mentioned; /* families of it, so far */
    uint64_t changes;
};

struct prom_metadata *prom_metadata_new(void)
{
    struct prom_metadata *m = calloc(1, sizeof(*m));
    if (m)
        m->scrape = 1;
    return m;
}

/* ---- texts ---- */

static void drop_text(struct bytes *t)
{
    mem_release(t->len);
    free((void *)t->data);
    *t = (struct bytes){0};
}

/* 1 = it is another text now, 0 = it was that already; -ENOMEM. */
static int set_text(struct bytes *t, struct bytes value)
{
    if (bytes_eq(*t, value))
        return 0;
    uint8_t *copy = NULL;
    if (value.len && !(copy = malloc(value.len)))
        return -ENOMEM;
    if (copy)
        memcpy(copy, value.data, value.len);
    drop_text(t);
    mem_charge(value.len);
    *t = bytes_of(copy, value.len);
    return 1;
}

/* ---- families ---- */

static void family_free(struct family *f)
{
    drop_text(&f->info.name);
    drop_text(&f->info.help);
    drop_text(&f->info.unit);
    mem_release(sizeof(*f));
    free(f);
}

static struct family *family_new(struct bytes name, uint64_t hash)
{
    struct family *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    mem_charge(sizeof(*f));
    f->node.hash = hash;
    if (set_text(&f->info.name, name) < 0) {
        family_free(f);
        return NULL;
    }
    return f;
}

struct prom_metadata *prom_metadata_free(struct prom_metadata *m)
{
    if (!m)
        return NULL;
    while (m->all) {
        struct family *f = m->all;
        m->all = f->next;
        family_free(f);
    }
    prom_table_done(&m->table);
    free(m);
    return NULL;
}

static bool has_name(const struct prom_node *node, const void *key)
{
    return bytes_eq(container_of(node, const struct family, node)->info.name,
                    *(const struct bytes *)key);
}

static struct family *find(const struct prom_metadata *m, struct bytes name, uint64_t hash)
{
    struct prom_node *node = prom_table_find(&m->table, hash, has_name, &name);
    return node ? container_of(node, struct family, node) : NULL;
}

static struct family *find_or_add(struct prom_metadata *m, struct bytes name)
{
    const uint64_t hash = prom_hash(0, name);
    struct family *f = find(m, name, hash);
    if (f || !(f = family_new(name, hash)))
        return f;
    if (prom_table_add(&m->table, &f->node) < 0) {
        family_free(f);
        return NULL;
    }
    f->next = m->all;
    m->all = f;
    m->changes++;
    return f;
}

/* ---- use ---- */

static int set_type(enum prom_type *t, enum prom_type value)
{
    const bool other = *t != value;
    *t = value;
    return other;
}

int prom_metadata_note(struct prom_metadata *m, const struct prom_entry *e)
{
    struct family *f = find_or_add(m, e->family);
    int r = 0;
    if (!f)
        return -ENOMEM;
    m->mentioned += f->seen != m->scrape;
    f->seen = m->scrape;
    switch (e->kind) {
    case PROM_TYPE: r = set_type(&f->info.type, e->type); break;
    case PROM_HELP: r = set_text(&f->info.help, e->text); break;
    case PROM_UNIT: r = set_text(&f->info.unit, e->text); break;
    case PROM_SAMPLE: break;
    }
    m->changes += r > 0;
    return r < 0 ? r : 0;
}

uint64_t prom_metadata_changes(const struct prom_metadata *m)
{
    return m->changes;
}

bool prom_metadata_is_complete(const struct prom_metadata *m)
{
    return m->mentioned == m->table.n;
}

const struct prom_family_info *prom_metadata_find(const struct prom_metadata *m,
                                                  struct bytes family)
{
    const struct family *f = m ? find(m, family, prom_hash(0, family)) : NULL;
    return f ? &f->info : NULL;
}

/* Frees the families that are too old. True: the table is empty then, to be filled anew. */
static bool drop_old(struct prom_metadata *m)
{
    bool any = false;
    for (struct family *f = m->all; f && !any; f = f->next)
        any = m->scrape - f->seen > KEPT_SCRAPES;
    if (!any)
        return false;
    prom_table_clear(&m->table);
    for (struct family **at = &m->all; *at;) {
        struct family *f = *at;
        if (m->scrape - f->seen <= KEPT_SCRAPES) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        family_free(f);
    }
    return true;
}

void prom_metadata_end_scrape(struct prom_metadata *m)
{
    m->scrape++;
    m->mentioned = 0;
    if (!drop_old(m))
        return;
    m->changes++;
    for (struct family **at = &m->all; *at;) {
        struct family *f = *at;
        if (prom_table_add(&m->table, &f->node) == 0) {
            at = &f->next;
            continue;
        }
        *at = f->next; /* without memory for a table it is forgotten before its time */
        family_free(f);
    }
}
