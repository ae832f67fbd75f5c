/* Writing to the one open file: whole records, or one record in pieces. */
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "exporters/file/outfile_parts.h"

#define ALIGN_BYTES ((size_t)128 << 10) /* blocks of the page cache are not larger as a rule */

/*
 * Processes that write to one file know of each other by a lock that each holds as long as it has
 * the file open: a shared one. Who can make it an exclusive one is alone, and others wait; only
 * then is a record written in pieces. A whole record is written at once, which needs no lock.
 */
static void share(struct outfile *f)
{
    if (f->shares || f->lockless)
        return;
    int r;
    do
        r = flock(f->fd, LOCK_SH);
    while (r < 0 && errno == EINTR);
    f->shares = r == 0;
    f->lockless = r < 0;
}

static bool become_alone(struct outfile *f)
{
    if (f->lockless || f->disturbed || f->rotates || !f->regular)
        return false;
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    f->shares = false; /* a failure gives it up */
    share(f);
    return false;
}

/* Opens the path anew; the old file is left when that works. */
static int reopen(struct outfile *f)
{
    int fd = outfile_open_fd(f, false);
    if (fd < 0)
        return fd;
    close(f->fd);
    f->fd = fd;
    f->shares = f->lockless = f->disturbed = false;
    share(f);
    return outfile_repair(f, NULL);
}

/* Makes sure that the open file is the one at the path, and learns its size. */
static int check_place(struct outfile *f)
{
    struct stat here, there;
    if (fstat(f->fd, &here) < 0)
        return -errno;
    f->size = here.st_size;
    f->regular = S_ISREG(here.st_mode);
    if (!f->regular)
        return 0;
    bool found = stat(f->path, &there) == 0;
    if (!found && errno != ENOENT)
        return -errno;
    if (!found || there.st_dev != here.st_dev || there.st_ino != here.st_ino) {
        int r = reopen(f);
        if (r < 0 || fstat(f->fd, &here) < 0)
            return r < 0 ? r : -errno;
        f->size = here.st_size;
    }
    return 0;
}

/* A rotation that fails is no reason to lose data: the present file grows on. */
static void rotate(struct outfile *f)
{
    uint64_t now = clock_wall_ns();
    int r = rotate_move(f->path, &f->rotation, now);
    if (r == 0)
        r = reopen(f);
    if (r == 0) {
        f->size = 0;
        rotate_clean(f->path, &f->rotation, now);
    } else if (!f->stuck) {
        log_error(NULL, "Cannot rotate file, it grows on", LOG_STR("path", f->path),
                  LOG_STR("error", strerror(-r)));
    }
    f->stuck = r < 0;
}

/* How many records from `from` on go into the present file, at least one; before that it is rotated
 * when it is full. */
static size_t fitting(struct outfile *f, const size_t *ends, size_t n, size_t from)
{
    size_t start = from ? ends[from - 1] : 0, count = 0;
    if (!f->rotates)
        return n - from;
    if (f->size > 0 && f->size + (off_t)(ends[from] - start) > f->rotation.max_bytes)
        rotate(f);
    while (from + count < n &&
           f->size + (off_t)(ends[from + count] - start) <= f->rotation.max_bytes)
        count++;
    return count ? count : 1;
}

/* All of `text`, or as much as goes: *ret_put. 0 or a negative errno. */
static int put(int fd, struct bytes text, size_t *ret_put)
{
    *ret_put = 0;
    while (*ret_put < text.len) {
        ssize_t n = write(fd, text.data + *ret_put, text.len - *ret_put);
        if (n < 0 && errno != EINTR)
            return -errno;
        *ret_put += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* True when the file ends with `tail`. */
static bool ends_with(int fd, off_t size, struct bytes tail)
{
    uint8_t last[OUTFILE_TAIL];
    return size >= (off_t)tail.len &&
           pread(fd, last, tail.len, size - (off_t)tail.len) == (ssize_t)tail.len &&
           memcmp(last, tail.data, tail.len) == 0;
}

static struct bytes tail_of(struct bytes text)
{
    const size_t n = text.len < OUTFILE_TAIL ? text.len : OUTFILE_TAIL;
    return bytes_of(text.data + text.len - n, n);
}

/* Takes the last `n` bytes back, a part of a record that ends with `tail`, if they are still the
 * end of the file. */
static void take_back(struct outfile *f, size_t n, struct bytes tail)
{
    struct stat st;
    if (n == 0)
        return;
    f->torn = true;
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)n &&
        ends_with(f->fd, st.st_size, tail) && ftruncate(f->fd, st.st_size - (off_t)n) == 0)
        f->torn = false;
}

