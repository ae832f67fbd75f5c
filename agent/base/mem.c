#include "agent/base/mem.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/block.h"
#include "agent/base/cgroup.h"
#include "agent/base/cleanup.h"
#include "agent/base/clock.h"

#define DROP_MIN_BYTES ((size_t)4 << 20) /* a smaller peak is not worth giving memory back */
#define STALE_NS (50 * NS_PER_MS)        /* a look that old is not enough to let data in */
#define FRESH_NS NS_PER_MS               /* one that young is enough to refuse it */
#define PRESS_NS (100 * NS_PER_MS)
#define GROUP_NS NS_PER_S
/* With no more than this in use it is not us who fills the control group. */
#define GROUP_FLOOR_BYTES ((size_t)32 << 20)
#define GROUP_RESERVE 20 /* one part of so many of the control group's limit stays free */

/* Sanitizers keep several times what a program uses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOREIGN_RESIDENT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define FOREIGN_RESIDENT 1
#endif
#endif
#ifndef FOREIGN_RESIDENT
#define FOREIGN_RESIDENT 0
#endif

static atomic_size_t live_bytes;
static atomic_size_t peak_bytes;   /* since the last drop; a hint, so races do not matter */
static atomic_size_t higher_bytes; /* the highest of the peaks before */
static atomic_size_t resident_bytes, beyond_bytes; /* at the last look */
static atomic_size_t limit_bytes = MEM_NO_LIMIT, group_bytes = MEM_NO_LIMIT;
static atomic_size_t more_limits[16];
static _Atomic uint64_t looked_ns, grouped_ns, pressed_ns;
static atomic_flag looking = ATOMIC_FLAG_INIT;
static void (*_Atomic on_drop)(void);
static void (*_Atomic on_pressure)(void);

static size_t read_relaxed(const atomic_size_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

size_t mem_used(void)
{
    return read_relaxed(&live_bytes);
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

void mem_on_pressure(void (*notify)(void))
{
    atomic_store(&on_pressure, notify);
}

void mem_charge(size_t bytes)
{
    size_t now = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    if (now > read_relaxed(&peak_bytes))
        atomic_store_explicit(&peak_bytes, now, memory_order_relaxed);
}

void mem_release(size_t bytes)
{
    size_t now = atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed) - bytes;
    size_t peak = read_relaxed(&peak_bytes);
    if (peak < DROP_MIN_BYTES || now >= peak / 4 ||
        !atomic_compare_exchange_strong(&peak_bytes, &peak, now))
        return;
    if (peak > atomic_load(&higher_bytes))
        atomic_store(&higher_bytes, peak);
    void (*notify)(void) = atomic_load(&on_drop);
    if (notify)
        notify();
}

/* ---- looking ---- */

size_t mem_resident(void)
{
    return read_relaxed(&resident_bytes);
}

size_t mem_in_use(void)
{
    return mem_used() + block_kept() + read_relaxed(&beyond_bytes);
}

/* Resident pages less those of files and shared memory; 0 when /proc is not there. */
static size_t anonymous_bytes(void)
{
    char text[128];
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    char *at = strchr(text, ' ');
    const unsigned long resident = at ? strtoul(at, &at, 10) : 0;
    const unsigned long shared = at ? strtoul(at, NULL, 10) : 0;
    return resident > shared ? (resident - shared) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* What the others in the control group leave to us. */
static void look_at_group(uint64_t now_ns)
{
    uint64_t limit = 0, left = 0;
    if (mem_limit() == MEM_NO_LIMIT || now_ns - atomic_load(&grouped_ns) < GROUP_NS)
        return;
    atomic_store(&grouped_ns, now_ns);
    size_t allowed = MEM_NO_LIMIT;
    if (cgroup_memory_limit(&limit) && cgroup_memory_left(&left)) {
        const uint64_t reserve = limit / GROUP_RESERVE;
        allowed = mem_in_use() + (size_t)(left > reserve ? left - reserve : 0);
        if (allowed < GROUP_FLOOR_BYTES)
            allowed = GROUP_FLOOR_BYTES;
    }
    atomic_store(&group_bytes, allowed);
}

void mem_look(void)
{
    if (atomic_flag_test_and_set(&looking))
        return; /* somebody does */
    const size_t resident = anonymous_bytes(), used = mem_used() + block_kept();
    const uint64_t now_ns = clock_now_ns();
    atomic_store(&resident_bytes, resident);
    atomic_store(&beyond_bytes, resident > used && !FOREIGN_RESIDENT ? resident - used : 0);
    look_at_group(now_ns);
    atomic_store(&looked_ns, now_ns);
    atomic_flag_clear(&looking);
}

static void look_when_older(uint64_t age_ns)
{
    if (clock_now_ns() - atomic_load_explicit(&looked_ns, memory_order_relaxed) > age_ns)
        mem_look();
}

/* ---- limits ---- */

void mem_set_limit(size_t bytes)
{
    atomic_store(&limit_bytes, bytes);
    atomic_store(&group_bytes, MEM_NO_LIMIT);
    atomic_store(&grouped_ns, 0);
}

size_t mem_limit(void)
{
    return read_relaxed(&limit_bytes);
}

size_t mem_soft_limit(void)
{
    const size_t limit = mem_limit(), group = read_relaxed(&group_bytes);
    const size_t soft = limit == MEM_NO_LIMIT ? limit : limit - limit / 5;
    return soft < group ? soft : group;
}

/* 0 = free */
static bool exchange_limit(size_t from, size_t to)
{
    for (unsigned i = 0; i < ARRAY_SIZE(more_limits); i++) {
        size_t expected = from;
        if (atomic_compare_exchange_strong(&more_limits[i], &expected, to))
            return true;
    }
    return false;
}

void mem_limit_add(size_t bytes)
{
    exchange_limit(0, bytes);
}

void mem_limit_remove(size_t bytes)
{
    exchange_limit(bytes, 0);
}

size_t mem_lowest_limit(void)
{
    size_t lowest = mem_limit();
    for (unsigned i = 0; i < ARRAY_SIZE(more_limits); i++) {
        const size_t n = read_relaxed(&more_limits[i]);
        lowest = n && n < lowest ? n : lowest;
    }
    return lowest;
}

static bool fits(size_t limit, size_t in_use, size_t extra)
{
    return extra <= limit && in_use <= limit - extra;
}

/* What is live would fit: the rest is for the allocator to give back. */
static void press(void)
{
    const uint64_t now_ns = clock_now_ns();
    uint64_t before_ns = atomic_load(&pressed_ns);
    void (*notify)(void) = atomic_load(&on_pressure);
    if (notify && now_ns - before_ns > PRESS_NS &&
        atomic_compare_exchange_strong(&pressed_ns, &before_ns, now_ns))
        notify();
}

bool mem_room(size_t limit, size_t extra)
{
    const size_t soft = mem_soft_limit();
    limit = soft < limit ? soft : limit;
    if (limit == MEM_NO_LIMIT)
        return true;
    look_when_older(STALE_NS);
    if (fits(limit, mem_in_use(), extra))
        return true;
    if (block_drop())
        mem_look(); /* the allocator may have given it back */
    else
        look_when_older(FRESH_NS);
    if (fits(limit, mem_in_use(), extra))
        return true;
    if (fits(limit, mem_used(), extra))
        press();
    return false;
}

bool mem_try_charge(size_t limit, size_t bytes)
{
    mem_charge(bytes);
    if (mem_room(limit, 0))
        return true;
    mem_release(bytes);
    return false;
}
