/*
 * Places in files. A file is the same one when its beginning and what stands before the place are
 * what they were; device and inode only say where to look first, because copying, cutting and reuse
 * change what they mean.
 */
#include <errno.h>

#include "receivers/console/console.h"

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

/* Hashes `len` bytes at `offset`; false when they are not all there. */
static bool hash_at(int fd, uint64_t offset, size_t len, uint64_t *ret)
{
    uint8_t bytes[MARK_BYTES];
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, bytes + got, len - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    *ret = hash_bytes(bytes, len);
    return true;
}

int mark_set(struct mark *m, int fd, uint64_t offset)
{
    uint32_t head = offset < MARK_BYTES ? (uint32_t)offset : MARK_BYTES;
    uint32_t tail = offset < MARK_TAIL ? (uint32_t)offset : MARK_TAIL;
    struct mark next = *m;
    if (head != m->head_len && !hash_at(fd, 0, head, &next.head_hash))
        return -ENODATA;
    if (!hash_at(fd, offset - tail, tail, &next.tail_hash))
        return -ENODATA;
    next.head_len = head;
    next.tail_len = tail;
    next.offset = offset;
    *m = next;
    return 0;
}

int mark_hold(struct mark *m, const struct console_reader *r)
{
    struct console_range *held = NULL;
    size_t n = console_pending(r) ? console_held(r, NULL, 0) : 0;
    if (n) {
        held = malloc(n * sizeof(*held));
        if (!held)
            return -ENOMEM;
        console_held(r, held, n);
    }
    bool same = n == m->nheld && (n == 0 || memcmp(held, m->held, n * sizeof(*held)) == 0);
    free(m->held);
    m->held = held;
    m->nheld = n;
    return !same;
}

bool mark_matches(const struct mark *m, int fd)
{
    uint64_t head = 0, tail = 0;
    return hash_at(fd, 0, m->head_len, &head) && head == m->head_hash &&
           hash_at(fd, m->offset - m->tail_len, m->tail_len, &tail) && tail == m->tail_hash;
}

void mark_done(struct mark *m)
{
    free(m->held);
    m->held = NULL;
    m->nheld = 0;
}
