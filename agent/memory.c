#include "agent/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>

#include "agent/base/buf.h"
#include "agent/base/clock.h"

#define SETTLE_NS NS_PER_S          /* more is freed right after the first drop */
#define INTERVAL_NS (10 * NS_PER_S) /* trimmed pages cost a fault each when they are used again */

static pthread_t main_thread;
static uint64_t due_ns = UINT64_MAX, last_ns;

static void notify(void)
{
    pthread_kill(main_thread, MEMORY_SIGNAL);
}

/* Few arenas; blocks of a usual request stay in the heap, where they are used again without a
 * system call. */
void memory_set_up(void)
{
    main_thread = pthread_self();
    mem_on_drop(notify);
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

void memory_dropped(void)
{
    const uint64_t soon = clock_now_ns() + SETTLE_NS;
    const uint64_t allowed = last_ns ? last_ns + INTERVAL_NS : 0;
    if (due_ns == UINT64_MAX)
        due_ns = soon > allowed ? soon : allowed;
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
    last_ns = clock_now_ns();
    due_ns = UINT64_MAX;
}
