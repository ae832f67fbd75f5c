#include "agent/base/buf.h"

#include <errno.h>

#include "agent/base/block.h"

#define COST_BYTES (sizeof(struct buf) + 32) /* with what the allocator adds to two blocks */

struct buf *buf_new(size_t max)
{
    struct buf *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    atomic_init(&b->refs, 1);
    b->max = max ? max : SIZE_MAX / 2;
    mem_charge(COST_BYTES);
    return b;
}

struct buf *buf_ref(struct buf *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

struct buf *buf_unref(struct buf *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
        mem_release(b->cap + COST_BYTES);
        block_free(b->data, b->cap);
        free(b);
    }
    return NULL;
}

void buf_bound(struct buf *b, size_t memory_limit)
{
    b->memory_limit = memory_limit;
}

/* Charged before it is allocated, so that threads that grow at the same time see each other. */
static int grow(struct buf *b, size_t cap)
{
    const size_t more = cap - b->cap;
    if (!b->memory_limit)
        mem_charge(more);
    else if (!mem_try_charge(b->memory_limit, more))
        return -ENOMEM;
    uint8_t *data = block_resize(b->data, b->cap, b->len, cap);
    if (!data) {
        mem_release(more);
        return -ENOMEM;
    }
    b->data = data;
    b->cap = cap;
    return 0;
}

static int set_capacity(struct buf *b, size_t cap)
{
    if (cap > b->cap)
        return grow(b, cap);
    uint8_t *data = block_resize(b->data, b->cap, b->len, cap);
    if (!data)
        return -ENOMEM;
    mem_release(b->cap - cap);
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_reserve(struct buf *b, size_t extra)
{
    if (extra > b->max - b->len)
        return -EMSGSIZE;
    size_t need = b->len + extra;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap + b->cap / 2;
    if (cap > b->max)
        cap = b->max;
    if (cap < need)
        cap = need;
    if (cap < 64 && need < 64)
        cap = 64;
    return set_capacity(b, cap);
}

int buf_append(struct buf *b, const void *data, size_t len)
{
    int r = buf_reserve(b, len);
    if (r < 0)
        return r;
    if (len)
        memcpy(buf_tail(b), data, len);
    buf_commit(b, len);
    return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

/* What is read may be a secret: it is in the buffer alone afterwards. */
int buf_append_fd(struct buf *b, int fd)
{
    char part[4096];
    ssize_t n;
    while ((n = read(fd, part, sizeof(part))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        const int r = buf_append(b, part, (size_t)n);
        explicit_bzero(part, (size_t)n);
        if (r < 0)
            return r;
    }
    return 0;
}

int buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    int r = n < 0 ? -EINVAL : 0;
    if (r == 0 && (size_t)n < sizeof(small)) {
        r = buf_append(b, small, (size_t)n);
    } else if (r == 0) {
        r = buf_reserve(b, (size_t)n + 1);
        if (r == 0) {
            vsnprintf((char *)buf_tail(b), (size_t)n + 1, fmt, again);
            buf_commit(b, (size_t)n);
        }
    }
    va_end(again);
    return r;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

int buf_insert_gap(struct buf *b, size_t at, size_t n)
{
    int r = buf_reserve(b, n);
    if (r < 0)
        return r;
    if (n)
        memmove(b->data + at + n, b->data + at, b->len - at);
    buf_commit(b, n);
    return 0;
}

const char *buf_str(struct buf *b)
{
    if (b->len == b->cap && set_capacity(b, b->len + 1) < 0)
        return NULL;
    b->data[b->len] = 0;
    return (const char *)b->data;
}

void buf_shrink(struct buf *b)
{
    if (b->len && b->cap - b->len > b->len / 4 + 64)
        set_capacity(b, b->len);
}
