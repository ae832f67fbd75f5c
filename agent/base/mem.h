/*
 * The account of the process's memory. Live bytes of buffers, arenas, connections and series are counted exactly, as they come and go. What
 * else is resident (stacks, tables of libraries, freed memory that the allocator keeps) is measured now and then and comes on top.
 * Limits are compared with the sum. Blocks that are kept for use again (block.h) are a part of it that goes when it is in the way. All functions are thread safe.
 */
#ifndef MOTEL_BASE_MEM_H
#define MOTEL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_NO_LIMIT SIZE_MAX

/* Live bytes of all buffers and of what else was charged. */
size_t mem_used(void);
/* The most that mem_used() ever was. */
size_t mem_peak(void);
/* Charges memory that is not in a buffer (connections, arenas, series); every charge is released later. */
void mem_charge(size_t bytes);
void mem_release(size_t bytes);

/* Anonymous resident memory of the process at the last look (mem_look()), in bytes. */
size_t mem_resident(void);
/* mem_used(), what is kept for use (block.h), and what was resident beyond them at the last look: an estimate of the resident memory of this
 * moment. */
size_t mem_in_use(void);
/* Looks at /proc/self/statm, and once a second at what the control group has left. Some 20 us. */
void mem_look(void);

/* The limit of the process, MEM_NO_LIMIT at first; new data is refused from 80 % of it on, so that what was taken can be worked on. */
void mem_set_limit(size_t bytes);
size_t mem_limit(void);
/* Where new data is refused: 80 % of the limit, or less while other processes leave the control group little. */
size_t mem_soft_limit(void);
/* A limit that a part of the program keeps besides (a memory limiter): known here for mem_lowest_limit() alone. Removed again by the same
 * number; of more than 16 at a time some are not known. */
void mem_limit_add(size_t bytes);
void mem_limit_remove(size_t bytes);
/* The lowest of all: what a single piece of work should stay far below. */
size_t mem_lowest_limit(void);
/* Whether `extra` more bytes keep the memory in use within both `limit` (MEM_NO_LIMIT = none of its own) and the soft limit of the process.
 * Where that hangs on freed memory, what block.h keeps is given back first; when the allocator keeps it, that is asked for it
 * (mem_on_pressure()). */
bool mem_room(size_t limit, size_t extra);
/* Charges `bytes` when there is room for them; else nothing is charged. */
bool mem_try_charge(size_t limit, size_t bytes);

/* `notify` is called, on the thread that released, when a peak of 4 MiB or more has shrunk to less than a quarter: a good time to give
 * free memory back to the system. It must be quick. NULL = none. */
void mem_on_drop(void (*notify)(void));
/* The same when data is refused though its memory could be had from what the allocator keeps; at most ten times a second. Who gives memory
 * back calls mem_look() afterwards. */
void mem_on_pressure(void (*notify)(void));

#endif
