/* Scope-bound cleanup, after systemd's macros. */
#ifndef MOTEL_BASE_CLEANUP_H
#define MOTEL_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Calls `f(&variable)` when the variable leaves its scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _unused_ __attribute__((unused))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))

/* Takes the pointer out of a cleanup variable: the value, and the variable becomes NULL. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) *_pp = &(p);                                                                 \
        __typeof__(p) _v = *_pp;                                                                   \
        *_pp = NULL;                                                                               \
        _v;                                                                                        \
    })
/* The same for a file descriptor; the variable becomes -1. */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *_fp = &(fd);                                                                          \
        int _f = *_fp;                                                                             \
        *_fp = -1;                                                                                 \
        _f;                                                                                        \
    })

/* Defines cleanup function NAMEp for a destructor that takes a pointer and may be given NULL. */
#define DEFINE_CLEANUP(type, destroy)                                                              \
    static inline void destroy##p(type *p)                                                         \
    {                                                                                              \
        if (*p)                                                                                    \
            destroy(*p);                                                                           \
    }

static inline void cleanup_free(void *p) { free(*(void **)p); }
static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
static inline void cleanup_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
