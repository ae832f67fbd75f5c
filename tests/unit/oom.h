/*
 * Failing allocations: in a program named X_oom_test the linker sends the allocations of all that is linked statically here.
 * Set fail_in to n and the n-th allocation of this thread from now gives NULL; 0: none fails.
 */
#ifndef MOTEL_TESTS_OOM_H
#define MOTEL_TESTS_OOM_H

#include <stdbool.h>
#include <stddef.h>

static __thread unsigned fail_in;

static bool fails(void)
{
    return fail_in > 0 && --fail_in == 0;
}

#include "oom_wrap.h"

#endif
