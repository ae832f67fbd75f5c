#include "agent/base/buf.h"

#include <errno.h>

#define DROP_MIN_BYTES ((size_t)4 << 20) /* a smaller peak is not worth giving memory back */

static atomic_size_t live_bytes;
static atomic_size_t peak_bytes;   /* since the last drop; a hint, so races do not matter */
static atomic_size_t higher_bytes; /* the highest of the peaks before */
static void (*_Atomic on_drop)(void);

size_t mem_used(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

size_t mem_peak(void)
{
    const size_t before = atomic_load(&higher_bytes), now = atomic_load(&peak_bytes);
    return before > now ? before : now;
}

void mem_on_drop(void (*notify)(void))
{
    atomic_store(&on_drop, notify);
}

void mem_charge(size_t bytes)
{
    size_t now = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    if (now > atomic_load_explicit(&peak_bytes, memory_order_relaxed))
        atomic_store_explicit(&peak_bytes, now, memory_order_relaxed);
}

void mem_release(size_t bytes)
{
    size_t now = atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed) - bytes;
    size_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    if (peak < DROP_MIN_BYTES || now >= peak / 4 ||
        !atomic_compare_exchange_strong(&peak_bytes, &peak, now))
        return;
    if (peak > atomic_load(&higher_bytes))
        atomic_store(&higher_bytes, peak);
    void (*notify)(void) = atomic_load(&on_drop);
    if (notify)
        notify();
}

struct buf *buf_new(size_t max)
{
    struct buf *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    atomic_init(&b->refs, 1);
    b->max = max ? max : SIZE_MAX / 2;
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
        mem_release(b->cap);
        free(b->data);
        free(b);
    }
    return NULL;
}

static int set_capacity(struct buf *b, size_t cap)
{
    uint8_t *data = realloc(b->data, cap);
    if (!data)
        return -ENOMEM;
    if (cap > b->cap)
        mem_charge(cap - b->cap);
    else
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
