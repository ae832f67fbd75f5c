#include "agent/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdatomic.h>

#include "agent/base/block.h"
#include "agent/base/cgroup.h"
#include "agent/base/clock.h"
#include "agent/base/mem.h"

#define SETTLE_NS NS_PER_S            /* more is freed right after the first drop */
#define INTERVAL_NS (10 * NS_PER_S)   /* trimmed pages cost a fault each when they are used again */
#define PRESSED_NS (250 * NS_PER_MS)  /* the same while data is refused */
#define AGE_NS NS_PER_S               /* a block that nobody wanted for so long goes */
#define THREADS_NS (11 * NS_PER_S)    /* workers without work have ended by then */
#define KEPT_BYTES ((size_t)32 << 20) /* of freed blocks */
#define KEPT_PART 8                   /* and no more than one part of so many of the limit */

/* AddressSanitizer is to see what uses memory after it was freed. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEP_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_BLOCKS 0
#endif
#endif
#ifndef KEEP_BLOCKS
#define KEEP_BLOCKS 1
#endif

static pthread_t main_thread;
static atomic_bool pressed, dropped, keeping;
static uint64_t due_ns = UINT64_MAX, age_ns = UINT64_MAX, last_ns;

static void tell_main(atomic_bool *what)
{
    atomic_store(what, true);
    pthread_kill(main_thread, MEMORY_SIGNAL);
}

static void notify_drop(void)
{
    tell_main(&dropped);
}

static void notify_pressure(void)
{
    tell_main(&pressed);
}

static void notify_keep(void)
{
    tell_main(&keeping);
}

/* Few arenas, so that what one thread freed serves another. Blocks of a usual request stay in the
 * heap, where they are used again without a system call. */
void memory_set_up(void)
{
    main_thread = pthread_self();
    mem_on_drop(notify_drop);
    mem_on_pressure(notify_pressure);
    block_on_keep(notify_keep);
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

static void keep_blocks(void)
{
    const size_t part = mem_limit() / KEPT_PART;
    if (KEEP_BLOCKS)
        block_set_limit(part < KEPT_BYTES ? part : KEPT_BYTES);
}

void memory_limit_to(int64_t bytes)
{
    uint64_t group = 0;
    if (bytes > 0)
        mem_set_limit((size_t)bytes);
    else if (bytes < 0 && cgroup_memory_limit(&group))
        mem_set_limit((size_t)(group / 5 * 4));
    else
        mem_set_limit(MEM_NO_LIMIT);
    keep_blocks();
}

static void trim_at(uint64_t soon_ns, uint64_t interval_ns)
{
    const uint64_t allowed_ns = last_ns ? last_ns + interval_ns : 0;
    const uint64_t at_ns = soon_ns > allowed_ns ? soon_ns : allowed_ns;
    due_ns = at_ns < due_ns ? at_ns : due_ns;
}

void memory_signalled(void)
{
    const uint64_t now_ns = clock_now_ns();
    if (atomic_exchange(&keeping, false))
        age_ns = now_ns + AGE_NS;
    if (atomic_exchange(&dropped, false))
        trim_at(now_ns + SETTLE_NS, INTERVAL_NS);
    if (atomic_exchange(&pressed, false))
        trim_at(now_ns, PRESSED_NS);
}

uint64_t memory_due_ns(void)
{
    return age_ns < due_ns ? age_ns : due_ns;
}

static void trim(uint64_t now_ns)
{
#ifdef M_TRIM_THRESHOLD
    malloc_trim(0);
#endif
    mem_look();
    last_ns = now_ns;
    due_ns = UINT64_MAX;
}

/* Once nothing is kept nothing goes on here; what the blocks leave behind in the allocator goes
 * too, and what threads do that end for want of work. */
static void age(uint64_t now_ns)
{
    const bool more = block_age();
    age_ns = more ? now_ns + AGE_NS : UINT64_MAX;
    if (more)
        return;
    trim(now_ns);
    due_ns = now_ns + THREADS_NS;
}

void memory_work(void)
{
    const uint64_t now_ns = clock_now_ns();
    if (age_ns <= now_ns)
        age(now_ns);
    if (due_ns <= now_ns)
        trim(now_ns);
}
