#include "agent/base/block.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes are 16, 20, 24, 28, 32, 40, … KiB: four to a doubling. */
#define STEPS 4
#define CLASSES (12 * STEPS) /* up to 64 MiB */
#define NEAR 3               /* a block of a class so many above will do as well */
/* So much is not given back while blocks are in use: a little more or less of them from one second
 * to the next is usual. */
#define FLOOR_BYTES ((size_t)2 << 20)
/* What the allocator adds, so that one that is mapped ends with its last page. */
#define OVERHEAD 16

struct head {
    union {
        struct head *next; /* while it is kept */
        size_t size;       /* else: of the whole block */
    };
    size_t unused; /* keeps the alignment */
};

struct shelf {
    struct head *first; /* the one that was freed last */
    unsigned n;
    unsigned idle; /* never fewer were here since the last block_age() */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shelf shelves[CLASSES];
static atomic_size_t kept_bytes, limit_bytes;
/* With the lock: */
static bool reused; /* since the last block_age() */
static bool paused; /* by block_drop() */
static bool told;   /* on_keep() was called, and block_age() will be */
static void (*_Atomic on_keep)(void);

/* ---- sizes ---- */

/* Of the blocks in a class, with their heads. */
static size_t class_bytes(unsigned c)
{
    const size_t first = BLOCK_MIN_BYTES * (STEPS + c % STEPS) / STEPS; /* of its kind */
    return (first << c / STEPS) - OVERHEAD;
}

/* The lowest class whose blocks have that size; CLASSES when there is none. */
static unsigned class_of(size_t size)
{
    if (size > class_bytes(CLASSES - 1))
        return CLASSES;
    unsigned c = 0;
    while (c + STEPS < CLASSES && class_bytes(c + STEPS - 1) < size)
        c += STEPS;
    while (class_bytes(c) < size)
        c++;
    return c;
}

/* The class that a block of that size is kept in; CLASSES = none. */
static unsigned shelf_of(size_t size)
{
    const unsigned c = class_of(size);
    if (c < CLASSES && class_bytes(c) == size)
        return c;
    return c == 0 || c == CLASSES ? CLASSES : c - 1;
}

static bool is_large(size_t bytes)
{
    return bytes >= BLOCK_MIN_BYTES;
}

/* What to ask malloc() for. Without keeping it is exact, so that tools see who writes past the end.
 */
static size_t size_for(size_t bytes)
{
    const size_t size = bytes + sizeof(struct head);
    const unsigned c = class_of(size);
    return atomic_load_explicit(&limit_bytes, memory_order_relaxed) && c < CLASSES ? class_bytes(c)
                                                                                   : size;
}

static struct head *head_of(void *p)
{
    return (struct head *)p - 1;
}

/* ---- keeping ---- */

/* With the lock. */
static struct head *take_off(unsigned c)
{
    struct shelf *s = &shelves[c];
    struct head *h = s->first;
    s->first = h->next;
    s->n--;
    s->idle = s->n < s->idle ? s->n : s->idle;
    reused = true;
    atomic_fetch_sub_explicit(&kept_bytes, class_bytes(c), memory_order_relaxed);
    h->size = class_bytes(c);
    return h;
}

/* One that was kept, or NULL. */
static struct head *reuse(size_t bytes)
{
    const unsigned c = class_of(bytes + sizeof(struct head));
    const unsigned end = c + NEAR < CLASSES ? c + NEAR + 1 : CLASSES;
    if (!block_kept())
        return NULL;
    struct head *h = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = c; !h && i < end; i++)
        if (shelves[i].n)
            h = take_off(i);
    pthread_mutex_unlock(&lock);
    return h;
}

/* With the lock. */
static void tell(void)
{
    void (*notify)(void) = told ? NULL : atomic_load(&on_keep);
    told = true;
    if (notify)
        notify();
}

static bool keep(struct head *h)
{
    const unsigned c = shelf_of(h->size);
    const size_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);
    if (!limit || c == CLASSES)
        return false;
    pthread_mutex_lock(&lock);
    const bool room = !paused && block_kept() + class_bytes(c) <= limit;
    if (room) {
        h->next = shelves[c].first;
        shelves[c].first = h;
        shelves[c].n++;
        atomic_fetch_add_explicit(&kept_bytes, class_bytes(c), memory_order_relaxed);
        tell();
    }
    pthread_mutex_unlock(&lock);
    return room;
}

