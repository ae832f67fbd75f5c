/* The allocator's settings, and giving memory back to the system after a burst. For the main thread. */
#ifndef MOTEL_MEMORY_H
#define MOTEL_MEMORY_H

#include <signal.h>
#include <stdint.h>

#define MEMORY_SIGNAL SIGUSR2 /* "much was freed": raised in the main thread, which waits for signals anyway */

/* Before any other thread runs, with MEMORY_SIGNAL blocked. */
void memory_set_up(void);
/* The limit of the process from `memory_limit`: bytes; 0 = none; -1 = by the control group, 80 % of its limit if it has one. */
void memory_limit_to(int64_t bytes);
/* After MEMORY_SIGNAL: notes that memory is to be given back soon, but not often. */
void memory_dropped(void);
/* When memory_trim() is due (clock_now_ns); UINT64_MAX = never. */
uint64_t memory_trim_due_ns(void);
void memory_trim(void);

#endif
