#include "receivers/prometheus/table.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "agent/base/buf.h"

#define FIRST_SLOTS 64  /* a power of two, as all sizes are */
#define KEPT_SLOTS 1024 /* at most, by prom_table_clear() */

/* ---- hash: eight bytes at a time, mixed by a multiplication, as wyhash does ---- */

#define ODD_1 0x9e3779b97f4a7c15u /* the golden ratio in 64 bits */
#define ODD_2 0xd6e8feb86659fd93u

static uint64_t process_seed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_seed(void)
{
    if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) != sizeof(process_seed))
        process_seed = (uint64_t)time(NULL) * ODD_2;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

uint64_t prom_hash(uint64_t seed, struct bytes b)
{
    pthread_once(&once, make_seed);
    uint64_t h = mix(seed ^ process_seed ^ ODD_1, b.len + ODD_2);
    const uint8_t *p = b.data;
    size_t n = b.len;
    for (; n > 8; p += 8, n -= 8)
        h = mix(h ^ load(p, 8) ^ ODD_1, ODD_2);
    return n ? mix(h ^ load(p, n) ^ ODD_1, ODD_2) : h;
}

/* ---- table ---- */

struct prom_node *prom_table_find(const struct prom_table *t, uint64_t hash,
                                  bool (*same)(const struct prom_node *node, const void *key),
                                  const void *key)
{
    if (t->n == 0)
        return NULL;
    struct prom_node *node;
    for (size_t i = hash & (t->nslots - 1); (node = t->slots[i]); i = (i + 1) & (t->nslots - 1))
        if (node->hash == hash && same(node, key))
            return node;
    return NULL;
}

static void place(struct prom_table *t, struct prom_node *node)
{
    size_t i = node->hash & (t->nslots - 1);
    while (t->slots[i])
        i = (i + 1) & (t->nslots - 1);
    t->slots[i] = node;
    t->n++;
}

static int grow(struct prom_table *t)
{
    struct prom_table larger = {.nslots = t->nslots ? 2 * t->nslots : FIRST_SLOTS};
    larger.slots = calloc(larger.nslots, sizeof(*larger.slots));
    if (!larger.slots)
        return -ENOMEM;
    mem_charge(larger.nslots * sizeof(*larger.slots));
    for (size_t i = 0; i < t->nslots; i++)
        if (t->slots[i])
            place(&larger, t->slots[i]);
    prom_table_done(t);
    *t = larger;
    return 0;
}

int prom_table_add(struct prom_table *t, struct prom_node *node)
{
    if (2 * (t->n + 1) > t->nslots && grow(t) < 0)
        return -ENOMEM;
    place(t, node);
    return 0;
}

void prom_table_clear(struct prom_table *t)
{
    if (t->nslots > KEPT_SLOTS)
        prom_table_done(t);
    else if (t->n)
        memset(t->slots, 0, t->nslots * sizeof(*t->slots));
    t->n = 0;
}

void prom_table_done(struct prom_table *t)
{
    mem_release(t->nslots * sizeof(*t->slots));
    free(t->slots);
    *t = (struct prom_table){0};
}
