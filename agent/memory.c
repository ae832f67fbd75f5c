#include "agent/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdatomic.h>

#include "agent/base/cgroup.h"
#include "agent/base/clock.h"
#include "agent/base/mem.h"

#define SETTLE_NS NS_PER_S           /* more is freed right after the first drop */
#define INTERVAL_NS (10 * NS_PER_S)  /* trimmed pages cost a fault each when they are used again */
#define PRESSED_NS (250 * NS_PER_MS) /* the same while data is refused */

static pthread_t main_thread;
static atomic_bool pressed;
static uint64_t due_ns = UINT64_MAX, last_ns;

static void notify(void)
{
    pthread_kill(main_thread, MEMORY_SIGNAL);
}

static void notify_pressure(void)
{
    atomic_store(&pressed, true);
    notify();
}

/* Few arenas, so that what one thread freed serves another. Blocks of a usual request stay in the
 * heap, where they are used again without a system call. */
void memory_set_up(void)
{
    main_thread = pthread_self();
    mem_on_drop(notify);
    mem_on_pressure(notify_pressure);
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
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
}

void memory_dropped(void)
{
    const uint64_t now = clock_now_ns();
    const bool hurry = atomic_exchange(&pressed, false);
    const uint64_t soon = hurry ? now : now + SETTLE_NS;
    const uint64_t allowed = last_ns ? last_ns + (hurry ? PRESSED_NS : INTERVAL_NS) : 0;
    const uint64_t at = soon > allowed ? soon : allowed;
    if (at < due_ns)
        due_ns = at;
}

uint64_t memory_trim_due_ns(void)
{
    return due_ns;
}

void memory_trim(void)
{
#ifdef M_TRIM_THRESHOLD
    malloc_trim(0);
#endif
    mem_look();
    last_ns = clock_now_ns();
    due_ns = UINT64_MAX;
}