/* Cuts the `n` that were freed first off a shelf. With the lock. */
static struct head *cut_oldest(unsigned c, unsigned n)
{
    struct shelf *s = &shelves[c];
    struct head **at = &s->first;
    for (unsigned skip = s->n - n; skip; skip--)
        at = &(*at)->next;
    struct head *list = *at;
    *at = NULL;
    s->n -= n;
    s->idle = s->n;
    atomic_fetch_sub_explicit(&kept_bytes, n * class_bytes(c), memory_order_relaxed);
    return list;
}

static void free_list(struct head *h)
{
    while (h) {
        struct head *next = h->next;
        free(h);
        h = next;
    }
}

/* How many of a class go: those that lay there all the time, while more than `floor` is kept. With
 * the lock. */
static unsigned aged(unsigned c, size_t floor)
{
    const size_t kept = block_kept(), over = kept > floor ? kept - floor : 0;
    const size_t most = (over + class_bytes(c) - 1) / class_bytes(c);
    return most < shelves[c].idle ? (unsigned)most : shelves[c].idle;
}

static void free_lists(struct head *const *lists)
{
    for (unsigned c = 0; c < CLASSES; c++)
        free_list(lists[c]);
}

bool block_drop(void)
{
    struct head *lists[CLASSES];
    if (!block_kept())
        return false;
    pthread_mutex_lock(&lock);
    for (unsigned c = 0; c < CLASSES; c++)
        lists[c] = cut_oldest(c, shelves[c].n);
    paused = true;
    tell();
    pthread_mutex_unlock(&lock);
    free_lists(lists);
    return true;
}

bool block_age(void)
{
    struct head *lists[CLASSES];
    pthread_mutex_lock(&lock);
    const size_t floor = reused ? FLOOR_BYTES : 0;
    for (unsigned c = CLASSES; c-- > 0;) /* large ones first */
        lists[c] = cut_oldest(c, aged(c, floor));
    reused = paused = false;
    told = block_kept() > 0;
    const bool more = told;
    pthread_mutex_unlock(&lock);
    free_lists(lists);
    return more;
}

void block_set_limit(size_t bytes)
{
    atomic_store(&limit_bytes, bytes);
    if (block_kept() > bytes)
        block_drop();
}

size_t block_kept(void)
{
    return atomic_load_explicit(&kept_bytes, memory_order_relaxed);
}

void block_on_keep(void (*notify)(void))
{
    atomic_store(&on_keep, notify);
}

/* ---- blocks ---- */

static void *large_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    struct head *h = reuse(bytes);
    if (h)
        return h + 1;
    const size_t size = size_for(bytes);
    h = malloc(size);
    if (!h)
        return NULL;
    h->size = size;
    return h + 1;
}

void *block_alloc(size_t bytes)
{
    return is_large(bytes) ? large_alloc(bytes) : malloc(bytes);
}

void *block_free(void *p, size_t bytes)
{
    if (p && !is_large(bytes))
        free(p);
    else if (p && !keep(head_of(p)))
        free(head_of(p));
    return NULL;
}

static void *move(void *p, size_t bytes, size_t used, void *to)
{
    if (to && used)
        memcpy(to, p, used);
    if (to)
        block_free(p, bytes);
    return to;
}

/* From large to large: where it is, into one that is kept, or where the allocator finds room. A
 * little less is no reason to move. */
static void *large_resize(void *p, size_t bytes, size_t used, size_t new_bytes)
{
    struct head *h = head_of(p), *other;
    if (new_bytes > SIZE_MAX / 2)
        return NULL;
    const size_t size = size_for(new_bytes), present = h->size;
    if (size <= present && (new_bytes >= bytes || size > present - present / 4))
        return p;
    if (size > present && (other = reuse(new_bytes)))
        return move(p, bytes, used, other + 1);
    h = realloc(h, size);
    if (!h)
        return NULL;
    h->size = size;
    return h + 1;
}

void *block_resize(void *p, size_t bytes, size_t used, size_t new_bytes)
{
    if (!p)
        return block_alloc(new_bytes);
    if (is_large(bytes) && is_large(new_bytes))
        return large_resize(p, bytes, used, new_bytes);
    if (is_large(bytes) || is_large(new_bytes))
        return move(p, bytes, used < new_bytes ? used : new_bytes, block_alloc(new_bytes));
    return realloc(p, new_bytes);
}
