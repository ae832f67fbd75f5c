/* The allocator's settings, and giving memory back to the system after a burst. For the main thread. */
#ifndef MOTEL_MEMORY_H
#define MOTEL_MEMORY_H

#include <signal.h>
#include <stdint.h>

#define MEMORY_SIGNAL SIGUSR2 /* "much was freed, or kept for use again": raised in the main thread, which waits for signals anyway */

/* Before any other thread runs, with MEMORY_SIGNAL blocked. */
void memory_set_up(void);
/* The limit of the process from `memory_limit`: bytes; 0 = none; -1 = by the control group, 80 % of its limit if it has one. */
void memory_limit_to(int64_t bytes);
/* After MEMORY_SIGNAL: notes what is to be given back, and when: soon, but not often. */
void memory_signalled(void);
/* When memory_work() is due (clock_now_ns); UINT64_MAX = never: nothing is there to be given back. */
uint64_t memory_due_ns(void);
/* Gives back what is due. */
void memory_work(void);

#endif
