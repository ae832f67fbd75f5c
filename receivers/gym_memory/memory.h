/*
 * Measures processes within a time budget. The kernel walks all pages of a process to answer how much it holds (0.03 ms for a small one, 1 ms
 * for 300 MB), so this is done at once only for processes that are new, whose counters have changed, or whose server has gained or lost
 * processes, and in turn for the others, as far as the budget goes. For who has to wait, the resident size of its counters says by how
 * much the last measure is off.
 */
#ifndef MOTEL_RECEIVERS_GYM_MEMORY_MEMORY_H
#define MOTEL_RECEIVERS_GYM_MEMORY_MEMORY_H

#include "receivers/gym_memory/table.h"

struct meter {
    int64_t share_ns;  /* CPU time that a sample may take */
    int64_t income_ns; /* what is left of it for measuring, in this sample */
    int64_t left_ns;   /* with what earlier samples have left; negative after an expensive process */
    size_t turn[4];    /* where each pass goes on next time */
};
void meter_init(struct meter *m, int64_t interval_ns);
/* CPU time of this thread; to be taken where a sample begins. */
int64_t meter_now_ns(void);
/* Brings rss and pss of `n` different processes up to date; those that have gone are not `here` any more. `exact` measures all of them, whatever
 * it costs. `begun_ns`: meter_now_ns() at the beginning of the sample. */
void meter_run(struct meter *m, struct proc_table *t, struct proc *const *procs, size_t n, bool exact, int64_t begun_ns);

#endif
