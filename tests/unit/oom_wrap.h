/* What allocations go through in a program named X_oom_test; it defines `static bool fails(void)` before: whether this one gives NULL. */
#ifndef MOTEL_TESTS_OOM_WRAP_H
#define MOTEL_TESTS_OOM_WRAP_H

#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

#endif
