#include "agent/base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_zero(const uint8_t *p, size_t len)
{
    return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

size_t pages_give_back(void *at, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = (page - (uintptr_t)at % page) % page;
    size_t given = 0, zeros = 0;
    if (len < before + page)
        return 0;
    uint8_t *p = (uint8_t *)at + before;
    for (size_t left = (len - before) / page; left > 0; left--, p += page) {
        const bool zero = is_zero(p, page);
        zeros += zero ? page : 0;
        if (zeros == 0 || (zero && left > 1))
            continue;
        uint8_t *const end = zero ? p + page : p;
        given += madvise(end - zeros, zeros, MADV_DONTNEED) == 0 ? zeros : 0;
        zeros = 0;
    }
    return given;
}