/* Writes records from..from+count; *ret_written as in outfile_write(). */
static int write_records(struct outfile *f, struct bytes text, const size_t *ends, size_t from,
                         size_t count, size_t *ret_written)
{
    size_t start = from ? ends[from - 1] : 0, done;
    struct bytes part = bytes_of(text.data + start, ends[from + count - 1] - start);
    int r = put(f->fd, part, &done);
    f->size += (off_t)done;
    size_t whole = 0;
    while (whole < count && ends[from + whole] - start <= done)
        whole++;
    *ret_written += whole;
    if (r < 0) {
        size_t kept = whole ? ends[from + whole - 1] - start : 0;
        take_back(f, done - kept, tail_of(bytes_of(part.data + kept, done - kept)));
    }
    return r;
}

/* With the lock: the file is there, and ends with a whole record. */
static int prepare(struct outfile *f)
{
    share(f);
    int r = check_place(f);
    if (r == 0 && f->torn) {
        r = outfile_repair(f, NULL);
        f->torn = r < 0;
    }
    return r;
}

int outfile_write(struct outfile *f, struct bytes text, const size_t *ends, size_t n,
                  size_t *ret_written)
{
    *ret_written = 0;
    pthread_mutex_lock(&f->lock);
    int r = prepare(f);
    for (size_t i = 0; r == 0 && i < n; i = *ret_written)
        r = write_records(f, text, ends, i, fitting(f, ends, n, i), ret_written);
    pthread_mutex_unlock(&f->lock);
    return r;
}

/* ---- in pieces ---- */

int outfile_begin(struct outfile *f, bool *ret_pieces)
{
    pthread_mutex_lock(&f->lock);
    const int r = prepare(f);
    *ret_pieces = r == 0 && become_alone(f);
    f->pieces = (struct piecewise){0};
    if (!*ret_pieces)
        pthread_mutex_unlock(&f->lock);
    return r;
}

/* Keeps the last bytes of what was put. */
static void remember(struct piecewise *p, struct bytes text)
{
    const struct bytes tail = tail_of(text);
    const size_t keep = p->ntail < OUTFILE_TAIL - tail.len ? p->ntail : OUTFILE_TAIL - tail.len;
    memmove(p->tail, p->tail + p->ntail - keep, keep);
    if (tail.len)
        memcpy(p->tail + keep, tail.data, tail.len);
    p->ntail = keep + tail.len;
}

/* A piece belongs right behind the one before it. It does not when the file was cut meanwhile
 * (logrotate's copytruncate), or when somebody else wrote. */
static bool follows(struct piecewise *p, off_t end)
{
    const bool first = p->put == p->last;
    const bool good = end < 0 || first || end == p->end + (off_t)p->last;
    p->end = end;
    return good;
}

size_t outfile_good_piece(const struct outfile *f, size_t len)
{
    const struct piecewise *p = &f->pieces;
    const size_t offset = (size_t)(p->put ? p->end : f->size) % ALIGN_BYTES, end = offset + len;
    const size_t whole = end - end % ALIGN_BYTES, half = end - end % (ALIGN_BYTES / 2);
    const size_t good = whole >= offset + ALIGN_BYTES / 2 ? whole : half;
    return good >= offset + ALIGN_BYTES / 4 ? good - offset : len;
}

int outfile_piece(struct outfile *f, struct bytes text)
{
    struct piecewise *p = &f->pieces;
    if (p->error || text.len == 0)
        return p->error;
    p->error = put(f->fd, text, &p->last);
    p->put += p->last;
    remember(p, bytes_of(text.data, p->last));
    if (p->last && !follows(p, lseek(f->fd, 0, SEEK_CUR))) {
        f->disturbed = true;
        p->error = -ESTALE;
    }
    return p->error;
}

void outfile_end(struct outfile *f, const size_t *ends, size_t n, size_t *ret_written)
{
    const struct piecewise *p = &f->pieces;
    const bool stale = p->error == -ESTALE; /* of the rest only the last piece can be reached */
    const size_t good = stale ? p->put - p->last : p->put;
    size_t whole = 0;
    while (whole < n && ends[whole] <= good)
        whole++;
    const size_t part = stale ? p->last : good - (whole ? ends[whole - 1] : 0);
    const size_t ntail = part < p->ntail ? part : p->ntail;
    take_back(f, part, bytes_of(p->tail + p->ntail - ntail, ntail));
    *ret_written = whole;
    f->shares = flock(f->fd, LOCK_SH) == 0;
    pthread_mutex_unlock(&f->lock);
}
