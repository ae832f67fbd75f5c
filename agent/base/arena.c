#include "agent/base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "agent/base/buf.h"

struct block {
    struct block *next;
    size_t size;
    alignas(16) uint8_t data[];
};

struct arena {
    struct block *head;
    size_t used, block_bytes;
    size_t held, limit; /* limit 0 = none */
    bool refused;
};

struct arena *arena_new(size_t block_bytes)
{
    struct arena *a = calloc(1, sizeof(*a));
    if (a)
        a->block_bytes = block_bytes ? block_bytes : 4096;
    return a;
}

static void free_blocks(struct block *b)
{
    while (b) {
        struct block *next = b->next;
        mem_release(sizeof(*b) + b->size);
        free(b);
        b = next;
    }
}

struct arena *arena_free(struct arena *a)
{
    if (a)
        free_blocks(a->head);
    free(a);
    return NULL;
}

void arena_reset(struct arena *a)
{
    if (a->head) {
        free_blocks(a->head->next);
        a->head->next = NULL;
        a->held = a->head->size;
    }
    a->used = 0;
    a->refused = false;
}

void arena_set_limit(struct arena *a, size_t bytes)
{
    a->limit = bytes;
}

size_t arena_room(const struct arena *a)
{
    if (!a->limit)
        return SIZE_MAX;
    return a->held < a->limit ? a->limit - a->held : 0;
}

size_t arena_held(const struct arena *a)
{
    return a->held;
}

bool arena_refused(const struct arena *a)
{
    return a->refused;
}

static int add_block(struct arena *a, size_t n)
{
    size_t size = n > a->block_bytes ? n : a->block_bytes;
    if (size > arena_room(a)) {
        a->refused = true;
        return -1;
    }
    struct block *b = malloc(sizeof(*b) + size);
    if (!b)
        return -1;
    mem_charge(sizeof(*b) + size);
    b->next = a->head;
    b->size = size;
    a->head = b;
    a->held += size;
    a->used = 0;
    return 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + 15) & ~(size_t)15;
    if ((!a->head || n > a->head->size - a->used) && add_block(a, n) < 0)
        return NULL;
    void *p = a->head->data + a->used;
    a->used += n;
    return p;
}

void *arena_calloc(struct arena *a, size_t n)
{
    void *p = arena_alloc(a, n);
    return p ? memset(p, 0, n) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (!p)
        return NULL;
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return p;
}
