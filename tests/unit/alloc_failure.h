/*
 * Failing allocations of everybody: our own code, the C library and the libraries that are linked, by having malloc(), calloc() and
 * realloc() in the test program. (oom.h is for our own code only, whose errors can then be expected to the letter.) The n-th
 * allocation of the thread gives NULL, or that and all that follow. Works with and without sanitizers.
 */
#ifndef MOTEL_TESTS_ALLOC_FAILURE_H
#define MOTEL_TESTS_ALLOC_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/base/buf.h"

static _Thread_local unsigned fail_in; /* the how many-th from now fails; 0 = none */
static _Thread_local bool fail_rest, fail_reached;
static unsigned fail_number; /* of the allocation that fails, for texts; 0: none does */

/* The sanitizers' allocators, where there is one, else that of the C library. */
void *__interceptor_malloc(size_t n) __attribute__((weak));
void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *p, size_t n) __attribute__((weak));
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

PLAIN static bool alloc_fails(void)
{
    if (fail_in == 0 || --fail_in > 0)
        return false;
    fail_in = fail_rest;
    fail_reached = true;
    return true;
}

PLAIN void *malloc(size_t n)
{
    if (alloc_fails())
        return NULL;
    return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

PLAIN void *calloc(size_t n, size_t size)
{
    if (alloc_fails())
        return NULL;
    return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

PLAIN void *realloc(void *p, size_t n)
{
    if (alloc_fails())
        return NULL;
    return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}

/* What stands between these does not count: the test's own work. */
static inline unsigned alloc_pause(void)
{
    const unsigned left = fail_in;
    fail_in = 0;
    return left;
}
static inline void alloc_go_on(unsigned left) { fail_in = left; }

/*
 * One thing to try: run() does it once and cleans up. 0, or a negative errno, which is only right when an allocation failed; the
 * checks that hold in any case are its own.
 */
struct alloc_case {
    const char *name;
    int (*run)(const void *arg);
    const void *arg;
    unsigned step; /* after the first 200 allocations only every step-th fails; 0 = all of them */
};

/* With the n-th allocation failing, and the rest; true when there were so many. */
static inline bool alloc_case_run(const struct alloc_case *c, unsigned n, bool rest)
{
    const size_t before = mem_used();
    fail_in = fail_number = n;
    fail_rest = rest;
    fail_reached = false;
    const int r = c->run(c->arg);
    alloc_pause();
    if (!fail_reached && r != 0)
        fail_msg("%s: %d although no allocation failed (the %u-th was to)", c->name, r, n);
    for (unsigned i = 0; mem_used() > before && i < 50000; i++)
        usleep(200); /* a thread of its own may be about to let go of it; one of the run before may have done so meanwhile */
    if (mem_used() > before)
        fail_msg("%s: allocation %u failed and %zu bytes of telemetry are left", c->name, n, mem_used() - before);
    return fail_reached;
}

static inline void alloc_case_check(const struct alloc_case *c)
{
    fail_number = 0;
    assert_int_equal(c->run(c->arg), 0); /* what is made once in the life of the process is there afterwards */
    for (unsigned rest = 0; rest < 2; rest++) {
        unsigned n = 1;
        while (alloc_case_run(c, n, rest))
            n += n > 200 && c->step ? c->step : 1;
        print_message("%s: %u allocations\n", c->name, n - 1);
        if (n == 1)
            fail_msg("%s: nothing was allocated", c->name);
    }
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        fail_msg("%s: leaks", c->name);
}

#endif
